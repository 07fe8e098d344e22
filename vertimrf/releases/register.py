"""The register: the names of the releases, and where each is found. It imports none of them."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from ..errors import PlanError
from ..files.convert import from_json, to_json

if TYPE_CHECKING:
    from ..privacy.ledger import LedgerEntry
    from .release import CrossPartyRelease

REMEDY = "have the plan made again"
# By the name that users ask for: the folder, the class in its parameters.py, and what help adds to
# the name. The first is the default.
KINDS = {
    "count-sketch": ("count_sketches", "CountSketches", ""),
    "encrypted": ("encrypted_counts", "EncryptedCounts", " (parties may collude)"),
    "scheduled-pairs": ("scheduled_pairs", "ScheduledPairs", ""),
    "grr": ("randomised_responses", "RandomisedResponses", " (baseline, replace one record)"),
    "published": ("shared_keys", "SharedKeys", " (not private)"),
}


def kind_of(encoder: Any) -> type[CrossPartyRelease]:
    """The class of a release.

    Args:
        encoder: its name in :data:`KINDS`.

    Raises:
        PlanError: there is none of this name.
    """
    if encoder not in [*KINDS]:
        raise PlanError(f"Unknown encoder {encoder!r}; this version knows {', '.join(KINDS)}.")
    folder, name, _ = KINDS[encoder]
    kind: type[CrossPartyRelease] = getattr(
        import_module(f".{folder}.parameters", __package__), name
    )
    return kind


def sentence_of(entry: LedgerEntry, who: str) -> str:
    """The sentence of the release that an entry is of; empty if none has one.

    Args:
        entry: it may be from a file, with any event.
        who: as of :meth:`.CrossPartyRelease.sentence`.
    """
    kind = {kind.kind: kind for kind in map(kind_of, KINDS)}.get(entry.kind)
    if kind is None or not isinstance(entry.event, kind.priced_by):
        return ""
    return kind.sentence(entry, entry.event, who)


def release_to_json(release: CrossPartyRelease) -> dict[str, Any] | None:
    """The fields of a release with the name of its kind, as JSON-able values; None of nothing."""
    from .nothing import NOTHING

    if release == NOTHING:
        return None
    named = to_json(release).items()
    kept = {name: value for name, value in named if value or name not in release.optional}
    return {"encoder": release.encoder, **kept}


def release_from_json(data: Any) -> CrossPartyRelease:
    """Read a release from the JSON of :func:`release_to_json`.

    Raises:
        PlanError: an unknown kind, or parameters that it cannot have.
    """
    from .nothing import NOTHING

    if data is None:
        return NOTHING
    named = from_json(data, dict[str, Any], "The plan's sketch", REMEDY, PlanError)
    encoder = named.pop("encoder", None)
    kind = kind_of(encoder)
    return from_json(named, kind, "The plan's sketch", REMEDY, PlanError, known_only=True)
