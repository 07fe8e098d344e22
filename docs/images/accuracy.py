"""Makes accuracy.png from the measured table of benchmarks/results/accuracy.md: python docs/images/accuracy.py.

Needs matplotlib. Nothing is typed here: run it again when the table changes (tests/test_docs.py compares the figures, which the picture has as text).
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
OURS = "vertimrf, two parties"
# Colours that readers with any colour vision tell apart (Okabe and Ito).
COLOURS = {
    OURS: "#0072B2",
    "AIM, all data in one place": "#E69F00",
    "MST, all data in one place": "#999999",
}


def figures(page: str) -> dict[str, dict[float, dict[str, float]]]:
    """Total variation distances by data set, epsilon and method."""
    out: dict[str, dict[float, dict[str, float]]] = {}
    for data, epsilon, ours, quoted in re.findall(
        r"^\| (\w+) \| ([\d.]+) \| ([\d.]+) ± [^|]*\|[^|]*\|[^|]*\| ([^|]*) \|$", page, re.M
    ):
        by_method = {OURS: float(ours)}
        for name in ("AIM", "MST"):
            if found := re.search(rf"central {name}: ([\d.]+)", quoted):
                by_method[f"{name}, all data in one place"] = float(found[1])
        if len(by_method) == 3:
            out.setdefault(data, {})[float(epsilon)] = by_method
    return out


def main() -> None:
    import matplotlib.pyplot as plt

    page = (ROOT / "benchmarks" / "results" / "accuracy.md").read_text()
    of_data = figures(page)
    drawn, axes = plt.subplots(1, len(of_data), figsize=(9, 2.9), layout="constrained")
    for axis, (data, by_epsilon) in zip(axes, of_data.items(), strict=True):
        for name, colour in COLOURS.items():
            axis.plot(
                list(by_epsilon),
                [by_method[name] for by_method in by_epsilon.values()],
                marker="o" if name == OURS else "s",
                linewidth=2 if name == OURS else 1.2,
                color=colour,
                label=name,
            )
        axis.set(title=data, xlabel="ε", xscale="log", ylim=(0, None))
        axis.set_xticks(list(by_epsilon), [f"{epsilon:g}" for epsilon in by_epsilon])
        axis.minorticks_off()
        axis.spines[["top", "right"]].set_visible(False)
    axes[0].set_ylabel("total variation distance\nof three columns")
    drawn.legend(
        *axes[0].get_legend_handles_labels(), loc="outside upper center", ncols=3, frameon=False
    )
    to = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).with_name("accuracy.png")
    drawn.savefig(to, dpi=130, metadata={"Software": None, "Description": json.dumps(of_data)})


if __name__ == "__main__":
    main()
