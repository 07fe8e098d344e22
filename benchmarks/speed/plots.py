"""Two plots from figures of `vertimrf bench --json`: rows a second by threads, and seconds by rows.

    python benchmarks/speed/plots.py FILE... SVG

Each file has more rows than the one before it. Rows a second are of the last; seconds are on most threads.
"""

import json
import sys
from pathlib import Path

import matplotlib


def draw(runs, out):
    """An SVG of runs, fewest rows first."""
    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "vertimrf"
    import matplotlib.pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
    points = [one for run in runs for one in run["encoders"]]
    threads = sorted({one["threads"] for one in points})
    for name in dict.fromkeys(one["encoder"] for one in points):
        mine = [one for one in points if one["encoder"] == name]
        # The last figure stays: of the most rows, and of the most threads.
        by_threads = {one["threads"]: one["rows_per_second"] for one in mine}
        by_rows = {one["rows"]: one["encode_seconds"] for one in mine}
        left.plot(by_threads.keys(), by_threads.values(), marker="o", label=name)
        right.plot(by_rows.keys(), by_rows.values(), marker="o")
    left.set(xlabel="threads", xticks=threads, ylabel="rows/s", yscale="log")
    right.set(xlabel="rows", ylabel=f"s on {threads[-1]} threads", xscale="log", yscale="log")
    figure.legend(loc="outside right center", fontsize="small")
    figure.suptitle(f"{runs[0]['cores']} cores ({runs[0]['processor']})", fontsize="medium")
    figure.savefig(out, metadata={"Date": None})
    plt.close(figure)


if __name__ == "__main__":
    *files, out = sys.argv[1:]
    draw([json.loads(Path(file).read_text()) for file in files], out)
