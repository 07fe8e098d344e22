"""The figures of a report, drawn by Matplotlib as SVG elements of a page.

Text stays text, and each figure describes itself in words. Colours are those of Okabe and Ito, and
cividis in maps: colour-blind readers can tell them apart. Markers and line styles differ as well.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import itertools
import math
import re
import unicodedata
import warnings
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

import numpy as np
import numpy.typing as npt

from .content import Column, Dependence

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = [
    "MARKERS",
    "attribute_graph",
    "drawn_edges",
    "error_chart",
    "heat_map",
    "legend",
    "marginal_chart",
    "shown",
    "tools",
]

Array = npt.NDArray[np.float64]

SVG = "http://www.w3.org/2000/svg"
XLINK = "http://www.w3.org/1999/xlink"
# Colours of Okabe and Ito, by meaning.
MODEL, RELEASED, TRUTH, CROSSING, GREY = "#56B4E9", "#D55E00", "#000000", "#0072B2", "#6E6E6E"
PARTIES = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#D55E00", "#56B4E9", "#F0E442", "#000000")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "h")
SETTINGS = {
    "svg.fonttype": "none",
    "svg.hashsalt": "vertimrf",
    # A column called "$x" is not a formula.
    "text.parse_math": False,
    "text.usetex": False,
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],
    "font.size": 8.0,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.6,
    "axes.edgecolor": GREY,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "xtick.major.size": 2.5,
    "ytick.major.size": 2.5,
    "hatch.linewidth": 0.5,
}
POINTS = 72
# Style of the marks of released marginals.
MARK: dict[str, Any] = {
    "ms": 3.2,
    "mfc": "white",
    "mec": RELEASED,
    "mew": 1.0,
    "ecolor": RELEASED,
    "lw": 0.9,
}
# Largest number of letters of a name in a figure. The tables have the whole names.
SHORT, LONG = 13, 24
# Largest number of lines of the graph, across parties and within them.
MAX_EDGES = 100
# From this many points on, points are drawn as one picture.
MANY_POINTS = 400
# Largest number of attributes of a map on a page of normal width.
WIDE = 34


def tools() -> Any:
    """Matplotlib, which draws a report.

    Raises:
        ImportError: it is not installed.
    """
    import matplotlib

    return matplotlib


def shown(text: str, most: int | None = None) -> str:
    """A name as a page can show it.

    Control and direction characters become escapes. The name is cut to ``most`` characters.
    """
    out = "".join(
        f"\\u{ord(letter):04x}"
        if unicodedata.category(letter) in ("Cc", "Cf", "Cs", "Zl", "Zp", "Cn", "Co")
        else letter
        for letter in text
    )
    return out if most is None or len(out) <= most else out[: most - 1] + "…"


def marginal_chart(column: Column, name: str) -> str:
    """A chart of the shares of one attribute's values.

    Bars show the model, marks the released marginals, and lines the truth.
    """
    lying = not column.attribute.ordered
    model, labels, truth = (
        column.model,
        [shown(label, SHORT) for label in column.labels],
        column.truth,
    )
    released = [(series.shares, series.errors) for series in column.released]
    bars = len(labels)
    places = np.arange(bars)
    height = 0.45 + 0.155 * bars if lying else 1.75
    with _drawing((3.3, height)) as figure:
        left = 0.12 + max(_width(label, 8.0) for label in labels) if lying else 0.44
        bottom = 0.32 if lying else 0.38
        axes: Any = figure.add_axes(
            (left / 3.3, bottom / height, (3.2 - left) / 3.3, (height - bottom - 0.08) / height)
        )
        most = max(
            float(model.max()),
            0 if truth is None else float(truth.max()),
            *(float(s.max()) for s, _ in released),
            1e-9,
        )
        draw = axes.barh if lying else axes.bar
        draw(places, model, 0.82, color=MODEL, edgecolor="#2B7BB0", linewidth=0.4)
        for i, (shares, errors) in enumerate(released):
            at = places + (i - (len(released) - 1) / 2) * 0.22
            spread: dict[str, Any] = {"xerr" if lying else "yerr": 2 * errors}
            x, y = (shares, at) if lying else (at, shares)
            axes.errorbar(x, y, **spread, fmt=MARKERS[i % len(MARKERS)], **MARK)
        if truth is not None:
            flat = {"linestyles": "-", "colors": TRUTH, "linewidth": 1.5}
            (axes.vlines if lying else axes.hlines)(truth, places - 0.41, places + 0.41, **flat)
        limits = (min(0.0, *(float(s.min()) for s, _ in released), 0.0), 1.12 * most)
        if lying:
            axes.set_ylim(bars - 0.4, -0.6)
            axes.set_xlim(*limits)
            axes.set_yticks(places, labels)
            axes.tick_params("y", length=0)
            _percent(axes.xaxis)
        else:
            axes.set_xlim(-0.6, bars - 0.4)
            axes.set_ylim(*limits)
            _some_labels(axes, column, labels)
            _percent(axes.yaxis)
        axes.set_axisbelow(True)
        axes.grid(axis="x" if lying else "y", color="#DDDDDD", linewidth=0.5)
        return _svg(figure, f"{name}: shares of records", _marginal_in_words(column))


def _some_labels(axes: Any, column: Column, labels: Sequence[str]) -> None:
    """Labels under as many bars as there is room for. Labels of bins stand at their lower edges."""
    bars = len(labels)
    missing = column.attribute.missing
    present = bars - missing
    room = max(1, int(42 / (max(len(label) for label in labels) + 1)))
    step = math.ceil(present / room)
    places = list(range(0, present, step))
    shift = -0.5 if column.attribute.kind == "numeric" else 0.0
    ticks = [place + shift for place in places]
    names = [labels[place] for place in places]
    if missing and present:
        # The label of missing values comes last. Labels that are too close to it are removed.
        while ticks and bars - 1 - ticks[-1] < 0.12 * bars and len(ticks) > 1:
            ticks.pop()
            names.pop()
        ticks.append(bars - 1)
        names.append("missing" if bars > 3 or room > 2 else "none")
        axes.axvline(present - 0.5, color=GREY, linewidth=0.5, linestyle=":")
    axes.set_xticks(ticks, names)


def _width(text: str, points: float) -> float:
    """Approximate width of a text in inches.

    It is rather too large, because the reader's font is unknown.
    """
    return (
        sum(0.8 if letter.isupper() or letter in "mwMW@%…" else 0.63 for letter in text)
        * points
        / POINTS
    )


def _percent(axis: Any) -> None:
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    axis.set_major_locator(MaxNLocator(4))
    axis.set_major_formatter(FuncFormatter(lambda share, _: f"{100 * share:.4g}%"))


def _marginal_in_words(column: Column) -> str:
    order = np.argsort(-column.model)[:3]
    most = ", ".join(f"{shown(column.labels[i], LONG)} {column.model[i]:.1%}" for i in order)
    parts = [f"Bars are the model: {most}."]
    parts += [
        f"Marks are what {shown(series.party)} released: {series.distance:.2%} away."
        for series in column.released
    ]
    if column.off is not None:
        parts.append(f"Lines are the truth: {column.off:.2%} away.")
    return " ".join(parts)


def attribute_graph(
    names: Sequence[str],
    parties: Sequence[int],
    party_names: Sequence[str],
    edges: Sequence[tuple[int, int]],
    dependence: Dependence,
) -> str:
    """Attributes in a circle, with lines between neighbours; wider ones mean more dependence.

    Args:
        names: names of the attributes.
        parties: position of the first holder, by attribute.
        party_names: names of the parties, by position.
        edges: pairs of neighbours, most dependent first, of which :func:`drawn_edges` are drawn.
        dependence: dependence of pairs.
    """
    d = len(names)
    size = 6.2 if d <= WIDE else 9.0
    drawn = drawn_edges(edges, dependence)
    # Parties are separated by a gap of a step and a half.
    gaps = np.cumsum([0.0, *(1.5 * (a != b) for a, b in itertools.pairwise(parties))])
    step = 2 * math.pi / (d + gaps[-1] + (1.5 if len(set(parties)) > 1 else 0.0))
    angles = math.pi / 2 - (np.arange(d) + gaps + 0.75) * step
    x, y = np.cos(angles), np.sin(angles)
    with _drawing((size, size)) as figure:
        axes: Any = figure.add_axes((0.0, 0.0, 1.0, 1.0))
        axes.set_axis_off()
        font = 8.5 if d <= WIDE else 7.0
        # Leave room for the longest name outside the circle.
        reach = 1.08 / (1 - 2 * max(_width(shown(name, LONG), font) for name in names) / size)
        axes.set_xlim(-reach, reach)
        axes.set_ylim(-reach, reach)
        _draw_edges(axes, (x, y), drawn, dependence)
        for party, called in enumerate(party_names):
            mine = [a for a in range(d) if parties[a] == party]
            if not mine:
                continue
            colour, marker = PARTIES[party % len(PARTIES)], MARKERS[party % len(MARKERS)]
            axes.plot(
                x[mine],
                y[mine],
                marker,
                color=colour,
                markersize=7,
                markeredgecolor="black",
                markeredgewidth=0.6,
            )
            for a in mine:
                turned = math.degrees(angles[a])
                flipped = math.cos(angles[a]) < 0
                axes.text(
                    1.06 * x[a],
                    1.06 * y[a],
                    shown(names[a], LONG),
                    fontsize=font,
                    rotation=turned + 180 * flipped,
                    rotation_mode="anchor",
                    ha="right" if flipped else "left",
                    va="center",
                )
            if len(set(parties)) > 1:
                axes.plot(
                    [],
                    [],
                    marker,
                    color=colour,
                    markeredgecolor="black",
                    markeredgewidth=0.6,
                    label=shown(called, LONG),
                )
        axes.plot([], [], "-", color=CROSSING, linewidth=2, label="across parties")
        axes.plot([], [], linestyle=(0, (3, 2)), color=GREY, linewidth=2, label="within a party")
        axes.legend(
            loc="lower left", fontsize=8, frameon=False, borderaxespad=0.2, labelspacing=0.3
        )
        words = (
            f"{d} attributes of {len(party_names)} parties in a circle; {len(edges)} pairs are neighbours in the model's graph, "
            f"{sum(bool(dependence.across[pair]) for pair in edges)} of them held by different parties. The tables below list the strongest."
        )
        return _svg(figure, "The model's graph of attributes", words)


def _draw_edges(
    axes: Any,
    places: tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]],
    edges: Sequence[tuple[int, int]],
    dependence: Dependence,
) -> None:
    """Lines between neighbours, the strongest on top."""
    from matplotlib.patches import PathPatch
    from matplotlib.path import Path

    x, y = places
    strengths = np.nan_to_num(np.array([dependence.model[pair] for pair in edges]))
    most = max(float(strengths.max(initial=0.0)), 1e-9)
    widest = 4.0 if len(edges) <= MAX_EDGES else 2.4
    for (a, b), strength in sorted(zip(edges, strengths, strict=True), key=lambda edge: edge[1]):
        across = bool(dependence.across[a, b])
        path = Path(
            [(x[a], y[a]), (0.3 * (x[a] + x[b]), 0.3 * (y[a] + y[b])), (x[b], y[b])], [1, 3, 3]
        )
        axes.add_patch(
            PathPatch(
                path,
                fill=False,
                edgecolor=CROSSING if across else GREY,
                linestyle="-" if across else (0, (3, 2)),
                linewidth=0.4 + (1.0 if across else 0.6) * widest * strength / most,
                alpha=0.85 if across else 0.6,
            )
        )


def drawn_edges(edges: Sequence[tuple[int, int]], dependence: Dependence) -> list[tuple[int, int]]:
    """The edges that a graph has room for: the first ones across and within parties."""
    kinds = (
        [pair for pair in edges if bool(dependence.across[pair]) == across]
        for across in (True, False)
    )
    return [pair for kind in kinds for pair in kind[:MAX_EDGES]]


def heat_map(
    matrix: Array,
    names: Sequence[str],
    parties: Sequence[int],
    title: str,
    words: str,
    most: float,
    unmeasured: bool = False,
) -> str:
    """A map of all pairs of attributes.

    Args:
        matrix: symmetric values [shape=(d, d)]. NaN is drawn grey.
        names: names of the attributes.
        parties: position of the first holder, by attribute. Lines separate parties.
        title, words: title and description of the map.
        most: the value of the brightest colour. The darkest is 0.
        unmeasured: whether grey means that nothing measured a pair.
    """
    from matplotlib import colormaps

    d = len(names)
    wide = d > WIDE
    font = 7.5 if d <= 24 else 6.5 if not wide else 5.8
    labels = [shown(name, SHORT if wide else 16) for name in names]
    margin = 0.1 + max(_width(label, font) for label in labels)
    side = max(2.2, min(d * (0.1 if wide else 0.165), 9.0))
    width, height = margin + side + 0.12, 0.08 + side + margin + 0.5
    with _drawing((width, height)) as figure:
        axes = figure.add_axes(
            (margin / width, (margin + 0.5) / height, side / width, side / height)
        )
        colours = colormaps["cividis"].with_extremes(bad="#C9C9C9", under=colormaps["cividis"](0.0))
        image = axes.imshow(
            matrix,
            cmap=colours,
            vmin=0.0,
            vmax=max(most, 1e-9),
            interpolation="none",
            aspect="auto",
        )
        for a in range(1, d):
            if parties[a] != parties[a - 1]:
                for line in (axes.axhline, axes.axvline):
                    line(a - 0.5, color="white", linewidth=1.2)
        axes.set_xticks(range(d), labels, rotation=90, fontsize=font)
        axes.set_yticks(range(d), labels, fontsize=font)
        axes.tick_params(length=0, pad=2)
        for spine in axes.spines.values():
            spine.set_visible(False)
        bar = figure.add_axes((margin / width, 0.26 / height, side / width, 0.09 / height))
        figure.colorbar(
            image, cax=bar, orientation="horizontal", format=lambda share, _: f"{share:.2g}"
        )
        bar.tick_params(labelsize=7)
        measured = (
            " Grey: nothing measured the pair." if unmeasured and np.isnan(matrix).sum() > d else ""
        )
        return _svg(figure, title, words + measured)


def error_chart(
    predicted: Array, observed: Array, across: npt.NDArray[np.bool_], off: Array | None
) -> str:
    """Errors of pairs of attributes: distances against the distances that noise alone explains.

    Args:
        predicted: expected distance from noise alone, shares of records [shape=(pairs,)].
        observed: distance between estimate and model, shares of records [shape=(pairs,)].
        across: whether no party holds both attributes [shape=(pairs,), bool].
        off: distance between model and truth, shares of records [shape=(pairs,)]. None if the truth
            is unknown.
    """
    with _drawing((5.2, 3.7)) as figure:
        axes: Any = figure.add_axes((0.115, 0.125, 0.865, 0.855))
        figures = [predicted, observed] + ([] if off is None else [off[np.isfinite(off)]])
        positive = np.concatenate([series[series > 0] for series in figures])
        low, high = (positive.min() / 1.3, positive.max() * 1.3) if positive.size else (0.01, 1.0)
        many = len(predicted) > MANY_POINTS
        common = {
            "linestyle": "none",
            "markersize": 4.0 if not many else 2.6,
            "rasterized": many,
            "mew": 0.8,
        }
        marks = (
            (~across, "s", "#E69F00", "within a party"),
            (across, "o", CROSSING, "across parties"),
        )
        for chosen, marker, colour, where in marks:
            if chosen.any():
                label = f"{where}: estimate to model"
                axes.plot(
                    predicted[chosen],
                    observed[chosen],
                    marker,
                    mfc="none",
                    mec=colour,
                    label=label,
                    **common,
                )
        if off is not None:
            axes.plot(predicted, off, "x", color=TRUTH, label="model to truth", **common)
        axes.plot(
            [low, high], [low, high], color=GREY, linewidth=0.9, linestyle="--", label="noise alone"
        )
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_xlim(low, high)
        axes.set_ylim(low, high)
        axes.set_xlabel("expected of noise alone, share of records")
        axes.set_ylabel("found, share of records")
        for axis in (axes.xaxis, axes.yaxis):
            axis.set_major_formatter(lambda share, _: f"{share:g}")
            axis.set_minor_formatter(lambda share, _: "")
        axes.legend(fontsize=7, frameon=False, loc="best")
        words = (
            f"{len(predicted)} pairs of attributes. In the median pair noise alone puts the estimate off by "
            f"{np.median(predicted):.2%}, and it is {np.median(observed):.2%} away from the model."
        )
        if off is not None:
            words += f" The model is {np.nanmedian(off):.2%} away from the truth."
        return _svg(figure, "Predicted and found errors of pairs", words)


def legend(released: bool, truth: bool) -> str:
    """The meaning of bars, marks and lines in charts of single attributes."""
    entries = (
        [("model", "bar")]
        + [("released, with 2 standard errors", "mark")] * released
        + [("truth", "line")] * truth
    )
    widths = [0.45 + _width(text, 8.0) for text, _ in entries]
    with _drawing((sum(widths), 0.24)) as figure:
        axes: Any = figure.add_axes((0.0, 0.0, 1.0, 1.0))
        axes.set_axis_off()
        axes.set_xlim(0, sum(widths))
        axes.set_ylim(-1, 1)
        at = 0.04
        for (text, kind), width in zip(entries, widths, strict=True):
            if kind == "bar":
                axes.bar(at + 0.1, 1.2, 0.2, -0.6, color=MODEL, edgecolor="#2B7BB0", linewidth=0.4)
            elif kind == "mark":
                axes.errorbar([at + 0.1], [0], [0.75], fmt="o", **MARK)
            else:
                axes.plot([at, at + 0.2], [0, 0], color=TRUTH, linewidth=1.5)
            axes.text(at + 0.27, 0, text, va="center", fontsize=8)
            at += width
        return _svg(figure, "Legend", "; ".join(text for text, _ in entries))


@contextlib.contextmanager
def _drawing(size: tuple[float, float]) -> Iterator[Figure]:
    """A figure of a given size in inches, with the settings that all figures share."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    with rc_context(SETTINGS), warnings.catch_warnings():
        # The font lacks some characters. The reader's font may have them.
        warnings.simplefilter("ignore", UserWarning)
        figure = Figure(figsize=size, dpi=POINTS)
        figure.patch.set_alpha(0.0)
        yield figure


