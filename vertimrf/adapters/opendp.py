"""The engine under OpenDP's contingency tables.

Use ``dp.mbi.AIM(estimator=vertimrf.adapters.opendp.estimator)``, and likewise MST, Fixed and
Sequential. OpenDP's samplers make the noise, and its measurements account for it; nothing here sees
data.
"""

from __future__ import annotations

from typing import Any

import mbi

from .mbi1 import estimate


def estimator(domain: mbi.Domain, loss_fn: Any, *, potentials: Any = None) -> mbi.MarkovRandomField:
    """Fit a model as ``opendp.extras.mbi.mirror_descent`` does.

    Args:
        domain, loss_fn, potentials: as in :func:`vertimrf.adapters.mbi1.estimate`.
    """
    return estimate(domain, loss_fn, potentials=potentials)
