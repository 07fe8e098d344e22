"""The page of a run: one HTML file that loads nothing and runs nothing."""

from __future__ import annotations

import importlib.util
import itertools
import math
from collections.abc import Sequence
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from .. import __version__
from ..arrays import Codes, Fields, Floats, Ints, Pair
from ..columns.column import Attribute
from ..errors import PlanError
from ..evaluation import read_real, values_compared
from ..files.results import save
from ..plan.defaults import INNER
from ..plan.schema import Schema
from ..plan.verdict import percent
from ..privacy.label import EXACT, PrivacyLabel
from ..server.released_figures import named
from ..server.rows import decode_pieces
from ..tables.columns import check_joined
from ..tables.derived import opened as read_as
from ..tables.derived import with_derived
from ..tables.read_options import DEFAULT, ReadOptions
from ..tables.sources import Source, first_file, open_as_found, several
from ..utility.original_values import Book, original_values
from ..utility.values import Values
from . import figures, words
from .content import Beside, Content, Truth, content, rows_of
from .figures import shown
from .run import Run

if TYPE_CHECKING:
    import pyarrow as pa

    from ..named_model import Model, Trust
    from ..server.result import Result
    from ..synthesizer import Synthesizer
    from ..trial import Trial

# Largest number of lines of a table of pairs.
MAX_LINES = 20


def write_report(
    run: Trial | Synthesizer | Result | str | Path | Sequence[str | Path],
    out: str | Path,
    *,
    real: Source | Sequence[Source] = (),
    id: str | None = None,
    party: str | None = None,
    read: ReadOptions = DEFAULT,
    label: str | None = None,
) -> PrivacyLabel:
    """Write a run's report as one HTML page for people. Needs the extra "report".

    Args:
        run: a trial; a fitted synthesizer; a server's result; or paths: a folder that holds a model
            and its JSON report, or these two files.
        out: the page to write.
        real: the real table or tables, if one machine may see them all. The page then compares with
            them, and says that it is not private.
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
        OutputError, OSError: the page cannot be written.
        PlanError: there is a label without real tables; or Jinja or, with a label, scikit-learn is
            not installed.

    Example:
        >>> vertimrf.write_report("results/", "report.html")  # doctest: +SKIP
    """
    check_tools()
    real = several(real)
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
    truth = beside = None
    if real:
        schema = opened.model.schema
        check_joined(id, real)
        real, read = read_as(real, schema, read, party)
        real = [open_as_found(each, read) if first_file(each) else each for each in real]
        real = with_derived(real, schema, schema.names, read)
        places: Sequence[int] = range(len(schema.names))
        if party is not None:
            places = schema.party_attributes(party)
            schema = Schema.of({party: schema.part(party)})
        book: Book = {}
        codes, values, _ = read_real(real, id, schema, read, INNER, book)
        truth = dict(zip(places, codes, strict=True))
        beside = compared(opened, schema.attributes, values, book)
    save(out, page(opened, truth, label, beside))
    return label_of(opened, bool(real))


def compared(
    run: Run,
    attributes: tuple[Attribute, ...],
    real: Values,
    book: Book,
    made: tuple[Codes, pa.Table] | None = None,
) -> Beside:
    """Compare original values with those of a run's rows.

    Args:
        run: the run.
        attributes: of the columns that are compared.
        real: original values of the real table, by column.
        book: as in :func:`vertimrf.utility.original_values.original_values`.
        made: codes and values of synthetic rows. By default they are drawn from the model.
    """
    import pyarrow as pa

    schema = run.model.schema
    if made is None:
        rows = rows_of(run)
        pieces = decode_pieces(
            rows, schema.attributes, np.random.default_rng(0), shapes=run.model.shapes
        )
        made = rows, pa.concat_tables(pieces)
    rows, table = made
    found = tuple(attribute.as_found(table[attribute.name]) for attribute in attributes)
    codes = rows[[schema.index(attribute.name) for attribute in attributes]]
    values = original_values(found, table, codes, "The model's rows", book)
    return Beside(rows, real, values_compared(real, values, found)["values"])


def label_of(run: Run, truth: bool) -> PrivacyLabel:
    """What a page may claim: the privacy label of the run's report.

    A page that shows the truth is not private.
    """
    return run.report.label.because(*EXACT.reasons) if truth else run.report.label


def check_tools() -> None:
    """Check before the work that the package that fills a page's template is installed.

    Raises:
        PlanError: it is not. The message says how to install it.
    """
    if importlib.util.find_spec("jinja2") is None:
        raise PlanError(
            "A report needs jinja2, which is not installed: pip install 'vertimrf[report]'."
        )


