"""A party: one table and the plan in, one message out (VertiMRF, phases 1 and 2)."""

from __future__ import annotations

import time

import numpy as np
import numpy.typing as npt

from .binning import choose_bins
from .encode import SharedKeyEncoder, SharedKeyPlan, SketchEncoder, SketchPlan
from .errors import PlanError, TableError
from .local_model import LocalRelease, release_local_model
from .message import LocalMarginal, Message
from .plan import Plan
from .privacy.noise import Noise, SystemNoise
from .respond import ResponsePlan, respond
from .secret import Secret, derive
from .table import Table

__all__ = ["Party"]

BinMaps = tuple[npt.NDArray[np.int64], ...]


class Party:
    """One data holder. It sees its own table and the plan, and publishes one message per plan.

    Args:
        plan: the agreed plan.
        name: which party of the plan this is.
        secret: the parties' shared secret, unknown to the server.
        noise: noise source; default the operating system's. Tests may fix it; the message is then marked not private.

    After :meth:`run`, ``seconds`` holds the wall time of LocMRF and LocEnc.

    Raises:
        PlanError: the plan has no party of that name.
    """

    def __init__(self, plan: Plan, name: str, secret: Secret, noise: Noise | None = None) -> None:
        if name not in plan.party_names:
            raise PlanError(f"The plan has no party {name!r}; it names {', '.join(plan.party_names)}.")
        self._plan = plan
        self._index = plan.party_names.index(name)
        self._attributes = plan.schema.party_attributes(name)
        self._secret = secret
        self._noise = noise if noise is not None else SystemNoise()
        self.seconds: dict[str, float] = {}

    def run(self, table: Table, num_threads: int | None = None) -> Message:
        """LocMRF and LocEnc: measure the local marginals, encode the sketches.

        Everything read from the table is an event of the plan's ledger. Call it once per plan: a second message with the same
        hashes and fresh phantoms would peel the phantoms off.

        Args:
            table: the party's records, encoded against its part of the schema.
            num_threads: threads for the kernels; None leaves the setting as it is.

        Raises:
            TableError: the table's attributes are not those of this party.
        """
        plan = self._plan
        mine = tuple(plan.schema.attributes[i] for i in self._attributes)
        if table.attributes != mine:
            raise TableError(
                f"The table's columns do not match what the plan asks of {plan.party_names[self._index]}: "
                f"{', '.join(a.name for a in mine)}."
            )
        count = None
        if self._index == 0:
            exact = np.array([table.codes.shape[1]], np.int64)
            count = int(self._noise.gaussian(exact, plan.count_sigma)[0])
        start = time.perf_counter()
        sizes = [attribute.size for attribute in mine]
        release = release_local_model(table.codes, sizes, plan.local[self._index], self._noise)
        bins = self._bins(release)
        self.seconds["LocMRF"] = time.perf_counter() - start
        start = time.perf_counter()
        sketches: tuple[npt.NDArray[np.uint8], ...] = ()
        if plan.sketch is not None:
            sketches = self._encode(table, bins, plan.sketch, num_threads)
        self.seconds["LocEnc"] = time.perf_counter() - start
        return Message(
            plan_digest=plan.digest(),
            party=self._index,
            private=self._noise.private,
            count=count,
            marginals=tuple(
                LocalMarginal(tuple(self._attributes[a] for a in attributes), counts, sigma)
                for attributes, counts, sigma in release.marginals
            ),
            edges=tuple((self._attributes[a], self._attributes[b]) for a, b in release.edges),
            bins=bins,
            sketches=sketches,
        )

    def _bins(self, release: LocalRelease) -> tuple[BinMaps, ...]:
        """Bin maps of this party's groups, from what LocMRF has already released."""
        plan = self._plan
        one_way: dict[int, npt.NDArray[np.float64]] = {}
        for attributes, counts, _ in release.marginals:
            for axis, local in enumerate(attributes):
                if self._attributes[local] not in one_way:
                    others = tuple(a for a in range(counts.ndim) if a != axis)
                    one_way[self._attributes[local]] = counts.sum(axis=others).astype(np.float64)
        maps = []
        for index in plan.party_groups(self._index):
            group = plan.groups[index]
            maps.append(
                tuple(
                    choose_bins(one_way[attribute], count, plan.schema.attributes[attribute].ordered)
                    for attribute, count in zip(group.attributes, group.bins, strict=True)
                )
            )
        return tuple(maps)

    def _encode(
        self,
        table: Table,
        bins: tuple[BinMaps, ...],
        sketch: SketchPlan | SharedKeyPlan | ResponsePlan,
        num_threads: int | None,
    ) -> tuple[npt.NDArray[np.uint8], ...]:
        plan = self._plan
        groups = plan.party_groups(self._index)
        rows = np.empty((len(groups), table.codes.shape[1]), np.uint16)
        for row, (index, maps) in enumerate(zip(groups, bins, strict=True)):
            group = plan.groups[index]
            rows[row] = 0
            for attribute, count, mapping in zip(group.attributes, group.bins, maps, strict=True):
                rows[row] *= np.uint16(count)
                rows[row] += mapping.astype(np.uint16)[table.codes[self._attributes.index(attribute)]]
        key = derive(self._secret, plan.digest(), purpose="sketches")
        if isinstance(sketch, ResponsePlan):
            return respond(sketch, groups, table.digests, rows, key, self._noise.random_bytes)
        encoder: SketchEncoder | SharedKeyEncoder
        if isinstance(sketch, SharedKeyPlan):
            encoder = SharedKeyEncoder(sketch, groups, key, num_threads=num_threads)
        else:
            encoder = SketchEncoder(sketch, groups, key, num_threads=num_threads)
        encoder.update(table.digests, rows)
        return encoder.result(self._noise.random_bytes)


