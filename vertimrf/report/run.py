"""What a run left: its model, and the figures beside it, checked before anything is made of them."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ..errors import MessageError
from ..files import container
from ..files.atomic import MAX_JSON, open_regular, read_json
from ..named_model import Model
from ..plan.schema import Schema
from ..privacy.standing import Standing
from ..server.server import Result

if TYPE_CHECKING:
    from ..trial import Trial

__all__ = ["Pairs", "Released", "Run", "Told"]

Array = npt.NDArray[np.float64]
REMEDY = "give the JSON file that the run wrote"
# Where a server's run folder has what the run made.
RESULT = "result"


@dataclass(frozen=True, eq=False)
class Released:
    """A one-way marginal as a party released it.

    Attributes:
        attribute: its position in the schema.
        party: name.
        counts: noisy counts, by code [shape=(size,)]; may be negative.
        error: their standard deviation, records.
    """

    attribute: int
    party: str
    counts: Array
    error: float


@dataclass(frozen=True, eq=False)
class Pairs:
    """Pairs of attributes that were measured, a line each: see :meth:`vertimrf.server.found.Found.to_json`.

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
class Told:
    """What a run's JSON file tells besides its model.

    Attributes:
        standing: what the file may claim.
        version, encoder, plan: of the library, the sketches and the plan (its fingerprint); empty where it does not say.
        expected_records, rows: None where it does not say.
        seconds: wall time per phase.
        message_bytes: by party; a trial's alone.
        crossing: names of the cross-party marginals that the model was fitted to.
        warnings: sentences.
        disagreements: sentences on columns that several parties hold.
        overlap: lines of (who, people, standard error), where parties hold different people.
        population: whom the rows are of then.
        released: one-way marginals as released.
        pairs: pairs measured; None where it does not say.
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
        told: what its JSON file tells.
    """

    model: Model
    told: Told

    @classmethod
    def of(cls, made: Trial | Result) -> Run:
        """A run at hand: a trial, or what a server made."""
        result = made if isinstance(made, Result) else made.result
        model = Model(result.plan.schema, result.model, result.ledger, result.others)
        return cls.matched(model, made.to_json(), "The run")

    @classmethod
    def open(cls, *paths: str | Path) -> Run:
        """What files hold: a folder with one model and at most one report in JSON, or a server's run folder; or the files
        themselves, in any order.

        Raises:
            MessageError: there are none or too many of them, they cannot be read, were altered, or are of different runs.
        """
        files = _listed(paths)
        models = [path for path in files if _begins(path, container.MAGIC) and _is_model(path)]
        reports = [(path, content) for path in files if path.suffix == ".json" and (content := _report(path)) is not None]
        where = ", ".join(map(str, paths))
        if len(models) != 1 or len(reports) > 1:
            raise MessageError(
                f"A report is made of one model and at most one JSON file of figures; {where} has {len(models)} and "
                f"{len(reports)}: name the two files themselves, as `vertimrf synthesize --model --json` or `vertimrf server` "
                "wrote them."
            )
        model = Model.load(models[0])
        if not reports:
            return cls(model, Told(model.ledger.standing))
        return cls.matched(model, reports[0][1], str(reports[0][0]))

    @classmethod
    def matched(cls, model: Model, figures: Any, where: str) -> Run:
        """A model with the figures of its run.

        Args:
            model: the model.
            figures: what the run's JSON file holds; nothing in it is trusted.
            where: what to call it in errors.

        Raises:
            MessageError: malformed, or of another run.
        """
        try:
            stated = model.to_json()
            if _text_of(stated) != _text_of(figures):
                raise MessageError(f"{where} is of another run than the model; give both files of one run.")
            return cls(model, _told(figures, model.schema))
        except (KeyError, TypeError, ValueError, IndexError, AttributeError, OverflowError) as error:
            if isinstance(error, MessageError):
                raise
            raise MessageError(f"{where} is malformed ({error}); {REMEDY}.") from None


def _text_of(figures: Any) -> str:
    """What a model and the figures of its run have in common, as text: what comes from a file has lists for tuples."""
    return json.dumps([figures["ledger"], figures["cliques"]], sort_keys=True)


def _listed(paths: Sequence[str | Path]) -> list[Path]:
    """The files named, and those in the folders named, or in the results of runs whose folders they are."""
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
    """Whether a container holds a model; one that is damaged might, and is opened to say so."""
    try:
        return bool(container.peek(container.read(path), str(path))[0] == "model")
    except MessageError:
        return True


def _report(path: Path) -> Any:
    """What a JSON file holds, if it is a run's figures; else None."""
    if path.stat().st_size > MAX_JSON:
        return None
    content = read_json(path, "report", MessageError)
    return content if isinstance(content, dict) and "ledger" in content and "cliques" in content else None


def _told(figures: Any, schema: Schema) -> Told:
    """Read and check; raises what :meth:`Run.matched` catches."""
    found = figures.get("found")
    overlap = figures.get("overlap", {})
    people = [("+".join(_texts(part["parties"])), _number(part["records"]), _number(part["error"]))
              for part in overlap.get("held_by", [])]  # fmt: skip
    return Told(
        standing=Standing.from_json(figures.get("standing")),
        version=_text(figures.get("version", "")),
        encoder=_text(figures.get("encoder", "")),
        plan=_text(figures.get("plan", "")),
        expected_records=_count(figures["expected_records"]) if "expected_records" in figures else None,
        rows=_count(figures["rows"]) if "rows" in figures else None,
        seconds={_text(phase): _number(seconds) for phase, seconds in figures.get("seconds", {}).items()},
        message_bytes={_text(party): _count(size) for party, size in figures.get("message_bytes", {}).items()},
        crossing=tuple(_texts(own) for own in figures.get("cross_party_marginals", [])),
        warnings=_texts(figures.get("warnings", [])),
        disagreements=tuple(_disagreement(one) for one in figures.get("shared_columns", [])),
        overlap=tuple(people),
        population=_text(figures.get("population", "")),
        released=() if found is None else tuple(_released(one, schema) for one in found["one_way"]),
        pairs=None if found is None else _pairs(found["pairs"], len(schema.names)),
    )


def _released(one: Any, schema: Schema) -> Released:
    # A name that the schema has not is a ValueError here.
    place = schema.names.index(_text(one["attribute"]))
    counts = np.array([_number(count) for count in one["counts"]])
    if counts.shape != (schema.sizes[place],):
        raise ValueError(f"{one['attribute']!r} has {len(counts)} counts for {schema.sizes[place]} values")
    return Released(place, _text(one["party"]), counts, _positive(one["error"]))


def _pairs(columns: Any, attributes: int) -> Pairs:
    places = np.array([[_count(a) for a in columns["first"]], [_count(b) for b in columns["second"]]], np.int64).T.reshape(-1, 2)
    if not (places[:, 0] < places[:, 1]).all() or (places >= attributes).any():
        raise ValueError("its pairs are not pairs of attributes")
    names = ("cells", "predicted", "error", "noise", "distance", "dependence", "model_dependence")
    figures = {
        name: np.array([math.nan if name == "predicted" and x is None else _number(x) for x in columns[name]])
        for name in names
    }
    if any(own.shape != (len(places),) for own in figures.values()):
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
