"""Whether a file is the one that others have: its fingerprint against theirs, read over the phone or printed on paper."""

from __future__ import annotations

from pathlib import Path

from .errors import MessageError, PlanError
from .files.atomic import read_json
from .files.canonical import same_fingerprint
from .keys import PrivateKey
from .party.secret import Secret
from .plan.plan import Plan

__all__ = ["compare"]


def compare(path: str | Path, given: str, key: PrivateKey | None = None) -> str:
    """Compare a plan's or secret's fingerprint in full.

    Args:
        path: the file.
        given: the fingerprint that somebody else has of it, in any case, with or without dashes and spaces.
        key: with a plan, one's own private key, which must stand in it under one's own name.

    Returns:
        A sentence that says yes.

    Raises:
        VertiMRFError: no such file; another fingerprint, or not a whole one; or another key.
    """
    what, own, plan = _read(path)
    if not same_fingerprint(given, own):
        raise MessageError(
            f"{path} is NOT the {what} that this fingerprint belongs to: its own is {own}. One was changed on its way, or is of "
            "another run; do not go on with it, and have it sent again."
        )
    if key is None:
        return f"Yes: {path} is the {what} of this fingerprint, all of it."
    if plan is None:
        raise PlanError(f"{path} is a {what} and holds no keys: leave --key out.")
    plan.sealing_keys().check(key)
    return f"Yes: {path} is the {what} of this fingerprint, all of it, and the key file's own key stands in it."


def _read(path: str | Path) -> tuple[str, str, Plan | None]:
    """What a file is, its fingerprint, and the plan if it is one."""
    content = read_json(path, "plan or secret", MessageError)
    if isinstance(content, dict):
        if "local" in content and "schema" in content:
            plan = Plan.from_json(content)
            return "plan", plan.fingerprint, plan
        if content.get("kind") == "secret":
            return "secret", Secret.load(path).fingerprint, None
    raise MessageError(f"{path} has no fingerprint: plans and secrets have.")
