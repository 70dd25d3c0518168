"""What all tests share: no example of a property has a time limit, since tests run beside each other."""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("bounce", deadline=None, max_examples=50)
settings.load_profile("bounce")
