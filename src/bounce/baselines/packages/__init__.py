"""Adapters over the optimizers of other packages."""
