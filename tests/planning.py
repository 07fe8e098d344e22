"""Plans by keyword, as tests ask for them."""

from vertimrf.plan.options import PlanOptions
from vertimrf.plan.planner import make_plan

# What make_plan takes beside its options.
BESIDE = ("nonce", "prior", "public_keys")


def plan_with(schema, *, epsilon=1.0, **options):
    """A plan of these options of ``PlanOptions``, and of ``nonce``, ``prior`` and ``public_keys``; by default even if useless."""
    beside = {name: options.pop(name) for name in BESIDE if name in options}
    return make_plan(schema, epsilon, PlanOptions(**{"even_if_useless": True} | options), **beside)
