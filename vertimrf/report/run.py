"""A run to report on: its model, and the checked content of its JSON report."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import msgspec

from ..arguments import PATH, check, each, instance
from ..arrays import Fields, Texts
from ..errors import MALFORMED, MessageError
from ..files import container
from ..files.atomic import MAX_JSON, open_regular, read_json
from ..files.convert import from_json
from ..named_model import Model
from ..privacy.label import PrivacyLabel
from ..runs.files import RESULT
from ..runs.folder import SETTINGS
from ..server.result import Result

if TYPE_CHECKING:
    from ..synthesizer import Synthesizer
    from ..trial import Trial

REMEDY = "give the JSON file that the run wrote"
# Figures are finite. Counts have a decimal form and fit into 64 bits.
LARGEST = 1e300
Figure = Annotated[float, msgspec.Meta(ge=-LARGEST, le=LARGEST)]
Count = Annotated[int, msgspec.Meta(ge=0, lt=1 << 62)]


class Released(msgspec.Struct, frozen=True):
    """A one-way marginal as a party released it.

    Attributes:
        attribute: name of the attribute.
        party: name of the party.
        counts: noisy counts, by code or finer cell. They may be negative.
        error: standard deviation of the counts' noise, records.
    """

    attribute: str
    party: str
    counts: tuple[Figure, ...]
    error: Annotated[float, msgspec.Meta(gt=0, le=LARGEST)]


class Measured(msgspec.Struct, frozen=True):
    """What was measured.

    Attributes:
        one_way: the one-way marginals.
        fine: those of finer cells (:attr:`.Attribute.fine`).
    """

    one_way: tuple[Released, ...]
    fine: tuple[Released, ...] = ()


class Disagreement(msgspec.Struct, frozen=True):
    """How far two parties differ on a column that both hold.

    Attributes:
        column: name of the column.
        parties: names of the parties.
        disagreement: share of the records.
        standard_error: of that share.
    """

    column: str
    parties: tuple[str, str]
    disagreement: Figure
    standard_error: Figure

    def __str__(self) -> str:
        first, second = self.parties
        return (
            f"{first} and {second} differ on {self.column} for {self.disagreement:.2%} of the records "
            f"(standard error {self.standard_error:.2%})."
        )


class Holders(msgspec.Struct, frozen=True):
    """Number of people that some parties hold and the others do not.

    Attributes:
        parties: names of the parties.
        records: number of people.
        error: standard error.
    """

    parties: Texts
    records: Figure
    error: Figure


class Overlap(msgspec.Struct, frozen=True):
    """How many people each set of parties holds.

    Attributes:
        holders: the sets; the file's key is "held_by".
    """

    holders: tuple[Holders, ...] = msgspec.field(default=(), name="held_by")


class Report(msgspec.Struct, frozen=True, eq=False):
    """The content of a run's JSON report, apart from its model.

    Attributes:
        label: what the file may claim.
        version: version of the library. Empty if the file does not say.
        encoder: name of the encoder. Empty if the file does not say.
        plan: fingerprint of the plan. Empty if the file does not say.
        date: day of the run. Empty if the file does not say.
        expected_records, rows: record counts of the plan and of the synthetic table. None if the
            file does not say.
        seconds: wall time by phase.
        message_bytes: size of the message by party. Only reports of trials have it.
        crossing: attribute names of the cross-party marginals that the model was fitted to.
        warnings: sentences.
        known: a sentence on the pairs of columns that are known.
        verdict: how far the result was predicted to be trusted. Empty if the file does not say.
        predicted: errors, by the names of :class:`~vertimrf.plan.verdict.Errors`.
        workload: what the result is for, and the marginals that this became; sentences.
        disagreements: on columns that several parties hold.
        overlap: people by the parties that hold them. None unless parties hold different people.
        population: which people the rows stand for. Empty unless parties hold different people.
        measured: what was measured; the file's key is "found".
    """

    label: PrivacyLabel
    version: str = ""
    encoder: str = ""
    plan: str = ""
    date: str = ""
    expected_records: Count | None = None
    rows: Count | None = None
    seconds: dict[str, Figure] = {}
    message_bytes: dict[str, Count] = {}
    crossing: tuple[Texts, ...] = msgspec.field(name="cross_party_marginals", default=())
    warnings: Texts = ()
    known: str = ""
    verdict: str = ""
    predicted: dict[str, Figure] = {}
    workload: Texts = ()
    disagreements: tuple[Disagreement, ...] = msgspec.field(name="shared_columns", default=())
    overlap: Overlap | None = None
    population: str = ""
    measured: Measured | None = msgspec.field(name="found", default=None)

    @property
    def released(self) -> tuple[Released, ...]:
        """One-way marginals as released."""
        return () if self.measured is None else self.measured.one_way

    @property
    def fine(self) -> tuple[Released, ...]:
        """Fine marginals as released."""
        return () if self.measured is None else self.measured.fine


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
    def of(cls, made: Trial | Synthesizer | Result) -> Run:
        """The run of a trial, of a fitted synthesizer or of a server's result."""
        check(MessageError, {"run": made}, run=instance("Trial", "Synthesizer", "Result"))
        model = Model.of(made) if isinstance(made, Result) else made.model
        # As a file would have it: numbers of NumPy become plain ones.
        return cls.matched(model, json.loads(json.dumps(made.to_json())), "The run")

    @classmethod
    def open(cls, *paths: str | Path) -> Run:
        """Read a run from files.

        Args:
            paths: a folder with one model and at most one report in JSON, a server's run folder, or
                the files themselves in any order.

        Raises:
            MessageError: a file is missing, cannot be read, was altered, or belongs to another run;
                or there are too many files.
        """
        files = _listed(paths)
        models = [path for path in files if _is_model(path)]
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
            return cls(model, Report(model.ledger.label))
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
            return cls(model, _read(figures, model, where))
        except MALFORMED as error:
            if isinstance(error, MessageError):
                raise
            raise MessageError(f"{where} is malformed ({error}); {REMEDY}.") from None


