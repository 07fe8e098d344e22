"""A party's comparison of its ids with the other parties' of encrypted counts.

Each learns whether the ids are the same, and nothing else: the module of that name in
:mod:`vertimrf.releases.encrypted_counts` has the proof, and says what a party can do that departs from the
protocol. Nothing is counted before.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping

from ..errors import MessageError
from ..keys import PrivateKey
from ..plan.plan import Plan
from ..releases.release import Steps


class Comparison:
    """The comparison for one table under a plan.

    Args:
        plan: the agreed plan.
        party: position of the party.
        steps: its steps with the table.
        key: its private key; None draws the numbers that hide the ids.

    Attributes:
        done: whether all others were found to have the same ids.
    """

    def __init__(self, plan: Plan, party: int, steps: Steps, key: PrivateKey | None) -> None:
        self._plan, self._party, self._steps, self._key = plan, party, steps, key
        self._numbers: dict[str, bytes] = {}
        self.done = not self.others

    @property
    def others(self) -> list[str]:
        """Names of the parties with which this one counts."""
        return partners(self._plan, self._party)

    def ids(self) -> dict[str, bytes]:
        """This party's ids, hidden: by name of the other party, a file for that party alone."""
        return {name: self._steps.ids(self._place(name), self.number(name)) for name in self.others}

    def ids_again(self, ids: Mapping[str, bytes]) -> dict[str, bytes]:
        """What others sent, hidden again, to be sent back.

        Two such files for one party would let it try two sets of ids. Send only one.

        Args:
            ids: by name, the results of :meth:`ids` of other parties.

        Returns:
            By name of the other party, a file for that party alone.

        Raises:
            MessageError: a file is not of this plan, or damaged.
        """
        return {
            name: self._steps.ids_again(self._place(name), self.number(name), file)
            for name, file in ids.items()
        }

    def compare(self, ids: Mapping[str, bytes], again: Mapping[str, bytes]) -> None:
        """Check that all parties have the same ids.

        Args:
            ids: by name, the results of :meth:`ids` of all other parties.
            again: by name, their results of :meth:`ids_again`.

        Raises:
            MessageError: a party has other ids, or its file is missing, not of this plan, or damaged.
        """
        for name in self.others:
            if name not in ids or name not in again:
                raise MessageError(f"The ids of {name!r} are missing: ids are compared with all.")
            self._steps.compare(self._place(name), self.number(name), ids[name], again[name])
        self.done = True

    def number(self, name: str) -> bytes:
        """The number that hides ids from another party [32 bytes]; other ids have another one."""
        if self._key is None:
            return self._numbers.setdefault(name, secrets.token_bytes(32))
        known = self._steps.people.hex()
        return self._key.derive(self._plan.digest(), f"comparison of ids with {name}, {known}")

    def _place(self, name: str) -> int:
        return self._plan.party_names.index(name)


def partners(plan: Plan, party: int) -> list[str]:
    """Names of the parties with which one counts under encryption, by its position."""
    if not (plan.sketch.exchanges and plan.groups_of(party)):
        return []
    return [
        name
        for other, name in enumerate(plan.party_names)
        if other != party and plan.groups_of(other)
    ]


def compare_all(comparisons: Mapping[str, Comparison]) -> None:
    """Let all parties compare their ids, in one process.

    Args:
        comparisons: by name of the party.

    Raises:
        MessageError: two of them have other ids.
    """

    def received(files: Mapping[str, Mapping[str, bytes]], name: str) -> dict[str, bytes]:
        return {sender: sent[name] for sender, sent in files.items() if name in sent}

    ids = {name: one.ids() for name, one in comparisons.items()}
    again = {name: one.ids_again(received(ids, name)) for name, one in comparisons.items()}
    for name, one in comparisons.items():
        one.compare(received(ids, name), received(again, name))
