"""Spaces: what may be varied. Native values outside, codes inside, converted here and nowhere else."""
