"""A distinguisher on worst-case neighbours, through the real encode path: short runs of benchmarks/attacks/audit.py.

Noise and hashes are of the system's entropy. Where something has to be found, means and standard deviations of what is found
stand beside it, from 2500 resamplings of 4000 to 24,000 trials; bounds are five standard deviations or more away.
"""

import importlib.util
import math
import sys
from pathlib import Path

import numpy as np
import pytest

from vertimrf.privacy.events import SketchEvent
from vertimrf.privacy.noise import SystemNoise

SCRIPT = Path(__file__).resolve().parents[2] / "benchmarks" / "attacks" / "audit.py"


@pytest.fixture(scope="module")
def audit():
    spec = importlib.util.spec_from_file_location("audit", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    # Dataclasses look their module up by name.
    sys.modules["audit"] = module
    spec.loader.exec_module(module)
    return module


def test_the_bound_itself(audit):
    rng = np.random.default_rng(0)
    # Two Gaussians mu = 1 apart: epsilon at 1e-3 is 3.2; the bound is below it and well above nothing.
    one, other = rng.normal(1, 1, 40_000), rng.normal(0, 1, 40_000)
    assert 1.5 < audit.certain_epsilon(one, other, 1e-3) < 3.2
    assert audit.certain_epsilon(other, one, 1e-3) < 0.1
    assert audit.certain_epsilon(other, rng.normal(0, 1, 40_000), 1e-3) < 0.3


def test_the_distinguishers_likelihood_ratio_is_the_accountants(audit):
    event = SketchEvent(150, 3, 14, 1, attributes_per_key=3)
    table = audit.log_ratio(150, 3, 14, 3)[3:, 1:]
    ours = np.sort(event.atoms[1])
    # The accountant leaves out what cannot occur.
    for ratio in ours:
        assert np.abs(table - ratio).min() < 1e-9


@pytest.mark.slow
def test_scheduled_pairs_stay_below_the_ledger(audit):
    outcome = audit.audit_pairs(6000)
    # 0.86, s.d. 0.10, of an exact 3.6.
    assert 0.3 < outcome.lower_bound < outcome.exact
    assert audit.audit_pairs(1000, others=40).lower_bound < outcome.exact


@pytest.mark.slow
def test_too_few_phantoms_are_caught(audit):
    # An eighth of the phantoms that the ledger would state: the audit notices: it finds 5.2, s.d. 0.1, where 3.6 is stated.
    stated = audit.audit_pairs(2, phantoms=150).exact
    assert audit.audit_pairs(4000, phantoms=19).lower_bound > stated


def test_count_sketches_stay_below_the_ledger(audit):
    # 1.25, s.d. 0.16, of an exact 6.4; with weights the law is the same, and so is the price.
    for outcome in (
        audit.audit_counts(2000),
        audit.audit_counts(2000, variance=48.0, weights=(1, 3, 5, 7) * 2),
    ):
        assert 0.3 < outcome.lower_bound < outcome.exact
    assert audit.audit_counts(300, others=40).lower_bound < outcome.exact


def test_known_buckets_and_signs_cost_what_the_ledger_says_if_a_party_colludes(audit):
    # 1.80, s.d. 0.11, of an exact 3.59: at least a third of it, so that it says something.
    outcome = audit.audit_known(4000)
    assert outcome.exact / 3 < outcome.lower_bound < outcome.exact
    # Priced as if weights did not count it would be 0.70.
    unweighted = audit.audit_known(4000, stated=8)
    assert unweighted.lower_bound > unweighted.exact


def test_too_little_noise_in_count_sketches_is_caught(audit):
    # An eighth of the variance that the ledger states: 1.51, s.d. 0.16, where 0.62 is stated.
    outcome = audit.audit_counts(3000, variance=12.0, stated=96.0)
    assert outcome.lower_bound > outcome.exact


@pytest.mark.slow
def test_encrypted_counts_stay_below_the_ledger_whoever_colludes(audit):
    # 0.90, s.d. 0.14, of an exact 4.4 against who knows one noise.
    outcome = audit.audit_encrypted(2000, 0)
    assert 0.2 < outcome.lower_bound < outcome.exact
    for knows in (None, 1):
        assert audit.audit_encrypted(500, knows).lower_bound < outcome.exact


@pytest.mark.slow
def test_too_little_noise_in_encrypted_counts_is_caught(audit, monkeypatch):
    # A sixty-fourth of the noise that the ledger states: 2.46, s.d. 0.1, is found where 0.20 is stated.
    gaussian = SystemNoise.gaussian
    monkeypatch.setattr(
        SystemNoise, "gaussian", lambda self, exact, sigma: gaussian(self, exact, sigma / 64)
    )
    outcome = audit.audit_encrypted(300, 1, sigma=64.0)
    assert outcome.lower_bound > outcome.exact


@pytest.mark.slow
@pytest.mark.parametrize("one_clique", [True, False])
def test_count_and_local_marginals_stay_below_the_ledger(audit, one_clique):
    outcome = audit.audit_local(300, one_clique)
    # As many trials could find more than the ledger has.
    assert outcome.lower_bound < outcome.exact <= outcome.claim < outcome.reach


@pytest.mark.slow
def test_too_little_local_noise_is_caught(audit, monkeypatch):
    # A twentieth of the noise that the ledger states.
    gaussian = SystemNoise.gaussian
    monkeypatch.setattr(
        SystemNoise, "gaussian", lambda self, exact, sigma: gaussian(self, exact, sigma / 20)
    )
    outcome = audit.audit_local(300, True)
    assert outcome.lower_bound > outcome.exact


@pytest.mark.slow
def test_the_published_encoder_exceeds_its_claim_by_far(audit):
    outcome = audit.audit_published(5000)
    # 3.4, s.d. 0.19; of 4000 trials 3.14.
    assert outcome.claim == 0.4
    assert 5 * outcome.claim < outcome.lower_bound < outcome.exact
    assert math.isfinite(outcome.exact)
