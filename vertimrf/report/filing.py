"""The entry of a run in the public registry of deployments of differential privacy.

Every field follows from the plan, or from the ledger and the schema that a model carries, never from
data. What only a person can know is a marked blank. The layout is that of the registry's data at its
revision of 15 July 2026 (3e9c812).

Source: https://github.com/opendp/deployments-registry-data
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from .. import __version__
from ..arrays import Fields
from ..errors import MessageError, PrivacyError, several, some
from ..files import container
from ..named_model import Model
from ..plan.plan import Plan
from ..plan.schema import Schema
from ..privacy.label import ADD_OR_REMOVE, REPLACE
from ..privacy.ledger import Ledger

# How a blank begins, and the date that stands for one.
BLANK, NO_DATE = "FILL IN:", "1900-01-01"
METHODS = {
    "pld": "by the exact laws of their privacy losses",
    "renyi": "by their Rényi divergences",
}
# Where a run's folder has its plan: a server's and the demo's, and a party's.
PLANS = ("plan", "plan.json", "received/plan")


def filing(path: str | Path) -> str:
    """The registry's entry for a run, as YAML.

    Args:
        path: a plan, a model, or a run's folder with its plan.

    Returns:
        The text. Blanks begin with :data:`BLANK`; in place of the date stands :data:`NO_DATE`.

    Raises:
        MessageError: there is no plan and no model.
        PrivacyError: the run is not private, so that there is nothing to file.
    """
    path = Path(path)
    if path.is_dir():
        found = [path / name for name in PLANS if (path / name).is_file()]
        if not found:
            raise MessageError(
                f"{path} has no plan ({', '.join(PLANS)}): name the plan, or the model."
            )
        path = found[0]
    if container.read(path)[:4] == container.MAGIC:
        model = Model.load(path)
        content = entry(model.schema, model.ledger)
    else:
        plan = Plan.load(path)
        content = entry(plan.schema, plan.ledger(), plan)
    return "\n".join([*_yaml(content), ""])


def entry(schema: Schema, ledger: Ledger, plan: Plan | None = None) -> Fields:
    """The fields of the entry.

    Args:
        schema: domains and parties.
        ledger: every event of the run.
        plan: its plan; None if only the model is there.

    Raises:
        PrivacyError: the run is not private.
    """
    label = ledger.label
    if not label.private or label.epsilon is None or label.delta is None:
        raise PrivacyError(f"There is nothing to file: this run is {label}")
    names = [name for name, _ in schema.parties]
    return {
        "url_slug": f"{BLANK} a short name for the address",
        "status": "Draft",
        "tier": 3,
        "deployment": {
            "basic": _basic(schema, names),
            "dp_variant": {
                "variant_name": "Approximate DP" if label.delta > 0 else "Pure DP",
                "data_domain": _domain(schema, plan),
                "unprotected_quantities": _unprotected(schema, ledger, plan),
            },
            "privacy_loss": _loss(ledger),
            "deployment_model": _model(names, ledger, plan),
            "accounting": _accounting(ledger),
            "implementation": _implementation(ledger, plan),
            "administrative": {
                "sources": f"{BLANK} where the data product and papers about it are",
                "notes": "Written from the run's plan and ledger by `vertimrf inspect --filing`.",
                "registry_authors": [f"{BLANK} who files this"],
            },
        },
    }


def _basic(schema: Schema, names: list[str]) -> Fields:
    return {
        "name": f"{BLANK} name of the data product",
        "data_curators": [f"{BLANK} who publishes it"],
        "intended_use": f"{BLANK} what it is for",
        "data_product_type": "Synthetic data",
        "data_product_region": f"{BLANK} which region it describes",
        "description": (
            f"{BLANK} what it describes. A synthetic table of {several(len(schema.attributes), 'column')}, and the model that it "
            f"is drawn from, of the tables of {some(names)}."
        ),
        "publication_date": NO_DATE,
    }


def _domain(schema: Schema, plan: Plan | None) -> str:
    about = "" if plan is None else f", of about {plan.expected_records:,} records each"
    return (
        f"{several(len(schema.parties), 'table')} with records of the same people{about}; "
        f"{several(len(schema.attributes), 'attribute')}, with public domains of {min(schema.sizes)} to {max(schema.sizes)} "
        "values each. Records that do not fit the domains are left out one by one."
    )


def _unprotected(schema: Schema, ledger: Ledger, plan: Plan | None) -> str:
    out = ["No exact statistic of the data is published."]
    if plan is not None and plan.sketch.publishes_rows:
        out = ["The number of ids is published exactly."]
    out.append(
        "The schema, the plan and its order of magnitude of the number of records are public."
    )
    if not schema.public:
        out.append("The domains were read off the data, which nothing protects.")
    if plan is not None and plan.sketch.exchanges:
        out.append("The parties learn from each other whether they hold the same ids.")
    return " ".join(out)


def _loss(ledger: Ledger) -> Fields:
    label = ledger.label
    details = [f"Neighbouring tables: {label.neighbours}. All parties' releases count together."]
    if label.neighbours == REPLACE:
        unit = "Record, whose number is public"
    elif label.neighbours == ADD_OR_REMOVE:
        unit = "Record, of which a person has one"
    else:
        unit = "Person"
    colluding = ledger.colluding_epsilon
    against = []
    if colluding is not None:
        known = f"{colluding:.4g}" if math.isfinite(colluding) else "not bounded"
        against.append(
            f"If a party colludes with the server, epsilon is {known} at the same delta."
        )
    return {
        "privacy_unit": unit,
        "privacy_unit_details": details[0],
        "privacy_parameters": {"epsilon": label.epsilon, "delta": label.delta},
        "privacy_parameters_details": " ".join(
            ["Of the whole run, against whoever sees all messages.", *against]
        ),
    }


def _model(names: list[str], ledger: Ledger, plan: Plan | None) -> Fields:
    alone = len(names) == 1
    together = plan is not None and not alone and plan.public_keys is None
    how = (
        "One party adds noise to figures of its own table."
        if alone
        else "Each party keeps its table, adds noise on its own machine, and sends one sealed message; a server that sees no table "
        "fits the model."
    )
    if together:
        how += f" {BLANK} this plan has no keys: if all of it ran in one process, the model is Central."
    secret = any(each.rests_on_secret or each.parts for each in ledger.entries)
    trust = " They share a secret that the server must not know." if secret else ""
    return {
        "model_name": "Central" if alone else "Federated",
        "model_name_details": how,
        "actors": (
            f"Parties with data: {some(names)}.{trust} The server and readers of the result see noisy figures alone. {BLANK} who "
            "the server is, and why the parties trust one another."
        ),
        "release_type": "One release",
        "release_type_details": f"{BLANK} whether more of the same people is to be released",
        "data_source_type": "Static",
        "data_source_type_details": f"{BLANK} from when the data are",
        "access_type": "Non-interactive",
        "access_type_details": "Everything that is asked of the data is in the plan, before data are read.",
    }


def _accounting(ledger: Ledger) -> Fields:
    return {
        "post_processing": (
            "A Markov random field is fitted to the noisy figures, and rows are drawn from it; neither reads data."
        ),
        "composition": (
            f"{several(len(ledger.entries), 'event')}, composed adaptively: {METHODS[ledger.method]}. What was read before the plan has an "
            "epsilon of its own, which is added."
        ),
    }


def _implementation(ledger: Ledger, plan: Plan | None) -> Fields:
    under = "" if plan is None else f" Plan {plan.fingerprint}."
    lines = [f"{e.party}: {e.released} ({e.noise})." for e in ledger.entries]
    spent = any(e.kind in ("edges", "values", "planning count") for e in ledger.entries)
    return {
        "preprocessing_and_hyperparameter_tuning": (
            (
                "Domains or the number of records were found with noise, which the ledger counts."
                if spent
                else "None that reads data."
            )
            + f" {BLANK} whether anything else was looked at before"
        ),
        "mechanisms": "\n".join(
            [
                *lines,
                "Noise is drawn in whole numbers by exact samplers from a cryptographic stream, so no rounding of real numbers can "
                f"leak. Software: vertimrf {__version__}.{under} {BLANK} how the data and keys are kept",
            ]
        ),
        "justification": f"{BLANK} how epsilon and the privacy unit were chosen",
    }


def _yaml(content: Mapping[str, Any], indent: str = "") -> Iterator[str]:
    """Lines of YAML. Texts are quoted, so that none is read as something else; those of several lines
    are blocks.
    """
    for key, value in content.items():
        if isinstance(value, Mapping):
            yield f"{indent}{key}:"
            yield from _yaml(value, indent + "  ")
        elif isinstance(value, list):
            yield f"{indent}{key}:"
            yield from (f"{indent}  - {json.dumps(each, ensure_ascii=False)}" for each in value)
        elif isinstance(value, str) and "\n" in value:
            yield f"{indent}{key}: |"
            yield from (f"{indent}  {line}" for line in value.splitlines())
        else:
            mark = f"  # {BLANK} when it was published" if value == NO_DATE else ""
            # A number like 1e-10 needs a point to be one in YAML.
            text = (
                repr(value) if isinstance(value, float) else json.dumps(value, ensure_ascii=False)
            )
            if isinstance(value, float) and "e" in text and "." not in text:
                text = text.replace("e", ".0e")
            yield f"{indent}{key}: {text}{mark}"
