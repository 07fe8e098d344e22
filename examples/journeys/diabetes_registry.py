"""A hospital and an insurer who know the same diabetes patients: from two CSV files to a model that finds a rare outcome.

The tables are generated and look like such a registry: long tails (BMI, blood pressure), dates, a column that both hold, ids
written in two ways, and an outcome that one patient in sixteen has. Every command is shown with its answer:

    python examples/journeys/diabetes_registry.py [FOLDER]

Trees are trained on the synthetic rows, and tested on real patients who are not in the tables. The script needs
`pip install 'vertimrf[experiments]'`.
"""

from __future__ import annotations

import contextlib
import io
import sys
import tempfile
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import tomli_w
from shown import exchanged, released, step, type_in

OUTCOME = "ulcer"
HELD = {
    "hospital": ["sex", "age", "bmi", "systolic", "hba1c", "smoker", "admitted"],
    "insurer": ["sex", "region", "drugs", "cost", OUTCOME],
}
DIGITS = {
    "hospital": 7,
    "insurer": 0,
}  # patient 123 is 0000123 at the hospital, and 123 at the insurer
READ = {"hospital": "--id person --id-format unpad", "insurer": "--id person"}


def patients(records: int, seed: int) -> pd.DataFrame:
    """A generated registry, one row a patient."""
    rng = np.random.default_rng(seed)
    age = np.clip(np.round(rng.normal(63, 13, records)), 18, 100).astype(int)
    severe = rng.normal(0, 1, records) + (age - 63) / 26
    sex = rng.choice(["f", "m"], records, p=[0.46, 0.54])
    smoker = rng.choice(["no", "yes", "former"], records, p=[0.52, 0.19, 0.29])
    bmi = np.round(19 + rng.gamma(3.2, 2.9, records) * np.exp(0.12 * severe), 1)
    systolic = np.round(
        96 + rng.gamma(5, 6, records) + 7 * np.maximum(severe, -1) + (age - 63) / 4
    ).astype(int)
    hba1c = np.round(5.4 + rng.gamma(2.4, 0.55, records) * np.exp(0.3 * severe), 1)
    drugs = np.minimum(rng.poisson(np.exp(0.6 + 0.35 * severe)), 12)
    cost = np.round(np.exp(rng.normal(7 + 0.12 * drugs, 0.7, records)), 2)
    risk = (
        -3.4
        + 0.55 * (hba1c - 6.8)
        + 0.03 * (systolic - 128)
        + 0.25 * (drugs - 2)
        + 1.0 * (smoker == "yes")
    )
    day = rng.integers(0, 3 * 365, records)
    return pd.DataFrame(
        {
            "sex": sex,
            "age": age,
            "bmi": bmi,
            "systolic": systolic,
            "hba1c": hba1c,
            "smoker": smoker,
            "admitted": (np.datetime64("2021-01-01") + day).astype(str),
            "region": rng.choice(
                ["north", "east", "south", "west"], records, p=[0.4, 0.3, 0.2, 0.1]
            ),
            "drugs": drugs,
            "cost": cost,
            OUTCOME: np.where(rng.random(records) < 1 / (1 + np.exp(-risk)), "yes", "no"),
        }
    )


# Public knowledge about the columns: classes that physicians and tariffs use, and the calendar. A draft takes its edges from the
# data, so the owners replace them by these.
DAY = np.datetime64("2021-01-01")
KNOWN: dict[str, list[Any]] = {
    "age": [18, 30, 40, 45, 50, 55, 60, 65, 70, 75, 80, 85, 90, 101],
    "bmi": [15, 18.5, 21, 23, 25, 27.5, 30, 32.5, 35, 37.5, 40, 45, 50, 60],
    "systolic": [70, 90, 100, 110, 115, 120, 125, 130, 135, 140, 150, 160, 180, 210],
    "hba1c": [5, 5.7, 6, 6.5, 7, 7.5, 8, 8.5, 9, 10, 11, 13, 16],
    "cost": [0, 250, 500, 750, 1000, 1500, 2000, 2500, 3000, 4000, 5000, 7500, 10000, 20000],
    "admitted": [
        str((DAY.astype("datetime64[M]") + month).astype("datetime64[D]"))
        for month in range(0, 36, 3)
    ]
    + ["2023-12-31"],
}
MOMENTS = ("age", "bmi", "systolic", "hba1c", "cost")


