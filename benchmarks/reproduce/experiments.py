"""Which runs each experiment of the paper is made of."""

from __future__ import annotations

import importlib.util
import os
from dataclasses import dataclass

from ..datasets import present
from ..peers.peer import FOLDER, PEERS
from .methods import METHODS
from .store import Run
from .svm import FOLDS

OURS = ("count-sketches", "one-round")
# What users get, and what the bars are about.
DEFAULT = "count-sketches"
# The real rows have no epsilon; their runs are filed under this one.
REAL_EPSILON = 0.8
SPLITS = tuple(f"importance={alpha}" for alpha in ("0.1", "1", "10", "100")) + tuple(
    f"correlation={beta}" for beta in ("0", "0.3", "0.6", "1")
)


# Messages of so many megabytes: data set, method, epsilon, size. None where a method's messages have a size of their own.
Message = tuple[str, str, float, float | None]
MESSAGES = (
    *(("adult", DEFAULT, 0.8, mb) for mb in (1, 4, 16, 64)),
    *(("nltcs", DEFAULT, 0.8, mb) for mb in (0.25, 1, 4)),
    *((data, DEFAULT, 0.8, mb) for data in ("br2000", "fire") for mb in (4, 16)),
    *(("adult", DEFAULT, epsilon, 16) for epsilon in (0.2, 3.2)),
    *(("adult", "one-round", 0.8, mb) for mb in (1, 4, 16, 64)),
    *(("nltcs", "one-round", 0.8, mb) for mb in (1, 4, 64)),
    *((data, "one-round", 0.8, mb) for data in ("br2000", "fire") for mb in (4, 16, 64)),
    *(
        (data, method, 0.8, None)
        for data in ("nltcs", "adult", "br2000", "fire")
        for method in ("fo", "published")
    ),
    ("pisa", DEFAULT, 0.8, 16),
    ("pisa", "one-round", 0.8, 64),
)


@dataclass(frozen=True)
class Scale:
    """How much is run.

    Attributes:
        data: data sets of the experiments over all of them.
        small, large: the data sets that stand for NLTCS and for Adult where the paper looks at one.
        epsilons: of the curves.
        seeds: repetitions.
        marginals: per way.
        methods: those that can run here.
        classify: whether scikit-learn is there.
        gan: options of VertiGAN.
        shares, parties: of the budget and party experiments.
        splits: of the attribute-split experiment.
        bar_epsilons: of what the library is held to.
        folds: of classification, how many of the five are run.
        messages: cases of the message sizes.
    """

    data: tuple[str, ...]
    small: str
    large: str
    epsilons: tuple[float, ...]
    seeds: int
    marginals: int
    methods: tuple[str, ...]
    classify: bool
    gan: tuple[tuple[str, object], ...] = ()
    shares: tuple[float, ...] = tuple(i / 10 for i in range(1, 10))
    parties: tuple[str, ...] = ("m=2", "m=4", "m=8", "m=all")
    splits: tuple[str, ...] = SPLITS
    bar_epsilons: tuple[float, ...] = (0.2, 0.8, 3.2)
    folds: int = FOLDS
    messages: tuple[Message, ...] = MESSAGES

    @property
    def vertical(self):
        """Methods but for those of others that hold all data in one place, which take long."""
        return tuple(method for method in self.methods if method not in PEERS)

    def run(
        self,
        metric,
        data,
        method,
        epsilon,
        seed,
        split="paper",
        **more,
    ):
        """A run at this scale; VertiGAN is given its options. The paper's splits are even and in order, as "m=2" is."""
        split = "paper" if split == "m=2" else split
        options = tuple(sorted(more.items())) + (self.gan if method == "vertigan" else ())
        return Run(
            metric,
            data,
            method,
            epsilon,
            seed,
            split,
            options,
            self.marginals if metric == "tvd" else 0,
        )

    def svm(self, data, method, epsilon, seed):
        """The five folds."""
        base = self.run("svm", data, method, epsilon, seed)
        return (
            [Run(**{**base.__dict__, "fold": fold}) for fold in range(self.folds)]
            if self.classify
            else []
        )


