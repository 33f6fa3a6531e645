"""Shared by all tests: shapes in signatures are checked, property tests are the same on every machine."""

from hypothesis import HealthCheck, settings
from jaxtyping import install_import_hook

# Must come before these rooms are imported. Not build.assign: numba cannot compile a checked function.
BUILD = ("attention", "certify", "network", "probe", "product", "relu", "source", "transformer", "width")
CHECKED = ["strongticket.theory", "strongticket.nets", *(f"strongticket.build.{name}" for name in BUILD)]
install_import_hook(CHECKED, "beartype.beartype")

settings.register_profile(
    "repeatable", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("repeatable")