def review(part: Path) -> None:
    """Replace what a draft took from the data by public knowledge, and mark it as public."""
    draft = tomllib.loads(part.read_text())
    for attribute in draft["party"][0]["attribute"]:
        if attribute["name"] in KNOWN:
            attribute["edges"] = KNOWN[attribute["name"]]
            attribute["clamp"] = True
        elif attribute["name"] == "drugs":
            attribute["values"] = list(range(13))
        elif "values" in attribute:
            print(f"  {part.name}: {attribute['name']} is one of {', '.join(attribute['values'])}")
    draft["public"] = True
    part.write_text(tomli_w.dumps(draft))


def draft(folder: Path, name: str, options: str) -> None:
    """Draft a party's part of the schema, and review it."""
    part = folder / f"{name}.toml"
    part.unlink(missing_ok=True)
    type_in(f"schema draft {folder}/{name}.csv {options} --name {name} --out {part}")
    review(part)


def protocol(folder: Path, base: Path, agreed: str) -> Path:
    """One plan carried out by both parties and the server; returns the folder of the result."""
    step(
        "Each role has a folder. The server makes the plan from everybody's offers. The parties check their tables and accept it."
    )
    exchanged(folder, base, agreed, READ)

    step(
        "Before anything is released, the parties check whether the ids of one person match. One draws the secret, and the server relays it."
    )
    type_in(f"align {base}.hospital --out {base}.ids")
    type_in(f"run server {base}.server")
    type_in(f"align {base}.insurer --with {base}.ids")

    step("Each party makes its one message. The server makes the table and the model.")
    return released(base, HELD)


def features(rows: pd.DataFrame) -> pd.DataFrame:
    """The inputs of the trees: numbers, days as numbers, and the rest as indicators."""
    known = rows.drop(columns=OUTCOME).assign(
        admitted=(pd.to_datetime(rows["admitted"]) - pd.Timestamp(DAY)).dt.days
    )
    levels = {
        "sex": ["f", "m"],
        "smoker": ["no", "yes", "former"],
        "region": ["north", "east", "south", "west"],
    }
    return pd.DataFrame(
        {name: known[name].astype(float) for name in known.columns.difference(levels)}
        | {
            f"{name}={level}": known[name] == level
            for name, each in levels.items()
            for level in each
        }
    )


def area_under_curve(train: pd.DataFrame, test: pd.DataFrame) -> float:
    """AUC on ``test`` of gradient-boosted trees trained on ``train``; 0.5 is guessing."""
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.metrics import roc_auc_score
    from threadpoolctl import threadpool_limits

    trees = HistGradientBoostingClassifier(
        max_iter=60, learning_rate=0.05, max_leaf_nodes=8, random_state=0
    )
    with threadpool_limits(
        1
    ):  # its threads wait for each other by spinning: on a busy machine ten times as long
        trees.fit(features(train), train[OUTCOME] == "yes")
        return float(
            roc_auc_score(test[OUTCOME] == "yes", trees.predict_proba(features(test))[:, 1])
        )


