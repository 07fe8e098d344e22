"""From finished runs to CSV, Markdown tables and plots."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ..peers.peer import PEERS
from ..verdict import FULL, Verdict, with_bar
from . import quoted
from .experiments import ABLATIONS, DEFAULT, OURS, REAL_EPSILON, message, useful
from .methods import METHODS
from .svm import FOLDS
from .usefulness import COLUMNS


def write_csv(store, path):
    """One line per finished run."""
    columns = [
        "metric",
        "data",
        "method",
        "epsilon",
        "seed",
        "split",
        "options",
        "fold",
        "marginals",
        "tvd3",
        "tvd4",
        "tvd5",
        "across3",
        "misclassification",
        "seconds",
        "party_seconds",
        "server_seconds",
        "parties",
        "message_bytes",
        "spent",
        "private",
        "threads",
    ]
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, columns, extrasaction="ignore")
        writer.writeheader()
        for run, result in store.runs():
            options = " ".join(f"{name}={value}" for name, value in run.options)
            sent = " ".join(map(str, result["message_bytes"]))
            writer.writerow({**result, **run.__dict__, "options": options, "message_bytes": sent})


def table(head, rows):
    """Markdown; nothing without rows."""
    lines = [f"| {' | '.join(row)} |" for row in rows]
    return "\n".join([f"| {' | '.join(head)} |", "|" + "---|" * len(head), *lines]) if lines else ""


def under(heading, head, rows):
    """A table below a heading of its own; nothing without rows."""
    return f"**{heading}**\n\n{table(head, rows)}" if rows else ""


class Page:
    """Looks runs up at a scale."""

    def __init__(self, store, scale):
        self.store = store
        self.scale = scale

    def figures(self, data, method, epsilon, split="paper", **options):
        """Finished TVD runs over seeds."""
        runs = [
            self.scale.run("tvd", data, method, epsilon, seed, split, **options)
            for seed in range(self.scale.seeds)
        ]
        return self._results_of(runs)

    def sized(self, case):
        """Finished runs of a case of message sizes."""
        return self._results_of(
            [message(self.scale, case, seed) for seed in range(min(self.scale.seeds, 3))]
        )

    def useful(self, method):
        """Finished runs that were judged by what rows are good for."""
        return self._results_of(
            [
                self.scale.run("utility", self.scale.large, method, 0.8, seed)
                for seed in range(self.scale.seeds)
            ]
        )

    def folds(self, data, method, epsilon):
        """Finished SVM runs over folds."""
        return self._results_of(self.scale.svm(data, method, epsilon, 0))

    def _results_of(self, runs):
        return [result for run in runs if (result := self.store.get(run)) is not None]


def mean(figures, name):
    """Mean over runs; NaN without any."""
    return float(np.mean([result[name] for result in figures])) if figures else float("nan")


def spread(figures, name, wanted):
    """Mean ± standard deviation, a dash without runs; fewer runs than wanted say how many."""
    if not figures:
        return "–"
    values = [result[name] for result in figures]
    more = f" ± {np.std(values, ddof=1):.4f}" if len(values) > 1 else ""
    few = f" ({len(values)})" if len(values) < wanted else ""
    return f"{np.mean(values):.4f}{more}{few}"


def lines(page, cases):
    """A row of mean 3-way TVDs for each name whose runs have been made, some of them at least."""
    return [
        [name, *(spread(results, "tvd3", page.scale.seeds) for results in every)]
        for name, every in cases
        if any(every)
    ]


def title(method):
    return METHODS[method].title


def curves_section(page, metric, lookup, quotes):
    """Methods against epsilon, a table per data set; nothing where nothing has been run."""
    wanted = FOLDS if metric == "misclassification" else page.scale.seeds
    parts = []
    for data in page.scale.data:
        rows = [
            [title(method)] + [spread(results, metric, wanted) for results in all_results]
            for method in page.scale.methods
            if any(
                all_results := [lookup(data, method, epsilon) for epsilon in page.scale.epsilons]
            )
        ]
        claims = [lookup(data, "published", epsilon) for epsilon in page.scale.epsilons]
        if quotes and any(claims):
            spent = [f"{mean(results, 'spent'):.3g}" if results else "–" for results in claims]
            rows.append(["(the ε of published sketches, by the ledger)", *spent])
        if metric == "misclassification" and (results := lookup(data, "real", REAL_EPSILON)):
            rows.append(
                [title("real")] + [spread(results, metric, wanted)] * len(page.scale.epsilons)
            )
        if quotes and rows:
            for name, values in (
                ("central MST (quoted)", quoted.MST),
                ("central AIM (quoted)", quoted.AIM),
            ):
                if any((data, epsilon) in values for epsilon in page.scale.epsilons):
                    rows.append(
                        [name]
                        + [
                            f"{values[data, e]:g}" if (data, e) in values else "–"
                            for e in page.scale.epsilons
                        ]
                    )
            if data in quoted.RESAMPLED:
                rows.append(
                    ["rows drawn from the truth (quoted)"]
                    + [f"{quoted.RESAMPLED[data]:g}"] * len(page.scale.epsilons)
                )
        head = ["method \\ ε", *(f"{e:g}" for e in page.scale.epsilons)]
        parts.append(under(data, head, rows))
    return "\n\n".join(filter(None, parts))


def tvd_section(page):
    """l-way TVD, one part per l."""
    parts = []
    for way in (3, 4, 5):
        if text := curves_section(page, f"tvd{way}", page.figures, way == 3):
            parts.append(f"### {way}-way TVD\n\n{text}")
    return "\n\n".join(parts)


def svm_section(page):
    return curves_section(page, "misclassification", page.folds, False)


def parties_section(page):
    parts = []
    for data in dict.fromkeys((page.scale.small, page.scale.large)):
        cases = (
            (
                title(method),
                [page.figures(data, method, 0.8, split) for split in page.scale.parties],
            )
            for method in (*OURS, "published", "fo")
        )
        parts.append(under(data, ["method", *page.scale.parties], lines(page, cases)))
    return "\n\n".join(filter(None, parts))


def shares_section(page):
    small, shares = page.scale.small, page.scale.shares
    cases = (
        (
            title(method),
            [page.figures(small, method, 0.8, local_share=share) for share in shares],
        )
        for method in (*OURS, "fo")
    )
    head = [f"{small}: method \\ θ", *(f"{share:g}" for share in shares)]
    return table(head, lines(page, cases))


def costs_section(page):
    rows = []
    cases = [(method, {}) for method in page.scale.methods] + [("published", {"keys": 8000})]
    for method, options in cases:
        results = page.figures(page.scale.large, method, 0.8, **options)
        if not results or method.startswith("independent"):
            continue
        sent = results[0]["message_bytes"]
        at_party = np.median([result["party_seconds"] for result in results]) / max(len(sent), 1)
        rows.append(
            [
                title(method) + "".join(f", {name} = {value}" for name, value in options.items()),
                f"{max(sent) / 1e6:.3g} MB" if sent else "–",
                f"{at_party:.2g} s" if sent else "–",
                f"{np.median([result['server_seconds'] for result in results]):.2g} s",
            ]
        )
    if not rows:
        return ""
    head = [
        f"{page.scale.large}, ε = 0.8",
        "largest party sends",
        "a party computes",
        "the server computes",
    ]
    paper = [[f"paper: {name} (quoted)", *values] for name, *values in quoted.PAPER_COSTS]
    return table(head, rows + paper)


def splits_section(page):
    methods = [m for m in (*OURS, "published", "fo", "vertigan") if m in page.scale.methods]
    small = page.scale.small
    cases = (
        (split, [page.figures(small, method, 0.8, split) for method in methods])
        for split in page.scale.splits
    )
    rows = [
        row + [f"{value:.4f} ± {spread:.3f}" for value, spread in quoted.PAPER_SPLITS[row[0]]]
        for row in lines(page, cases)
    ]
    quotes = ["paper: FM (quoted)", "paper: FO (quoted)", "paper: VertiGAN (quoted)"]
    return table([f"{small}, ε = 0.8", *map(title, methods), *quotes], rows)


def ablations_section(page):
    parts = []
    epsilons = page.scale.epsilons
    for name, where, variants in ABLATIONS:
        data = getattr(page.scale, where)
        cases = (
            (
                f"{title(method)}: {label}",
                [page.figures(data, method, epsilon, **options) for epsilon in epsilons],
            )
            for method in ("count-sketches", "one-round", "fo")
            for label, options in variants
        )
        head = ["variant \\ ε", *(f"{e:g}" for e in epsilons)]
        parts.append(under(f"{name}, {data}", head, lines(page, cases)))
    return "\n\n".join(filter(None, parts))


def message_verdicts(page):
    """Means of 3-way TVD by case of message sizes; "one-round" is scheduled pairs."""
    names = {DEFAULT: "count sketches", "one-round": "scheduled pairs", "fo": "randomised response"}
    out = []
    for case in page.scale.messages:
        data, method, epsilon, mb = case
        if results := page.sized(case):
            size = "" if mb is None else f", {mb:g} MB"
            name = (
                f"{data}, epsilon {epsilon:g}, {names.get(method, title(method))}{size}: 3-way TVD"
            )
            out.append(Verdict(name, mean(results, "tvd3")))
    return out


def messages_section(page):
    cases = [case for case in page.scale.messages if page.sized(case)]
    rows = []
    for case, verdict in zip(cases, message_verdicts(page), strict=True):
        results, row = page.sized(case), with_bar(verdict, "message_size", FULL)
        size = float(np.mean([max(result["message_bytes"]) for result in results])) / 1e6
        rows.append(
            [
                case[0],
                f"{case[2]:g}",
                title(case[1]),
                f"{size:.3g}",
                spread(results, "tvd3", 3),
                str(len(results)),
                row.bar.removeprefix("<= "),
                {True: "yes", False: "no", None: ""}[row.holds],
            ]
        )
    head = ["data", "ε", "encoder", "largest message [MB]", "3-way TVD", "runs", "at most", "holds"]
    return table(head, rows)


def utility_section(page):
    """A line a method; the last one is of real rows. Columns without a figure are left out."""
    lines = {
        title(method): results for method in useful(page.scale) if (results := page.useful(method))
    }
    if not lines:
        return ""
    real = [
        {
            name.removeprefix("real "): value
            for name, value in result.items()
            if name.startswith("real ")
        }
        for result in page.useful(DEFAULT)
    ]
    every = [result for results in lines.values() for result in results]
    shown = {
        head: column
        for head, column in COLUMNS.items()
        if any(column[0] in result for result in every)
    }

    def cell(results, name, digits):
        values = [result[name] for result in results if name in result]
        more = f" ± {np.std(values, ddof=1):.{digits}f}" if len(values) > 1 else ""
        return f"{np.mean(values):.{digits}f}{more}" if values else "–"

    rows = [
        [name, *(cell(results, *column) for column in shown.values())]
        for name, results in (*lines.items(), ("real rows", real))
    ]
    return table([f"{page.scale.large}, ε = 0.8: rows of", *shown], rows)


def utility_verdicts(page):
    """By how much two parties' AUC is above that of others."""
    mine = page.useful(DEFAULT)
    return [
        Verdict(
            f"{page.scale.large}, epsilon 0.8: {name} of two parties, less that of {title(other)}",
            mean(mine, name) - mean(theirs, name),
        )
        for name in (column for column, _ in COLUMNS.values() if column.endswith(" auc"))
        for other in useful(page.scale)[1:]
        if mine and (theirs := page.useful(other)) and name in theirs[0]
    ]


