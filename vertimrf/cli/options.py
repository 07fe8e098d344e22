"""Options that several commands share.

A command receives them as one value, such as ``PlanOptions``.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import fields
from typing import Any

import click

from ..errors import PlanError
from ..options import EvaluationOptions
from ..plan.defaults import POPULATIONS
from ..plan.options import PlanOptions, flag
from ..tables.read_options import ReadOptions

__all__ = ["compares", "makes_plan", "missing_options", "parse_numbers", "reads_tables", "runs"]

# Settings of click for attributes of options whose default does not say their type.
SETTINGS: dict[str, dict[str, Any]] = {
    "claim_as_published": {"is_flag": True},
    "collusion_epsilon": {"type": float},
    "delta": {"type": float},
    "expected_records": {"type": int},
    "id_format": {"default": ""},
    "label": {"type": str, "metavar": "LABEL"},
    "message_bytes": {"type": float},
    "party": {"type": str},
    "population": {"type": click.Choice(POPULATIONS)},
    "records_per_person": {"type": click.IntRange(min=1)},
    "seed": {"type": click.IntRange(min=0)},
    "split": {"type": str},
    "ways": {"type": str},
    "workload": {"multiple": True, "default": ()},
}
EVERY_TABLE = ("person", "id_format", "delimiter", "encoding")
EVERY_PLAN = (
    "expected_records",
    "delta",
    "tau",
    "message_bytes",
    "collusion_epsilon",
    "encoder",
    "claim_as_published",
    "workload",
    "records_per_person",
    "population",
)


def parse_numbers(text: str, option: str) -> list[int]:
    """Parse whole numbers separated by commas.

    Raises:
        PlanError: the text is not that.
    """
    try:
        return [int(part) for part in text.split(",")]
    except ValueError:
        raise PlanError(
            f"{option} takes whole numbers separated by commas, not {text!r}."
        ) from None


def reads_tables(*names: str) -> Callable[[Any], Any]:
    """Options of a command that reads tables. The command receives a ``ReadOptions`` as `read`.

    Args:
        names: attributes of ``ReadOptions``. None are all.
    """

    def made(given: dict[str, Any]) -> ReadOptions:
        given["delimiter"] = given["delimiter"].replace("\\t", "\t")
        if "id_format" in given:
            given["id_format"] = tuple(
                part.strip() for part in given["id_format"].split(",") if part.strip()
            )
        return ReadOptions(**given)

    return _options("read", ReadOptions, names or EVERY_TABLE, made)


def makes_plan(*names: str) -> Callable[[Any], Any]:
    """Options of a command that makes a plan. The command receives a ``PlanOptions`` as `planning`.

    Args:
        names: attributes of ``PlanOptions``, in addition to those that every such command has.
    """

    def made(given: dict[str, Any]) -> PlanOptions:
        given["message_bytes"] = _message_bytes(given["message_bytes"])
        given["workload"] = [marginal.split(",") for marginal in given["workload"]] or None
        if given.get("split") is not None:
            given["split"] = tuple(parse_numbers(given["split"], "--split"))
        return PlanOptions(**given)

    return _options("planning", PlanOptions, (*EVERY_PLAN, *names), made)


def compares(command: Any) -> Any:
    """Options of a command that compares tables.

    The command receives an ``EvaluationOptions`` as `options`.
    """

    def made(given: dict[str, Any]) -> EvaluationOptions:
        if given["ways"] is not None:
            given["ways"] = tuple(parse_numbers(given["ways"], "--ways"))
        return EvaluationOptions(**given)

    names = [attribute.name for attribute in fields(EvaluationOptions)]
    return _options("options", EvaluationOptions, names, made)(command)


def runs(command: Any) -> Any:
    """Options of a command that draws synthetic rows.

    The command receives a ``RunOptions`` as `options`.
    """

    @click.option(
        "--rows", type=click.IntRange(min=1), help="Synthetic rows; default the noisy record count."
    )
    @click.option(
        "--seed",
        type=click.IntRange(min=0),
        help="Seed for the synthetic rows; privacy noise has no seed.",
    )
    @click.option("--threads", type=click.IntRange(min=1), help="Threads for the kernels.")
    @functools.wraps(command)
    def with_options(
        *args: Any, rows: int | None, seed: int | None, threads: int | None, **given: Any
    ) -> Any:
        from ..options import RunOptions
        from ..progress import for_terminal

        return command(
            *args,
            options=RunOptions(rows=rows, seed=seed, num_threads=threads, progress=for_terminal()),
            **given,
        )

    return with_options


def _options(
    into: str, kind: type, names: Sequence[str], made: Callable[[dict[str, Any]], Any]
) -> Callable[[Any], Any]:
    """A decorator that adds options for attributes of a dataclass, with their help texts.

    Args:
        into: name of the command's parameter.
        kind: the dataclass.
        names: its attributes.
        made: makes the value from the options by attribute.
    """

    def decorate(command: Any) -> Any:
        @functools.wraps(command)
        def wrapped(*args: Any, **given: Any) -> Any:
            value = made({name: given.pop(name) for name in names})
            return command(*args, **{into: value}, **given)

        out: Any = wrapped
        for attribute in reversed(fields(kind)):
            if attribute.name in names:
                settings = {"default": attribute.default} | SETTINGS.get(attribute.name, {})
                declared = (flag(attribute.name), attribute.name)
                out = click.option(*declared, help=attribute.metadata["help"], **settings)(out)
        return out

    return decorate


def _message_bytes(message_mb: float | None) -> int | None:
    """The value of --message-mb in bytes."""
    if message_mb is None:
        return None
    if not 0 < message_mb < 1e6:
        raise PlanError(f"--message-mb must be a number of megabytes above 0, not {message_mb}.")
    return round(message_mb * 1e6)


def missing_options(options: dict[str, Any]) -> str:
    """Names of the options that were not given, for a sentence."""
    return ", ".join(option for option, value in options.items() if value is None)
