"""A party's steps of encrypted counts, around the arithmetic of :mod:`.counts`.

0. Every two parties compare whether they have the same ids (:mod:`.comparison`).
1. The party encrypts its rows for the later parties.
2. It adds the rows of each earlier party for its own values, with noise of its own.
3. It opens the later parties' answers and adds noise of its own. The result is in its message.

All files are exchanged between parties alone. Their lengths follow from the plan.
"""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ...arrays import Int32s, Integers, Ints, Words
from ...errors import MessageError
from ...files import container
from ...plan.plan import Plan
from ...privacy.noise import KeyedNoise
from ...progress import SILENT, Progress
from ..release import AGAIN, IDS, ExchangeKey, Side
from . import comparison
from .counts import (
    Answers,
    Rows,
    check_answers,
    check_rows,
    encrypt_rows,
    open_sums,
    sum_rows,
)
from .lattice import PrivateKey, as_bytes, as_residues
from .packing import Layout
from .parameters import EncryptedCounts
from .positions import place, population_digest

ROWS, ANSWERS = "encrypted rows", "encrypted answers"
Tables = tuple[Integers, ...]
Derive = Callable[[str], bytes]


def noisy_count(plan: Plan, derive: Derive, records: int) -> int:
    """The noisy record count, which is the same at all parties with the same ids.

    It decides the share of the records that take part, and the first party releases it. Its noise
    follows from the parties' secret. Parties know the exact count anyway: they have compared ids.

    Args:
        plan: the agreed plan.
        derive: gives key material of the parties' secret for a purpose.
        records: number of ids.
    """
    noise = KeyedNoise(derive("noise of the record count"))
    return int(noise.gaussian(np.array([records], np.int64), plan.count_sigma)[0])


