"""What a user types at the command line, and what is answered, as a journey tells it."""

from __future__ import annotations

import shlex

from click.testing import CliRunner

from vertimrf.cli import main


def step(told: str) -> None:
    """Say what comes next."""
    print(f"\n# {told}")


def type_in(command: str, *more: object, answer: int = 0, most: int = 12) -> str:
    """Run a `vertimrf` command in this process, showing it and its answer.

    Args:
        command: as typed in a shell, without the program's name.
        more: further arguments, which need no quotes.
        answer: the exit code that is due.
        most: lines of the answer to show.

    Returns:
        All that the command printed.

    Raises:
        SystemExit: another exit code than due.
    """
    arguments = [*shlex.split(command), *map(str, more)]
    print(f"$ vertimrf {shlex.join(arguments)}")
    result = CliRunner().invoke(main, arguments)
    said = result.output.rstrip().splitlines()
    shown = said if result.exit_code != answer else said[:most]
    print("\n".join(f"  {line}" for line in shown))
    if len(shown) < len(said):
        print(f"  ... and {len(said) - len(shown)} more lines")
    if result.exit_code != answer:
        raise SystemExit(f"exit code {result.exit_code} instead of {answer}: {result.exception!r}")
    return result.output
