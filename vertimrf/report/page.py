"""The page of a run: one HTML file that loads nothing and runs nothing."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from .. import __version__
from ..errors import PlanError
from ..evaluate import read_real
from ..files.atomic import write_text
from ..plan.defaults import INNER
from ..plan.schema import Schema
from ..privacy.standing import EXACT, Standing
from ..tables.read_options import DEFAULT, ReadOptions
from . import figures, words
from .content import Column, Content, Truth, content
from .figures import shown
from .run import Run

if TYPE_CHECKING:
    from ..server.server import Result
    from ..trial import Trial

__all__ = ["page", "write_page", "write_report"]

# Largest number of lines of a table of pairs.
MAX_LINES = 20


def write_report(
    run: Trial | Result | str | Path | Sequence[str | Path],
    out: str | Path,
    *,
    real: Sequence[Any] = (),
    id: str | None = None,
    party: str | None = None,
    read: ReadOptions = DEFAULT,
    label: str | None = None,
) -> Standing:
    """Write a run's report as one HTML page for people. Needs the extra "report".

    Args:
        run: a trial; a server's result; or paths: a folder that holds a model and its JSON report,
            or these two files.
        out: the page to write.
        real: the real tables, if one machine may see them all. The page then compares with them,
            and says that it is not private.
        id: id column that joins several real tables.
        party: the party whose table the only real one is. Its columns alone are compared.
        read: how the real tables are read.
        label: attribute that trees predict from the others. The page then shows the utility of the
            model's rows, as ``vertimrf evaluate --utility`` does. Needs ``real``.

    Returns:
        What the page may claim.

    Raises:
        MessageError: files cannot be read, or belong to different runs.
        TableError, SchemaError: real tables cannot be read or do not fit the run's schema.
        PlanError: there is a label without real tables; or Matplotlib, Jinja or, with a label, scikit-learn is not installed.

    Example:
        >>> vertimrf.write_report("results/", "report.html")  # doctest: +SKIP
    """
    check_tools()
    if label is not None and not real:
        raise PlanError(
            "Utility compares with real rows: give the real tables too, or leave the label out."
        )
    if isinstance(run, str | Path):
        opened = Run.open(run)
    elif isinstance(run, Sequence):
        opened = Run.open(*run)
    else:
        opened = Run.of(run)
    truth = None
    if real:
        schema = opened.model.schema
        places: Sequence[int] = range(len(schema.names))
        if party is not None:
            places = schema.party_attributes(party)
            schema = Schema.of({party: schema.part(party)})
        truth = dict(zip(places, read_real(real, id, schema, read, INNER)[0], strict=True))
    return write_page(opened, out, truth, label)


def write_page(
    run: Run, out: str | Path, truth: Truth | None = None, label: str | None = None
) -> Standing:
    """Write the page of a run.

    Args:
        run, truth, label: as in :func:`page`.
        out: the file to write.

    Returns:
        The privacy label of the page.

    Raises:
        PlanError: Matplotlib or Jinja is not installed.
        OSError: the file cannot be written.
    """
    check_tools()
    write_text(out, page(run, truth, label))
    return standing_of(run, truth is not None)


def standing_of(run: Run, truth: bool) -> Standing:
    """What a page may claim: the standing of the run's report.

    A page that shows the truth is not private.
    """
    return run.report.standing.because(*EXACT.reasons) if truth else run.report.standing


def check_tools() -> None:
    """Check before the work that the packages that draw a page are installed.

    Raises:
        PlanError: one is not. The message says how to install it.
    """
    try:
        import jinja2

        figures.tools()
        _ = jinja2
    except ImportError as error:
        raise PlanError(
            f"A report needs {error.name}, which is not installed: pip install 'vertimrf[report]'."
        ) from None


def page(run: Run, truth: Truth | None = None, label: str | None = None) -> str:
    """The page as HTML text.

    Args:
        run: the run.
        truth: codes of the joined real tables, by attribute of the run's schema [each shape=(n,),
            uint16]. The page is then not private.
        label: attribute that trees predict from the others. Needs ``truth``.
    """
    import jinja2

    # Names and values come from users: all are escaped.
    environment = jinja2.Environment(
        autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters |= {"shown": shown, "percent": percent, "count": count}
    source = resources.files(__package__).joinpath("page.html.jinja").read_text(encoding="utf-8")
    return environment.from_string(source).render(_context(run, content(run, truth, label)))


@dataclass(frozen=True)
class Drawing:
    """A figure drawn by this package. Nothing else goes into a page unescaped.

    Attributes:
        svg: the SVG element.
    """

    svg: str

    def __html__(self) -> str:
        return self.svg


@dataclass(frozen=True, eq=False)
class Chart:
    """An attribute's figure and numbers.

    Attributes:
        name: name of the attribute.
        column: figures of the attribute.
        drawing: chart of the attribute.
    """

    name: str
    column: Column
    drawing: Drawing


@dataclass(frozen=True)
class Line:
    """A pair of attributes in a table. Shares of records; None where unknown.

    Attributes:
        names, parties: names of both attributes, and of their holders.
        model, estimate, truth: dependence in the model, in the estimates and in the real tables.
        beyond: distance between estimate and model, less noise.
        off: distance between model and truth.
        predicted, error: standard error of a cell, by the plan and by the estimate, records.
    """

    names: tuple[str, str]
    parties: tuple[str, str]
    model: float | None
    estimate: float | None
    truth: float | None
    beyond: float | None
    off: float | None
    predicted: float | None
    error: float | None


def percent(share: float | None) -> str:
    """A share of records with a sensible number of digits. A dash for None."""
    if share is None:
        return "–"
    digits = 0 if abs(share) >= 0.9995 else 1 if abs(share) >= 0.00995 else 2
    return f"{100 * share:.{digits}f} %".replace("-", "−")


def count(number: float | None) -> str:
    """A number of records, bytes or cells. A dash for None."""
    if number is None:
        return "–"
    return f"{number:,.0f}" if abs(number) >= 10 else f"{number:.2g}"


def _context(run: Run, content: Content) -> dict[str, Any]:
    model, report, schema = run.model, run.report, run.model.schema
    ledger, names = model.ledger, schema.names
    parties = [schema.party_of(a) for a in range(len(names))]
    party_names = schema.party_names
    charts = [
        Chart(name, column, Drawing(figures.marginal_chart(column, shown(name, 60))))
        for name, column in zip(names, content.columns, strict=True)
    ]
    truth = content.real is not None
    graph = figures.attribute_graph(names, parties, party_names, content.edges, content.dependence)
    lines = _lines(run, content)
    seconds = sum(report.seconds.values())
    size = model.field.summarize()
    return {
        "version": __version__,
        "report": report,
        "model": model,
        "schema": schema,
        "content": content,
        "truth": truth,
        "ledger": ledger,
        "standing": ledger.standing,
        "page_standing": standing_of(run, truth),
        "guarantee": words.guarantee(
            ledger.standing, len(party_names) > 1, ledger.records_per_person
        ),
        "rests_on": words.rests_on(len(party_names) > 1, ledger.private, ledger.colluding_epsilon),
        "colluding": _colluding(ledger.colluding_epsilon),
        "steps": words.steps(ledger),
        "several": len(party_names) > 1,
        "charts": {
            name: [charts[a] for a in schema.party_attributes(name)] for name in party_names
        },
        "legend": Drawing(figures.legend(bool(report.released), truth)),
        "graph": Drawing(graph),
        "edges": len(content.edges),
        "drawn": len(figures.drawn_edges(content.edges, content.dependence)),
        "crossing": sum(bool(content.dependence.across[pair]) for pair in content.edges),
        "maps": _maps(content, names, parties, report.pairs is not None),
        "wide": len(names) > figures.WIDE,
        "errors": _errors(run, content),
        "strongest": sorted(
            (line for line in lines if _across(line)), key=lambda line: -(line.model or 0.0)
        )[:MAX_LINES],
        "farthest": _farthest(lines, truth),
        "meant": words.PHASES,
        "seconds": seconds,
        "phases": [
            (phase, spent, spent / seconds if seconds > 0 else 0.0)
            for phase, spent in report.seconds.items()
        ],
        "size": size,
        "figures_of": {
            "columns": _mean([c.off for c in content.columns]),
            "pairs": _nanmean(content.dependence.off),
        },
        "independent": _nanmean(content.dependence.truth),
    }


def _colluding(epsilon: float | None) -> str | None:
    """Epsilon if a party colludes, as text.

    None if nobody can collude or the ledger does not say.
    """
    return None if epsilon is None else "none" if math.isinf(epsilon) else f"{epsilon:.4g}"


def _lines(run: Run, content: Content) -> list[Line]:
    schema, pairs, dependence = run.model.schema, run.report.pairs, content.dependence
    predicted, stated = (np.full(dependence.model.shape, np.nan) for _ in range(2))
    if pairs is not None:
        predicted[tuple(pairs.places.T)] = pairs.predicted
        stated[tuple(pairs.places.T)] = pairs.error

    def holders(a: int) -> str:
        return "+".join(schema.parties[party][0] for party in schema.holders[a])

    out = []
    for a in range(len(schema.names)):
        for b in range(a + 1, len(schema.names)):
            out.append(
                Line(
                    (schema.names[a], schema.names[b]),
                    (holders(a), holders(b)) if dependence.across[a, b] else (holders(a), ""),
                    _number(dependence.model[a, b]),
                    _number(dependence.estimate[a, b]),
                    None if dependence.truth is None else _number(dependence.truth[a, b]),
                    _number(dependence.beyond[a, b]),
                    None if dependence.off is None else _number(dependence.off[a, b]),
                    _number(predicted[a, b]),
                    _number(stated[a, b]),
                )
            )
    return out


def _across(line: Line) -> bool:
    return bool(line.parties[1])


def _farthest(lines: Sequence[Line], truth: bool) -> list[Line]:
    """Pairs where the model is farthest from the truth.

    Without the truth, farthest from the estimates beyond their noise.
    """

    def off(line: Line) -> float:
        distance = line.off if truth else line.beyond
        return -1.0 if distance is None else distance

    return [line for line in sorted(lines, key=off, reverse=True) if off(line) > 0][:MAX_LINES]


def _maps(
    content: Content, names: Sequence[str], parties: Sequence[int], measured: bool
) -> list[dict[str, Any]]:
    """Heat maps. Maps of dependence share one scale, maps of distances another."""
    pairs = content.dependence
    if len(names) < 2:
        return []
    dependence = (
        [pairs.model] + [pairs.estimate] * measured + ([] if pairs.truth is None else [pairs.truth])
    )
    distances = [pairs.beyond] * measured + ([] if pairs.off is None else [pairs.off])
    most, far = _largest(dependence), _largest(distances)
    scale = "Brighter is more dependent."
    panels = [
        (
            "Dependence in the model",
            f"{scale} What the synthetic rows show.",
            pairs.model,
            most,
            False,
        )
    ]
    if measured:
        text = f"{scale} What the messages measured, less what noise adds."
        panels.append(("Dependence in the estimates", text, pairs.estimate, most, True))
    if pairs.truth is not None:
        panels.append(
            ("Dependence in the real tables", f"{scale} The truth.", pairs.truth, most, False)
        )
    if measured:
        text = "Brighter is farther, in shares of records beyond what noise explains."
        panels.append(("Estimates and model apart", text, pairs.beyond, far, True))
    if pairs.off is not None:
        panels.append(
            (
                "Model and truth apart",
                "Brighter is farther, in shares of records.",
                pairs.off,
                far,
                False,
            )
        )
    return [
        {
            "title": title,
            "words": text,
            "drawing": Drawing(figures.heat_map(matrix, names, parties, title, text, top, grey)),
        }
        for title, text, matrix, top, grey in panels
    ]


def _largest(matrices: Sequence[npt.NDArray[np.float64]]) -> float:
    return max(
        (float(np.nanmax(matrix)) for matrix in matrices if np.isfinite(matrix).any()), default=1.0
    )


def _errors(run: Run, content: Content) -> dict[str, Any] | None:
    """Predicted and observed errors of pairs. None if no pair was measured."""
    pairs = run.report.pairs
    if pairs is None or not len(pairs.places):
        return None
    places = (pairs.places[:, 0], pairs.places[:, 1])
    across = content.dependence.across[places]
    off = None if content.dependence.off is None else content.dependence.off[places]
    predicted = np.isfinite(pairs.predicted)
    ratio = pairs.error[predicted] / np.maximum(pairs.predicted[predicted], 1e-300)
    return {
        "drawing": Drawing(figures.error_chart(pairs.noise, pairs.distance, across, off)),
        "pairs": len(pairs.places),
        "predicted": float(np.median(pairs.predicted[predicted])) if predicted.any() else None,
        "stated": float(np.median(pairs.error[predicted])) if predicted.any() else None,
        "ratio": float(np.median(ratio)) if predicted.any() else None,
        "noise": float(np.median(pairs.noise)),
        "distance": float(np.median(pairs.distance)),
        "off": None if off is None else float(np.nanmedian(off)),
    }


def _number(figure: float) -> float | None:
    return float(figure) if math.isfinite(figure) else None


def _mean(figures_: Sequence[float | None]) -> float | None:
    known = [figure for figure in figures_ if figure is not None]
    return math.fsum(known) / len(known) if known else None


def _nanmean(matrix: npt.NDArray[np.float64] | None) -> float | None:
    return None if matrix is None or not np.isfinite(matrix).any() else float(np.nanmean(matrix))
