"""Live: what a run shows while it goes on, in a terminal, in a notebook or in a log."""