def page(
    run: Run, truth: Truth | None = None, label: str | None = None, beside: Beside | None = None
) -> str:
    """The page as HTML text.

    Args:
        run: the run.
        truth: codes of the joined real tables, by attribute of the run's schema [each shape=(n,),
            uint16]. The page is then not private.
        label: attribute that trees predict from the others. Needs ``truth``.
        beside: values of real and synthetic tables, from :func:`compared`.
    """
    import jinja2

    # Names and values come from users: all are escaped.
    environment = jinja2.Environment(
        autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters |= {
        "shown": shown,
        "labels": figures.labels,
        "percent": percent,
        "number": lambda value: f"{value:.10g}" if isinstance(value, float) else shown(value, 40),
        "count": count,
    }
    source = resources.files(__package__).joinpath("page.html.jinja").read_text(encoding="utf-8")
    return environment.from_string(source).render(_context(run, content(run, truth, label, beside)))


def count(number: float | None) -> str:
    """A number of records, bytes or cells. A dash for None and NaN."""
    if number is None or math.isnan(number):
        return "–"
    return f"{number:,.0f}" if abs(number) >= 10 else f"{number:.2g}"


def _context(run: Run, content: Content) -> Fields:
    model, schema, pairs = run.model, run.model.schema, content.dependence
    ledger, several, truth = model.ledger, len(schema.parties) > 1, content.real is not None
    holders = [schema.party_of(a) for a in range(len(schema.names))]
    apart = pairs.beyond if pairs.off is None else pairs.off
    strongest = _first(np.where(pairs.across, np.nan_to_num(pairs.model), np.nan))
    farthest = _first(np.where(apart > 0, apart, np.nan))
    judged = [*((a,) for a in range(len(schema.names))), *strongest, *farthest]
    return {
        "version": __version__,
        "report": run.report,
        "model": model,
        "schema": schema,
        "content": content,
        "pairs": pairs,
        "ledger": ledger,
        "truth": truth,
        "several": several,
        "page_label": label_of(run, truth),
        "guarantee": words.guarantee(ledger.label, several, ledger.records_per_person),
        "rests_on": words.rests_on(several, ledger.private, ledger.colluding_epsilon),
        "steps": words.steps(ledger),
        "holders": holders,
        "graph": None
        if len(content.edges) > figures.MAX_EDGES
        else figures.attribute_graph(schema.names, holders, content.edges, pairs),
        "neighbours": figures.map_of_edges(content.edges, pairs),
        "crossing": sum(bool(pairs.across[pair]) for pair in content.edges),
        "maps": _maps(content, model.evidence is not None),
        "shades": figures.shades,
        "strongest": strongest,
        "farthest": farthest,
        "trust": _trust(model, judged),
        "errors_in_words": words.errors_in_words(run.report.predicted, content.apart),
        "bars": figures.bars,
        "links": words.links(_links(run)),
        "independent": _nanmean(pairs.truth),
    }


def _trust(model: Model, places: Sequence[Ints]) -> dict[Ints, Trust]:
    """How far columns and pairs can be trusted, by their positions."""
    names = [tuple(model.schema.names[a] for a in some) for some in places]
    by_rows = max(map(len, places), default=0) > 2
    return dict(zip(places, model.trusts(names, by_rows=by_rows), strict=True))


def _links(run: Run) -> dict[str, list[str]]:
    """Pairs of columns by what is known of them, the most dependent first."""
    schema, evidence = run.model.schema, run.model.evidence
    out: dict[str, list[str]] = {}
    if evidence is None:
        return out
    varying = [a for a, size in enumerate(schema.sizes) if size > 1]
    lost, known, places = set(evidence.dropped), set(evidence.known), evidence.places
    order = sorted(
        itertools.combinations(varying, 2),
        key=lambda pair: -evidence.dependence[places[pair]] if pair in places else 0.0,
    )
    for pair in order:
        what, said = evidence.kind(pair), " × ".join(schema.names[a] for a in pair)
        if pair in known:
            said = named(schema, evidence, pair)
        elif pair in places:
            what = words.LOST if pair in lost else words.HIDDEN
        out.setdefault(what, []).append(said)
    return out


def _first(matrix: Floats) -> list[Pair]:
    """The pairs with the largest values, largest first. NaN is left out."""
    pairs = [
        pair
        for pair in itertools.combinations(range(len(matrix)), 2)
        if math.isfinite(matrix[pair])
    ]
    return sorted(pairs, key=lambda pair: -matrix[pair])[:MAX_LINES]


def _maps(content: Content, measured: bool) -> list[tuple[str, str, Floats, float, str]]:
    """Title, words, values and largest value of every map, and what grey squares are.

    Maps of dependence share one scale, maps of distances another.
    """
    pairs = content.dependence
    if len(pairs.model) < 2:
        return []
    scale, apart = (
        "A stronger shade is more dependent.",
        "A stronger shade is farther, in shares of records",
    )
    dependence = [
        ("Dependence in the model", f"{scale} What the synthetic rows show.", pairs.model)
    ]
    distances = []
    if measured:
        text = f"{scale} What the messages measured, less what noise adds."
        dependence.append(("Dependence in the estimates", text, pairs.estimate))
        text = f"{apart} beyond what noise explains."
        distances.append(("Estimates and model apart", text, pairs.beyond))
    if pairs.truth is not None and pairs.off is not None:
        dependence.append(("Dependence in the real tables", f"{scale} The truth.", pairs.truth))
        distances.append(("Model and truth apart", f"{apart}.", pairs.off))
    lower = np.tri(len(pairs.model), k=-1, dtype=bool)
    real = (pairs.truth, pairs.off)
    out = []
    for kin in (dependence, distances):
        most = max((float(np.nanmax(m)) for *_, m in kin if np.isfinite(m).any()), default=1.0)
        for title, text, matrix in kin:
            reasons = []
            if matrix is pairs.estimate or matrix is pairs.beyond:
                reasons.append("nothing measured the pair")
            elif np.isnan(pairs.model[lower]).any():
                reasons.append(
                    "of so many pairs, only those measured or kept together are computed"
                )
            if any(matrix is one for one in real):
                reasons.append("the real tables given do not have both attributes")
            grey = f" Grey: {'; or '.join(reasons)}." if np.isnan(matrix[lower]).any() else ""
            out.append((title, text, matrix, most, grey))
    return out


def _nanmean(values: Floats | None) -> float | None:
    return None if values is None or not np.isfinite(values).any() else float(np.nanmean(values))