def _svg(figure: Figure, title: str, words: str) -> str:
    """The figure as an SVG element of a page, with a description in words.

    It refers to nothing outside itself.
    """
    out = io.BytesIO()
    figure.savefig(
        out,
        format="svg",
        dpi=150,
        metadata={"Date": None, "Creator": None, "Type": None, "Format": None},
    )
    root = ElementTree.fromstring(out.getvalue())
    for parent in list(root.iter()):
        for child in list(parent):
            if child.tag == f"{{{SVG}}}metadata" or child.find(f"{{{SVG}}}style") is not None:
                parent.remove(child)
    # One page has many figures: names within a figure get its prefix, and unused names are removed.
    mark = f"f{hashlib.sha256(out.getvalue() + title.encode() + words.encode()).hexdigest()[:12]}"
    used = set(re.findall(r'(?:url\(#|href="#)([\w-]+)', out.getvalue().decode()))
    for element in root.iter():
        # An HTML parser recognises SVG by the names of its elements. Links need no name space.
        element.tag = element.tag.removeprefix(f"{{{SVG}}}")
        named = {key.removeprefix(f"{{{XLINK}}}"): value for key, value in element.attrib.items()}
        element.attrib.clear()
        for key, value in named.items():
            match key:
                case "id":
                    value = f"{mark}-{value}" if value in used else ""
                case "href" if value.startswith("#"):
                    value = f"#{mark}-{value[1:]}"
                case "d" | "transform" | "points" | "x" | "y":
                    value = _rounded(value)
                case "style":
                    value = re.sub(r"'DejaVu Sans'(, [^;]*)?", "sans-serif", _rounded(value))
            if value:
                element.set(key, value.replace("url(#", f"url(#{mark}-"))
    _, _, width, height = root.get("viewBox", "0 0 0 0").split()
    root.attrib.clear()
    root.attrib |= {
        "viewBox": f"0 0 {width} {height}",
        "role": "img",
        "style": f"--width: {float(width) * 96 / POINTS:.0f}px",
        "aria-labelledby": f"{mark}-title {mark}-words",
    }
    for place, (tag, name, text) in enumerate(
        (("title", "title", title), ("desc", "words", words))
    ):
        element = ElementTree.Element(tag, {"id": f"{mark}-{name}"})
        element.text = text
        root.insert(place, element)
    return ElementTree.tostring(root, encoding="unicode")


def _rounded(text: str) -> str:
    """Coordinates to a hundredth of a point, on one line."""
    shorter = re.sub(
        r"-?\d+\.\d{3,}", lambda number: f"{float(number[0]):.2f}".rstrip("0").rstrip("."), text
    )
    return " ".join(shorter.split())
