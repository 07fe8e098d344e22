"""The contract: what the rest of the package knows of a way to publish values across parties.

Every kind is a folder beside this file. It states its privacy events, the shapes of its tables,
and why it may not be private.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import numpy as np

from ..arrays import Bytes, Floats, Int32s, Integers, Ints, Pair, Texts, Words
from ..errors import PlanError
from ..files.bits import packed_size
from ..plan.defaults import MESSAGE_BYTES
from ..privacy.events import Event
from ..privacy.ledger import LedgerEntry, Part

if TYPE_CHECKING:
    from ..plan.choice import Choice, Target
    from ..plan.options import PlanOptions
    from ..plan.plan import Plan
    from ..plan.schema import Schema
    from ..plan.shares import Outlook
    from ..privacy.noise import KeyedNoise
    from ..progress import Progress
    from .received import CrossParty, Received

# By party, its groups by the plan's numbers.
Groups = Sequence[Sequence[int]]
HIGHEST_CEILING = 40
MAX_KEYS = 1 << 31
MAX_VALUES = 1 << 16
# A counter of a sketch takes four bits in forecasts.
COUNTERS_PER_BYTE = 2
# Kinds of files between parties, in the order in which they are sent.
IDS, AGAIN, ROWS, ANSWERS = "ids", "ids-again", "rows", "answers"
# Signs of a group's two values in its contrast; the sign of a third, the missing value, alternates.
CONTRAST_SIGNS = (1, -1)


class ExchangeKey(Protocol):
    """A party's private key for the files that parties exchange."""

    def to_bytes(self) -> bytes:
        """The content of a private file."""


class Steps(Protocol):
    """A party's steps before its message, where parties exchange files (:attr:`.CrossPartyRelease.exchanges`)."""

    @property
    def count(self) -> int:
        """The noisy record count, the same at all parties."""

    @property
    def people(self) -> bytes:
        """Keyed digest of all ids, which no other party may see."""

    def ids(self, party: int, number: bytes) -> bytes:
        """Step 0: this party's ids, hidden by a secret number, for another party alone."""

    def ids_again(self, party: int, number: bytes, ids: bytes) -> bytes:
        """Step 0: the other party's hidden ids, hidden again, to send them back."""

    def compare(self, party: int, number: bytes, ids: bytes, again: bytes) -> None:
        """Step 0: check that the other party has the same ids."""

    def rows(self, piece: int = 0) -> bytes:
        """Step 1: a piece of the party's rows, for every later party."""

    def answer(
        self, party: int, rows: Iterable[bytes], noise: Callable[[bytes], KeyedNoise]
    ) -> bytes:
        """Step 2: the answer to all pieces of an earlier party's rows, for that party alone.

        ``noise`` gives the noise for a digest of everything that the answer depends on.
        """

    def tables(
        self, answers: Mapping[int, bytes], noise: Callable[[bytes], KeyedNoise]
    ) -> tuple[Integers, ...]:
        """Step 3: tables of counts (:meth:`.CrossPartyRelease.counted_pairs`) from the answers of
        later parties, by position; ``noise`` as of :meth:`answer`.
        """


@dataclass(frozen=True, eq=False)
class Side:
    """What a party lends to the encoder of its groups.

    Attributes:
        plan: the agreed plan.
        party: position of the party.
        key: key material for its encoder, the same at all parties [32 bytes].
        derive: gives such material for another purpose.
        encoded: takes all records into the encoder that a function makes, and returns it.
        with_blanks: digests of all ids [shape=(n,), uint64], and their values, -1 where no record
            fits [shape=(groups, n), int32].
        sizes: by group, released counts of its values [shape=(values,), float64].
        noise: noise of its message.
        progress: receives what is done.
        private: its key for files between parties.
    """

    plan: Plan
    party: int
    key: bytes
    derive: Callable[[str], bytes]
    encoded: Callable[[Callable[[], Any]], Any]
    with_blanks: Callable[[], tuple[Words, Int32s]]
    sizes: Callable[[], Sequence[Floats]]
    noise: KeyedNoise
    progress: Progress
    private: ExchangeKey | None = None

    @property
    def groups(self) -> Ints:
        """The party's groups, by the plan's numbers."""
        return self.plan.groups_of(self.party)


