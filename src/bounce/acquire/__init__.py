"""Acquisition: what to try next. Expected improvement, candidates, and how it is maximised."""
