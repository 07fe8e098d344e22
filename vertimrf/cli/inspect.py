"""Describe any file that the library wrote, for people. Nothing of the file is run."""

from __future__ import annotations

import hashlib
import json
import re
from contextlib import suppress
from pathlib import Path
from typing import Any

from ..arrays import Fields
from ..errors import MessageError, VertiMRFError, first
from ..files import container, sealed
from ..files.atomic import MAX_JSON
from ..files.canonical import fingerprint, json_of
from ..keys import Envelopes, Offer, PrivateKey, called, open_sealed, read_head
from ..named_model import Model
from ..party.secret import Secret
from ..plan.open_schema import OpenSchema
from ..plan.plan import Plan
from ..plan.summary import summary
from ..plan.value_files import ENDING
from ..privacy.label import PrivacyLabel
from ..privacy.ledger import Ledger
from ..runs.exchange import DIGEST, ROSTER
from ..runs.files import match_in_words
from ..runs.folder import (
    FIRST_SETTINGS,
    LOCK,
    REFUSED,
    SETTINGS,
    STOPPED,
    WAITING,
    read_settings,
    settings_as,
    stated_role,
)
from ..runs.party_run import ACCEPTED, TABLE
from ..runs.party_table import PartySettings
from ..runs.steps import LEFT_OUT
from ..tables.sources import open_as_found, read_label
from ..tables.write import is_table

# Columns of a table that are listed, and arrays, rules and impossible combinations of a file.
MAX_LISTED, MAX_LINES = 40, 12
# The key of the record of domains, bytes; and how a page begins.
KEY_BYTES, PAGE = 32, b"<!doctype html>"
# Kinds of JSON files with something sealed for each of several parties.
SEALED = {"envelopes": "Envelopes, public,", "id sample": "An id sample, sealed"}
# Kinds of JSON files that need no reading.
PLAIN = {
    "benchmark": "Figures of `vertimrf bench` on a machine.",
    "domains": "The record of the domains found on this machine: private, keep it there.",
    "price": "What plans spend on a person with several records, public.",
    "state": "The state of a run: private if it names records that were left out.",
}


def describe(path: str | Path, key: PrivateKey | None = None, plan: Plan | None = None) -> str:
    """Describe a file of this library and its privacy label in a few lines.

    Binary files begin with a magic number and name their kind. JSON files name it in the field
    ``kind``. A JSON or TOML file without one is a schema: people write schemas by hand. Tables,
    settings and notes of a run, and lists of values are known by their names.

    Args:
        path: the file: a plan, message, model, table, schema, ledger, report, evaluation, key,
            offer, secret or envelopes, or any other file that the library writes.
        key: private key of the receiver of a sealed file. With ``plan`` it opens the file. Without
            them only the header is shown.
        plan: the plan of a sealed file.

    Returns:
        The description.

    Raises:
        VertiMRFError: the file cannot be read, was altered, or is none of these.
    """
    path = Path(path)
    if is_table(path):
        return _table(path)
    if path.is_dir():
        hint = (
            f"`vertimrf status {path}` tells of its run"
            if (path / SETTINGS).is_file()
            else "name one of the files in it"
        )
        raise MessageError(f"{path} is a folder, not a file; {hint}.")
    data = container.read(path)
    if data[:4] == container.MAGIC:
        return _binary(data, str(path))
    if len(data) > DIGEST and hashlib.sha256(data[:-DIGEST]).digest() == data[-DIGEST:]:
        # As it lies in an exchange, which tells whole files by their digest.
        data = data[:-DIGEST]
    if data[:4] == sealed.MAGIC:
        return _sealed(data, str(path), key, plan)
    if len(data) > MAX_JSON:
        raise MessageError(
            f"{path} is no file of this library: it is neither binary nor small enough for one of text."
        )
    if path.name in (SETTINGS, FIRST_SETTINGS):
        return _settings(path)
    if path.suffix == ".toml":
        return _schema(OpenSchema.load(path))
    if (note := _note(data, path)) is not None:
        return note
    try:
        return _content(json_of(data), path)
    except VertiMRFError:
        raise
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError):
        raise MessageError(
            f"{path} is no file of this library: neither a plan, message, model, schema, report nor secret."
        ) from None