def available():
    """Methods that can run here, whether classifiers can, and what is missing in words."""
    missing = []
    methods = tuple(name for name in METHODS if name != "real")
    if any(importlib.util.find_spec(name) is None for name in ("torch", "opacus")):
        methods = tuple(name for name in methods if name != "vertigan")
        missing.append("VertiGAN is left out: pip install -e '.[vertigan]'")
    if not os.environ.get(FOLDER):
        methods = tuple(name for name in methods if name not in PEERS)
        missing.append(
            f"MST and AIM of others are quoted: to run them, {FOLDER} names a folder for their environments"
        )
    classify = importlib.util.find_spec("sklearn") is not None
    if not classify:
        missing.append("SVM classification is left out: pip install -e '.[experiments]'")
    return methods, classify, missing


def full_scale(seeds, data=("nltcs", "adult", "br2000", "fire")):
    """The paper's."""
    methods, classify, _ = available()
    return Scale(
        data, "nltcs", "adult", (0.1, 0.2, 0.4, 0.8, 1.6, 3.2), seeds, 300, methods, classify
    )


def quick_scale(folder, seeds):
    """Every experiment and method, in minutes: NLTCS, or generated data where it is not there."""
    methods, classify, _ = available()
    name = "nltcs" if present("nltcs", folder) else "generated"
    return Scale(
        (name,),
        name,
        name,
        (0.8,),
        seeds,
        30,
        methods,
        classify,
        gan=(("steps", 100),),
        shares=(0.2, 0.8),
        parties=("m=2", "m=4"),
        splits=("importance=1", "correlation=0"),
        bar_epsilons=(0.8,),
        messages=((name, DEFAULT, 0.8, 0.25),),
    )


def smoke_scale():
    """A run or two of every experiment, in seconds: few methods on generated data."""
    methods, classify, _ = available()
    few = tuple(
        name
        for name in methods
        if name in (DEFAULT, "published", "centralized", "independent-parties")
    )
    return Scale(
        ("generated",),
        "generated",
        "generated",
        (0.8,),
        1,
        5,
        few,
        classify,
        shares=(0.5,),
        parties=("m=2",),
        splits=("importance=1",),
        bar_epsilons=(0.8,),
        folds=1,
        messages=(("generated", DEFAULT, 0.8, 0.1),),
    )


def tvd_curves(scale):
    """l-way TVD against epsilon."""
    return [
        scale.run("tvd", data, method, epsilon, seed)
        for data in scale.data
        for epsilon in scale.epsilons
        for method in scale.vertical
        for seed in range(scale.seeds)
    ]


def svm_curves(scale):
    """SVM misclassification against epsilon; one repetition has five folds."""
    return [
        run
        for data in scale.data
        for epsilon in scale.epsilons
        for method in scale.vertical
        for run in scale.svm(data, method, epsilon, 0)
    ] + [run for data in scale.data for run in scale.svm(data, "real", REAL_EPSILON, 0)]


def parties(scale):
    """TVD against the number of parties, epsilon 0.8."""
    return [
        scale.run("tvd", data, method, 0.8, seed, split)
        for data in dict.fromkeys((scale.small, scale.large))
        for split in scale.parties
        for method in (*OURS, "published", "fo")
        for seed in range(scale.seeds)
    ]


def shares(scale):
    """TVD against LocMRF's part of the budget, epsilon 0.8, NLTCS."""
    return [
        scale.run("tvd", scale.small, method, 0.8, seed, local_share=share)
        for share in scale.shares
        for method in (*OURS, "fo")
        for seed in range(scale.seeds)
    ]


