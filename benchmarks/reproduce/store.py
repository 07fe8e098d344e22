"""Runs, and the file of finished ones that makes the runner resumable."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class Run:
    """One synthesis and its evaluation. Experiments that ask for equal runs share them.

    Attributes:
        metric: "tvd", "svm" or "utility".
        data: name of the data set.
        method: key of ``methods.METHODS``.
        epsilon: target; delta is 1 / n.
        seed: of sampling, of the split where it is drawn, and of the folds.
        split: "paper", "m=4" (even, in column order), "m=all", "importance=0.1" or "correlation=0.3".
        options: passed on to the method.
        marginals: per way, for "tvd".
        fold: which fifth is held back, for "svm".
    """

    metric: str
    data: str
    method: str
    epsilon: float
    seed: int
    split: str = "paper"
    options: tuple[tuple[str, Any], ...] = ()
    marginals: int = 300
    fold: int = 0

    @property
    def key(self):
        """Canonical text: equal runs have equal keys."""
        return json.dumps(asdict(self), sort_keys=True)

    def label(self):
        """For progress lines."""
        words = [self.metric, self.data, self.method, f"eps {self.epsilon:g}", f"seed {self.seed}"]
        words += [self.split] if self.split != "paper" else []
        words += [f"fold {self.fold}"] if self.metric == "svm" else []
        return ", ".join(words + [f"{name}={value}" for name, value in self.options])


class Store:
    """Finished runs, one JSON line each, appended as they finish.

    A line that was cut off (the machine went down) is dropped and its run done again.
    """

    def __init__(self, path):
        self.path = path
        self.results = {}
        self.commits = set()
        if path.exists():
            text = path.read_text()
            for line in text.splitlines():
                try:
                    entry = json.loads(line)
                except ValueError:
                    continue
                self.results[json.dumps(entry["run"], sort_keys=True)] = entry["result"]
                self.commits.add(entry["commit"])
            if text and not text.endswith("\n"):
                path.write_text(text[: text.rfind("\n") + 1])

    def __contains__(self, run):
        return run.key in self.results

    def get(self, run):
        """What a run gave, if it has been done."""
        return self.results.get(run.key)

    def add(self, run, result, commit):
        """Append a finished run."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("a") as file:
            file.write(json.dumps({"run": asdict(run), "result": result, "commit": commit}) + "\n")
        self.results[run.key] = result
        self.commits.add(commit)

    def runs(self):
        """All finished runs."""
        out = []
        for key, result in self.results.items():
            fields = json.loads(key)
            fields["options"] = tuple((name, value) for name, value in fields["options"])
            out.append((Run(**fields), result))
        return out
