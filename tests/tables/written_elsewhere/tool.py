"""What a tool is: it writes the columns in the formats that it has."""

import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path

from .columns import by_name

# By column, what a file holds instead of some values, or None if the tool cannot write the column.
Holds = dict[str, dict[str, str | None] | None]


@dataclass(frozen=True, eq=False)
class Format:
    """A format of a tool.

    Attributes:
        name: its name on the page.
        source: the file within the tool's folder, or the address of a database with ``{folder}`` in it.
        words: options for reading it, a name and a value in turn.
        holds: see Holds. What a format or the tool's own types change: most of it follows from their documented precision
            (:func:`rounded`, :data:`CODES`), and the rest was seen in the file, without vertimrf. Where it is wrong, the cell counts as wrong.
    """

    name: str
    source: str
    words: tuple[str, ...] = ()
    holds: Holds = field(default_factory=dict)

    def within(self, folder):
        """The source, for the folder that the tool wrote to."""
        return self.source.format(folder=folder) if ":" in self.source else folder / self.source


@dataclass(frozen=True)
class Tool:
    """A tool.

    Attributes:
        name: its name on the page.
        version: returns its version; None if it is not here.
        write: makes all files, of base.csv in a folder, in that folder.
        formats: what it writes.
    """

    name: str
    version: Callable[[], str | None]
    write: Callable[[Path], None]
    formats: tuple[Format, ...]


def package(*names):
    """A function for the versions of packages of Python; None if one is missing."""

    def version():
        try:
            return ", ".join(f"{name} {metadata.version(name)}" for name in names)
        except metadata.PackageNotFoundError:
            return None

    return version


def program(name, *words):
    """A function for the first line that a program prints when asked for its version."""

    def version():
        if shutil.which(name) is None:
            return None
        done = subprocess.run([name, *words], capture_output=True, text=True, timeout=120)
        return (done.stdout + done.stderr).strip().splitlines()[0]

    return version


def called(folder, *words, text=None):
    """Run a program in a folder.

    Raises:
        AssertionError: it fails, or one of the tool's own files says so.
    """
    done = subprocess.run(
        [*map(str, words)], cwd=folder, input=text, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, f"{words[0]}: {done.stdout[-2000:]} {done.stderr[-2000:]}"
    return done.stdout


# Names of the columns whose numbers no floating-point number holds.
LARGE = ("large", "odd", "unsigned", "digits")
# What tools without labels hold of labelled columns: their codes.
CODES: Holds = {
    "answer": {"1": "1", "2": "2", "3": "3"},
    "rating": {"1": "1", "2": "2", "8": "8", "9": "9"},
}
# Seconds where a tool has no parts of them.
WHOLE_SECONDS: Holds = {
    "fine": dict.fromkeys(by_name("fine").values, "2020-03-01 07:46:09"),
}
# Programs of statistics hold times of day as seconds of a duration.
SECONDS: Holds = {"clock": {"00:00:00": "0", "08:15:00": "29700", "23:59:59": "86399"}}


def rounded(*names, digits=None):
    """What a tool holds that has numbers in double precision, or writes so many digits of them."""
    form = repr if digits is None else f"{{:.{digits}g}}".format
    return {name: {v: form(float(v)) for v in by_name(name).values} for name in names}


def without(*names):
    """What a tool holds that cannot write some columns."""
    return dict.fromkeys(names)
