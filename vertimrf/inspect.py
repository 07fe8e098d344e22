"""Describe any file that the library wrote, for people. Nothing of the file is run."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from typing import Any

from .errors import MessageError, VertiMRFError, first
from .files import container, sealed
from .files.atomic import MAX_JSON
from .files.canonical import fingerprint, json_of
from .keys import Envelopes, Offer, PrivateKey, called, open_sealed, read_head
from .named_model import Model
from .party.secret import Secret
from .plan.plan import Plan
from .plan.schema import Schema
from .privacy.ledger import Ledger
from .privacy.standing import Standing
from .tables.arrow import SUFFIXES, open_pieces, read_standing

# Columns of a table that are listed, and arrays, rules and impossible combinations of a file.
MAX_LISTED, MAX_LINES = 40, 12


def describe(path: str | Path, key: PrivateKey | None = None, plan: Plan | None = None) -> str:
    """Describe a file of this library and its standing in a few lines.

    Binary files begin with a magic number and name their kind. JSON files name it in the field
    ``kind``. A JSON or TOML file without one is a schema: people write schemas by hand. A table is
    known by the end of its name.

    Args:
        path: the file: a plan, message, model, table, schema, ledger, report, evaluation, key,
            offer, secret or envelopes.
        key: private key of the receiver of a sealed file. With ``plan`` it opens the file. Without
            them only the header is shown.
        plan: the plan of a sealed file.

    Returns:
        The description.

    Raises:
        VertiMRFError: the file cannot be read, was altered, or is none of these.
    """
    path = Path(path)
    if path.name.endswith(SUFFIXES):
        return _table(path)
    data = container.read(path)
    if data[:4] == container.MAGIC:
        return _binary(data, str(path))
    if data[:4] == sealed.MAGIC:
        return _sealed(data, str(path), key, plan)
    if len(data) > MAX_JSON:
        raise MessageError(
            f"{path} is no file of this library: it is neither binary nor small enough for one of text."
        )
    if path.suffix == ".toml":
        return _schema(Schema.load(path))
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
    if not isinstance(content, dict):
        raise TypeError
    kind = content.get("kind")
    # An attribute of a schema {attribute: size} may be called "kind"; its size is no text.
    if not isinstance(kind, str):
        return _schema(Schema.load(path))
    if kind == "plan":
        return _plan(Plan.from_json(content))
    if kind == "ledger":
        return Ledger.from_json(content).table()
    if kind == "report":
        return _report(content)
    if kind == "evaluation":
        return (
            f"An evaluation against the real tables.\n{Standing.from_json(content.get('standing'))}"
        )
    if kind == "secret":
        return f"A secret, fingerprint {Secret.load(path).fingerprint}: keep it from the server."
    if kind in ("party key", "server key"):
        return f"The private key of {called(PrivateKey.load(path).party)}: it stays there."
    if kind in ("party offer", "server offer"):
        return f"The offer of {called(Offer.load(path).party)}, public."
    if kind == "envelopes":
        return f"Envelopes, public, for {', '.join(Envelopes.from_json(content, kind, str(path)).envelopes)}."
    raise MessageError(f"{path} is no file of this library: its kind is {kind!r}.")


def _table(path: Path) -> str:
    """Describe a table: its columns, number of rows, and what it claims."""
    pieces = open_pieces(path)
    rows = sum(piece.num_rows for piece in pieces.read(pieces.names[:1], lambda *_: None))
    return (
        f"A table of {len(pieces.names):,} columns and {rows:,} rows, {path.stat().st_size:,} bytes.\n"
        f"  {', '.join(first(pieces.names, MAX_LISTED))}\n{read_standing(path)}"
    )


def _plan(plan: Plan) -> str:
    """Describe a plan."""
    keys = (
        "with everyone's public keys"
        if plan.public_keys
        else "without public keys: nothing can be sealed under it"
    )
    return f"A plan, fingerprint {plan.fingerprint}, {keys}.\n{plan.summary()}\n{plan.ledger().table()}"


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
        return f"{line}. The header is not proved. The receiver can open the file with --key and --plan; its standing is inside."
    sender, contents = open_sealed(
        data, header.kind, plan.digest(), plan.sealing_keys(), key, where
    )
    return (
        f"{line}. It opens, and is proved to be from {called(sender)}.\n{_binary(contents, where)}"
    )


def _binary(data: bytes, where: str) -> str:
    """Describe a container: its kind, header, the first arrays and its standing."""
    kind, header, arrays = container.peek(data, where)
    if kind == "model":
        # A file that only says that it is a model is described like other containers.
        with suppress(VertiMRFError):
            return f"{Model.load(where).summary()}\n`vertimrf sample {where}` draws rows."
    stated = [f"{name}: {_short(value)}" for name, value in header.items() if name != "standing"]
    shapes = [
        f"{name}: {array.dtype} {'×'.join(map(str, array.shape))}" for name, array in arrays.items()
    ]
    lines = [f"  {line}" for line in (*stated, *first(shapes, MAX_LINES))]
    beginning = f"A {kind}, {len(data):,} bytes, checksum in order."
    return "\n".join([beginning, *lines, str(Standing.from_json(header.get("standing")))])


def _schema(schema: Schema) -> str:
    """Describe a schema: every party's attributes with their sizes."""
    lines = [
        f"A schema of {len(schema.attributes)} attributes{'' if schema.public else ', inferred from data: not private'}."
    ]
    if schema.ids is not None:
        lines.append(f"  ids: of the form {schema.ids!r} at every party.")
    lines += schema.lines()
    for what, stated in (("rule", schema.rules), ("impossible", schema.impossible)):
        texts = [f"{what}: {one}" for one in stated]
        lines += [f"  {text}" for text in first(texts, MAX_LINES)]
    return "\n".join(lines)


def _report(report: dict[str, Any]) -> str:
    """Describe the figures of a run."""
    return (
        f"A report: {len(report['ledger'])} events, {report.get('rows', 0):,} rows, "
        f"{report.get('junction_tree_cells', 0):,} junction tree cells.\n{Standing.from_json(report.get('standing'))}"
    )


def _short(value: Any) -> str:
    """JSON text, cut to 100 characters."""
    text = json.dumps(value)
    return text if len(text) <= 100 else text[:97] + "…"