def peers_section(page):
    """A table per epsilon: mechanisms by data, what is quoted below what was measured."""
    quotes = {
        "SWIFT (dpsynth)": quoted.SWIFT,
        "MST (dpsynth)": quoted.DPSYNTH_MST,
        "MST (mbi 2)": quoted.MST,
        "AIM (ported to mbi 2, all fits converged)": quoted.AIM,
    }
    parts = []
    for epsilon in page.scale.bar_epsilons:
        rows = []
        for method in (DEFAULT, "centralized", *PEERS):
            all_results = [page.figures(data, method, epsilon)[:1] for data in page.scale.data]
            cells = [
                f"{results[0]['tvd2']:.4f} / {results[0]['tvd3']:.4f}, {results[0]['seconds']:.0f} s"
                if results
                else "–"
                for results in all_results
            ]
            rows += [[title(method), *cells]] if any(all_results) else []
        for name, of in quotes.items():
            cells = [
                f"*{of[data, epsilon]:g}*" if (data, epsilon) in of else "–"
                for data in page.scale.data
            ]
            rows += [[f"*quoted:* {name}", *cells]] if rows and set(cells) != {"–"} else []
        parts.append(under(f"ε = {epsilon:g}", ["mechanism", *page.scale.data], rows))
    return "\n\n".join(filter(None, parts))


