"""``python -m vertimrf``."""

from .cli import main

if __name__ == "__main__":
    main(prog_name="vertimrf")
