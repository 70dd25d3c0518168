"""The problems of the paper, one file each."""

from bounce.benchmarks.labs import Labs

__all__ = ["Labs"]