def main(
    folder: Path | None = None,
    records: int = 20_000,
    epsilon: float = 2.0,
    megabytes: float = 1.0,
    seed: int = 0,
) -> dict[str, Any]:
    """The whole journey; returns the figures that it prints at the end."""
    if folder is None:
        with tempfile.TemporaryDirectory() as made:
            return main(Path(made), records, epsilon, megabytes, seed)
    real, unseen = patients(records, seed), patients(10_000, seed + 1)
    for name, columns in HELD.items():
        ids = [str(person).zfill(DIGITS[name]) for person in range(1, records + 1)]
        own = real[columns].assign(person=ids)
        own.sample(frac=1, random_state=1).to_csv(folder / f"{name}.csv", index=False)

    step(
        "Each party drafts its own part of the schema, and replaces what comes from its table by public knowledge."
    )
    for name in HELD:
        draft(folder, name, "--id person")
    step(
        "The parts are merged to one schema. This fails, because the hospital pads its ids with zeros."
    )
    merge = f"schema merge {folder}/hospital.toml {folder}/insurer.toml --out {folder}/schema.toml"
    type_in(merge, answer=2)
    step(
        "So the hospital removes the zeros. Sex is in both tables, and becomes one column that both hold."
    )
    draft(folder, "hospital", READ["hospital"])
    type_in(merge)

    step("Everybody agrees on the cost before any data is read.")
    agreed = f"--epsilon {epsilon} --expected-records {records} --message-mb {megabytes}"
    type_in(f"plan --schema {folder}/schema.toml {agreed}", most=30)
    plain = protocol(folder, folder / "plain", agreed)

    step(
        "For comparison, one more plan names what matters: the outcome with every other column. Over the same people it is a"
    )
    print("# second release, and the two add up.")
    workload = " ".join(f"--workload {OUTCOME},{name}" for name in real.columns if name != OUTCOME)
    print(f"$ vertimrf run server {folder}/wanted.server ... {workload}")
    print("... and all the rest as above.")
    with contextlib.redirect_stdout(io.StringIO()):
        wanted = protocol(folder, folder / "wanted", f"{agreed} {workload}")
    type_in(f"plan {folder}/plain.server/plan {folder}/wanted.server/plan", most=20)

    step("One party compares its own columns. The figures are exact, so it keeps them.")
    evaluating = f"--real {folder}/hospital.csv --synthetic {wanted}/synthetic.parquet --id person --schema {folder}/schema.toml"
    type_in(f"evaluate {evaluating} --name hospital --marginals 50", most=30)
    step("The model also gives rows of patients with the outcome only, at no further epsilon.")
    type_in(
        f"sample {wanted}/model --rows 2000 --where {OUTCOME}=yes --seed 1 --out {folder}/ill.parquet"
    )

    made = {
        name: pd.read_parquet(path / "synthetic.parquet")
        for name, path in (("plain", plain), ("wanted", wanted))
    }
    ill = pd.read_parquet(folder / "ill.parquet")
    step("Means and standard deviations, real and synthetic:")
    moments = {}
    for column in MOMENTS:
        both = [
            float(each)
            for rows in (real, made["wanted"])
            for each in (rows[column].mean(), rows[column].std())
        ]
        moments[column] = both
        print(
            f"  {column:9} mean {both[0]:9.2f} -> {both[2]:9.2f}   standard deviation {both[1]:9.2f} -> {both[3]:9.2f}"
        )
    figures: dict[str, Any] = {
        "moments": moments,
        "rate": (
            float((real[OUTCOME] == "yes").mean()),
            float((made["wanted"][OUTCOME] == "yes").mean()),
        ),
        "sampled": set(ill[OUTCOME]),
        "hba1c_of_ill": (
            float(real.loc[real[OUTCOME] == "yes", "hba1c"].mean()),
            float(ill["hba1c"].mean()),
        ),
        "dates": (str(made["wanted"]["admitted"].min()), str(made["wanted"]["admitted"].max())),
        "auc": {"real": area_under_curve(real, unseen)}
        | {name: area_under_curve(rows, unseen) for name, rows in made.items()},
    }
    step(
        f"The outcome: {figures['rate'][0]:.1%} of the real patients, {figures['rate'][1]:.1%} of the synthetic ones;"
    )
    print(
        "# mean HbA1c of those who have it {:.2f}, and {:.2f} in the sample of them.".format(
            *figures["hba1c_of_ill"]
        )
    )
    auc = figures["auc"]
    step("AUC on patients who are not in the tables, of trees trained on")
    print(
        f"  real rows {auc['real']:.3f}; synthetic rows {auc['plain']:.3f}, with the outcome as workload {auc['wanted']:.3f}"
    )
    return figures


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else None)
