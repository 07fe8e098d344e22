"""Run the suite and hold its ratios to their bars: python -m benchmarks.speed [--quick | --smoke] [--json FILE]"""

import json
import os
import sys
import tempfile
from pathlib import Path

import pytest

from benchmarks.verdict import FULL, SMOKE, Verdict, arguments, finish


def rows(size):
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "figures.json"
        words = [str(Path(__file__).parent), "-q", "-p", "no:cacheprovider", "--benchmark-only"]
        words += ["-m", "slow or not slow", "-k", "not 00000"] if size == FULL else []
        words += ["--smoke"] if size == SMOKE else []
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
    options = arguments(__doc__, quick="fewer comparisons").parse_args()
    finish(rows(options.size), "encode", options)