@dataclass(frozen=True, eq=False)
class Steps:
    """The steps of one party under a plan.

    Attributes:
        plan: the agreed plan.
        sketch: its encrypted counts.
        party: position of the party.
        derive: gives key material of the parties' secret for a purpose.
        digests: keyed digests of all its ids, also of records that do not fit [shape=(n,), uint64].
        values: values of its groups; -1 for a record that does not fit [shape=(groups, n), int32].
        private: its private key of the encryption.
        progress: receives rows and sums that are done.
    """

    plan: Plan
    sketch: EncryptedCounts
    party: int
    derive: Derive
    digests: Words
    values: Int32s
    private: ExchangeKey | None = None
    progress: Progress = SILENT

    @property
    def count(self) -> int:
        """The noisy record count (:func:`noisy_count`)."""
        return noisy_count(self.plan, self.derive, len(self.digests))

    @cached_property
    def codes(self) -> Int32s:
        """Values by row, -1 for a blank [shape=(groups, capacity), int32].

        Which records take part depends on keyed digests of ids and on the noisy count alone.
        """
        count = noisy_count(self.plan, self.derive, len(self.digests))
        share = self.sketch.sampled(count, self.plan.count_sigma)
        chosen = np.ones(len(self.digests), bool)
        if share < 1:
            chosen = self.digests < np.uint64(int(share * 2**64))
        return place(self.values[:, chosen], self.digests[chosen], self.sketch.capacity)

    @cached_property
    def people(self) -> bytes:
        """Keyed digest of all ids, which no other party may see (:mod:`.comparison`)."""
        return population_digest(self.derive("people of all parties"), self.digests)

    def ids(self, party: int, number: bytes) -> bytes:
        """Step 0: this party's ids, hidden by a secret number, for another party alone.

        Args:
            party: position of the other party.
            number: of these two parties, this plan and these ids alone [32 bytes].
        """
        point = comparison.hidden(number, comparison.point_of(self.people))
        return comparison.pack(self.plan, self.party, party, point, again=False)

    def ids_again(self, party: int, number: bytes, ids: bytes) -> bytes:
        """Step 0: a hash of the other party's hidden ids, hidden again, to send back.

        Args:
            party, number: as :meth:`ids`.
            ids: the other party's result of :meth:`ids`.

        Raises:
            MessageError: that is not of this plan and party, or damaged.
        """
        point = comparison.opened(self.plan, party, self.party, ids, again=False)
        twice = comparison.hidden(number, point)
        return comparison.pack(self.plan, self.party, party, twice, again=True)

    def compare(self, party: int, number: bytes, ids: bytes, again: bytes) -> None:
        """Step 0: check that the other party has the same ids.

        Args:
            party, number, ids: as :meth:`ids_again`.
            again: the other party's result of :meth:`ids_again`.

        Raises:
            MessageError: it has not, or the files are not of this plan and party, or damaged.
        """
        plan, mine = self.plan, self.party
        point = comparison.opened(plan, party, mine, ids, again=False)
        theirs = comparison.opened(plan, party, mine, again, again=True)
        comparison.check_same(plan, mine, party, comparison.hidden(number, point), theirs)

    def rows(self, piece: int = 0) -> bytes:
        """Step 1: a piece of the encrypted rows, for every later party."""
        layout = self._layout(self.party)
        rows = encrypt_rows(self._private(), self.codes, layout, self.progress, piece)
        arrays = {"seed": np.frombuffer(rows.seed, np.uint8), "rows": as_bytes(rows.blocks)}
        return container.pack(ROWS, self._header(None, piece), arrays)

    def answer(
        self, party: int, rows: Iterable[bytes], noise: Callable[[bytes], KeyedNoise]
    ) -> bytes:
        """Step 2: the sums of an earlier party's rows for each own value, with own noise.

        Args:
            party: position of the earlier party.
            rows: its results of step 1, all pieces in order; each is read once, when it is needed.
            noise: gives the noise for a digest of everything that the sums depend on.

        Returns:
            The answers, for that party alone.

        Raises:
            MessageError: the rows are not of this plan and party, not all there, or damaged.
        """
        layout, mine = self._layout(party), self._layout(self.party)
        exact = hashlib.sha256()

        def pieces() -> Iterator[Rows]:
            for piece, data in itertools.zip_longest(range(len(layout.pieces)), rows):
                if piece is None or data is None:
                    raise MessageError(
                        f"The plan has {len(layout.pieces)} pieces of the rows of {self.plan.party_names[party]!r}: take all "
                        "of them, and no other."
                    )
                exact.update(hashlib.sha256(data).digest())
                encrypted = opened(self.plan, party, self.party, data, piece)
                assert isinstance(encrypted, Rows)
                yield encrypted

        def drawn() -> Integers:
            exact.update(self.codes.tobytes())
            source, sketch = noise(exact.digest()), self.sketch
            sides = (self.plan.groups_of(self.party), self.plan.groups_of(party))
            tables = [
                source.gaussian(
                    np.zeros((sketch.rows(one), sketch.rows(other)), np.int64),
                    sketch.noise(one, other),
                )
                for one, other in itertools.product(*sides)
            ]
            across = len(sides[1])
            return np.block([tables[at : at + across] for at in range(0, len(tables), across)])

        answers = sum_rows(
            pieces(),
            self.codes,
            mine.sizes,
            drawn,
            layout,
            self.progress,
            mine.contrasts,
        )
        arrays = {"vectors": as_bytes(answers.vectors), "sums": as_bytes(answers.sums)}
        return container.pack(ANSWERS, self._header(party), arrays)

    def tables(self, answers: Mapping[int, bytes], noise: Callable[[bytes], KeyedNoise]) -> Tables:
        """Step 3: tables with every later party, with the noise of both.

        Args:
            answers: by position of the later party, its result of step 2.
            noise: gives the noise for a digest of the counts in the answers.

        Returns:
            Tables in the order of :meth:`.Plan.counted_pairs` [shape=(counters of the later
            party's group, counters of the own group), int64].

        Raises:
            MessageError: answers are missing, not of this plan, or damaged. The sentence names their
                party.
        """
        out: list[Integers] = []
        for party in range(self.party + 1, len(self.plan.party_names)):
            counters = self._counters(party)
            if not (counters and self._counters(self.party)):
                continue
            name = self.plan.party_names[party]
            if party not in answers:
                raise MessageError(
                    f"The answers of {name!r} are missing: a message has the counts with every later party."
                )
            sums = opened(self.plan, party, self.party, answers[party])
            assert isinstance(sums, Answers)
            layout = self._layout(self.party)
            try:
                counted = open_sums(self._private(), sums, counters, layout, self.progress)
            except MessageError as error:
                raise MessageError(f"{name!r} sent what cannot be opened. {error}") from None
            # A key of the counts: the same counts in other ciphertexts get the same noise.
            exact = hashlib.sha256(bytes([party]))
            for table in counted:
                exact.update(table.tobytes())
            source = noise(exact.digest())
            pairs = itertools.product(self.plan.groups_of(party), self.plan.groups_of(self.party))
            out += [
                source.gaussian(table, self.sketch.noise(*pair))
                for pair, table in zip(pairs, counted, strict=True)
            ]
        return tuple(out)

    def _private(self) -> PrivateKey:
        if not isinstance(self.private, PrivateKey):
            raise MessageError(
                "Encrypted counts need the party's key of the encryption: the party was made without it."
            )
        return self.private

    def _header(self, receiver: int | None, piece: int = 0) -> dict[str, object]:
        """What a file says about itself; ``receiver`` is None for all later parties."""
        return {
            "plan": self.plan.digest().hex(),
            "party": self.party,
            "receiver": receiver,
            "piece": piece,
        }

    def _counters(self, party: int) -> Ints:
        """Counters of each of a party's groups."""
        return tuple(map(self.sketch.rows, self.plan.groups_of(party)))

    def _layout(self, party: int) -> Layout:
        return self.sketch.layout(self.plan.groups_of(party))


