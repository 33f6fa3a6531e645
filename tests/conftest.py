"""Shared by all tests: shapes in signatures are checked, property tests are the same on every machine."""

from hypothesis import HealthCheck, settings
from jaxtyping import install_import_hook

# Must come before these rooms are imported.
install_import_hook(["strongticket.theory", "strongticket.nets", "strongticket.build"], "beartype.beartype")

settings.register_profile(
    "repeatable", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("repeatable")
