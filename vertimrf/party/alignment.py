"""Compare how parties write record ids, before anything is released.

1. Each party takes a sample of its ids: those with the smallest keyed digests, which are the same
   people at every party.
2. It seals keyed digests of the sample for every other party, one list for each combination of id
   formats.
3. The receiver computes the same digests of its sample, and counts matches for every pair of
   formats.

The server learns nothing. A receiver learns exactly which of the ids that it can name are in the
sample; no noise protects them, because the matches are the result. It does not learn the number of
other ids, because every list is padded to the same length:

- An entry is hashed with the number of its list, so that no person can be followed from list to
  list.
- The padding follows from the party's private key and the plan, so that a second sample has the
  same.
- All receivers get the same padding, so that they learn nothing by comparing.

A receiver that can enumerate all ids, such as numbers of six digits, can count the sample.
"""

from __future__ import annotations

import hashlib
import itertools
import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from ..arrays import Bytes, Fields, Flags, Texts, Words
from ..errors import MessageError
from ..files import container
from ..files.convert import to_json
from ..keys import Envelopes, PrivateKey, open_sealed, seal
from ..plan.plan import Plan
from ..tables.ids import IdKeys, digested, format_ids, of_persons
from ..tables.read_options import FORMATS
from .secret import Secret, derive, id_keys

KIND = "id sample"
# Entries of every list of a sample.
SAMPLED = 10_000
DIGEST = 16
COMBINATIONS = tuple(
    combination
    for count in range(len(FORMATS) + 1)
    for combination in itertools.combinations(FORMATS, count)
)

# By id formats, sorted digests of 128 bits [shape=(ids, 16), uint8]. A received sample has SAMPLED
# entries in every list.
Sample = dict[Texts, Bytes]


@dataclass(frozen=True)
class Match:
    """Matching ids of two samples.

    Attributes:
        mine: number of ids in this party's sample.
        plain: matches of ids as they are written.
        matching: matches under the formats below.
        my_format: formats of this party's ids.
        their_format: formats of the other party's ids.
    """

    mine: int
    plain: int
    matching: int
    my_format: Texts
    their_format: Texts


def sample_ids(pieces: Iterable[pa.Table], secret: Secret, plan: Plan, where: str) -> Sample:
    """Make this party's sample: keyed digests of some ids, under every combination of formats.

    The sample has the ids with the smallest keyed digests after all formats are applied. So every
    party takes the same people.

    Args:
        pieces: pieces of the id column, and of that of persons if the table names them: then a
            person and an id are compared together, in the same format.
        secret: the shared secret, which keys the digests.
        plan: the parties' plan.
        where: the table's name in errors.

    Returns:
        By formats, the digests.

    Raises:
        TableError: the column's type cannot be that of ids.
    """
    chosen, least = pa.table({"id": pa.array([], pa.null())}), np.empty(0, np.uint64)
    keys = id_keys(secret, plan.digest())
    for piece in pieces:
        digests, present = _digests(piece, FORMATS, keys, where)
        # A release leaves out records without an id, too (:mod:`vertimrf.tables.dropped`).
        rows = np.flatnonzero(present)
        piece, digests = piece.take(pa.array(rows)), digests[rows]
        # The smallest digests so far; the earlier of equal ones.
        candidates = pa.concat_tables([chosen, piece]) if chosen.num_rows else piece
        least = np.concatenate([least, digests])
        order = np.argsort(least, kind="stable")[:SAMPLED]
        chosen, least = candidates.take(pa.array(order)), least[order]
    key = derive(secret, plan.digest(), purpose="id sample")
    out = {}
    for formats in COMBINATIONS:
        digests, _ = _digests(chosen, formats, keys, where)
        keyed = {
            hashlib.blake2b(digest.tobytes(), key=key, digest_size=DIGEST).digest()
            for digest in digests.astype("<u8")
        }
        out[formats] = np.frombuffer(b"".join(sorted(keyed)), np.uint8).reshape(-1, DIGEST)
    return out


def _digests(ids: pa.Table, formats: Texts, keys: IdKeys, where: str) -> tuple[Words, Flags]:
    """Digests of ids, or of persons and ids together, and which rows have one [both shape=(n,)]."""
    written = [format_ids(column, formats, where) for column in ids.columns]
    digests, present = digested(keys.records, written[0], where)
    for column in written[1:]:
        persons, owned = digested(keys.persons, column, where)
        digests, present = of_persons(keys.pairs, persons, digests), present & owned
    return digests, present


