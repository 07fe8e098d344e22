"""The engine under other front ends: OpenDP's AIM, MST and AIM on mbi, each against mbi's own estimator; and our Synthesizer.

    python benchmarks/accuracy/front_ends.py [--data FOLDER] [--quick | --smoke] [--json FILE]

FOLDER holds adult.csv.gz and adult-domain.json; without it, a stand-in with Adult's domain is drawn, and accuracy has no bar.
A line is measured where what it needs is installed: mbi 2 (the extra `mbi`) or mbi 1.1 (`mbi1`) for MST and AIM, OpenDP with mbi
1.1 (`opendp`) for its own AIM. The two mbi exclude each other, so that all lines take two environments.

On mbi, MST (McKenna, Miklau, Sheldon, 2021; also with rare values merged, as in mbi's repository) and AIM (McKenna, Mullins, Sheldon, Miklau, 2022; with rounds of equal budget) are
written out in benchmarks/peers/mechanisms.py (and AIM with its published budget, for benchmarks/peers). They run with mbi's estimator first; then the same
selections and the same noisy counts are gone through again with ours, with all the work in between: so rounds and measurements
are the same, and times compare. OpenDP draws its noise itself: there the times of whole releases are compared per fit, and loss
and accuracy on the measurements of mbi's run.

Times are of all that a user waits for, JAX's compilation included, which mbi needs for every new set of cliques; ours is compiled
once and cached on disk, and loaded beforehand. Noise is seeded: no output of this script is private. --quick takes five columns
and few rounds.
"""

import importlib.util
import itertools
import math
import sys
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks import datasets
from benchmarks.datasets import Dataset
from benchmarks.peers.mechanisms import AIM, MST, SCALES, CompressedMST, Mbi, rows_of
from benchmarks.reproduce.methods import METHODS
from benchmarks.verdict import FULL, SMOKE, Verdict, arguments, finish
from vertimrf.kernels.contingency import contingency
from vertimrf.model.fit import fit
from vertimrf.model.measurement import Measurement
from vertimrf.model.sample import sample
from vertimrf.privacy.accountant import calibrate
from vertimrf.privacy.events import GaussianEvent
from vertimrf.utility.distances import tvd

EPSILON = 1.0


def loss_of(model, measurements):
    """Half the weighted squares that are left, on the same counts for everybody."""
    return sum(
        0.5
        * float(
            np.square(
                (np.asarray(m.query(model.project(m.clique))).ravel() - m.noisy_measurement)
                / m.stddev
            ).sum()
        )
        for m in measurements
        if len(m.clique)
    )


def budget(data):
    """What Gaussian noise may spend, as rho of zCDP, at EPSILON and a delta of 1/n."""
    return calibrate(lambda rho: [GaussianEvent(math.sqrt(0.5 / rho))], EPSILON, 1 / data.records)


def on_mbi(whole, part, scale):
    """MST, and AIM on part of the table, on mbi: its estimator and ours on the same rounds."""
    if not importlib.util.find_spec("mbi"):
        yield from (Verdict(f"{name} on mbi, share of its time", None) for name in ("MST", "AIM"))
        return
    mbi = Mbi()
    estimators = mbi.estimators()
    AIM.scale = scale
    for mechanism, data in ((MST, whole), (CompressedMST, whole), (AIM, part)):
        rho = budget(data)
        mbi.forget()
        name = f"{mechanism.__name__} on mbi {'2' if mbi.second else '1.1'}"
        theirs = mechanism(data, mbi, estimators["mbi"], None, rho).run()
        ours = mechanism(data, mbi, estimators["ours"], theirs.selected, rho).run()
        yield Verdict(f"{name}, mbi's estimator, s", theirs.seconds)
        yield Verdict(f"{name}, ours, s", ours.seconds)
        yield Verdict(f"{name}, share of its time", ours.seconds / theirs.seconds)
        yield Verdict(
            f"{name}, time in the estimator alone, over mbi's", ours.estimating / theirs.estimating
        )
        losses = [loss_of(outcome.model, theirs.measurements) for outcome in (ours, theirs)]
        yield Verdict(f"{name}, final loss, share of mbi's", losses[0] / losses[1])
        yield from accuracy(name, data, ours.codes, theirs.codes)
        yield Verdict(
            f"{name}, marginals against mbi's at the same factors",
            worst_difference(mbi, ours.model),
        )


def accuracy(name, data, ours, theirs):
    """Three-way distances of two tables of synthetic rows from the data."""
    figures = {
        whose: tvd(data.codes, codes, data.sizes, (3,))[3]
        for whose, codes in (("ours", ours), ("mbi's", theirs))
    }
    return [
        *(Verdict(f"{name}, 3-way TVD, {whose}", value) for whose, value in figures.items()),
        Verdict(f"{name}, 3-way TVD, share of mbi's", figures["ours"] / figures["mbi's"]),
    ]


def worst_difference(mbi, model, marginals=5):
    """Between our marginals and mbi's own at the model's factors: of its cliques, and of a few attributes that none holds."""
    exact = mbi.mbi.marginal_oracles.message_passing_stable(model.potentials, model.total)
    peer = mbi.mbi.MarkovRandomField(
        potentials=model.potentials, marginals=exact, total=model.total
    )
    apart = list(itertools.combinations(model.domain.attributes, 2))
    rng = np.random.default_rng(0)
    wanted = [
        *model.cliques,
        *(apart[i] for i in rng.choice(len(apart), min(marginals, len(apart)), replace=False)),
    ]
    return max(
        float(np.abs(np.asarray(peer.project(c).values) - model.project(c).values).max())
        for c in wanted
    )


