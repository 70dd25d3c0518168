"""Reports: pictures of runs (extra `plot`)."""
