"""Show the commands that a user types, and their answers."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterable
from pathlib import Path

from click.testing import CliRunner

from vertimrf.cli import main


def step(told: str) -> None:
    """Print what the next commands do."""
    print(f"\n# {told}")


def exchanged(folder: Path, base: Path, agreed: str, tables: dict[str, str], seed: int = 1) -> None:
    """Type what three roles type until all parties have the plan and have accepted it.

    Args:
        folder: has the schema, and a table of every party.
        base: beginning of the names of the run folders and of the exchange.
        agreed: options of the server's run.
        tables: further options of every party's run.
        seed: of the sampling.
    """
    place = Path(f"{base}.exchange")
    place.mkdir()
    type_in(
        f"run server {base}.server --schema {folder}/schema.toml {agreed} --seed {seed} --exchange {place}"
    )
    for name, more in tables.items():
        type_in(
            f"run party {base}.{name} --name {name} --table {folder}/{name}.csv {more} --exchange {place}"
        )
    type_in(f"run server {base}.server")
    for name in tables:
        type_in(f"run party {base}.{name}")
    told = type_in(f"status {base}.server --json -", most=0)
    for name in tables:
        type_in(f"check {base}.{name}", most=20)
        type_in(f"accept {base}.{name} {json.loads(told)['plan']} --anyway")


def released(base: Path, parties: Iterable[str]) -> Path:
    """Type what parties and server type until the table is there; returns the folder of the result."""
    for _ in range(2):
        for name in parties:
            type_in(f"run party {base}.{name}")
        type_in(f"run server {base}.server")
    return Path(f"{base}.server/result")


def type_in(command: str, *more: object, answer: int = 0, most: int = 12) -> str:
    """Run a `vertimrf` command in this process, showing it and its answer.

    Args:
        command: as typed in a shell, without the program's name.
        more: further arguments, which need no quotes.
        answer: the expected exit code.
        most: lines of the answer to show.

    Returns:
        All that the command printed.

    Raises:
        SystemExit: another exit code.
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
