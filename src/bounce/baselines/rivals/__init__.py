"""Optimizers of the literature, written on the core of this package: one file each, which reads like the method."""
