"""Draw a marginal with matplotlib: bars of one column, or a map of two, with the truth beside it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..arrays import Floats, Texts
from ..errors import ModelError

# Inches.
WIDTH, HEIGHT = 6.4, 3.6


def draw(
    names: Texts,
    labels: Sequence[Sequence[str]],
    counts: Floats,
    margins: Floats,
    real: Floats | None,
) -> Any:
    """A figure of the counts of one or two columns.

    Args:
        names: of the columns.
        labels: of their values, by column.
        counts: expected records [one axis per column, float64].
        margins: how far the truth is from them in 95 % of cases [same shape]; infinite where nothing is known.
        real: records of the true table [same shape], or None.

    Returns:
        The figure of matplotlib, which a notebook shows.

    Raises:
        ModelError: matplotlib is not installed, or there are not one or two columns.
    """
    if len(names) not in (1, 2):
        raise ModelError(f"A plot is of one column or of two, not of {len(names)}.")
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise ModelError(
            "A plot needs matplotlib, which is not installed: pip install 'vertimrf[plot]'."
        ) from None
    tables = {"model": counts} | ({} if real is None else {"true table": real})
    if len(names) == 1:
        figure = Figure((WIDTH, HEIGHT), layout="constrained")
        _bars(figure.subplots(), names[0], labels[0], tables, margins)
    else:
        figure = Figure((WIDTH * len(tables), HEIGHT), layout="constrained")
        _maps(figure, names, labels, tables)
    return figure


def _bars(
    axes: Any, name: str, labels: Sequence[str], tables: dict[str, Floats], margins: Floats
) -> None:
    width = 0.8 / len(tables)
    for i, (title, heights) in enumerate(tables.items()):
        at = np.arange(len(labels)) + (i - (len(tables) - 1) / 2) * width
        axes.bar(at, heights, width, label=title)
        if i == 0 and np.isfinite(margins).all():
            axes.errorbar(at, heights, margins, fmt="none", ecolor="black", capsize=2)
    axes.set_xticks(np.arange(len(labels)), labels, rotation=90 if len(labels) > 8 else 0)
    axes.set_xlabel(name)
    axes.set_ylabel("records")
    axes.legend()


def _maps(
    figure: Any, names: Texts, labels: Sequence[Sequence[str]], tables: dict[str, Floats]
) -> None:
    most = max(float(table.max()) for table in tables.values())
    every = figure.subplots(1, len(tables), squeeze=False)[0]
    for axes, (title, table) in zip(every, tables.items(), strict=True):
        shown = axes.imshow(table, vmin=0, vmax=most, aspect="auto")
        axes.set_title(title)
        axes.set_xticks(np.arange(len(labels[1])), labels[1], rotation=90)
        axes.set_yticks(np.arange(len(labels[0])), labels[0])
        axes.set_xlabel(names[1])
        axes.set_ylabel(names[0])
    figure.colorbar(shown, ax=list(every), label="records")
