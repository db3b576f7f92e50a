"""Hypothesis strategies over random models: the seed is drawn, and `steps` shrinks."""

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from tests.models.generator import random_model

PATIENT = settings(
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
"""For tests that make, transform and run whole models."""


def models(max_steps: int = 25, dtype: str | None = None) -> st.SearchStrategy[bytes]:
    """Return a strategy of models, as bytes, of about `max_steps` operators at most."""
    steps = st.integers(1, max_steps)
    return st.builds(random_model, st.integers(0, 2**32 - 1), steps=steps, dtype=st.just(dtype))
