"""What a file says, for people: any file that the library wrote, without running anything."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from .errors import MessageError, VertiMRFError
from .files import container, sealed
from .files.atomic import MAX_JSON
from .files.canonical import fingerprint, json_of
from .keys import Offer, PrivateKey, called, open_sealed
from .party.secret import Secret
from .plan.plan import Plan
from .plan.schema import Schema
from .privacy.ledger import Ledger
from .privacy.standing import Standing
from .tables.arrow import read_standing

__all__ = ["describe"]

TABLES = (".csv", ".csv.gz", ".parquet", ".arrow", ".feather")


def describe(path: str | Path, key: PrivateKey | None = None, plan: Plan | None = None) -> str:
    """A few lines on a plan, message, model, table, schema, report, or a file of the agreement on a secret; and its standing.

    Args:
        path: the file.
        key: of whom a sealed file is for; with the ``plan`` it opens the file, and without them its header is shown.
        plan: the plan of a sealed file.

    Raises:
        VertiMRFError: the file cannot be read, was altered, or is none of these.
    """
    path = Path(path)
    if path.name.endswith(TABLES):
        stated = read_standing(path)
        return f"A table, {path.stat().st_size:,} bytes.\n{stated}"
    data = container.read(path)
    if data[:4] == container.MAGIC:
        return _binary(data, str(path))
    if data[:4] == sealed.MAGIC:
        return _sealed(data, str(path), key, plan)
    if len(data) > MAX_JSON:
        raise MessageError(f"{path} is no file of this library: it is neither binary nor small enough for one of text.")
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
    """Files of JSON."""
    if not isinstance(content, dict):
        raise TypeError
    if "local" in content and "schema" in content:
        plan = Plan.from_json(content)
        held = "with everyone's public keys" if plan.public_keys else "without public keys: nothing can be sealed under it"
        return f"A plan, fingerprint {plan.fingerprint}, {held}.\n{plan.summary()}\n{plan.ledger().table()}"
    if "entries" in content:
        return Ledger.from_json(content).table()
    if "ledger" in content:
        return _report(content)
    if "kind" in content:
        return _agreement(content["kind"], content, path)
    return _schema(Schema.load(path))


def _agreement(kind: Any, content: dict[str, Any], path: Path) -> str:
    """Files by which parties agree on their secret; nothing of a private one is shown."""
    if kind == "secret":
        return f"A secret, fingerprint {Secret.load(path).fingerprint}: keep it from the server."
    if kind in ("party key", "server key"):
        return f"The private key of {called(PrivateKey.load(path).party)}: it stays there."
    if kind in ("party offer", "server offer"):
        return f"The offer of {called(Offer.load(path).party)}, public."
    if kind == "envelopes" and isinstance(content.get("envelopes"), dict):
        return f"Envelopes, public, for {', '.join(content['envelopes'])}."
    raise MessageError(f"{path} is no file of this library: its kind is {kind!r}.")


def _sealed(data: bytes, where: str, key: PrivateKey | None, plan: Plan | None) -> str:
    """A sealed file's header; and what is inside, for who can open it."""
    header, _ = sealed.peek(data, where)
    try:
        under = fingerprint(bytes.fromhex(header["plan"]))
        line = f"A sealed {header['kind']}, {len(data):,} bytes, from {called(header['from'])} for {called(header['to'])}"
        line += f", under the plan {under}"
    except (KeyError, TypeError, ValueError):
        raise MessageError(f"{where} is altered: its header is incomplete; have it sent again.") from None
    if key is None or plan is None:
        return f"{line}; so it says itself. Whoever it is for can open it with --key and --plan; its standing is inside."
    sender, contents = open_sealed(data, header["kind"], plan.digest(), plan.sealing_keys(), key, where)
    return f"{line}. It opens, and is proved to be from {called(sender)}.\n{_binary(contents, where)}"


def _binary(data: bytes, where: str) -> str:
    kind, header, arrays = container.peek(data, where)
    lines = [f"A {kind}, {len(data):,} bytes, checksum in order."]
    lines += [f"  {name}: {_short(value)}" for name, value in header.items() if name != "standing"]
    lines += [f"  {name}: {array.dtype} {'×'.join(map(str, array.shape))}" for name, array in list(arrays.items())[:12]]
    if len(arrays) > 12:
        lines.append(f"  … and {len(arrays) - 12} more arrays.")
    lines.append(str(Standing.from_json(header.get("standing"))))
    return "\n".join(lines)


def _schema(schema: Schema) -> str:
    lines = [f"A schema of {len(schema.attributes)} attributes{'' if schema.public else ', read off data: not private'}."]
    for party, held in schema.parties:
        sizes = {a.name: a.size for a in schema.part(party)}
        lines.append(f"  {party}: " + ", ".join(f"{name} ({sizes[name]})" for name in held))
    lines += [f"  impossible: {combination}" for combination in schema.impossible[:12]]
    if len(schema.impossible) > 12:
        lines.append(f"  … and {len(schema.impossible) - 12} more.")
    return "\n".join(lines)


def _report(report: dict[str, Any]) -> str:
    return (
        f"A report: {len(report['ledger'])} events, {report.get('rows', 0):,} rows, "
        f"{report.get('junction_tree_cells', 0):,} junction tree cells.\n{Standing.from_json(report.get('standing'))}"
    )


def _short(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= 100 else text[:97] + "…"
