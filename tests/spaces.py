"""Spaces and points to test with, drawn by hypothesis or picked by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st

from bounce import Binary, Categorical, Integer, Ordinal, Real, Space
from bounce.acquire.candidates import Seen
from bounce.gp.kernels import Hyper
from bounce.gp.linalg import Array
from bounce.gp.targets import standardized
from bounce.spaces.parameters import Codes, Parameter
from bounce.subspace.embedding import Embedding


@st.composite
def parameters(draw: st.DrawFn, name: str, *, discrete: bool = False) -> Parameter:
    kinds = ["binary", "ordinal", "categorical", "integer", "steps"] + ([] if discrete else ["real", "wide", "ladder"])
    kind = draw(st.sampled_from(kinds))
    return draw(stepped(name, few=kind == "steps")) if kind in ("steps", "ladder") else _plain(draw, name, kind)


def _plain(draw: st.DrawFn, name: str, kind: str) -> Parameter:
    if kind == "binary":
        return Binary(name)
    if kind == "ordinal":
        return Ordinal(name, list(range(draw(st.integers(2, 9)))))
    if kind == "categorical":
        return Categorical(name, [f"c{i}" for i in range(draw(st.integers(2, 9)))])
    low = draw(st.integers(1, 50))
    if kind == "integer":
        return Integer(name, low, low + draw(st.integers(1, 63)))
    if kind == "wide":
        return Integer(name, low, low + draw(st.integers(64, 10**6)), log=draw(st.booleans()))
    return Real(name, float(low), low + draw(st.floats(1e-3, 1e3)), log=draw(st.booleans()))


@st.composite
def stepped(draw: st.DrawFn, name: str, *, few: bool) -> Integer | Real:
    """A number with a step or with digits, of few values or of many."""
    rungs = draw(st.integers(1, 63) if few else st.integers(64, 10**6))
    low, step, digits = draw(st.integers(-50, 50)), draw(st.integers(2, 99)), draw(st.integers(0, 4))
    if draw(st.booleans()):
        return Integer(name, low, low + rungs * step, step=step)
    if draw(st.booleans()):
        start, stop = (float(f"{x}e-{digits}") for x in (low, low + rungs * step))
        return Real(name, start, stop, step=float(f"{step}e-{digits}"))
    log = not few and draw(st.booleans())
    first = abs(low) + 1 if log else low
    return Real(name, float(f"{first}e-{digits}"), float(f"{first + rungs}e-{digits}"), log=log, digits=digits)


@st.composite
def spaces(draw: st.DrawFn, *, most: int = 12, discrete: bool = False) -> Space:
    n = draw(st.integers(1, most))
    return Space([draw(parameters(f"p{i}", discrete=discrete)) for i in range(n)])


@st.composite
def generators(draw: st.DrawFn) -> np.random.Generator:
    return np.random.default_rng(draw(st.integers(0, 2**32 - 1)))


def mixed(n: int = 3) -> Space:
    """A space with every kind of variable, n of each."""
    kinds: list[Any] = []
    for i in range(n):
        kinds += [
            Real(f"real{i}", -1.0, 2.0),
            Integer(f"wide{i}", 1, 1000, log=True),
            Ordinal(f"ordinal{i}", [1, 2, 4, 8][: 2 + i % 3]),
            Categorical(f"category{i}", ["a", "b", "c", "d", "e"][: 2 + i % 4]),
            Binary(f"binary{i}"),
        ]
    return Space(kinds)


def binary(n: int) -> Space:
    return Space([Binary(f"x{i}") for i in range(n)])


def reals(n: int) -> Space:
    return Space([Real(f"x{i}", 0.0, 1.0) for i in range(n)])


def rows(space: Space, n: int, seed: int = 0) -> Codes:
    return space.sample(n, rng=np.random.default_rng(seed))


def identity(space: Space) -> Embedding:
    """The embedding in which every variable is a bin of its own, with its own codes."""
    members = tuple(np.array([i]) for i in range(len(space)))
    tables = tuple(np.arange(c) for c in space.cardinalities)
    return Embedding(space, members, np.zeros(len(space), dtype=bool), tables)


def seen(space: Space, *known: Codes) -> Seen:
    """Say that these points are seen, or that nothing is; latent codes are those of the space itself."""
    return Seen(identity(space), {key for codes in known for key in space.keys(codes)})


def hyper(space: Space) -> Hyper:
    """Hyperparameters somewhere in the middle, one combinatorial lengthscale for all kinds."""
    lengthscales = np.linspace(0.3, 0.9, len(space.reals))
    return Hyper(np.array([1.7]), lengthscales, signal=1.3, noise=0.02, rho=0.3)


def wave(z: Codes) -> Array:
    """Standardised values that depend on every code."""
    weights = np.random.default_rng(0).normal(size=z.shape[1])
    return standardized(np.sin(z @ weights))