class CrossPartyRelease(ABC):
    """Base class of the kinds of release; a plan without any has :class:`.Nothing`.

    Attributes:
        encoder: the name by which users ask for this kind.
        compared: whether it is only for comparison, without forecasts and off-tree factors.
        exchanges: whether parties exchange files before their messages. These have tables of counts,
            of records with the same ids, and the target holds if parties collude with the server.
        forecast: whether its shares of the budget, and halved attributes, follow a forecast of the
            error.
        usual_bytes: default budget for the sketches in a party's message.
        width: bytes of a number of a table while it is made.
        tells_matches: whether the server can estimate how many records two parties have in common.
        publishes_rows: whether the exact number of ids is released. Neighbouring tables then differ by
            replacing one record.
        claimed_share: part of (epsilon, delta) that this release claims without a proof. All other
            releases must keep to the rest.
        prices_persons: whether it has a price for persons with several records.
        reasons: why a run with it is not private, whatever the ledger's target says.
        kind: its name in the ledger's entries.
        priced_by: class of the event of these entries. Of an entry with another one there is no
            sentence.
        optional: fields that a plan's file leaves out if they are empty.
        sizes: number of values of every group, of all parties.
        floor, ceiling: lowest and highest level in a table.
        bits: bits of every number of a table in a message.
        contrasts: groups of two values of which the contrast is published, in order; of count
            sketches also groups of two halves and the missing value.
    """

    encoder: ClassVar[str]
    compared: ClassVar[bool] = False
    exchanges: ClassVar[bool] = False
    forecast: ClassVar[bool] = False
    usual_bytes: ClassVar[int] = MESSAGE_BYTES
    width: ClassVar[int] = 1
    tells_matches: ClassVar[bool] = False
    publishes_rows: ClassVar[bool] = False
    claimed_share: ClassVar[float] = 0.0
    prices_persons: ClassVar[bool] = False
    reasons: ClassVar[Texts] = ()
    kind: ClassVar[str]
    priced_by: ClassVar[type] = object
    optional: ClassVar[Texts] = ()
    sizes: Ints
    floor: int
    ceiling: int
    bits: int
    contrasts: Ints = ()

    @classmethod
    def planned(cls, schema: Schema, planning: PlanOptions, target: Target) -> Choice:
        """Choose groups, the shares of the budget, and the release as a function of the budget.

        Args:
            schema: attributes and parties, several of which have attributes that vary.
            planning: the options of the plan.
            target: privacy, records and bytes of a message.

        Raises:
            PlanError: the schema or an option is not for this kind.
        """
        choice: Choice = cls._room("planning").planned(schema, planning, target)
        return choice

    @classmethod
    def _room(cls, name: str) -> Any:
        """A module beside the parameters. It is loaded when asked, so that planning loads no kernels."""
        return import_module(f"{cls.__module__.rpartition('.')[0]}.{name}")

    @classmethod
    def refused(cls, planning: PlanOptions) -> str | None:
        """Why no plan of this kind has such options, in a sentence; None if one has."""
        return None

    def rows(self, group: int) -> int:
        """Number of counters of a group: one for each value, or one for its contrast."""
        return 1 if group in self.contrasts else self.sizes[group]

    def entries(
        self,
        parties: Mapping[str, Sequence[int]],
        epsilon: float,
        delta: float,
        person: int = 1,
    ) -> list[LedgerEntry]:
        """The ledger's entries of the release: one of all parties.

        Args:
            parties: by party name, its groups by the plan's numbers.
            epsilon: the run's target.
            delta: the run's target.
            person: records of a person at most; above 1 only where :attr:`prices_persons`.
        """
        said = ("all parties", *self.in_words(epsilon, delta))
        parts = self.parts(parties, person)
        return [LedgerEntry(self.event, *said, parts=parts, kind=self.kind)]

    @property
    def event(self) -> Event:
        """The privacy event of the entry."""
        raise NotImplementedError

    def in_words(self, epsilon: float, delta: float) -> tuple[str, str]:
        """What the entry says is released, and how protected; arguments as :meth:`entries`."""
        raise NotImplementedError

    @classmethod
    def sentence(cls, entry: LedgerEntry, event: Any, who: str) -> str:
        """An entry in plain words, for a report; empty if the entry's own words are all there is.

        Args:
            entry: of this kind.
            event: its event, of the class :attr:`priced_by`.
            who: the parties, as the sentence begins.
        """
        return ""

    def parts(self, parties: Mapping[str, Sequence[int]], person: int = 1) -> tuple[Part, ...]:
        """The parts of parties that have a price (:meth:`part`); arguments as :meth:`entries`.

        Under a Gaussian event they say that each party adds a noise of its own, which no other
        party knows (:attr:`.LedgerEntry.masked`).
        """
        priced = ((name, self.part(groups, person)) for name, groups in parties.items())
        return tuple(Part(name, event) for name, event in priced if event is not None)

    def part(self, groups: Sequence[int], person: int = 1) -> Event | None:
        """Price one party's groups by themselves, against a reader who knows the parties' secret.

        Given the secret, the parts of different parties are independent.

        Args:
            groups: the party's groups, by the plan's numbers.
            person: records of a person at most.

        Returns:
            The privacy event; None if no event bounds the loss, or if the groups show nothing.
        """
        return None

    @abstractmethod
    def shapes(self, groups: Sequence[int], rows: int) -> list[Pair]:
        """Shapes of the tables that a party publishes for its groups, in publishing order.

        Args:
            groups: the party's groups, by the plan's numbers.
            rows: number of records; used only where each record has a column of its own.

        Returns:
            (rows, columns) of each table.
        """

    def highest(self, groups: Sequence[int]) -> list[int]:
        """Highest level that is allowed in each of these tables."""
        return [self.ceiling] * len(self.shapes(groups, 0))

    def check(self, sizes: Sequence[int], parties: Sequence[int]) -> None:
        """Check that the parameters fit the plan's groups.

        Args:
            sizes: number of values of every group.
            parties: position of the party that publishes each group.

        Raises:
            PlanError: they do not fit.
        """
        if self.sizes != tuple(sizes):
            raise PlanError("The plan's sketches do not fit its groups.")

    @abstractmethod
    def summary(self) -> str:
        """One line for people."""

    def added(self, groups: Sequence[int]) -> int:
        """Counters that a party adds a record of these groups to, at places that a hash draws."""
        return 0

    def packed_size(self, parties: Groups, party: int, rows: int) -> int:
        """Bytes of a party's tables in its message.

        Args:
            parties: by party, its groups by the plan's numbers.
            party: position of the party.
            rows: number of its records.
        """
        return packed_bytes(self.shapes(parties[party], rows), self.bits)

    def held(self, parties: Groups, party: int) -> float:
        """Bytes of a party's tables in memory; arguments as :meth:`packed_size`."""
        return float(sum(values * keys for values, keys in self.shapes(parties[party], 0)))

    def encoding_work(self, parties: Groups, party: int, records: int) -> float:
        """Core seconds in which a party makes its tables; arguments as :meth:`packed_size`."""
        return 0.0

    def estimating_work(self) -> float:
        """Core seconds in which the server estimates cross-party marginals."""
        return 0.0

    def spent(self, outlook: Outlook) -> float | None:
        """The part of the budget (zCDP) spent on tables of the columns, if noise tells it.

        Without an answer it is what other releases leave.

        Args:
            outlook: what was known of the run before its plan.
        """
        return None

    @classmethod
    def usual_error(cls, outlook: Outlook, rho: float) -> float:
        """Forecast of the standard error of a count of two parties' columns, in records, if all pairs
        of columns are equal. That of a kind without a forecast of its own is of count sketches.

        Args:
            outlook: what is known of the run before its plan.
            rho: the budget of the release (zCDP).
        """
        return sum(map(len, outlook.columns)) / math.sqrt(4 * rho)

    @classmethod
    def pair_variance(cls, outlook: Outlook, rho: float, i: int, j: int) -> Floats:
        """Forecast of the variance of a count in each table of the columns of two parties, as
        :meth:`usual_error`.

        Args:
            outlook, rho: as of :meth:`usual_error`.
            i, j: positions of the parties.

        Returns:
            [shape=(columns of one, of the other), float64].
        """
        counters = COUNTERS_PER_BYTE * outlook.message_bytes / outlook.most_counters
        # In each value's counters the noise is that of so many records.
        noise = sum(map(len, outlook.columns)) * math.sqrt(counters / (4 * rho))
        one, other = (outlook.records / outlook.counters[k] + noise for k in (i, j))
        spread: Floats = np.outer(one, other)
        return spread / counters

    def next_to(self, other: CrossPartyRelease) -> bool:
        """Whether no release has a message size between those of this and the other, larger one."""
        return False

    def counted_pairs(self, parties: Groups, party: int) -> list[Pair]:
        """Pairs of groups, a later party's and an own, of which a party's message has a table of
        counts; arguments as :meth:`packed_size`.
        """
        return []

    @property
    def count_noise(self) -> float:
        """Standard deviation of the noise of these counts."""
        raise NotImplementedError

    def files(self, parties: Groups) -> list[tuple[str, int, int, int, int]]:
        """Files between parties: kind, positions of sender and receiver, piece, bytes at most.

        Args:
            parties: by party, its groups by the plan's numbers.
        """
        return []

    def encode(self, side: Side) -> tuple[Bytes, ...]:
        """LocEnc: the tables of a party's groups, as :meth:`shapes` and :meth:`highest` say."""
        tables: tuple[Bytes, ...] = self._room("encoding").encode(self, side)
        return tables

    def estimate(self, received: Received) -> CrossParty:
        """CarEst: estimate cross-party marginals with standard errors.

        Raises:
            MessageError: messages that do not fit together.
        """
        found: CrossParty = self._room("estimation").estimate(self, received)
        return found

    def steps(self, side: Side) -> Steps:
        """A party's steps before its message, where :attr:`exchanges` says that there are some."""
        steps: Steps = self._room("encoding").steps(self, side)
        return steps

    def private_key(self, data: bytes | None = None, where: str = "") -> ExchangeKey:
        """A party's private key for these steps: that of a file's content, or a new one.

        Args:
            data: the content.
            where: name of the file, for errors.

        Raises:
            MessageError: the content is no private key, or damaged.
        """
        kind = self._room("encoding").PrivateKey
        key: ExchangeKey = kind.new() if data is None else kind.from_bytes(data, where)
        return key

    def check_file(
        self, plan: Plan, kind: str, sender: int, receiver: int, data: bytes, piece: int
    ) -> None:
        """Check a file of another party, before anything is computed of it.

        Args:
            plan: the agreed plan.
            kind: kind of file.
            sender, receiver: positions of the parties.
            data: the file.
            piece: number of the piece of rows.

        Raises:
            MessageError: it is not such a file, or damaged.
        """
        self._room("encoding").check_file(plan, kind, sender, receiver, data, piece)

    def keeps_claim(self, epsilon: float, delta: float) -> bool:
        """Whether the parameters are those that the claim asks for under a run's target."""
        return True


