"""The geometry of a report's figures, which the page's template draws as SVG."""

from __future__ import annotations

import itertools
import math
import unicodedata
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from ..arrays import Floats, Pair
from .content import Dependence, Fine

# Radius of the graph's circle. Its text is at most FONT high, and lower if attributes are many.
RADIUS, FONT, CROWDED = 100.0, 6.5, 500.0
# Approximate width of a letter, in heights of the text. It is rather too large, because the
# reader's font is unknown.
LETTER_WIDTH = 0.65
# Largest number of letters of a name in a figure. The tables have the whole names.
MAX_LETTERS = 24
# Largest number of lines of the graph. More are a map.
MAX_EDGES = 40
# Number of shades of a map.
SHADES = 25


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


def labels(names: Sequence[str], most: int) -> list[str]:
    """Names of at most ``most`` letters. Different names stay different.

    A long name keeps its beginning; where others have the same, also its end, or its position.
    """
    whole = [shown(name) for name in names]
    end = most // 2
    ways: tuple[Callable[[int], str], ...] = (
        lambda i: shown(names[i], most),
        lambda i: f"{whole[i][: most - end - 1]}…{whole[i][-end:]}",
        lambda i: f"{whole[i][: most - len(str(i)) - 2]}…{i + 1}",
    )
    out, cut = list(whole), [i for i, name in enumerate(whole) if len(name) > most]
    for way in ways:
        for i in cut:
            out[i] = way(i)
        times = Counter(out)
        cut = [i for i in cut if times[out[i]] > 1]
    return out


@dataclass(frozen=True)
class Graph:
    """Attributes in a circle, with lines between neighbours. The circle's centre is at 0.

    Attributes:
        reach: half the side of the square that holds the graph and the names.
        font: height of the names.
        nodes: by attribute, x and y on the circle, and the name's angle from the centre, degrees.
        edges: path of every line, whether it crosses parties, and its strength, 0 to 1. The
            strongest is last, and so on top.
    """

    reach: float
    font: float
    nodes: tuple[tuple[float, float, float], ...]
    edges: tuple[tuple[str, bool, float], ...]


def attribute_graph(
    names: Sequence[str],
    parties: Sequence[int],
    edges: Sequence[Pair],
    dependence: Dependence,
) -> Graph:
    """Place attributes in a circle, party by party, with lines between neighbours.

    Args:
        names: names of the attributes.
        parties: position of the first holder, by attribute.
        edges: pairs of neighbours.
        dependence: dependence of pairs.
    """
    d = len(names)
    # Parties are separated by a gap of a step and a half.
    gaps = np.cumsum([0.0, *(1.5 * (a != b) for a, b in itertools.pairwise(parties))])
    step = 2 * math.pi / (d + gaps[-1] + (1.5 if len(set(parties)) > 1 else 0.0))
    angles = (np.arange(d) + gaps + 0.75) * step - math.pi / 2
    x, y = RADIUS * np.cos(angles), RADIUS * np.sin(angles)
    font = min(FONT, CROWDED / d)
    widest = max(len(shown(name, MAX_LETTERS)) for name in names) * LETTER_WIDTH * font
    strengths = np.nan_to_num(np.array([dependence.model[pair] for pair in edges]))
    most = max(float(strengths.max(initial=0.0)), 1e-9)
    lines = [
        (
            f"M{x[a]:.1f} {y[a]:.1f}Q{0.3 * (x[a] + x[b]):.1f} {0.3 * (y[a] + y[b]):.1f} {x[b]:.1f} {y[b]:.1f}",
            bool(dependence.across[a, b]),
            float(strength / most),
        )
        for (a, b), strength in zip(edges, strengths, strict=True)
    ]
    return Graph(
        1.1 * RADIUS + widest,
        font,
        tuple(zip(x.tolist(), y.tolist(), np.degrees(angles).tolist(), strict=True)),
        tuple(sorted(lines, key=lambda line: line[2])),
    )


def map_of_edges(edges: Sequence[Pair], dependence: Dependence) -> Floats:
    """Dependence of neighbours, which is at least the lightest shade; 0 of other pairs."""
    out = np.zeros_like(dependence.model)
    model = np.nan_to_num(dependence.model)
    least = max(float(model.max()), 1e-9) / SHADES
    for a, b in edges:
        out[a, b] = out[b, a] = max(model[a, b], least)
    return out


def shades(matrix: Floats, most: float) -> list[tuple[float | None, str]]:
    """A map of all pairs of attributes, each once, as one path for each shade.

    Args:
        matrix: values [shape=(d, d)], of which those below the diagonal count. Those below 0 count
            as 0.
        most: the value of the darkest shade.

    Returns:
        Opacity, 0 to 1, and path of every shade that occurs; with None, of pairs without a value.
        A path goes along the upper edges of the squares.
    """
    levels = np.round(SHADES * np.clip(matrix / most, 0, 1))
    levels[np.isnan(levels)] = -1
    paths: dict[float, list[str]] = {}
    at: dict[float, Pair] = {}
    for a in range(1, len(levels)):
        row = levels[a, :a]
        starts = np.flatnonzero(np.diff(row, prepend=-2))
        ends = np.append(starts[1:], a)
        for start, end in zip(starts.tolist(), ends.tolist(), strict=True):
            level = float(row[start])
            x, y = at.get(level, (0, 0))
            paths.setdefault(level, ["M0 0"]).append(f"m{start - x} {a - y}h{end - start}")
            at[level] = end, a
    return [
        (None if level < 0 else level / SHADES, "".join(path))
        for level, path in sorted(paths.items())
    ]


def bars(fine: Fine) -> list[tuple[str, str]]:
    """A column's finer cells in order, each a unit wide, as a path for each source of shares.

    Heights go by the root of a share, so that rare values are seen beside common ones.

    Args:
        fine: the column.

    Returns:
        Class and path: bars of the model, and marks of the first release and of the truth. The
        largest share is at 0, and nothing at 100.
    """
    marks = {"noisy": fine.released[0].shares} if fine.released else {}
    marks |= {} if fine.truth is None else {"true": fine.truth}
    most = max(1e-9, *(float(shares.max()) for shares in (fine.model, *marks.values())))

    def path(shares: Floats, mark: bool) -> str:
        words, x, y = ["M0 100" if mark else "M.5 100"], 0, 100
        for i, share in enumerate(shares.tolist()):
            top = 100 - round(100 * math.sqrt(min(max(share / most, 0), 1)))
            if top < 100:
                words.append(f"m{i - x} {top - y}h1" if mark else f"m{i - x} {100 - y}v{top - 100}")
                x, y = i + mark, top
        return "".join(words)

    return [("cells", path(fine.model, False))] + [
        (kind, path(shares, True)) for kind, shares in marks.items()
    ]