def accuracy(page, short=False):
    """Accuracy, seconds and message sizes of the default, beside what others have; in short, of what others have at 0.8."""
    rows = []
    for data in page.scale.data:
        for epsilon in page.scale.bar_epsilons:
            results = page.figures(data, DEFAULT, epsilon)
            central = (("MST", quoted.MST), ("AIM", quoted.AIM))
            said = [
                f"central {name}: {of[data, epsilon]:g}"
                for name, of in central
                if (data, epsilon) in of
            ]
            if (data, epsilon) in quoted.PAPER_TVD:
                said.append(quoted.PAPER_TVD[data, epsilon])
            if not results or (short and (epsilon != 0.8 or not said)):
                continue
            rows.append(
                [
                    data,
                    f"{epsilon:g}",
                    f"{spread(results, 'tvd3', len(results))} ({len(results)} seed{'s' if len(results) > 1 else ''})",
                    f"{np.median([result['seconds'] for result in results]):.1f}",
                    f"{max(max(result['message_bytes']) for result in results) / 1e6:.1f} MB",
                    "; ".join(said),
                ]
            )
    return table(
        ["data", "ε", "3-way TVD", "seconds, median", "largest message", "for comparison"], rows
    )


@dataclass(frozen=True)
class Line:
    """One thing that the library is held to.

    Attributes:
        what: the row of the table.
        epsilon: its column; None for a figure of all runs.
        verdict: mean over runs, or a difference or ratio of means, held to its bar of ``bars.toml``.
    """

    what: str
    epsilon: float | None
    verdict: Verdict