def _content(content: Any, path: Path) -> str:
    """Describe a JSON file by its ``kind``. Nothing of a private file is shown but its fingerprint
    or its owner.
    """
    if path.name == Path(ROSTER).name and isinstance(content, list):
        return f"The parties of an exchange, public: {', '.join(map(str, first(content, MAX_LISTED)))}."
    if not isinstance(content, dict):
        raise TypeError
    kind = content.get("kind")
    if content.keys() == {"label", "sha256"}:
        return f"The privacy label of a table.\n{PrivacyLabel.from_json(content['label'])}"
    if content.keys() == {"plan", "few"} and isinstance(content["few"], bool):
        under = fingerprint(bytes.fromhex(content["plan"]))
        return f"A match, public, under the plan {under}: {match_in_words(content['few'])}."
    # An attribute of a schema {attribute: size} may be called "kind"; its size is no text.
    if not isinstance(kind, str):
        return _schema(OpenSchema.load(path))
    if kind == "plan":
        return _plan(Plan.from_json(content))
    if kind == "ledger":
        return Ledger.from_json(content).table()
    if kind == "report":
        return _report(content)
    if kind == "evaluation":
        return f"An evaluation against the real tables.\n{PrivacyLabel.from_json(content.get('label'))}"
    if kind == "secret":
        return f"A secret, fingerprint {Secret.load(path).fingerprint}: keep it from the server."
    if kind in ("party key", "server key"):
        return f"The private key of {called(PrivateKey.load(path).party)}: it stays there."
    if kind in ("party offer", "server offer"):
        return f"The offer of {called(Offer.from_json(content, path).party)}, public."
    if kind in SEALED:
        sealed_for = Envelopes.from_json(content, kind, str(path)).envelopes
        return f"{SEALED[kind]} for {', '.join(sealed_for)}."
    if kind in PLAIN:
        return PLAIN[kind]
    raise MessageError(f"{path} is no file of this library: its kind is {kind!r}.")


def _note(data: bytes, path: Path) -> str | None:
    """Describe a file of text that says nothing of itself, by its name; None for all others."""
    lines = data.decode("utf-8-sig", "replace").splitlines()
    if path.name in (LOCK, LOCK.removeprefix(".")) and not data:
        return "The lock of a folder: it is empty."
    if re.fullmatch("[0-9a-f]{64}", "".join(lines)) and len(lines) == 1:
        return f"The acceptance of the plan {fingerprint(bytes.fromhex(lines[0]))}."
    if path.parts[-2:] == (ACCEPTED, TABLE):
        return "The settings, and the time, of the table that a plan was accepted for."
    if path.name == WAITING:
        return "What a run waits for, and what is in the way, each since when."
    if path.name == LEFT_OUT:
        return f"What a party left out, {len(lines):,} lines: private, keep it there."
    if path.name == STOPPED or REFUSED in path.parent.parts[-2:]:
        said = "Why a run stopped" if path.name == STOPPED else "Why a run refused a file"
        return "\n".join([f"{said}:", *first([f"  {line}" for line in lines], MAX_LINES)])
    if path.name == "key" and len(data) == KEY_BYTES:
        return "The key of this machine's record of domains: private, keep it there."
    if data[: len(PAGE)].lower() == PAGE and b"vertimrf" in data:
        return "A page about a run, for a browser; it says itself whether it is private."
    if path.suffix == ENDING and any(
        path.with_name(path.name.split(".")[0] + suffix).is_file() for suffix in (".toml", ".json")
    ):
        return f"A list of {len(lines):,} values of the schema beside it."
    return None


def _settings(path: Path) -> str:
    """Describe the settings of a run."""
    settings = read_settings(path.parent, path.name)
    role = stated_role(settings, path)
    if role == "server":
        from ..runs.server_run import ServerSettings

        known = settings_as(ServerSettings, settings, path.parent)
        what = f"epsilon {known.epsilon:g}, {known.expected_records} expected records"
    else:
        party = settings_as(PartySettings, settings, path.parent)
        what = f"{party.name!r}, table {party.table}"
    first_ones = " with which it began" if path.name == FIRST_SETTINGS else ""
    return f"The settings of the run of a {role}{first_ones}: {what}."


