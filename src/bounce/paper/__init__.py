"""The experiments of the paper: runs of methods on problems, and what is kept of them."""
