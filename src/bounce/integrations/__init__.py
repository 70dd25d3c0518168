"""Integrations: Bounce inside other packages, each of which is an extra.

The invariant: an integration holds no state of the algorithm that its host does not hold.
"""
