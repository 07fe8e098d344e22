"""What tests of several front ends share."""

import pytest


@pytest.fixture
def double_precision():
    """mbi's own tables in float64, as ours are."""
    import jax

    before = jax.config.jax_enable_x64
    jax.config.update("jax_enable_x64", True)
    yield
    jax.config.update("jax_enable_x64", before)
