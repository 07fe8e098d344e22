"""The record of what a role waits for and what is in the way, each since when.

The times are those of this machine's clock. The record only informs people. No step depends on it,
so a damaged record is begun anew.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from ..errors import RunError
from ..files.canonical import json_of
from ..files.convert import from_json
from ..progress import utc
from .state import Trouble

# Seconds until a sentence that stays true is said again.
AGAIN = 300.0


@dataclass(frozen=True)
class Waiting:
    """The record of one role.

    Attributes:
        since: by step (:attr:`.Step.key`) that waits for somebody, the time of the first look at
            it.
        troubles: what is in the way.
    """

    since: dict[str, str] = field(default_factory=dict)
    troubles: tuple[Trouble, ...] = ()

    @classmethod
    def read(cls, data: bytes | None) -> Waiting:
        """Read a record. An absent or damaged one is empty."""
        try:
            return cls() if data is None else from_json(json_of(data), cls, "", "", RunError)
        except ValueError:
            return cls()

    def waits(self, steps: Iterable[str]) -> Waiting:
        """The record once exactly these steps wait. Those that waited before keep their times."""
        now = utc()
        return Waiting({step: self.since.get(step, now) for step in steps}, self.troubles)

    def troubled(self, sentences: Mapping[str, str], lasted: Mapping[str, float]) -> Waiting:
        """The record once exactly this is in the way.

        Args:
            sentences: by whom or what is concerned, a sentence.
            lasted: for how many seconds, where it is not new. What is on record keeps its time.
        """
        first = {trouble.of: trouble.since for trouble in self.troubles}
        return Waiting(
            self.since,
            tuple(
                Trouble(of, what, first.get(of) or utc(lasted.get(of, 0.0)), utc())
                for of, what in sentences.items()
            ),
        )


class Reminder:
    """Says a sentence when it is new, and again after some minutes as long as it stays true.

    Args:
        say: says a sentence.
        clock: seconds that pass.
    """

    def __init__(
        self, say: Callable[[str], object], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._say, self._clock = say, clock
        self._said, self._at = "", 0.0

    def __call__(self, sentence: str) -> None:
        """Say what is true now. An empty sentence says nothing, and the next one is new."""
        now = self._clock()
        if sentence and (sentence != self._said or now - self._at >= AGAIN):
            self._say(sentence)
            self._at = now
        self._said = sentence
