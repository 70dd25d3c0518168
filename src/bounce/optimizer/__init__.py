"""The optimizer: ask and tell, the options and the state of a run."""
