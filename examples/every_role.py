"""A deployment in Python, role by role: what `vertimrf run party` and `run server` do, from data frames.

Everything is in one process here; in a deployment each block runs at its own organisation, and only the plan, the envelopes and
the sealed messages travel.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from vertimrf import (
    Attribute,
    Message,
    Party,
    PlanOptions,
    PrivateKey,
    PublicKeys,
    Result,
    Schema,
    Secret,
    Server,
    make_plan,
    open_envelope,
    seal_secret,
    summary,
)


def main(records: int = 5000) -> Result:
    """Two parties, one server."""
    rng = np.random.default_rng(0)
    smoker = rng.random(records) < 0.3
    hospital_df = pd.DataFrame(
        {"person_id": range(records), "age": rng.integers(18, 90, records), "smoker": smoker}
    )
    insurer_df = pd.DataFrame(
        {
            "person_id": range(records),
            "claims": np.where(smoker, 2, 0) + rng.integers(0, 2, records),
        }
    )

    # Together: who holds what, under which keys, at which price.
    schema = Schema.of(
        {
            "hospital": [
                Attribute.numeric("age", range(15, 96, 10), integral=True),
                Attribute.categorical("smoker", [False, True]),
            ],
            "insurer": [Attribute.integer("claims", 4)],
        }
    )
    keys = {name: PrivateKey.new(name) for name in ("hospital", "insurer", None)}
    public = PublicKeys.of([key.offer for key in keys.values()], ["hospital", "insurer"])
    plan = make_plan(
        schema,
        epsilon=2.0,
        planning=PlanOptions(expected_records=records, message_bytes=1_000_000),
        public_keys=public,
    )
    print(summary(plan))
    print("Everyone reads out the fingerprint:", plan.fingerprint)

    # The hospital draws the secret and releases its message.
    secret = Secret.new()
    envelopes = seal_secret(secret, plan.digest(), plan.sealing_keys(), keys["hospital"])
    hospital = Party(plan, "hospital", secret, key=keys["hospital"])
    sealed = [hospital.release(hospital.encode(hospital_df, id="person_id"))]

    # The insurer opens its envelope and does the same.
    _, shared = open_envelope(envelopes, plan.digest(), plan.sealing_keys(), keys["insurer"])
    insurer = Party(plan, "insurer", shared, key=keys["insurer"])
    sealed.append(insurer.release(insurer.encode(insurer_df, id="person_id")))

    # The server opens the messages, fits a model, and draws a table.
    server = Server(plan)
    first = server.read([Message.unseal(message, plan, keys[None]) for message in sealed])
    result = server.run(first)
    print(result.ledger.table())
    return result


if __name__ == "__main__":
    made = main()
    print(made.table.to_pandas().groupby("claims")["smoker"].mean())
