"""The second round: what the server asks the parties once it has seen the first round's messages.

Everything in it is computed from messages, so it is as public as they are, and what it asks for was paid for by the plan: any
keys that it does not use are not spent. A party answers one follow-up per plan, and all parties the same one: a server that sent
each pair of parties another one could spend the keys several times over.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import MessageError, PlanError
from ..files.atomic import read_json, write_text
from ..files.canonical import fingerprint, json_digest
from ..sketches.parameters import ScheduledPair, SketchPlan, packed_bytes
from .defaults import PAIRS_BYTES
from .plan import Plan
from .schedule import Group, Schedule

__all__ = ["FollowUp"]

FORMAT = 1


@dataclass(frozen=True, eq=False)
class FollowUp:
    """The schedule of the second round.

    Attributes:
        plan: the plan it belongs to.
        schedule: what sketches publish, under which keys.
        bins: per group and attribute of it, the map code -> bin [shape=(size,), int64], cut by the server from released
            marginals.

    Raises:
        MessageError: it asks for more than the plan paid for, or for what no party can give.
    """

    plan: Plan
    schedule: Schedule
    bins: tuple[tuple[npt.NDArray[np.int64], ...], ...]

    def __post_init__(self) -> None:
        keys = sum(pair.keys for pair in self.schedule.pairs)
        if not isinstance(self.plan.sketch, SketchPlan) or keys > self.plan.second_keys:
            raise MessageError(
                f"The follow-up asks for {keys:,} keys where the plan allows {self.plan.second_keys:,}: it would cost more "
                "privacy than agreed, and no party should answer it."
            )
        schema = self.plan.schema
        for group, maps in zip(self.schedule.groups, self.bins, strict=True):
            for attribute, count, mapping in zip(group.attributes, group.bins, maps, strict=True):
                if mapping.ndim != 1 or len(mapping) != schema.sizes[attribute] or mapping.min() < 0 or mapping.max() >= count:
                    raise MessageError(f"The follow-up's bins of {schema.names[attribute]!r} do not fit its domain.")
        # A little more than the budget is honest: every marginal has a key, however wide it is.
        most = max(2 * self.plan.message_bytes, PAIRS_BYTES)
        if (asked := max(self.message_size(party) for party in range(len(self.plan.local)))) > most:
            raise MessageError(f"The follow-up asks a party for {asked:,} bytes, more than {most:,}; no party should answer it.")

    @property
    def fingerprint(self) -> str:
        """What parties compare to be sure that they answer one follow-up."""
        return fingerprint(self.digest())

    @property
    def sketch(self) -> SketchPlan:
        """The second round's sketches: the plan's phantoms, floor and ceiling, and this schedule."""
        first = self.plan.sketch
        assert isinstance(first, SketchPlan)
        return SketchPlan(first.phantoms, first.floor, first.ceiling, self.schedule.pairs)

    def message_size(self, party: int) -> int:
        """Bytes of the sketches in a party's answer."""
        return packed_bytes(self.sketch.shapes(self.schedule.of_party(party)), self.sketch.bits)

    def to_json(self) -> dict[str, Any]:
        """A JSON-able form that :meth:`from_json` reads back."""
        return {
            "follow_up": FORMAT,
            "plan": self.plan.digest().hex(),
            "groups": [group.to_json() for group in self.schedule.groups],
            "bins": [[mapping.tolist() for mapping in maps] for maps in self.bins],
            "pairs": [asdict(pair) for pair in self.schedule.pairs],
            "standing": self.plan.standing.to_json(),
        }

    @classmethod
    def from_json(cls, data: Any, plan: Plan) -> FollowUp:
        """Read a follow-up back, and check every field against the plan.

        Raises:
            MessageError: no follow-up of this format or plan, or one that asks for more than the plan allows.
        """
        try:
            if data["follow_up"] != FORMAT:
                raise MessageError(f"The follow-up has format {data['follow_up']!r}; this version reads format {FORMAT}.")
            if data["plan"] != plan.digest().hex():
                raise MessageError("The follow-up was made for another plan.")
            groups = [Group(tuple(map(int, g["attributes"])), tuple(map(int, g["bins"]))) for g in data["groups"]]
            schedule = Schedule.of(plan.schema, groups, [ScheduledPair(**pair) for pair in data["pairs"]])
            bins = tuple(tuple(np.array(mapping, np.int64) for mapping in maps) for maps in data["bins"])
            return cls(plan, schedule, bins)
        except PlanError as error:
            raise MessageError(f"The follow-up is not one that a party can answer: {error}") from None
        except (KeyError, TypeError, AttributeError, IndexError, OverflowError) as error:
            raise MessageError(f"The follow-up is incomplete or malformed ({error}); the server must make it again.") from None
        except ValueError as error:
            if isinstance(error, MessageError):
                raise
            raise MessageError(f"The follow-up does not fit its plan ({error}); the server must make it again.") from None

    def digest(self) -> bytes:
        """SHA-256 of the canonical JSON [32 bytes]; every answer carries it, and hash keys are derived from it."""
        return json_digest(self.to_json())

    def to_text(self) -> str:
        """It as a file holds it."""
        return json.dumps(self.to_json()) + "\n"

    def save(self, path: str | Path) -> None:
        """Write it as JSON."""
        write_text(path, self.to_text(), synced=True)

    @classmethod
    def load(cls, path: str | Path, plan: Plan) -> FollowUp:
        """Read a follow-up file.

        Raises:
            MessageError: the file is missing or holds no follow-up of this plan.
        """
        return cls.from_json(read_json(path, "follow-up", MessageError), plan)