def bars(page, size=FULL):
    """All bars whose runs are there."""
    out, every = [], []

    def add(what, epsilon, results, metric, figure, less=0.0, over=1.0):
        if results and np.isfinite(less) and over > 0:
            values = [(result[metric] - less) / over for result in results]
            data, method = what.split(": ", 1)
            verdict = Verdict(
                f"{data}, epsilon {epsilon:g}, {method}: {figure}", float(np.mean(values))
            )
            out.append(Line(what, epsilon, with_bar(verdict, "tvd", size)))

    for data in page.scale.data:
        for epsilon in page.scale.bar_epsilons:
            for method, name in ((DEFAULT, "count sketches"), ("centralized", "Centralized")):
                results = page.figures(data, method, epsilon)
                every += results
                add(f"{data}: {name}", epsilon, results, "tvd3", "3-way TVD")
    for data in dict.fromkeys((page.scale.large, page.scale.small)):
        central = mean(page.folds(data, "centralized", 0.8), "misclassification")
        results = page.folds(data, DEFAULT, 0.8)
        add(
            f"{data}: count sketches",
            0.8,
            results,
            "misclassification",
            "SVM misclassification above Centralized's",
            less=central,
        )
    small = page.scale.small
    two = mean(page.figures(small, DEFAULT, 0.8), "tvd3")
    results = page.figures(small, DEFAULT, 0.8, "m=all")
    every += results
    add(
        f"{small}: count sketches",
        0.8,
        results,
        "tvd3",
        "a party per attribute, 3-way TVD over two parties'",
        over=two,
    )
    if every:
        slowest = Verdict(
            "slowest of these runs, seconds", max(result["seconds"] for result in every)
        )
        out.append(Line(slowest.name, None, with_bar(slowest, "tvd", size)))
    return out


