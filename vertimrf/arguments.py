"""Check the types of arguments of what is public, so that a wrong one is named before anything is done.

A sentence names the argument and its type, never its value, which may be data.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from decimal import Decimal
from numbers import Integral, Real
from types import CodeType, NoneType, UnionType
from typing import Any, ParamSpec, TypeVar, Union, get_args, get_origin, get_type_hints

import msgspec

from .errors import VertiMRFError

P = ParamSpec("P")
R = TypeVar("R")
# Types of values that messages show, and the most of a list.
PLAIN, MOST = (str, bytes, bool, int, float, complex, Decimal, type(None)), 8


@dataclass(frozen=True)
class Kind:
    """What an argument may be.

    Attributes:
        words: the same for people, after "give".
        fits: whether a value is one.
    """

    words: str
    fits: Callable[[Any], bool]


def shown(value: object) -> str:
    """A value for messages; of a table, an array or another object, which may hold data, its type alone."""
    if isinstance(value, list | tuple) and all(isinstance(each, PLAIN) for each in value[:MOST]):
        return repr(value) if len(value) <= MOST else f"a {type(value).__name__} of {len(value):,}"
    return (
        repr(value)
        if isinstance(value, PLAIN) or (isinstance(value, dict) and not value)
        else f"a {type(value).__name__}"
    )


def instance(*names: str) -> Kind:
    """An object of one of some classes of this package, by name, so that nothing is imported for it."""

    def fits(value: Any) -> bool:
        # Also a class made of one of them.
        every = type(value).__mro__
        return any(
            kind.__name__ in names and kind.__module__.startswith("vertimrf.") for kind in every
        )

    return Kind(f"a {' or '.join(names)}", fits)


def maybe(kind: Kind) -> Kind:
    """A kind, or None."""
    return Kind(f"{kind.words}, or None", lambda value: value is None or kind.fits(value))


def each(kind: Kind) -> Kind:
    """A list or a tuple of a kind."""

    def fits(value: Any) -> bool:
        return isinstance(value, list | tuple) and all(map(kind.fits, value))

    return Kind(f"a list of which each is {kind.words}", fits)


def _is_path(value: Any) -> bool:
    return isinstance(value, str | os.PathLike) and isinstance(os.fspath(value), str)


TEXT = Kind("text", lambda value: isinstance(value, str))
FLAG = Kind("True or False", lambda value: isinstance(value, bool))
WHOLE = Kind(
    "a whole number", lambda value: isinstance(value, Integral) and not isinstance(value, bool)
)
NUMBER = Kind(
    "a number",
    lambda value: (
        isinstance(value, Real)
        and not isinstance(value, bool)
        # A float holds it, so that it can be computed with.
        and (not isinstance(value, Integral) or abs(int(value)) < 1 << 1023)
    ),
)
DATA = Kind("bytes", lambda value: isinstance(value, bytes))
PATH = Kind("the path of a file, as text", _is_path)
MAPPING = Kind("a dict", lambda value: isinstance(value, Mapping))
SEQUENCE = Kind(
    "a list", lambda value: isinstance(value, Sequence) and not isinstance(value, str | bytes)
)
MANY = Kind(
    "a list",
    lambda value: (
        isinstance(value, Iterable)
        and not isinstance(value, str | bytes | Mapping)
        # Arrays of NumPy without an axis are iterable by name alone.
        and getattr(value, "ndim", 1) > 0
    ),
)
NAMES = Kind(
    "a name or a list of names",
    lambda value: isinstance(value, str) or (MANY.fits(value) and len(value) > 0),
)

# Types of fields, for people.
IN_WORDS = {int: WHOLE, float: NUMBER, str: TEXT, bool: FLAG}


def typed(annotation: Any) -> Kind:
    """What a field of such a type may be. Numbers and arrays of NumPy, and ranges, count as plain ones."""

    def fits(value: Any) -> bool:
        plain = list(value) if isinstance(value, range) else value
        plain = getattr(plain, "tolist", lambda: plain)()
        if plain is None and value is not None:  # an array of nothing
            return False
        # It raises if the value is of another type.
        msgspec.convert(plain, annotation)
        return True

    return Kind(_in_words(annotation), fits)


def _in_words(annotation: Any) -> str:
    """A type for people."""
    kind, parts = get_origin(annotation), get_args(annotation)
    if kind in (Union, UnionType):
        words = " or ".join(_in_words(part) for part in parts if part is not NoneType)
        return f"{words}, or None" if NoneType in parts else words
    if annotation in IN_WORDS:
        return IN_WORDS[annotation].words
    if kind is Callable:
        return "a function"
    if kind is Mapping:
        return f"a dict of which each value is {_in_words(parts[1])}"
    if kind in (tuple, Sequence):
        several = f"a list of {len(parts)}" if kind is tuple and ... not in parts else "a list"
        return f"{several} of which each is {_in_words(parts[0])}"
    return f"a {annotation.__name__}"


def check(error: type[VertiMRFError], given: Mapping[str, Any], **kinds: Kind) -> None:
    """Check arguments by name; those that are not given are not looked at.

    Raises:
        VertiMRFError: of the class ``error``: an argument is not of its kind.
    """
    for name, kind in kinds.items():
        if name in given and not _fits(kind, value := given[name]):
            what = "a class" if isinstance(value, type) else f"of type {type(value).__name__}"
            raise error(f"{name} is {what}; give {kind.words}.")


def check_fields(options: Any, error: type[VertiMRFError]) -> None:
    """Check the fields of a dataclass by their types.

    Args:
        options: the dataclass.
        error: class of the error to raise.

    Raises:
        VertiMRFError: of the class ``error``: a field has another type.
    """
    kind: Any = type(options)
    check(error, vars(options), **_kinds(kind))


@functools.cache
def _kinds(options: Any) -> dict[str, Kind]:
    """What the fields of a dataclass may be. Python compiles types from their texts, which takes milliseconds."""
    types = get_type_hints(options)
    return {field.name: typed(types[field.name]) for field in fields(options)}


def _fits(kind: Kind, value: Any) -> bool:
    try:
        return kind.fits(value)
    except Exception:  # whatever an object raises that is asked what it is
        return False


def takes(error: type[VertiMRFError], **kinds: Kind) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """A decorator that checks a function's arguments before it is called.

    Args:
        error: class of the error to raise.
        kinds: by name of the argument.
    """

    def checked(function: Callable[P, R]) -> Callable[P, R]:
        code: CodeType = getattr(function, "__code__")  # noqa: B009 — a Callable has none for mypy
        names = code.co_varnames[: code.co_argcount]

        @functools.wraps(function)
        def call(*args: P.args, **kwargs: P.kwargs) -> R:
            check(error, dict(zip(names, args, strict=False)) | kwargs, **kinds)
            return function(*args, **kwargs)

        return call

    return checked
