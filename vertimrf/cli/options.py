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
from ..options import EvaluationOptions, RunOptions
from ..plan.defaults import MAX_MESSAGE, POPULATIONS
from ..plan.options import MIN_MESSAGE_BYTES, PlanOptions, flag
from ..progress import for_terminal
from ..tables.read_options import ReadOptions

# Settings of click for attributes of options whose default does not say their type.
SETTINGS: dict[str, dict[str, Any]] = {
    "delimiter": {"show_default": "the header's"},
    "encoding": {"show_default": "utf-8"},
    "collusion_epsilon": {"type": float},
    "delta": {"type": float},
    "expected_records": {"type": int},
    "columns": {"default": ""},
    "id_format": {"default": ""},
    "label": {"metavar": "LABEL"},
    "message_bytes": {"type": float},
    "num_threads": {"type": click.IntRange(min=1)},
    "population": {"type": click.Choice(POPULATIONS)},
    "records_per_person": {"type": click.IntRange(min=1)},
    "rows": {"type": click.IntRange(min=1)},
    "seed": {"type": click.IntRange(min=0)},
    "skip_rows": {"type": click.IntRange(min=0)},
    "workload": {"multiple": True, "default": ()},
}


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
        names: attributes of ``ReadOptions``; default all.
    """

    def made(given: dict[str, Any]) -> ReadOptions:
        given["delimiter"] = given["delimiter"].replace("\\t", "\t")
        for name in {"id_format", "columns"}.intersection(given):
            parts = (part.strip() for part in given[name].split(","))
            given[name] = tuple(part for part in parts if part)
        return ReadOptions(**given)

    return _options("read", ReadOptions, made, names)


def makes_plan(*without: str) -> Callable[[Any], Any]:
    """Options of a command that makes a plan. The command receives a ``PlanOptions`` as `planning`.

    Args:
        without: attributes of ``PlanOptions`` that the command has no use for.
    """

    def made(given: dict[str, Any]) -> PlanOptions:
        given["message_bytes"] = _message_bytes(given["message_bytes"])
        given["workload"] = given["workload"] or None
        return PlanOptions(**given)

    names = [attribute.name for attribute in fields(PlanOptions) if attribute.name not in without]
    return _options("planning", PlanOptions, made, names)


def compares(command: Any) -> Any:
    """Options of a command that compares tables.

    The command receives an ``EvaluationOptions`` as `options`.
    """

    def made(given: dict[str, Any]) -> EvaluationOptions:
        if given["ways"] is not None:
            given["ways"] = tuple(parse_numbers(given["ways"], "--ways"))
        return EvaluationOptions(**given)

    return _options("options", EvaluationOptions, made)(command)


def runs(*names: str) -> Callable[[Any], Any]:
    """Options of a command that runs kernels. The command receives a ``RunOptions`` as `options`.

    Args:
        names: attributes of ``RunOptions``; default all.
    """

    def made(given: dict[str, Any]) -> RunOptions:
        options = RunOptions(**given, progress=for_terminal())
        if options.num_threads is not None:
            from ..kernels.jit import threads

            # Tables are read and written on as many.
            click.get_current_context().with_resource(threads(options.num_threads))
        return options

    return _options("options", RunOptions, made, names)


def _options(
    into: str, kind: type, made: Callable[[dict[str, Any]], Any], names: Sequence[str] = ()
) -> Callable[[Any], Any]:
    """A decorator that adds options for attributes of a dataclass, with their help texts.

    Args:
        into: name of the command's parameter.
        kind: the dataclass.
        made: makes the value from the options by attribute.
        names: its attributes; default all. Those without help are no options.
    """
    attributes = [
        attribute
        for attribute in fields(kind)
        if attribute.metadata and (not names or attribute.name in names)
    ]

    def decorate(command: Any) -> Any:
        @functools.wraps(command)
        def wrapped(*args: Any, **given: Any) -> Any:
            value = made({attribute.name: given.pop(attribute.name) for attribute in attributes})
            return command(*args, **{into: value}, **given)

        out: Any = wrapped
        for attribute in reversed(attributes):
            settings = {"default": attribute.default, "is_flag": attribute.default is False}
            settings |= SETTINGS.get(attribute.name, {})
            declared = (flag(attribute.name), attribute.name)
            out = click.option(*declared, help=attribute.metadata["help"], **settings)(out)
        return out

    return decorate


def _message_bytes(message_mb: float | None) -> int | None:
    """The value of --message-mb in bytes."""
    if message_mb is None:
        return None
    least, most = MIN_MESSAGE_BYTES / 1e6, MAX_MESSAGE / 1e6
    if not least <= message_mb <= most:
        raise PlanError(
            f"--message-mb must lie between {least:g} and {most:,.0f} megabytes, not {message_mb}."
        )
    return int(message_mb * 1e6)


def missing_options(options: dict[str, Any]) -> str:
    """Names of the options that were not given, for a sentence."""
    return ", ".join(option for option, value in options.items() if value is None)


def begins_run(options: dict[str, Any]) -> bool:
    """Whether a command begins a run, by all of these options, or goes on with one, by none.

    Raises:
        PlanError: only some are given.
    """
    needed = missing_options(options)
    if needed and any(value is not None for value in options.values()):
        raise PlanError(f"A new run also needs {needed}. To continue a run, name only its folder.")
    return not needed
