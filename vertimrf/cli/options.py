"""Options and their help that several commands share, and what is made of their text."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import click

from ..errors import PlanError
from ..plan.defaults import INNER, MESSAGE_BYTES, PAIRS_BYTES, POPULATIONS, TAU

__all__ = [
    "EXTRA",
    "ID_FORMAT",
    "PERSON",
    "POPULATION",
    "makes_plan",
    "missing_options",
    "parse_formats",
    "parse_numbers",
    "reads_tables",
]

ENCODERS = "count-sketch; scheduled-pairs (larger messages); grr (baseline, replace one record); published (not private)."
MESSAGE_MB = (
    f"Budget for a party's sketches, MB, local marginals on top; default {MESSAGE_BYTES / 1e6:g}, with scheduled pairs "
    f"{PAIRS_BYTES / 1e6:g}."
)
COLLUSION = (
    "Cap on epsilon if a party colludes with the server: messages are as large as it allows. In place of --message-mb."
)
EXTRA = "Leave out columns that the plan does not know, instead of refusing the table."
PERSON = "Column that says whose a record is, where people have several records."
POPULATION = "Whom the table is of, where parties hold different people: those that all hold (inner), or everybody (outer)."
ID_FORMAT = "For ids that others write differently: strip, lower, whole (123.0 is 123), unpad (00123 is 123); with commas."


def parse_numbers(text: str, option: str) -> list[int]:
    """Whole numbers separated by commas."""
    try:
        return [int(part) for part in text.split(",")]
    except ValueError:
        raise PlanError(f"{option} takes whole numbers separated by commas, not {text!r}.") from None


def _message_bytes(message_mb: float | None) -> int | None:
    """Bytes of --message-mb."""
    if message_mb is None:
        return None
    if not 0 < message_mb < 1e6:
        raise PlanError(f"--message-mb must be a number of megabytes above 0, not {message_mb}.")
    return round(message_mb * 1e6)


def parse_formats(text: str) -> tuple[str, ...]:
    """Names of --id-format."""
    from ..tables.ids import check_formats

    return check_formats([part.strip() for part in text.split(",") if part.strip()])


def reads_tables(command: Any) -> Any:
    """Options of every command that reads people's tables; it is handed them as `csv`."""

    @click.option("--delimiter", default=",", help="Between the cells of CSV files; \\t for tabs.")
    @click.option("--encoding", default="utf-8", help="Of the text of CSV files, such as latin-1.")
    @functools.wraps(command)
    def reading(*args: Any, delimiter: str, encoding: str, **options: Any) -> Any:
        from ..tables.arrow import CsvFormat

        return command(*args, csv=CsvFormat(delimiter.replace("\\t", "\t"), encoding), **options)

    return reading


def makes_plan(command: Any) -> Any:
    """Options of every command that makes a plan; it is handed them as `planning`, arguments of ``make_plan``."""

    @click.option("--tau", type=int, default=TAU, help="Largest clique of the global model, cells.")
    @click.option("--message-mb", type=float, help=MESSAGE_MB)
    @click.option("--collusion-epsilon", type=float, help=COLLUSION)
    @click.option("--encoder", help=ENCODERS)
    @click.option("--workload", multiple=True, help="Columns, with commas, of a marginal that matters most; repeat for more.")
    @click.option("--population", type=click.Choice(POPULATIONS), default=INNER, help=POPULATION)
    @functools.wraps(command)
    def planning(
        *args: Any,
        tau: int,
        message_mb: float | None,
        collusion_epsilon: float | None,
        encoder: str | None,
        workload: Sequence[str],
        population: str,
        **options: Any,
    ) -> Any:
        given = {
            "tau": tau,
            "message_bytes": _message_bytes(message_mb),
            "collusion_epsilon": collusion_epsilon,
            "encoder": encoder,
            "workload": [marginal.split(",") for marginal in workload] or None,
            "population": population,
        }
        return command(*args, planning=given, **options)

    return planning


def missing_options(options: dict[str, Any]) -> str:
    """The options that were not given, as words."""
    return ", ".join(option for option, value in options.items() if value is None)
