"""Bad files of every kind: whoever reads them says so in one sentence, or has something valid; if not, the fuzzer notices."""

import os
import time
from pathlib import Path

import numpy as np
import pytest

from benchmarks.verdict import Verdict
from tools import fuzz
from tools.fuzzed.damage import damaged_container, damaged_json
from tools.fuzzed.readers import KINDS
from tools.fuzzed.seeds import PLANS, build


@pytest.fixture(scope="module")
def seeds(tmp_path_factory):
    return build(tmp_path_factory.mktemp("seeds"))


def wrong(counts):
    """What must not happen, a line each. A busy machine is slow at any file: `tests/tools/fuzz.py` judges time."""
    return [
        f"{w.what}: {w.kind}, case {w.case} ({w.file}): {w.words}"
        for w in counts.wrong
        if w.what != "slow"
    ]


def test_every_kind_has_its_files(seeds):
    for kind in KINDS:
        assert all(seeds.path(name).is_file() for name in kind.files), kind.name
    assert {name for name, _ in seeds.messages.items()} == set(PLANS)


def test_bad_files_give_a_typed_error_or_a_valid_object(seeds, tmp_path):
    counts = fuzz.fuzz(48, seed=1, jobs=1, seeds=seeds.folder, keep=tmp_path)
    assert wrong(counts) == []
    assert counts.count == pytest.approx(48, abs=len(KINDS))
    # Neither is everything refused nor everything taken.
    taken = sum(n for (_, outcome), n in counts.outcomes.items() if outcome.startswith("valid"))
    assert 0.1 < taken / counts.count < 0.6
    assert {kind for kind, _ in counts.outcomes} == {kind.name for kind in KINDS}
    assert len(list(tmp_path.iterdir())) == len(counts.wrong)


@pytest.mark.slow
def test_five_thousand_bad_files(seeds, tmp_path):
    """A hundred thousand are for `python tests/tools/fuzz.py`: a quarter of an hour on two idle cores."""
    counts = fuzz.fuzz(5000, seed=2, seeds=seeds.folder, keep=tmp_path)
    assert wrong(counts) == []


def test_damage_follows_from_the_seed(seeds):
    data = seeds.path("count.plan.json").read_bytes()
    model = seeds.path("count.model").read_bytes()
    for damage, sound in ((damaged_json, data), (damaged_container, model)):
        made = [damage(np.random.default_rng(i), sound) for i in range(40)]
        assert made == [damage(np.random.default_rng(i), sound) for i in range(40)]
        assert len(set(made)) > 30


def test_a_validation_that_is_missing_is_noticed(seeds, tmp_path, monkeypatch):
    """In this process: workers would load the package anew."""
    from vertimrf.model import markov_random_field
    from vertimrf.model.junction_tree import JunctionTree

    def unchecked(sizes, cliques, parents):
        return JunctionTree(tuple(sizes), tuple(map(tuple, cliques)), tuple(parents))

    kind = next(kind for kind in KINDS if kind.name == "model")
    scratch, kept = tmp_path / "scratch", tmp_path / "kept"
    scratch.mkdir()
    kept.mkdir()

    def played(case):
        # Most damage is to headers, so no kernel is led astray in this process.
        return [w.what for w in fuzz._case(seeds, kind, case, 3, scratch, kept)[-1]]

    with monkeypatch.context() as patched:
        patched.setattr(markov_random_field, "checked_tree", unchecked)
        noticed = next((case for case in range(150) if "untyped" in played(case)), None)
    assert noticed is not None
    assert list(kept.iterdir())
    # It was the missing validation, and nothing else, that it noticed.
    assert played(noticed) == []


@pytest.mark.slow
def test_a_crash_a_hang_and_a_loss_of_memory_are_noticed(seeds, tmp_path, monkeypatch):
    """Whatever brings a worker down is an outcome, with the bytes that did."""
    monkeypatch.setattr(fuzz, "HANGS", 2.0)
    monkeypatch.setattr(fuzz, "_work", _breaking)
    counts = fuzz.fuzz(4, seed=0, jobs=1, only=["secret"], seeds=seeds.folder, keep=tmp_path)
    assert sorted(w.what for w in counts.wrong) == ["crash", "hang"]
    assert counts.count == 4
    assert all(Path(w.kept).read_bytes() == b"bytes" for w in counts.wrong)
    assert [verdict.holds for verdict in fuzz.verdicts(counts)].count(False) == 2


def _breaking(folder, scratch, kept, seed, cases, results):
    """A worker whose second case crashes, and whose third hangs."""
    results.send(None)
    for number, (name, case) in enumerate(cases):
        draft = kept / f"{os.getpid()}-parties.secret"
        draft.write_bytes(b"bytes")
        if len(cases) == 4 and number == 1:
            os.abort()
        if len(cases) == 2:
            time.sleep(60)
        draft.unlink()
        results.send((name, case, "valid", 0.0, 0.0, []))


def test_sentences_are_judged():
    assert fuzz.unclear("A plain sentence.") == ""
    for text in ("", "two\nlines", "x" * 2000, "\x1b[31m", "\ud800"):
        assert fuzz.unclear(text)
    assert isinstance(fuzz.verdicts(fuzz.Counts())[0], Verdict)
