"""``python -m vertimrf``."""

from .cli import main

main(prog_name="vertimrf")
