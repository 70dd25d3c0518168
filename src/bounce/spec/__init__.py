"""Specs: a study as a file. TOML, and tables of trials."""