def figure_of(line):
    return line.verdict.name.rpartition(": ")[2]


def summary(page):
    """The bars: one row per thing, a column per epsilon; nothing where nothing has been run."""
    lines = bars(page)
    if not lines:
        return ""
    epsilons = sorted({line.epsilon for line in lines if line.epsilon is not None})
    rows = {}
    for line in lines:
        if line.epsilon is not None:
            no = " **no**" if line.verdict.holds is False else ""
            bar = f" ({line.verdict.bar.replace('<=', '≤')}{no})" if line.verdict.bar else ""
            name = (
                line.what if figure_of(line) == "3-way TVD" else f"{line.what}, {figure_of(line)}"
            )
            rows.setdefault(name, {})[line.epsilon] = f"{line.verdict.value:.3g}{bar}"
    head = ["3-way TVD, mean (bar)", *(f"ε = {epsilon:g}" for epsilon in epsilons)]
    cells = [[name, *(row.get(epsilon, "") for epsilon in epsilons)] for name, row in rows.items()]
    judged = [line.verdict.holds for line in lines if line.verdict.holds is not None]
    slowest = lines[-1].verdict.value
    held = f"{sum(judged)} of {len(judged)} bars hold; the slowest run took {slowest:.0f} s."
    return f"{table(head, cells)}\n\n{held}"


SECTIONS = {
    "bars": (
        "Bars",
        "What the library is held to: means over seeds (SVM: folds) of 3-way TVD unless a line says otherwise; δ = "
        "1/n, two parties, as many synthetic rows as records.",
        summary,
    ),
    "tvd": (
        "Total variation distance against ε",
        "Mean ± standard deviation over seeds. The paper's figures are curves "
        "without numbers; MST and AIM hold all data in one place, and are quoted where they have not been run. Rows are made "
        "from a model by rounding its counts, not by independent draws, so a good model's rows can be nearer to the truth "
        "than as many rows drawn from it.",
        tvd_section,
    ),
    "svm": (
        "SVM misclassification",
        "Mean ± standard deviation over five folds; linear SVM on one-hot attributes, trained on "
        "synthetic rows made from the other four fifths. Labels: adult `income`, br2000 `a00`, fire `priority` (its most "
        "frequent value, or another); nltcs: mean over all 16 attributes.",
        svm_section,
    ),
    "parties": (
        "Number of parties",
        "3-way TVD, ε = 0.8. Columns are dealt to m parties evenly and in order; m=all "
        "is a party per attribute.",
        parties_section,
    ),
    "shares": (
        "Budget share of LocMRF",
        "3-way TVD, ε = 0.8; θ is the local models' part of all but the record count.",
        shares_section,
    ),
    "costs": (
        "Communication and computation per role",
        "Medians over seeds, on a machine of two cores; planning, writing and "
        "reading of messages included. VertiGAN's gradients for the server's batches are counted.",
        costs_section,
    ),
    "splits": (
        "Attribute splits by importance and by correlation",
        "3-way TVD; splits as VertiBench defines them (drawn per "
        "seed): importance=α deals attributes by Dirichlet(α) shares, the more even the larger α; correlation=β runs from "
        "0, correlated attributes together, to 1, correlated attributes apart.",
        splits_section,
    ),
    "ablations": (
        "Ablations",
        "3-way TVD. locmrf: local models against one-way marginals alone. recovery: what becomes of "
        "cross-party marginals measured in bins; HisRec spreads a bin's count over its values in proportion to "
        "one-way marginals, UniSam evenly, and a fit to the bins does the first implicitly. consistency: the paper's "
        "averaging of what several marginals say of one, before the fit.",
        ablations_section,
    ),
    "messages": (
        "Accuracy against message size",
        "Means of at most three seeds.",
        messages_section,
    ),
    "peers": (
        "Mechanisms of others",
        "2-way and 3-way TVD of one run, and its seconds.",
        peers_section,
    ),
    "utility": (
        "What rows are good for",
        "The figures of `vertimrf evaluate --utility` for the SVM's label.",
        utility_section,
    ),
}


