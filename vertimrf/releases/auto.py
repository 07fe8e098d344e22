"""The release that ``encoder = "auto"`` stands for, and why.

Encrypted counts hold epsilon if parties collude, and are more accurate than count sketches. They
need two parties with the same people, which only the parties can state. The choice follows from the
schema and the options alone, before any data is read.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from ..plan.defaults import AUTO, ENCODER, INNER

if TYPE_CHECKING:
    from ..plan.options import PlanOptions
    from ..plan.schema import Schema

# Most encrypted numbers, records times values of the first party's columns: those of the largest run
# in benchmarks/accuracy/encrypted.py, with 213 MB between the parties.
MOST_NUMBERS = 40_000_000
STATED = "two parties state that they hold the same people"
USELESS = "a result of encrypted counts is predicted to be useless"
# Why encrypted counts are not for a plan; the first that holds is the reason.
OBSTACLES: Mapping[str, Callable[[Schema, PlanOptions], bool]] = {
    "encrypted counts are proposed to two parties": lambda schema, _: len(schema.parties) != 2,
    "the schema does not state that all parties hold the same people (same_people)": (
        lambda schema, _: not schema.same_people
    ),
    "encrypted counts are for columns that one party holds": lambda schema, _: bool(schema.shared),
    "encrypted counts do not tell who holds a person": (
        lambda _, options: options.population != INNER
    ),
    "encrypted counts have no price for several records of a person": (
        lambda _, options: options.records_per_person > 1
    ),
    "an option sets the size of sketches": lambda _, options: (
        (options.keys, options.message_bytes, options.collusion_epsilon) != (None,) * 3
    ),
    f"encrypted rows are proposed up to {MOST_NUMBERS:,} numbers, records times values": (
        lambda schema, options: _numbers(schema, options) > MOST_NUMBERS
    ),
}
# By reason, the encoder that is chosen for it.
ENCODERS = {STATED: "encrypted", **dict.fromkeys([*OBSTACLES, USELESS], ENCODER)}


def _numbers(schema: Schema, planning: PlanOptions) -> int:
    """Numbers that the first party encrypts."""
    values = sum(schema.sizes[a] for a in schema.party_attributes(schema.party_names[0]))
    return values * (planning.expected_records or 0)


def chosen(schema: Schema, planning: PlanOptions) -> tuple[PlanOptions, str]:
    """The options with a kind of release in place of "auto", and why; no reason for other options."""
    if planning.encoder != AUTO:
        return planning, ""
    reason = next((why for why, there in OBSTACLES.items() if there(schema, planning)), STATED)
    return replace(planning, encoder=ENCODERS[reason]), reason