def steps(sketch: EncryptedCounts, side: Side) -> Steps:
    """A party's steps (:meth:`.CrossPartyRelease.steps`)."""
    return Steps(
        side.plan,
        sketch,
        side.party,
        side.derive,
        *side.with_blanks(),
        side.private,
        side.progress,
    )


def opened(plan: Plan, sender: int, receiver: int, data: bytes, piece: int = 0) -> Rows | Answers:
    """Read a file of rows or answers from another party, and check it.

    Args:
        plan: the agreed plan.
        sender, receiver: positions of the parties. The earlier of two sends rows, and the later one
            answers.
        data: the file.
        piece: number of the piece of rows.

    Returns:
        What the file has.

    Raises:
        MessageError: the file is of another plan or party, or damaged; or its ciphertexts are too
            few, too many, or none.
    """
    rows = sender < receiver
    kind, *names = (ROWS, "rows", "seed") if rows else (ANSWERS, "vectors", "sums")
    where = f"The file of {kind} of {plan.party_names[sender]!r}"
    header, arrays = container.unpack(data, kind, where)
    if header.get("plan") != plan.digest().hex():
        raise MessageError(f"{where} was made for another plan; make it again with this plan.")
    if (header.get("party"), header.get("receiver")) != (sender, None if rows else receiver):
        raise MessageError(f"{where} is another party's, or for another party.")
    if header.get("piece") != piece:
        raise MessageError(f"{where} is another piece than {piece + 1}: have it sent again.")
    for name in names:
        array = arrays.get(name)
        if (
            array is None
            or array.dtype != np.uint8
            or array.shape[-1:] == ()
            or array.shape[-1] % 4
        ):
            raise MessageError(f"{where} lacks its {name}: have it sent again.")
    sketch = plan.sketch
    assert isinstance(sketch, EncryptedCounts)
    layout = sketch.layout(plan.groups_of(min(sender, receiver)))
    if rows:
        encrypted = Rows(arrays["seed"].tobytes(), as_residues(arrays["rows"]))
        check_rows(encrypted, layout, where, piece)
        return encrypted
    answers = Answers(*(as_residues(arrays[name]) for name in names))
    check_answers(answers, sum(map(sketch.rows, plan.groups_of(sender))), layout, where)
    return answers


def check_file(
    plan: Plan, kind: str, sender: int, receiver: int, data: bytes, piece: int = 0
) -> None:
    """Check a file of another party (:meth:`.CrossPartyRelease.check_file`)."""
    if kind in (IDS, AGAIN):
        comparison.opened(plan, sender, receiver, data, again=kind == AGAIN)
    else:
        opened(plan, sender, receiver, data, piece)
