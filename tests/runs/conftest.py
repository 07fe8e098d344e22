"""What tests of runs share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tools.kills import looked_up

from vertimrf.plan import plan as plans
from vertimrf.privacy import accountant

PRICED = looked_up(accountant.epsilon)


@pytest.fixture(autouse=True, scope="module")
def prices() -> Iterator[None]:
    """The runs here are all alike: what their events cost is computed once, which is most of the time that they take."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(accountant, "epsilon", PRICED)
        patch.setattr(plans, "composed_epsilon", PRICED)
        yield
