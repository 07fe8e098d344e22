"""Estimate cross-party marginals with the estimator of the plan's encoder (VertiMRF, CarEst)."""

from __future__ import annotations

from collections.abc import Sequence

from ..message import Message
from ..model.markov_random_field import MarkovRandomField
from ..plan.plan import Plan
from ..progress import Progress
from ..releases.received import CrossParty, Received, RecordCount


def cross_party_marginals(
    plan: Plan,
    messages: Sequence[Message],
    initial: MarkovRandomField,
    total: float,
    progress: Progress,
    party_counts: Sequence[RecordCount] | None = None,
) -> CrossParty:
    """Estimate the marginals that the plan's encoder measures across parties.

    Args:
        plan: the agreed plan.
        messages: one per party, in plan order.
        initial: a model of the local marginals, for the sizes of the sketched sets.
        total: estimated number of records.
        progress: where the work is reported.
        party_counts: records of each party, if parties have different people; otherwise None.

    Returns:
        The measurements, and the common records of every two parties.

    Raises:
        MessageError: messages that do not fit together.
    """
    order = [group for party in range(len(messages)) for group in plan.groups_of(party)]
    maps = dict(
        zip(order, [group_bins for message in messages for group_bins in message.bins], strict=True)
    )
    bins = [maps[group] for group in range(len(order))]
    received = Received(plan, messages, bins, initial, total, progress, party_counts)
    return plan.sketch.estimate(received)