def _table(path: Path) -> str:
    """Describe a table: its columns, number of rows, and what it claims."""
    pieces = open_as_found(path)
    rows = sum(piece.num_rows for piece in pieces.read(pieces.names[:1], lambda *_: None))
    return (
        f"A table of {len(pieces.names):,} columns and {rows:,} rows, {path.stat().st_size:,} bytes.\n"
        f"  {', '.join(first(pieces.names, MAX_LISTED))}\n{read_label(path)}"
    )


def _plan(plan: Plan) -> str:
    """Describe a plan."""
    keys = (
        "with everyone's public keys"
        if plan.public_keys
        else "without public keys: nothing can be sealed under it"
    )
    return (
        f"A plan, fingerprint {plan.fingerprint}, {keys}.\n{summary(plan)}\n{plan.ledger().table()}"
    )


def _sealed(data: bytes, where: str, key: PrivateKey | None, plan: Plan | None) -> str:
    """Describe the header of a sealed file, and the contents if a key is given that opens it."""
    header, _ = read_head(data, where)
    try:
        under = fingerprint(bytes.fromhex(header.plan))
    except ValueError:
        raise MessageError(
            f"{where} is altered: its header has no digest of a plan; have it sent again."
        ) from None
    line = f"A sealed {header.kind}, {len(data):,} bytes, from {called(header.sender)} for {called(header.to)}"
    line += f", under the plan {under}"
    if key is None or plan is None:
        return f"{line}. The header is not proved. The receiver can open the file with --key and --plan; its privacy label is inside."
    sender, contents = open_sealed(
        data, header.kind, plan.digest(), plan.sealing_keys(), key, where
    )
    return (
        f"{line}. It opens, and is proved to be from {called(sender)}.\n{_binary(contents, where)}"
    )


def _binary(data: bytes, where: str) -> str:
    """Describe a container: its kind, header, the first arrays and its privacy label."""
    kind, header, arrays = container.peek(data, where)
    if kind == "model":
        # A file that only says that it is a model is described like other containers.
        with suppress(VertiMRFError):
            return f"{Model.load(where).summary()}\n`vertimrf sample {where}` draws rows."
    stated = [f"{name}: {_short(value)}" for name, value in header.items() if name != "label"]
    shapes = [
        f"{name}: {array.dtype} {'×'.join(map(str, array.shape))}" for name, array in arrays.items()
    ]
    lines = [f"  {line}" for line in (*stated, *first(shapes, MAX_LINES))]
    beginning = f"A {kind}, {len(data):,} bytes, checksum in order."
    return "\n".join([beginning, *lines, str(PrivacyLabel.from_json(header.get("label")))])


def _schema(opened: OpenSchema) -> str:
    """Describe a schema: every party's attributes with their sizes, and what is to be found."""
    schema = opened.schema
    lines = [
        f"A schema of {len(schema.attributes)} attributes{'' if schema.public else ', inferred from data: not private'}."
    ]
    if schema.ids is not None:
        lines.append(f"  ids: of the form {schema.ids!r} at every party.")
    lines += schema.lines()
    if opened.wanted:
        lines.append(
            f"  to be found with noise: {', '.join(first(list(opened.wanted), MAX_LISTED))}"
        )
    for what, stated in (("rule", schema.rules), ("impossible", schema.impossible)):
        texts = [f"{what}: {one}" for one in stated]
        lines += [f"  {text}" for text in first(texts, MAX_LINES)]
    return "\n".join(lines)


def _report(report: Fields) -> str:
    """Describe the figures of a run."""
    return (
        f"A report: {len(report['ledger'])} events, {report.get('rows', 0):,} rows, "
        f"{report.get('junction_tree_cells', 0):,} junction tree cells.\n{PrivacyLabel.from_json(report.get('label'))}"
    )


def _short(value: Any) -> str:
    """JSON text, cut to 100 characters."""
    text = json.dumps(value)
    return text if len(text) <= 100 else text[:97] + "…"