def under_opendp(data, scale):
    """OpenDP's AIM, the estimator swapped by one argument."""
    name = "OpenDP's AIM"
    mbi = Mbi() if importlib.util.find_spec("mbi") else None
    if mbi is None or mbi.second or not importlib.util.find_spec("polars"):
        yield Verdict(f"{name}, time of a fit and its round, share of mbi's", None)
        return
    import opendp.prelude as dp
    import polars as pl

    from vertimrf.adapters.opendp import estimator

    dp.enable_features("contrib")
    # OpenDP serialises its query some thousand times while it looks for noise scales: a file's name, not its content.
    folder = tempfile.TemporaryDirectory()
    pl.DataFrame(dict(zip(data.names, data.codes.astype(np.int64), strict=True))).write_parquet(
        f"{folder.name}/table.parquet"
    )
    frame = pl.scan_parquet(f"{folder.name}/table.parquet")
    rho = budget(data)
    keys = {a: list(range(size)) for a, size in zip(data.names, data.sizes, strict=True)}
    tables, per_fit, estimating = {}, {}, {}
    for whose, chosen in (("mbi's", dp.mbi.mirror_descent), ("ours", estimator)):
        calls = []

        def timed(*arguments, chosen=chosen, calls=calls, **options):
            start = time.perf_counter()
            model = chosen(*arguments, **options)
            np.asarray(model.project(data.names[:1]).values)
            calls.append(time.perf_counter() - start)
            return model

        context = dp.Context.compositor(
            data=frame, privacy_unit=dp.unit_of(contributions=1), privacy_loss=dp.loss_of(rho=rho)
        )
        algorithm = dp.mbi.AIM(estimator=timed, queries=scale.degree, rounds=scale.rounds)
        start = time.perf_counter()
        tables[whose] = (
            context.query(rho=rho).contingency_table(keys=keys, algorithm=algorithm).release()
        )
        seconds = time.perf_counter() - start
        per_fit[whose], estimating[whose] = seconds / len(calls), float(np.mean(calls))
        yield Verdict(f"{name}, {whose}, s", seconds)
    folder.cleanup()
    theirs = tables["mbi's"].model
    measured = tables["mbi's"].marginals.flatten()
    ours = estimator(theirs.domain, measured)
    rows = [rows_of(model, data) for model in (ours, theirs)]
    yield Verdict(
        f"{name}, time of a fit and its round, share of mbi's", per_fit["ours"] / per_fit["mbi's"]
    )
    yield Verdict(
        f"{name}, time of a fit alone, share of mbi's", estimating["ours"] / estimating["mbi's"]
    )
    yield Verdict(
        f"{name}, final loss, share of mbi's", loss_of(ours, measured) / loss_of(theirs, measured)
    )
    # OpenDP adds a key for nulls, behind the others, which no record has.
    yield from accuracy(
        name, Dataset(data.name, data.names, theirs.domain.shape, data.codes), *rows
    )


def central(data, scale):
    """Our Synthesizer, at the delta that published figures go by."""
    split = [range(len(data.sizes))]
    distances, seconds, computing = [], [], []
    for seed in range(scale.seeds + 1):
        start, busy = time.perf_counter(), time.process_time()
        made = METHODS["centralized"].synthesize(
            data.codes, data.sizes, split, 0.8, 1 / data.records, seed
        )
        # The first loads compiled kernels.
        if seed:
            seconds.append(time.perf_counter() - start)
            computing.append(time.process_time() - busy)
            distances.append(tvd(data.codes, made.codes, data.sizes, (3,))[3])
    mean = float(np.mean(distances))
    yield Verdict(
        f"Synthesizer on {data.name}, epsilon 0.8, delta 1/n: 3-way TVD, mean of {scale.seeds}",
        mean,
    )
    yield Verdict("Synthesizer: fit and sample, warm, s (median)", float(np.median(seconds)))
    # On a machine that does nothing else the wall time is no more than this; others' load does not enter.
    yield Verdict(
        "Synthesizer: the same, processor time of all threads, s (median)",
        float(np.median(computing)),
    )


def warm_up(data):
    """Load our compiled kernels."""
    sizes = data.sizes[:3]
    table = contingency(data.codes, data.sizes, (0, 1)).astype(np.float64)
    sample(
        fit(sizes, [Measurement((0, 1), (None, None), table, 10.0)], float(data.records)),
        10,
        np.random.default_rng(0),
    )


def main():
    """Run all sections, print one line a figure."""
    options = arguments(__doc__, quick="five columns and few rounds", data="adult").parse_args()
    warnings.simplefilter("ignore", UserWarning)
    adult = datasets.adult(options.data)
    scale = SCALES[options.size]
    few = slice(0, scale.columns)
    part = Dataset(
        adult.name, adult.names[few], adult.sizes[few], np.ascontiguousarray(adult.codes[few])
    )
    warm_up(adult)
    data = part if options.size == SMOKE else adult
    of_mst = adult if options.size == FULL else part
    sections = central(data, scale), on_mbi(of_mst, part, scale), under_opendp(part, scale)
    finish(itertools.chain(*sections), "front_ends", options)


if __name__ == "__main__":
    main()
