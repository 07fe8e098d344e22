"""A run to report on: its model, and the checked content of its JSON report."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ..errors import MALFORMED, MessageError
from ..files import container
from ..files.atomic import MAX_JSON, open_regular, read_json
from ..named_model import Model
from ..plan.schema import Schema
from ..privacy.standing import Standing
from ..runs.files import RESULT
from ..server.server import Result

if TYPE_CHECKING:
    from ..trial import Trial

__all__ = ["Pairs", "Released", "Report", "Run"]

Array = npt.NDArray[np.float64]
REMEDY = "give the JSON file that the run wrote"


@dataclass(frozen=True, eq=False)
class Released:
    """A one-way marginal as a party released it.

    Attributes:
        attribute: position of the attribute in the schema.
        party: name.
        counts: noisy counts, by code [shape=(size,), float64]. They may be negative.
        error: standard deviation of the counts' noise, records.
    """

    attribute: int
    party: str
    counts: Array
    error: float


@dataclass(frozen=True, eq=False)
class Pairs:
    """Pairs of attributes that were measured: see :meth:`vertimrf.server.found.Found.to_json`.

    Attributes:
        places: positions of both attributes [shape=(pairs, 2), int64], the first below the second.
        cells, predicted, error, noise, distance, dependence, model_dependence: figures [each shape=(pairs,), float64]; predicted
            is NaN where the plan predicts none.
    """

    places: npt.NDArray[np.int64]
    cells: Array
    predicted: Array
    error: Array
    noise: Array
    distance: Array
    dependence: Array
    model_dependence: Array


@dataclass(frozen=True, eq=False)
class Report:
    """The content of a run's JSON report, apart from its model.

    Attributes:
        standing: what the file may claim.
        version: version of the library. Empty if the file does not say.
        encoder: name of the encoder. Empty if the file does not say.
        plan: fingerprint of the plan. Empty if the file does not say.
        expected_records, rows: record counts of the plan and of the synthetic table. None if the file does not say.
        seconds: wall time by phase.
        message_bytes: size of the message by party. Only reports of trials have it.
        crossing: attribute names of the cross-party marginals that the model was fitted to.
        warnings: sentences.
        disagreements: sentences on columns that several parties hold.
        overlap: (parties, people, standard error) for each set of parties. Empty unless parties hold different people.
        population: which people the rows stand for. Empty unless parties hold different people.
        released: one-way marginals as released.
        pairs: pairs that were measured. None if the file does not say.
    """

    standing: Standing
    version: str = ""
    encoder: str = ""
    plan: str = ""
    expected_records: int | None = None
    rows: int | None = None
    seconds: dict[str, float] = field(default_factory=dict)
    message_bytes: dict[str, int] = field(default_factory=dict)
    crossing: tuple[tuple[str, ...], ...] = ()
    warnings: tuple[str, ...] = ()
    disagreements: tuple[str, ...] = ()
    overlap: tuple[tuple[str, float, float], ...] = ()
    population: str = ""
    released: tuple[Released, ...] = ()
    pairs: Pairs | None = None


@dataclass(frozen=True, eq=False)
class Run:
    """A run to report on.

    Attributes:
        model: what it released.
        report: content of its JSON report.
    """

    model: Model
    report: Report

    @classmethod
    def of(cls, made: Trial | Result) -> Run:
        """The run of a trial or of a server's result."""
        result = made if isinstance(made, Result) else made.result
        model = Model(result.plan.schema, result.model, result.ledger, result.others)
        return cls.matched(model, made.to_json(), "The run")

    @classmethod
    def open(cls, *paths: str | Path) -> Run:
        """Read a run from files.

        Args:
            paths: a folder with one model and at most one report in JSON, a server's run folder, or the files themselves in any
                order.

        Raises:
            MessageError: a file is missing, cannot be read, was altered, or belongs to another run; or there are too many files.
        """
        files = _listed(paths)
        models = [path for path in files if _begins(path, container.MAGIC) and _is_model(path)]
        reports = [
            (path, content)
            for path in files
            if path.suffix == ".json" and (content := _report(path)) is not None
        ]
        where = ", ".join(map(str, paths))
        if len(models) != 1 or len(reports) > 1:
            raise MessageError(
                f"A report is made of one model and at most one JSON file of figures; {where} has {len(models)} and "
                f"{len(reports)}: name the two files themselves, as `vertimrf synthesize --model --json` wrote them."
            )
        model = Model.load(models[0])
        if not reports:
            return cls(model, Report(model.ledger.standing))
        return cls.matched(model, reports[0][1], str(reports[0][0]))

    @classmethod
    def matched(cls, model: Model, figures: Any, where: str) -> Run:
        """Combine a model and the report of the same run.

        Args:
            model: the model.
            figures: content of the run's JSON report. Nothing in it is trusted.
            where: what to call the report in errors.

        Raises:
            MessageError: the report is malformed, or belongs to another run.
        """
        try:
            stated = model.to_json()
            if _text_of(stated) != _text_of(figures):
                raise MessageError(
                    f"{where} belongs to another run than the model; give both files of one run."
                )
            return cls(model, _read(figures, model.schema))
        except MALFORMED as error:
            if isinstance(error, MessageError):
                raise
            raise MessageError(f"{where} is malformed ({error}); {REMEDY}.") from None


