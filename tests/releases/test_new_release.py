"""A release that this package has never heard of: noisy exact counts, by a dealer whom everybody trusts.

It is one class, and one line of the register. Nothing else knows of it: it goes through a trial, run folders and the report.
"""

import ast
import itertools
import math
import sys
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from builders import dealt, schema_of
from runs.conversation import SCHEMA, Conversation

import vertimrf
from vertimrf import Model, PlanOptions, RunOptions, make_plan, write_report
from vertimrf.files.convert import Number
from vertimrf.model.measurement import Measurement
from vertimrf.plan.choice import Choice, coarse_groups, shares_of
from vertimrf.privacy.events import GaussianEvent
from vertimrf.privacy.noise import SystemNoise
from vertimrf.releases.received import CrossParty
from vertimrf.releases.register import KINDS
from vertimrf.releases.release import CrossPartyRelease
from vertimrf.trial import run_protocol

RECORDS = 4000
PACKAGE = Path(vertimrf.__file__).parent
CLASSES = {name for _, name, _ in KINDS.values()}


@dataclass(frozen=True)
class DealtCounts(CrossPartyRelease):
    """Counts of every two attributes of two parties, by the dealer."""

    sigma: Number
    tables: int
    sizes: tuple[int, ...]
    encoder = "dealer"
    kind = "counts by a dealer"
    bits = 4
    floor = 0
    ceiling = 0

    @classmethod
    def planned(cls, schema, planning, target):
        groups, shares = coarse_groups(schema), shares_of(schema, planning, target)
        parties = [group.party(schema) for group in groups]
        tables = sum(a != b for a, b in itertools.combinations(parties, 2))
        sizes = tuple(group.size for group in groups)
        return Choice(
            lambda rho: (groups, cls(math.sqrt(tables / (2 * rho)), tables, sizes)), (), shares
        )

    @property
    def event(self):
        return GaussianEvent(self.sigma, 1, self.tables)

    def in_words(self, epsilon, delta):
        return f"{self.tables} tables of counts by the dealer", f"sigma {self.sigma:.1f}"

    @classmethod
    def sentence(cls, entry, event, who):
        return f"{who} gave a dealer their records, who counted {event.count} tables."

    def shapes(self, groups, rows):
        return []

    def summary(self):
        return f"counts by a dealer, with noise of {self.sigma:.1f} records"

    def encode(self, side):
        """The dealer is given the records; the message has nothing of them."""
        digests, codes = side.with_blanks()
        DEALER.setdefault(side.plan.digest(), {})[side.party] = digests, codes
        return ()

    def estimate(self, received):
        plan, out = received.plan, []
        given = DEALER[plan.digest()]
        for one, other in itertools.combinations(sorted(given), 2):
            (ids, left), (others, right) = given[one], given[other]
            _, at, beside = np.intersect1d(ids, others, return_indices=True)
            pairs = itertools.product(
                enumerate(plan.groups_of(one)), enumerate(plan.groups_of(other))
            )
            for (i, g), (j, h) in pairs:
                exact = np.zeros((self.sizes[g], self.sizes[h]), np.int64)
                np.add.at(exact, (left[i, at], right[j, beside]), 1)
                counts = SystemNoise().gaussian(exact, self.sigma).astype(np.float64)
                attributes = (plan.groups[g].attributes[0], plan.groups[h].attributes[0])
                bins = received.bins[g][0], received.bins[h][0]
                out.append(Measurement(attributes, bins, counts, self.sigma, "the dealer"))
        return CrossParty(tuple(out))


DEALER = {}


@pytest.fixture(autouse=True)
def registered(monkeypatch):
    """The one line of the register, and the module to which it leads."""
    module = ModuleType("vertimrf.releases.dealer.parameters")
    module.DealtCounts = DealtCounts
    monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.setitem(KINDS, "dealer", ("dealer", "DealtCounts", ""))
    DEALER.clear()


def test_a_new_release_goes_through_a_trial():
    """Attributes of two parties that are equal stay so: noise of some records beside thousands in a cell."""
    schema = schema_of(one=(3, 2), two=(3, 4))
    codes = np.array([np.random.default_rng(5).integers(0, size, RECORDS) for size in (3, 2, 3, 4)])
    codes[2] = codes[0]
    plan = make_plan(schema, 5.0, PlanOptions(expected_records=RECORDS, encoder="dealer"))
    assert plan.ledger().epsilon == pytest.approx(5.0, rel=0.01)
    assert plan.sketch.event in [entry.event for entry in plan.ledger().entries]
    trial = run_protocol(plan, dealt(schema, codes), RunOptions(seed=1))
    rows = trial.result.codes
    # At a budget of 5, the noise of a cell is about ten records, 100 times less than a cell has.
    assert np.mean(rows[0] == rows[2]) > 0.9


def test_a_new_release_goes_through_run_folders_and_the_report(tmp_path):
    planning = PlanOptions(expected_records=300, encoder="dealer", even_if_useless=True)
    Conversation.make(tmp_path / "run", planning=planning, schema=SCHEMA).play()
    (found,) = (tmp_path / "run" / "server").rglob("model*")
    model = Model.load(found)
    assert model.schema.names == SCHEMA.names
    assert "counts by a dealer" in model.summary()
    assert "dealer" in model.ledger.table()
    write_report(found.parent, tmp_path / "report.html")
    assert "All parties gave a dealer their records" in (tmp_path / "report.html").read_text()


def test_no_file_beside_the_releases_asks_which_one_it_has():
    for path in PACKAGE.rglob("*.py"):
        if PACKAGE / "releases" in path.parents:
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            asked = isinstance(node, ast.MatchClass) or (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Name)
                and node.func.id == "isinstance"
            )
            if asked:
                names = {inner.id for inner in ast.walk(node) if isinstance(inner, ast.Name)}
                assert not names & CLASSES, f"{path} asks which release it has"