# What pages have of an experiment, by mark; and what bars hold of it.
TABLES = {
    "bars": {"accuracy": accuracy, "bars": summary},
    "messages": {"message size": messages_section},
    "utility": {"utility adult income 0.8": utility_section},
    "peers": {"peers": peers_section},
}
VERDICTS = {
    "bars": lambda page, size: [line.verdict for line in bars(page, size)],
    "messages": lambda page, size: message_verdicts(page),
    "utility": lambda page, size: utility_verdicts(page),
}


def markdown(store, scale, images):
    """The whole page."""
    page = Page(store, scale)
    parts = [
        "# The paper's experiments, and beyond them",
        "Written by `python -m benchmarks.reproduce` ([how](reproducing.md)): "
        f"{scale.seeds} seed{'s' if scale.seeds > 1 else ''}, and where a figure is followed by a number in brackets, so many; "
        f"{scale.marginals} marginals per way; a dash is a run that has not been made. FO is randomised response per attribute. "
        "Published sketches are marked *claim only*: their ε is what the paper claims, and does not hold. FO's ε is about "
        "replacing one record. Every other line is about adding or removing one. Accuracy against message size, count sketches "
        "included: [message-size.md](message-size.md)."
        + (f" Library at {', '.join(sorted(store.commits))}." if store.commits else ""),
    ]
    for name, (heading, note, section) in SECTIONS.items():
        if text := section(page):
            parts += [f"## {heading}", note, text]
            parts += [
                f"![{heading}]({image})"
                for image in images
                if Path(image).name.startswith(f"{name}-")
            ]
    return "\n\n".join(parts) + "\n"


def plots(store, scale, folder):
    """SVG figures of the curves; none without matplotlib. Returns the names of the files."""
    try:
        import matplotlib
    except ImportError:
        return []
    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "vertimrf"
    import matplotlib.pyplot as plt

    page = Page(store, scale)
    lookups = {"svm": ("misclassification", page.folds)} | {
        f"tvd-{way}way": (f"tvd{way}", page.figures) for way in (3, 4, 5)
    }
    names = []
    for stem, (metric, lookup) in lookups.items():
        lines = {
            data: {
                method: points
                for method in scale.methods
                if len(
                    points := [
                        (e, mean(results, metric))
                        for e in scale.epsilons
                        if (results := lookup(data, method, e))
                    ]
                )
                > 1
            }
            for data in scale.data
        }
        shown = [data for data in scale.data if lines[data]]
        if not shown:
            continue
        figure, axes = plt.subplots(
            1, len(shown), figsize=(4 * len(shown), 3.6), squeeze=False, layout="constrained"
        )
        legend = {}
        for axis, data in zip(axes[0], shown, strict=True):
            for method, points in lines[data].items():
                # A method keeps its colour in every panel, whichever methods were run there.
                colour = f"C{list(METHODS).index(method)}"
                (line,) = axis.plot(
                    *zip(*points, strict=True),
                    color=colour,
                    marker="o",
                    markersize=3,
                    label=title(method),
                )
                legend.setdefault(title(method), line)
            axis.set(
                title=data,
                xlabel="ε",
                xscale="log",
                yscale="log" if metric != "misclassification" else "linear",
            )
        axes[0][0].set_ylabel("misclassification" if stem == "svm" else f"{metric[3:]}-way TVD")
        figure.legend(
            handles=list(legend.values()), loc="outside lower center", ncols=4, fontsize="small"
        )
        folder.mkdir(parents=True, exist_ok=True)
        name = f"{stem}.svg" if "-" in stem else f"{stem}-curves.svg"
        figure.savefig(folder / name, metadata={"Date": None})
        plt.close(figure)
        names.append(name)
    return names