def _text_of(figures: Any) -> str:
    """The part of a report that also follows from the model, as text. Text is compared because files have lists for tuples."""
    return json.dumps([figures["ledger"], figures["cliques"]], sort_keys=True)


def _listed(paths: Sequence[str | Path]) -> list[Path]:
    """The given files, and the files in the given folders. Of a run folder, the files in its results."""
    out: list[Path] = []
    for path in map(Path, paths):
        if path.is_dir():
            folder = path / RESULT if (path / RESULT).is_dir() else path
            out += sorted(inside for inside in folder.iterdir() if inside.is_file())
        elif path.is_file():
            out.append(path)
        else:
            raise MessageError(f"Cannot read {path}: there is no such file or folder.")
    return out


def _begins(path: Path, magic: bytes) -> bool:
    try:
        with open_regular(path) as file:
            return file.read(len(magic)) == magic
    except OSError as failure:
        raise MessageError(f"Cannot read {path}: {failure.strerror}.") from None


def _is_model(path: Path) -> bool:
    """Whether a container holds a model. True for a damaged container too: opening it gives the error message."""
    try:
        return bool(container.peek(container.read(path), str(path))[0] == "model")
    except MessageError:
        return True


def _report(path: Path) -> Any:
    """The content of a JSON file if its kind is "report"; else None."""
    if path.stat().st_size > MAX_JSON:
        return None
    content = read_json(path, "report", MessageError)
    return content if isinstance(content, dict) and content.get("kind") == "report" else None


def _read(figures: Any, schema: Schema) -> Report:
    """Read and check a report. Raises the errors that :meth:`Run.matched` catches."""
    measured = figures.get("found")
    overlap = figures.get("overlap", {})
    people = [
        ("+".join(_texts(part["parties"])), _number(part["records"]), _number(part["error"]))
        for part in overlap.get("held_by", [])
    ]
    return Report(
        standing=Standing.from_json(figures.get("standing")),
        version=_text(figures.get("version", "")),
        encoder=_text(figures.get("encoder", "")),
        plan=_text(figures.get("plan", "")),
        expected_records=_count(figures["expected_records"])
        if "expected_records" in figures
        else None,
        rows=_count(figures["rows"]) if "rows" in figures else None,
        seconds={
            _text(phase): _number(seconds) for phase, seconds in figures.get("seconds", {}).items()
        },
        message_bytes={
            _text(party): _count(size) for party, size in figures.get("message_bytes", {}).items()
        },
        crossing=tuple(_texts(names) for names in figures.get("cross_party_marginals", [])),
        warnings=_texts(figures.get("warnings", [])),
        disagreements=tuple(_disagreement(one) for one in figures.get("shared_columns", [])),
        overlap=tuple(people),
        population=_text(figures.get("population", "")),
        released=()
        if measured is None
        else tuple(_released(one, schema) for one in measured["one_way"]),
        pairs=None if measured is None else _pairs(measured["pairs"], len(schema.names)),
    )


def _released(one: Any, schema: Schema) -> Released:
    # index() raises ValueError for a name that the schema does not have.
    place = schema.names.index(_text(one["attribute"]))
    counts = np.array([_number(count) for count in one["counts"]])
    if counts.shape != (schema.sizes[place],):
        raise ValueError(
            f"{one['attribute']!r} has {len(counts)} counts for {schema.sizes[place]} values"
        )
    return Released(place, _text(one["party"]), counts, _positive(one["error"]))


def _pairs(columns: Any, attributes: int) -> Pairs:
    places = np.array(
        [[_count(a) for a in columns["first"]], [_count(b) for b in columns["second"]]], np.int64
    ).T.reshape(-1, 2)
    if not (places[:, 0] < places[:, 1]).all() or (places >= attributes).any():
        raise ValueError("its pairs are not pairs of attributes")
    names = ("cells", "predicted", "error", "noise", "distance", "dependence", "model_dependence")
    figures = {
        name: np.array(
            [math.nan if name == "predicted" and x is None else _number(x) for x in columns[name]]
        )
        for name in names
    }
    if any(column.shape != (len(places),) for column in figures.values()):
        raise ValueError("its pairs have columns of different lengths")
    return Pairs(places, **figures)


def _disagreement(one: Any) -> str:
    first, second = _texts(one["parties"])
    share, error = _number(one["disagreement"]), _number(one["standard_error"])
    return f"{first} and {second} differ on {_text(one['column'])} for {share:.2%} of the records (standard error {error:.2%})."


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{str(value)[:40]!r} is no text")
    return value


def _texts(values: Any) -> tuple[str, ...]:
    if not isinstance(values, list | tuple):
        raise TypeError(f"{str(values)[:40]!r} is no list")
    return tuple(_text(value) for value in values)


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise ValueError(f"{str(value)[:40]!r} is no number")
    return float(value)


def _positive(value: Any) -> float:
    if not (number := _number(value)) > 0:
        raise ValueError(f"{number} is not above 0")
    return number


def _count(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 1 << 62:
        raise ValueError(f"{str(value)[:40]!r} is no count")
    return value
