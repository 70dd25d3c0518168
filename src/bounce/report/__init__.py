"""Reports: plots of runs (extra `plot`)."""
