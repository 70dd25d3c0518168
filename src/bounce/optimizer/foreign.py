"""Input points as a stage sees them: latent codes where the embedding has them, positions of their variables elsewhere.

Shapes: x (n, D) input codes.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from bounce.gp.linalg import Array
from bounce.gp.points import NO_CODE, Foreign, Points
from bounce.spaces.kinds import Codes, Kind
from bounce.subspace.embedding import Embedding

MOST_GRAIN = 100  # tables of kernel values are small


def points_of(embedding: Embedding, x: Codes) -> Points:
    """Return points from their input codes; those outside the embedding are foreign."""
    z, inside = embedding.down(x)
    if inside.all():
        return Points(z)
    rows = np.flatnonzero(~inside)
    foreign, means = _foreign(embedding, x[rows], rows)
    z[rows] = means
    return Points(z, foreign)


def _foreign(embedding: Embedding, x: Codes, rows: NDArray[np.intp]) -> tuple[Foreign, Codes]:
    """Return what is foreign about points, and the means over their bins."""
    inputs, latent = embedding.inputs, embedding.latent
    positions = embedding.positions(x)
    positions[:, inputs.of_kind(Kind.CATEGORICAL)] = 0.0
    sizes = np.array([len(part) for part in embedding.members])
    means = np.stack([positions[:, part].mean(axis=1) for part in embedding.members], axis=1)
    variance = np.stack([positions[:, part].var(axis=1) for part in embedding.members], axis=1)
    votes: list[Array] = []
    choices, choice_bins = [np.empty((len(x), 0))], list[int]()
    first_vote = np.zeros(len(latent), dtype=np.intp)
    for j in latent.of_kind(Kind.CATEGORICAL).tolist():
        first_vote[j] = sum(len(vote) for vote in votes)
        vote = np.zeros((int(latent.cardinalities[j]), len(x)))
        variance[:, j] = 0.0
        for i in embedding.members[j].tolist():
            table, own = embedding.tables[i], x[:, i].astype(np.intp)
            count = np.bincount(table)  # how many codes of the bin stand for each category
            vote += (table[:, None] == own) / (count[own] * sizes[j])
            variance[:, j] += 1.0 / (count[own] * sizes[j])
            choices.append((table == own[:, None]) / (count[own] * np.sqrt(sizes[j]))[:, None])
            choice_bins += [j] * len(table)
        votes.append(vote)
        means[:, j] = NO_CODE
    stacked = np.concatenate([*votes, np.zeros((1, len(x)))])
    bins = embedding.bin_of
    together, grain = np.concatenate(choices, axis=1), _grain(embedding)
    at = np.array(choice_bins, dtype=np.intp)
    return Foreign(rows, variance, stacked, first_vote, positions, together, at, bins, grain), means


def _grain(embedding: Embedding) -> int | None:
    """Return the common denominator of means over bins, if it is small and every code stands for one value."""
    inputs = embedding.inputs
    if any(len(embedding.tables[i]) != inputs.cardinalities[i] for i in inputs.of_kind(Kind.CATEGORICAL)):
        return None
    sizes = (len(part) for part in embedding.members if inputs.kinds[part[0]] is not Kind.REAL)
    grain = math.lcm(*sizes)
    return grain if grain <= MOST_GRAIN else None
