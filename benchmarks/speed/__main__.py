"""Run files of the suite and hold its ratios to their bars: python -m benchmarks.speed [FILE]... [--quick | --smoke] [--json FILE]

A file is named without test_, as hashing; none means all. Other than the usual numbers of rows are left out: no bar is about them.
"""

import json
import os
import sys
import tempfile
from pathlib import Path

import pytest

from benchmarks.verdict import FULL, SMOKE, Verdict, arguments, finish

FOLDER = Path(__file__).parent
FILES = sorted(path.stem.removeprefix("test_") for path in FOLDER.glob("test_*.py"))


def rows(options):
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "figures.json"
        words = [str(FOLDER / f"test_{name}.py") for name in options.files or FILES]
        words += ["-q", "-p", "no:cacheprovider", "--benchmark-only", f"--data={options.data}"]
        words += ["-k", "not _rows", *(["--smoke"] if options.size == SMOKE else [])]
        words += ["-m", "slow or not slow" if options.size == FULL else "not slow"]
        # Beside the tests this may be a worker of theirs, in which pytest-benchmark measures nothing.
        os.environ.pop("PYTEST_XDIST_WORKER", None)
        if code := pytest.main([*words, f"--benchmark-json={out}"]):
            sys.exit(int(code))
        for one in json.loads(out.read_text())["benchmarks"]:
            for name, value in one["extra_info"].pop("rows", {}).items():
                yield Verdict(name, value)
            for name, value in one["extra_info"].items():
                yield Verdict(f"{one['name']}: {name}", value)


if __name__ == "__main__":
    parser = arguments(__doc__, quick="fewer comparisons", data="adult")
    parser.add_argument("files", nargs="*", choices=[*FILES, []], metavar="FILE")
    options = parser.parse_args()
    finish(rows(options), "encode model", options)
