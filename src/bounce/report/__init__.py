"""Reports: the page about a study, and plots of runs (extra `plot`)."""