def check_levels(phantoms: int, floor: int, ceiling: int) -> None:
    """Refuse phantoms and levels that no sketch can have; raises PlanError."""
    if phantoms < 1:
        raise PlanError(
            f"Sketches need at least 1 phantom, not {phantoms}; without phantoms they are not private."
        )
    if not 0 <= floor < ceiling <= HIGHEST_CEILING:
        raise PlanError(
            f"Levels need 0 <= floor < ceiling <= {HIGHEST_CEILING}, not floor {floor} and ceiling {ceiling}."
        )


def check_contrasts(contrasts: Sequence[int], sizes: Sequence[int], most: int = 2) -> None:
    """Refuse contrasts that are not of groups of two values, or up to ``most``, in order; raises
    PlanError.
    """
    possible = {g for g in contrasts if 0 <= g < len(sizes) and 2 <= sizes[g] <= most}
    if list(contrasts) != sorted(possible):
        values = " or ".join(str(size) for size in range(2, most + 1)) + " values"
        raise PlanError(f"Contrasts are of groups of {values}, in order, not of {list(contrasts)}.")


def check_keys(where: str, keys: int) -> None:
    """Refuse a number of hash keys out of range; raises PlanError."""
    if not 1 <= keys <= MAX_KEYS:
        raise PlanError(f"{where} has {keys} keys; it needs at least 1 and at most 2^31.")


def check_sizes(sizes: Sequence[int], most: int = MAX_VALUES) -> None:
    """Refuse groups of no values, or of too many; raises PlanError."""
    for group, size in enumerate(sizes):
        if not 1 <= size <= most:
            raise PlanError(f"Group {group} has {size} values; this encoder takes 1 to {most:,}.")


def packed_bytes(shapes: Sequence[Pair], bits: int) -> int:
    """Bytes of tables in a message.

    Args:
        shapes: (rows, columns) of each table.
        bits: bits of each number.
    """
    return sum(packed_size(values * keys, bits) for values, keys in shapes)
