"""Shared by all tests: shapes in signatures are checked, property tests are the same on every machine."""

from hypothesis import HealthCheck, settings
from jaxtyping import install_import_hook

# Must come before any strongticket module is imported.
install_import_hook("strongticket", "beartype.beartype")

settings.register_profile(
    "repeatable", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("repeatable")
