"""How Hypothesis draws its examples: the same ones in every run, however slow the machine is.

`HYPOTHESIS_PROFILE=search` draws new ones each time, to look for what the tests have not met yet.
"""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

PATIENT = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("steady", PATIENT, derandomize=True)
settings.register_profile("search", PATIENT)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "steady"))
