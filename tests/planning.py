"""Plans by keyword, as tests ask for them."""

import json

from vertimrf import Plan, PlanOptions, make_plan

# What make_plan takes beside its options.
BESIDE = ("nonce", "prior", "public_keys")


def plan_with(schema, *, epsilon=1.0, **options):
    """A plan of these options of ``PlanOptions``, and of ``nonce``, ``prior`` and ``public_keys``; by default even if useless.

    Every plan is read back from its file as it was.
    """
    beside = {name: options.pop(name) for name in BESIDE if name in options}
    plan = make_plan(schema, epsilon, PlanOptions(**{"even_if_useless": True} | options), **beside)
    back = Plan.from_json(json.loads(json.dumps(plan.to_json())))
    assert back == plan
    assert back.digest() == plan.digest()
    return plan


def edited(content, *path, value):
    """A copy of a plan file's content with one entry replaced."""
    content = json.loads(json.dumps(content))
    inner = content
    for step in path[:-1]:
        inner = inner[step]
    inner[path[-1]] = value
    return content
