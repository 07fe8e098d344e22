"""Value objects from parsed JSON and TOML, and back, by the types of their fields (msgspec)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any, TypeVar

import msgspec

from ..errors import VertiMRFError

T = TypeVar("T")
# A number that is written as it was read: 10 and 10.0 give a plan two digests.
Number = int | float


def from_json(
    data: Any,
    kind: type[T],
    what: str,
    remedy: str,
    error: type[VertiMRFError],
    *,
    known_only: bool = False,
) -> T:
    """Convert parsed JSON or TOML to a type, such as a dataclass or a ``msgspec.Struct``.

    A whole number is accepted for a float. Nothing else is converted: neither true nor text is
    accepted for a number. Bytes are text in base64. Parts that are instances of their type already
    stay as they are.

    Args:
        data: what the file holds. Nothing in it is trusted.
        kind: the type.
        what: what the data should be, such as the path of a file, for errors.
        remedy: what to do about malformed data, for errors.
        error: class of the error to raise.
        known_only: refuse fields that a dataclass does not have. Structs say so themselves.

    Raises:
        VertiMRFError: the data does not fit the type. It is of the class ``error``, or it is the
            error that the type itself raised.
    """
    try:
        if known_only and is_dataclass(kind) and isinstance(data, Mapping):
            known = [field.name for field in fields(kind)]
            if unknown := sorted(data.keys() - set(known)):
                raise msgspec.ValidationError(
                    f"unknown field `{unknown[0]}`; its fields are {', '.join(known)}"
                )
        return msgspec.convert(data, kind)
    except AttributeError:
        # Of an object that is neither JSON nor a dataclass.
        raise error(f"{what} is of type {type(data).__name__}; {remedy}.") from None
    except (msgspec.ValidationError, OverflowError) as failure:
        if isinstance(failure.__cause__, VertiMRFError):
            raise failure.__cause__ from None
        why = str(failure).replace(" - at `$.", " at `")
        raise error(f"{what} is malformed ({why[:1].lower()}{why[1:]}); {remedy}.") from None


def to_json(value: Any) -> dict[str, Any]:
    """The JSON-able fields of a dataclass or a ``msgspec.Struct``; lists may be tuples."""
    # Numbers of NumPy have item().
    out: dict[str, Any] = msgspec.to_builtins(value, enc_hook=lambda number: number.item())
    return out
