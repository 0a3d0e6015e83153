"""Hypothesis profiles; the fixtures come from `memoranda.testing.plugin`."""

import os

from hypothesis import HealthCheck, settings

# Machines differ in speed and function-scoped engines are reused on purpose: time and scope are no findings here.
IGNORED = [HealthCheck.too_slow, HealthCheck.function_scoped_fixture]

settings.register_profile("default", max_examples=100, deadline=None, print_blob=True, suppress_health_check=IGNORED)
settings.register_profile("fast", settings.get_profile("default"), max_examples=15)
settings.register_profile("thorough", settings.get_profile("default"), max_examples=1000)
settings.load_profile(os.environ.get("MEMORANDA_TEST_PROFILE", "default"))
