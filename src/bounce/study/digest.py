"""Digests: numbers by which a row of a study file is known to be what was written.

Every row has the digest of its cells. The row of the study also has the sums of the digests of all trials and of the
whole history, and its own digest covers these. So no row can change, vanish or return from another time unseen.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from hashlib import blake2b
from typing import Any

MODULUS = 2**62  # what SQLite stores as an integer


def digest(cells: Sequence[Any]) -> int:
    """Return the digest of a row; refuse cells that no study has, with a TypeError."""
    text = json.dumps(cells, ensure_ascii=False).encode("utf-8", "surrogatepass")
    return int.from_bytes(blake2b(text, digest_size=8).digest(), "big") % MODULUS


def total(digests: Iterable[int], before: int = 0) -> int:
    """Return the sum of digests, in which their order does not count."""
    return (before + sum(digests)) % MODULUS