def costs(scale):
    """Communication and computation per role, Adult, epsilon 0.8 (Table 2)."""
    methods = [
        m for m in scale.vertical if m not in ("independent-parties", "independent-attributes")
    ]
    runs = [
        scale.run("tvd", scale.large, method, 0.8, seed)
        for method in methods
        for seed in range(scale.seeds)
    ]
    if len(scale.parties) > 2:
        runs.append(scale.run("tvd", scale.large, "published", 0.8, 0, keys=8000))
    return runs


def splits(scale):
    """TVD under attribute splits by importance and by correlation, NLTCS, epsilon 0.8 (Table 3)."""
    return [
        scale.run("tvd", scale.small, method, 0.8, seed, split)
        for split in scale.splits
        for method in scale.methods
        if method in (*OURS, "published", "fo", "vertigan")
        for seed in range(scale.seeds)
    ]


# By figure of the paper's appendix: data set, variants. The library's default is first.
ABLATIONS = (
    ("locmrf", "small", (("with LocMRF", {}), ("without LocMRF", {"local_models": False}))),
    (
        "recovery",
        "large",
        (
            ("fit to bins", {}),
            ("HisRec", {"reduction": "hisrec"}),
            ("UniSam", {"reduction": "unisam"}),
        ),
    ),
    (
        "consistency",
        "large",
        (("weighted fit", {}), ("+ consistency enforcement", {"consistency": True})),
    ),
)


def ablations(scale):
    """With and without LocMRF (NLTCS), HisRec against UniSam (Adult), consistency on and off (Adult)."""
    return [
        scale.run("tvd", getattr(scale, where), method, epsilon, seed, **options)
        for _, where, variants in ABLATIONS
        for _, options in variants
        for epsilon in scale.epsilons
        for method in ("count-sketches", "one-round", "fo")
        for seed in range(scale.seeds)
    ]


def bars(scale):
    """What this library is held to. SVMs compare both methods, so they run where both do, and so does a party per attribute."""
    runs = []
    methods = [method for method in (DEFAULT, "centralized") if method in scale.methods]
    for data in scale.data:
        for epsilon in scale.bar_epsilons:
            runs += [
                scale.run("tvd", data, method, epsilon, seed)
                for method in methods
                for seed in range(scale.seeds)
            ]
    if 0.8 in scale.bar_epsilons and len(methods) > 1:
        for data in dict.fromkeys((scale.small, scale.large)):
            runs += [run for method in methods for run in scale.svm(data, method, 0.8, 0)]
        runs += [
            scale.run("tvd", scale.small, DEFAULT, 0.8, seed, "m=all")
            for seed in range(scale.seeds)
        ]
    return runs


def message(scale, case, seed):
    """A run with messages of a given size."""
    data, method, epsilon, mb = case
    return scale.run(
        "tvd",
        data,
        method,
        epsilon,
        seed,
        **({} if mb is None else {"message_bytes": round(mb * 1e6)}),
    )


def messages(scale):
    """TVD against the size of messages; three seeds at most."""
    return [
        message(scale, case, seed) for case in scale.messages for seed in range(min(scale.seeds, 3))
    ]


def useful(scale):
    """Methods whose rows are judged by what they are good for."""
    return tuple(
        method
        for method in (DEFAULT, "centralized", "mbi_aim_ours")
        if scale.classify and method in scale.methods
    )


def utility(scale):
    """What rows are good for, epsilon 0.8, Adult."""
    return [
        scale.run("utility", scale.large, method, 0.8, seed)
        for method in useful(scale)
        for seed in range(scale.seeds)
    ]


def peers(scale):
    """Mechanisms of others beside ours."""
    methods = [method for method in (DEFAULT, "centralized", *PEERS) if method in scale.methods]
    return [
        scale.run("tvd", data, method, epsilon, 0)
        for data in scale.data
        for epsilon in scale.bar_epsilons
        for method in methods
    ]


EXPERIMENTS = {
    "bars": bars,
    "tvd": tvd_curves,
    "svm": svm_curves,
    "parties": parties,
    "shares": shares,
    "costs": costs,
    "splits": splits,
    "ablations": ablations,
    "messages": messages,
    "utility": utility,
    "peers": peers,
}
