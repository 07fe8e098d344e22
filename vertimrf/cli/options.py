"""Options and their help that several commands share, and what is made of their text."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import fields
from typing import Any

import click

from ..errors import PlanError
from ..plan.defaults import INNER, MESSAGE_BYTES, PAIRS_BYTES, POPULATIONS, TAU
from ..tables.read_options import ReadOptions

__all__ = [
    "POPULATION",
    "makes_plan",
    "missing_options",
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
POPULATION = "Whom the table is of, where parties hold different people: those that all hold (inner), or everybody (outer)."


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


def reads_tables(*names: str) -> Callable[[Any], Any]:
    """Options of a command that reads people's tables: these attributes of ``ReadOptions``, handed to it as `read`."""

    def decorate(command: Any) -> Any:
        @functools.wraps(command)
        def reading(*args: Any, **options: Any) -> Any:
            given = {name: options.pop(name) for name in names}
            if "delimiter" in given:
                given["delimiter"] = given["delimiter"].replace("\\t", "\t")
            if "id_format" in given:
                given["id_format"] = tuple(part.strip() for part in given["id_format"].split(",") if part.strip())
            return command(*args, read=ReadOptions(**given), **options)

        wrapped: Any = reading
        for attribute in reversed(fields(ReadOptions)):
            if attribute.name in names:
                wrapped = read_option(attribute)(wrapped)
        return wrapped

    return decorate


def read_option(attribute: Any) -> Any:
    """The command-line option of an attribute of ``ReadOptions``, with its help."""
    name, text = attribute.name, attribute.metadata["help"]
    if name == "ignore_extra":
        return click.option("--ignore-extra-columns", name, is_flag=True, help=text)
    return click.option("--" + name.replace("_", "-"), name, default="" if name == "id_format" else attribute.default, help=text)


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
