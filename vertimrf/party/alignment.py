"""Do parties write the ids of the same people the same way? Asked between parties, before anything is released.

A party seals keyed digests of a sample of its ids for every other party, under each way of writing them. Who has the secret can
count how many of them it holds itself, and under which formats most do. The server learns nothing. The other parties learn which
of the ids that *they* can name are among the sample, exactly: no noise covers that, and none could, for a match is what is asked.

They do not learn how many others there are. Every list of a sample has the same length, whatever the table: it is filled up with
digests of nobody. These look like digests of people whom the reader cannot name:

- an entry is hashed with the number of its list, so that no person can be followed from list to list, which padding could not be;
- the padding follows from the party's private key and the plan, so that a second sample has the same;
- all receivers get the same padding, so that two of them see nothing by comparing.

Who can guess every id, such as all numbers of six digits, can name everybody, and so counts the sample.
"""

from __future__ import annotations

import hashlib
import itertools
import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ..errors import MessageError
from ..files import container
from ..files.convert import to_json
from ..keys import Envelopes, PrivateKey, open_sealed, seal
from ..plan.plan import Plan
from ..tables.ids import digest_ids, digested, format_ids
from ..tables.read_options import FORMATS
from .secret import Secret, derive, id_keys

__all__ = ["Match", "best_match", "open_sample", "sample_ids", "seal_sample"]

KIND = "id sample"
# People whose ids are compared; the same ones at every party, because their digests are the least of all. Every list of a sample
# has as many entries.
SAMPLED = 10_000
DIGEST = 16
COMBINATIONS = tuple(
    combination
    for count in range(len(FORMATS) + 1)
    for combination in itertools.combinations(FORMATS, count)
)

# Digests of 128 bits by how ids are written, sorted [shape=(people, 16), uint8]: of one's own sampled ids, or the lists of a
# sample as they travel, which have SAMPLED entries each.
Sample = dict[tuple[str, ...], npt.NDArray[np.uint8]]


@dataclass(frozen=True)
class Match:
    """How many ids of two samples are the same, at best. How many the other party's sample has, nobody else knows.

    Attributes:
        mine: ids of one's own sample.
        plain: how many match as they are written.
        matching: how many match under the formats below.
        my_format: formats for one's own ids.
        their_format: formats for the other party's.
    """

    mine: int
    plain: int
    matching: int
    my_format: tuple[str, ...]
    their_format: tuple[str, ...]


def sample_ids(pieces: Iterable[pa.ChunkedArray], secret: Secret, plan: Plan, where: str) -> Sample:
    """Keyed digests of some ids, under every way of writing them.

    Those people are taken whose ids, with all formats applied, have the least keyed digests: other parties take the same ones,
    however they write them.

    Args:
        pieces: the id column, piece by piece.
        secret: keys the digests.
        plan: the parties' plan.
        where: names the table in errors.

    Raises:
        TableError: ids of a type that cannot be any.
    """
    chosen, least = pa.chunked_array([], pa.null()), np.empty(0, np.uint64)
    keys = id_keys(secret, plan.digest())
    for piece in pieces:
        digests, present = digested(keys.records, format_ids(piece, FORMATS, where), where)
        # Records without an id are left out, as a release leaves them out (:mod:`vertimrf.tables.dropped`).
        rows = np.flatnonzero(present)
        piece, digests = piece.take(pa.array(rows)), digests[rows]
        # Of all so far the least; those that come first, where some are equal.
        held = pa.chunked_array([*chosen.chunks, *piece.chunks], piece.type)
        least = np.concatenate([least, digests])
        order = np.argsort(least, kind="stable")[:SAMPLED]
        chosen, least = held.take(pa.array(order)), least[order]
    key = derive(secret, plan.digest(), purpose="id sample")
    out = {}
    for formats in COMBINATIONS:
        digests = digest_ids(keys.records, format_ids(chosen, formats, where), where)
        keyed = {
            hashlib.blake2b(digest.tobytes(), key=key, digest_size=DIGEST).digest()
            for digest in digests.astype("<u8")
        }
        out[formats] = np.frombuffer(b"".join(sorted(keyed)), np.uint8).reshape(-1, DIGEST)
    return out


def seal_sample(sample: Sample, plan: Plan, key: PrivateKey) -> dict[str, Any]:
    """A sample for every other party of the plan, which alone can open it; JSON-able. Its length follows from the plan alone.

    Args:
        sample: what :func:`sample_ids` gave.
        plan: the parties' plan.
        key: one's own private key.
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
    """Another party's sample, and which party's it is.

    Raises:
        MessageError: no such file, none for this party, or not as a party of this plan sealed it.
    """
    envelopes = Envelopes.from_json(data, KIND, where).envelopes
    if key.party not in envelopes:
        raise MessageError(
            f"{where} has nothing for {key.party!r}: is it one's own? Pass another party's."
        )
    sealed = envelopes[key.party]
    sender, packed = open_sealed(sealed, KIND, plan.digest(), plan.sealing_keys(), key, where)
    header, arrays = container.unpack(packed, KIND, where)
    if json.dumps(header.get("formats")) != json.dumps(COMBINATIONS):
        raise MessageError(
            f"{where} lists other id formats than this version knows; make it again with the same version."
        )
    out = {}
    for i, formats in enumerate(COMBINATIONS):
        digests = arrays.get(str(i))
        if digests is None or digests.dtype != np.uint8 or digests.shape != (SAMPLED, DIGEST):
            raise MessageError(f"{where} is malformed; have it made again.")
        out[formats] = digests
    return sender, out


def best_match(mine: Sample, theirs: Sample) -> Match:
    """The formats under which most ids are the same; among those, the fewest.

    Args:
        mine: what :func:`sample_ids` gave.
        theirs: what :func:`open_sample` gave.
    """
    own = {formats: set(map(bytes, digests)) for formats, digests in mine.items()}
    other = {
        formats: (i, set(map(bytes, digests)))
        for i, (formats, digests) in enumerate(theirs.items())
    }

    def matching(one: tuple[str, ...], another: tuple[str, ...]) -> int:
        number, entries = other[another]
        return sum(_entry(digest, number) in entries for digest in own[one])

    plain = matching((), ())
    best = Match(len(own[()]), plain, plain, (), ())
    pairs = sorted(
        itertools.product(COMBINATIONS, COMBINATIONS), key=lambda pair: len(pair[0]) + len(pair[1])
    )
    for one, another in pairs:
        count = matching(one, another)
        if count > best.matching:
            best = Match(best.mine, best.plain, count, one, another)
    return best


def _entry(digest: bytes, number: int) -> bytes:
    """What stands for an id in the list of that number; two lists have nothing in common."""
    return hashlib.blake2b(digest, digest_size=DIGEST, person=bytes([number])).digest()


def _padding(plan: Plan, key: PrivateKey) -> list[bytes]:
    """Digests of nobody, the same whenever this party pads a sample under this plan."""
    drawn = key.derive(plan.digest(), "padding of id samples")
    return [
        hashlib.blake2b(i.to_bytes(8), key=drawn, digest_size=DIGEST).digest()
        for i in range(SAMPLED)
    ]