def _text_of(figures: Any) -> str:
    """The part of a report that also follows from the model, as text.

    Text is compared because files have lists for tuples.
    """
    return json.dumps([figures["ledger"], figures["cliques"]], sort_keys=True)


def _listed(paths: Sequence[str | Path]) -> list[Path]:
    """The given files, and the files in the given folders.

    Of a run folder, the files in its results.
    """
    out: list[Path] = []
    check(MessageError, {"run": list(paths)}, run=each(PATH))
    for path in map(Path, paths):
        if path.is_dir():
            folder = path / RESULT if (path / RESULT).is_dir() else path
            if folder == path and (path / SETTINGS).is_file():
                raise MessageError(
                    f"{path} has no result: its run is not over, or it is a party's. `vertimrf status {path}` "
                    "says what it waits for; the server's folder has the result."
                )
            out += sorted(inside for inside in folder.iterdir() if inside.is_file())
        elif path.is_file():
            out.append(path)
        else:
            raise MessageError(f"Cannot read {path}: there is no such file or folder.")
    return out


def _is_model(path: Path) -> bool:
    """Whether a file holds a model.

    True for a damaged container too: opening it gives the error message.
    """
    try:
        with open_regular(path) as file:
            if file.read(len(container.MAGIC)) != container.MAGIC:
                return False
    except OSError as failure:
        raise MessageError(f"Cannot read {path}: {failure.strerror}.") from None
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


def _read(figures: Fields, model: Model, where: str) -> Report:
    """Read and check a report. Raises the errors that :meth:`Run.matched` catches."""
    parts = {"label": PrivacyLabel.from_json(figures.get("label"))}
    report = from_json(figures | parts, Report, where, REMEDY, MessageError)
    schema = model.schema
    fine = {a: attribute.size for a, attribute in schema.fine.items()}
    for marginals, sizes in (
        (report.released, dict(enumerate(schema.sizes))),
        (report.fine, fine),
    ):
        for one in marginals:
            # index() raises ValueError for a name that the schema does not have.
            size = sizes.get(schema.names.index(one.attribute), 0)
            if len(one.counts) != size:
                raise ValueError(
                    f"{one.attribute!r} has {len(one.counts)} counts for {size} values"
                )
    return report
