"""A plan in words: what is measured, what it costs, and what is predicted of the result."""

from __future__ import annotations

from ..arguments import instance, takes
from ..errors import PlanError, first, several
from .defaults import OUTER
from .plan import Plan
from .schema import MAX_NAMED
from .verdict import links, verdict


@takes(PlanError, plan=instance("Plan"))
def summary(plan: Plan) -> str:
    """A text for people: budget, keys, message sizes, and how far the result can be trusted.

    Args:
        plan: the plan.

    Returns:
        Lines of text.

    Raises:
        PlanError: ``plan`` is something else.
    """
    lines = [
        f"{len(plan.schema.attributes)} attributes at {len(plan.local)} parties, about {plan.expected_records:,} records; "
        f"target epsilon {plan.epsilon:g}, delta {plan.delta:.3g}."
    ]
    if plan.schema.ids is not None:
        lines.append(f"  ids: of the form {plan.schema.ids!r} at every party.")
    for i, (name, local) in enumerate(zip(plan.party_names, plan.local, strict=True)):
        attributes, varying = (
            len(plan.schema.party_attributes(name)),
            len(plan.schema.varying(name)),
        )
        how = (
            f"{several(varying, 'one-way marginal')}, sigma {local.one_way_sigma:.1f}"
            if varying
            else "none varies"
        )
        if local.units:
            how += (
                f", and larger ones, {several(local.units, 'unit')} of sigma {local.unit_sigma:.1f}"
            )
        if local.fine_sigma:
            fine = several(len(plan.schema.fine_of(name)), "fine marginal")
            how += f"; {fine}, sigma {local.fine_sigma:.1f}"
        lines.append(
            f"  {name}: {several(attributes, 'attribute')}; {how}; sketches {plan.message_size(i) / 1e6:.1f} MB."
        )
    if plan.groups:
        lines.append(f"  {plan.sketch.summary()}")
    if plan.because:
        lines.append(f"  encoder: {plan.encoder}, because {plan.because}.")
    lines += _independence(plan)
    if (judged := verdict(plan)) is not None:
        lines += [f"  {sentence}" for sentence in (judged, *links(plan))]
    for attribute in plan.schema.shared:
        holders = " and ".join(plan.party_names[party] for party in plan.schema.holders[attribute])
        lines.append(f"  {plan.schema.names[attribute]} is one column that {holders} hold.")
    lines.append(f"  global model: cliques up to {plan.tau:,} cells.")
    for what, every in (
        ("impossible, and so in no row", plan.schema.impossible),
        ("rules that every row keeps", plan.schema.rules),
    ):
        if every:
            lines.append(f"  {what}: {'; '.join(first(every, MAX_NAMED))}.")
    if plan.records_per_person > 1:
        lines.append(
            f"  a person has up to {plan.records_per_person} records: every party leaves out the same further ones."
        )
    lines += [f"  {sentence}" for sentence in plan.workload.in_words(plan.schema)]
    if plan.population == OUTER:
        lines.append(
            "  population: everybody that any party holds; what nobody holds of a person is null."
        )
    return "\n".join(lines)


def _independence(plan: Plan) -> list[str]:
    """Which columns the result will have as independent, and why; empty if none."""
    several = [len(plan.schema.varying(name)) for name in plan.party_names]
    if plan.groups or sum(several) < 2:
        return []
    if not any(local.units for local in plan.local):
        return [
            "  the result has independent columns: for more than one-way marginals the table is too small at this epsilon."
        ]
    if len(plan.local) - several.count(0) > 1:
        return ["  columns of different parties are independent in the result."]
    return []