def seal_sample(sample: Sample, plan: Plan, key: PrivateKey) -> Fields:
    """Pad a sample and seal it for every other party of the plan.

    Args:
        sample: result of :func:`sample_ids`.
        plan: the parties' plan.
        key: this party's private key.

    Returns:
        One envelope per party, in values that JSON can represent. Its length follows from the plan
        alone.
    """
    header = {"formats": [list(formats) for formats in COMBINATIONS]}
    nobody = _padding(plan, key)
    lists = {}
    for i, formats in enumerate(COMBINATIONS):
        digests = list(map(bytes, sample[formats]))
        listed = sorted(_entry(digest, i) for digest in digests + nobody[len(digests) :])
        lists[str(i)] = np.frombuffer(b"".join(listed), np.uint8).reshape(-1, DIGEST)
    packed = container.pack(KIND, header, lists)
    keys = plan.sealing_keys()
    others = [name for name in plan.party_names if name != key.party]
    sealed = {name: seal(packed, KIND, plan.digest(), keys, key, name) for name in others}
    return to_json(Envelopes(KIND, sealed))


def open_sample(data: Any, plan: Plan, key: PrivateKey, where: str) -> tuple[str, Sample]:
    """Open another party's sample.

    Args:
        data: result of :func:`seal_sample`, read from a file.
        plan: the parties' plan.
        key: this party's private key.
        where: the file's name in errors.

    Returns:
        The sender's name and its sample.

    Raises:
        MessageError: the file is no id sample, has no envelope for this party, or was not sealed by
            a party of this plan.
    """
    envelopes = Envelopes.from_json(data, KIND, where).envelopes
    if key.party not in envelopes:
        raise MessageError(
            f"{where} has nothing for {key.party!r}; pass the file of another party."
        )
    sealed = envelopes[key.party]
    sender, packed = open_sealed(sealed, KIND, plan.digest(), plan.sealing_keys(), key, where)
    header, arrays = container.unpack(packed, KIND, where)
    if json.dumps(header.get("formats")) != json.dumps(COMBINATIONS):
        raise MessageError(
            f"{where} has id formats of another version; make it again with this version."
        )
    out = {}
    for i, formats in enumerate(COMBINATIONS):
        digests = arrays.get(str(i))
        if digests is None or digests.dtype != np.uint8 or digests.shape != (SAMPLED, DIGEST):
            raise MessageError(f"{where} is malformed; have it made again.")
        out[formats] = digests
    return sender, out


def best_match(mine: Sample, theirs: Sample) -> Match:
    """Find the formats with the most matches; among equals, the fewest formats.

    Args:
        mine: result of :func:`sample_ids`.
        theirs: result of :func:`open_sample`.
    """
    my_digests = {formats: set(map(bytes, digests)) for formats, digests in mine.items()}
    # Most ids are the same under many formats.
    every = set().union(*my_digests.values())
    shared = {}
    for number, (formats, digests) in enumerate(theirs.items()):
        entries = set(map(bytes, digests))
        shared[formats] = {digest for digest in every if _entry(digest, number) in entries}

    def matching(one: Texts, another: Texts) -> int:
        return len(my_digests[one] & shared[another])

    plain = matching((), ())
    best = Match(len(my_digests[()]), plain, plain, (), ())
    pairs = sorted(
        itertools.product(COMBINATIONS, COMBINATIONS), key=lambda pair: len(pair[0]) + len(pair[1])
    )
    for one, another in pairs:
        count = matching(one, another)
        if count > best.matching:
            best = Match(best.mine, best.plain, count, one, another)
    return best


def _entry(digest: bytes, number: int) -> bytes:
    """The entry of an id in the list of a number. Entries of different lists cannot be linked."""
    return hashlib.blake2b(digest, digest_size=DIGEST, person=bytes([number])).digest()


def _padding(plan: Plan, key: PrivateKey) -> list[bytes]:
    """Random-looking digests that follow from the private key and the plan."""
    drawn = key.derive(plan.digest(), "padding of id samples")
    return [
        hashlib.blake2b(i.to_bytes(8), key=drawn, digest_size=DIGEST).digest()
        for i in range(SAMPLED)
    ]
