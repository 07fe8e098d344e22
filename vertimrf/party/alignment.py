"""Do parties write the ids of the same people the same way? Asked between parties, before anything is released.

A party seals keyed digests of a sample of its ids for every other party, under each way of writing them. Who has the secret can
count how many of them it holds itself, and under which formats most do. The server learns nothing. The other parties learn which
of *their* people are among the sample, exactly: no noise covers that, and none could, for a match is what is asked.
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

from ..errors import MessageError, TableError
from ..files import container
from ..keys import PrivateKey, open_sealed, read_base64, seal, to_base64
from ..plan.plan import Plan
from ..tables.ids import FORMATS, Absent, digest_ids, digested, format_ids
from .secret import Secret, derive, id_keys

__all__ = ["Match", "best_match", "open_sample", "sample_ids", "seal_sample"]

KIND = "id sample"
# People whose ids are compared; the same ones at every party, because their digests are the least of all.
SAMPLED = 10_000
DIGEST = 16
COMBINATIONS = tuple(
    combination for count in range(len(FORMATS) + 1) for combination in itertools.combinations(FORMATS, count)
)

# Digests of the sampled ids by how they are written; sorted, of 128 bits each [shape=(people, 16), uint8].
Sample = dict[tuple[str, ...], npt.NDArray[np.uint8]]


@dataclass(frozen=True)
class Match:
    """How many ids of two samples are the same, at best.

    Attributes:
        mine: ids of one's own sample.
        theirs: ids of the other party's sample.
        plain: how many match as they are written.
        matching: how many match under the formats below.
        my_format: formats for one's own ids.
        their_format: formats for the other party's.
    """

    mine: int
    theirs: int
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
        TableError: null or empty ids, or ids of a type that are none.
    """
    chosen, least = pa.chunked_array([], pa.null()), np.empty(0, np.uint64)
    absent, records = Absent(), 0
    keys = id_keys(secret, plan.digest())
    for piece in pieces:
        digests, present = digested(keys.records, format_ids(piece, FORMATS, where), where)
        absent = absent.then(Absent.of(present, records))
        records += len(piece)
        # Of all so far the least; those that come first, where some are equal.
        held = pa.chunked_array([*chosen.chunks, *piece.chunks], piece.type)
        least = np.concatenate([least, digests])
        order = np.argsort(least, kind="stable")[:SAMPLED]
        chosen, least = held.take(pa.array(order)), least[order]
    if absent.count:
        raise TableError(absent.sentence(where))
    key = derive(secret, plan.digest(), purpose="id sample")
    out = {}
    for formats in COMBINATIONS:
        digests = digest_ids(keys.records, format_ids(chosen, formats, where), where)
        keyed = {hashlib.blake2b(digest.tobytes(), key=key, digest_size=DIGEST).digest() for digest in digests.astype("<u8")}
        out[formats] = np.frombuffer(b"".join(sorted(keyed)), np.uint8).reshape(-1, DIGEST)
    return out


def seal_sample(sample: Sample, plan: Plan, key: PrivateKey) -> dict[str, Any]:
    """A sample for every other party of the plan, which alone can open it; JSON-able."""
    header = {"formats": [list(formats) for formats in sample]}
    packed = container.pack(KIND, header, {str(i): digests for i, digests in enumerate(sample.values())})
    keys = plan.sealing_keys()
    return {
        "kind": KIND,
        "envelopes": {
            name: to_base64(seal(packed, KIND, plan.digest(), keys, key, name)) for name in plan.party_names if name != key.party
        },
    }


def open_sample(data: Any, plan: Plan, key: PrivateKey, where: str) -> tuple[str, Sample]:
    """Another party's sample, and which party's it is.

    Raises:
        MessageError: no such file, none for this party, or not as a party of this plan sealed it.
    """
    if not isinstance(data, dict) or data.get("kind") != KIND or not isinstance(data.get("envelopes"), dict):
        raise MessageError(f"{where} is no id sample; pass the file that `vertimrf align` wrote at another party.")
    if key.party not in data["envelopes"]:
        raise MessageError(f"{where} has nothing for {key.party!r}: is it one's own? Pass another party's.")
    sealed = read_base64(data["envelopes"], str(key.party), where)
    sender, packed = open_sealed(sealed, KIND, plan.digest(), plan.sealing_keys(), key, where)
    header, arrays = container.unpack(packed, KIND, where)
    listed = header.get("formats")
    if not isinstance(listed, list) or json.dumps(listed) != json.dumps(COMBINATIONS):
        raise MessageError(f"{where} lists other id formats than this version knows; make it again with the same version.")
    out = {}
    for i, formats in enumerate(COMBINATIONS):
        digests = arrays.get(str(i))
        if digests is None or digests.dtype != np.uint8 or digests.shape != (min(len(digests), SAMPLED), DIGEST):
            raise MessageError(f"{where} is malformed; have it made again.")
        out[formats] = digests
    return sender, out


def best_match(mine: Sample, theirs: Sample) -> Match:
    """The formats under which most ids are the same; among those, the fewest."""
    own, other = ({formats: set(map(bytes, digests)) for formats, digests in sample.items()} for sample in (mine, theirs))
    plain = len(own[()] & other[()])
    best = Match(len(own[()]), len(other[()]), plain, plain, (), ())
    pairs = sorted(itertools.product(COMBINATIONS, COMBINATIONS), key=lambda pair: len(pair[0]) + len(pair[1]))
    for one, another in pairs:
        count = len(own[one] & other[another])
        if count > best.matching:
            best = Match(best.mine, best.theirs, plain, count, one, another)
    return best
