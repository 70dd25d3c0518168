"""Learning: models of scikit-learn on the data sets that come with it, scored by cross-validation.

- `Pipeline`: a family of models and its hyperparameters. The family decides which of the others matter.
- `NoisyPipeline`: the same on random halves of the data, a new half for every evaluation.
- `Features`: which features a model uses, and its hyperparameters.
- `TreeErrors`: the number of errors of a small tree, which has few different values.

All else is fixed: the same point has the same value, except for noise. Values depend on the version of scikit-learn.
Shapes: X (n, features), y (n,), probabilities (n, classes).
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bounce import Binary, Categorical, Integer, Real, Space
from tasks.task import SALT, NoisyTask, Point, Task, require

Array = NDArray[Any]
FAMILIES = ("logistic", "svm", "forest", "neighbours", "boosting")
LEAST = 1e-3  # a lower probability counts as this one: a model that is surely wrong loses 6.9, not infinity
PRICE = 0.02  # what all features together cost, in units of the loss
REPEATS = 20  # random halves whose mean is the truth


@dataclass(frozen=True)
class Data:
    """A data set; the classes are 0, 1, ..."""

    X: Array
    y: Array

    def split(self, folds: int) -> list[tuple[Array, Array]]:
        """Return rows to train on and rows to test on, with the same share of each class."""
        from sklearn.model_selection import StratifiedKFold

        return list(StratifiedKFold(folds, shuffle=True, random_state=0).split(self.X, self.y))


@cache
def data(name: str) -> Data:
    """Return a data set by name, shuffled; the larger ones are cut so that an evaluation takes little time."""
    from sklearn import datasets

    X, y = getattr(datasets, f"load_{name}")(return_X_y=True)
    if name == "diabetes":
        y = (y > np.median(y)).astype(int)
    if name == "digits":
        keep = np.isin(y, (3, 5, 8, 9))  # the ones that are easily confused
        X, y = X[keep], np.searchsorted((3, 5, 8, 9), y[keep])
    rows = np.random.default_rng(SALT).permutation(len(y))[:300]
    return Data(X[rows].astype(float), y[rows])


def loss(y: Array, probabilities: Array) -> float:
    """Return the mean log loss."""
    return float(-np.log(np.maximum(probabilities[np.arange(len(y)), y], LEAST)).mean())


class Pipeline(Task):
    """A scaler, a family of models and the hyperparameters of every family; the log loss of three folds."""

    def __init__(self, source: str) -> None:
        require("sklearn", "scikit-learn", f"pipeline-{source}")
        self.source = source

    @property
    def name(self) -> str:
        """The data set."""
        return f"pipeline-{self.source}"

    @cached_property
    def space(self) -> Space:
        """The family and the scaler, then the hyperparameters of each family."""
        return Space(
            [
                *(Categorical("family", FAMILIES), Categorical("scale", ["none", "standard", "range"])),
                *(Real("logistic_c", 1e-4, 1e3, log=True), Binary("logistic_balanced")),
                *(Real("svm_c", 1e-3, 1e3, log=True), Real("svm_gamma", 1e-5, 10.0, log=True)),
                Categorical("svm_kernel", ["rbf", "poly", "sigmoid"]),
                *(Integer("forest_trees", 2, 40), Integer("forest_depth", 1, 12)),
                *(Real("forest_features", 0.05, 1.0), Integer("forest_leaf", 1, 20)),
                *(Integer("neighbours_k", 1, 50), Binary("neighbours_weighted"), Real("neighbours_p", 1.0, 3.0)),
                *(Real("boosting_rate", 0.01, 1.0, log=True), Integer("boosting_trees", 2, 25)),
                Integer("boosting_depth", 1, 5),
            ]
        )

    def value(self, point: Point) -> float:
        """Return the log loss by cross-validation."""
        known = data(self.source)
        return float(np.mean([self.tested(point, train, test) for train, test in known.split(3)]))

    def tested(self, point: Point, train: Array, test: Array) -> float:
        """Return the log loss on some rows of a model trained on others."""
        known = data(self.source)
        model = fitted(point, known.X[train], known.y[train])
        return loss(known.y[test], probabilities(model, known.X[test]))


def fitted(point: Point, X: Array, y: Array) -> Any:
    """Return the pipeline of a point, fitted."""
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import MinMaxScaler, StandardScaler

    scaler = {"none": None, "standard": StandardScaler(), "range": MinMaxScaler()}[point["scale"]]
    model = make_pipeline(*([] if scaler is None else [scaler]), classifier(point))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # some points make optimizers stop early, which is part of the problem
        return model.fit(X, y)


def classifier(point: Point) -> Any:
    """Return the model of a point's family with its hyperparameters."""
    from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.neighbors import KNeighborsClassifier
    from sklearn.svm import SVC

    match point["family"]:
        case "logistic":
            weight = "balanced" if point["logistic_balanced"] else None
            return LogisticRegression(C=point["logistic_c"], class_weight=weight, max_iter=200)
        case "svm":
            return SVC(C=point["svm_c"], gamma=point["svm_gamma"], kernel=point["svm_kernel"], max_iter=5000)
        case "forest":
            return RandomForestClassifier(
                n_estimators=point["forest_trees"],
                max_depth=point["forest_depth"],
                max_features=point["forest_features"],
                min_samples_leaf=point["forest_leaf"],
                random_state=0,
            )
        case "neighbours":
            weights = "distance" if point["neighbours_weighted"] else "uniform"
            return KNeighborsClassifier(point["neighbours_k"], weights=weights, p=point["neighbours_p"])
        case _:
            return GradientBoostingClassifier(
                learning_rate=point["boosting_rate"],
                n_estimators=point["boosting_trees"],
                max_depth=point["boosting_depth"],
                max_features="sqrt",
                random_state=0,
            )


def probabilities(model: Any, X: Array) -> Array:
    """Return the probabilities of the classes; those of a support vector machine are the softmax of its scores."""
    if hasattr(model, "predict_proba"):
        return np.asarray(model.predict_proba(X))
    scores = np.asarray(model.decision_function(X))
    if scores.ndim == 1:
        scores = np.stack([-scores, scores], axis=1)
    powers = np.exp(scores - scores.max(axis=1, keepdims=True))
    return np.asarray(powers / powers.sum(axis=1, keepdims=True))


class NoisyPipeline(NoisyTask):
    """A pipeline trained on a random half of the data and tested on a random sixth; the truth is a mean of many."""

    def __init__(self, source: str, seed: int) -> None:
        super().__init__(seed)
        self.pipeline = Pipeline(source)

    @property
    def name(self) -> str:
        """The data set."""
        return f"noisy-{self.pipeline.name}"

    @property
    def space(self) -> Space:
        """The space of the pipeline."""
        return self.pipeline.space

    def draw(self, point: Point, *, rng: np.random.Generator) -> float:
        """Return the log loss on a random half."""
        n = len(data(self.pipeline.source).y)
        while True:
            rows = rng.permutation(n)
            train, test = rows[: n // 2], rows[n // 2 : n // 2 + n // 6]
            known = data(self.pipeline.source).y
            if len(np.unique(known[train])) == len(np.unique(known)):
                return self.pipeline.tested(point, train, test)

    def truth(self, point: Point) -> float:
        """Return the mean over fixed random halves that no run sees."""
        seeds: Sequence[Any] = [np.random.default_rng([SALT, 1, i]) for i in range(REPEATS)]
        return float(np.mean([self.draw(point, rng=rng) for rng in seeds]))


class Features(Task):
    """The features that a nearest-neighbour model uses, their scale, and its hyperparameters; error of five folds."""

    def __init__(self, source: str) -> None:
        require("sklearn", "scikit-learn", f"features-{source}")
        self.source = source

    @property
    def name(self) -> str:
        """The data set."""
        return f"features-{self.source}"

    @cached_property
    def space(self) -> Space:
        """A switch per feature, then the hyperparameters."""
        return Space(
            [
                *(Binary(f"feature{i}") for i in range(self._X.shape[1])),
                *(Integer("k", 1, 30), Real("p", 1.0, 4.0), Real("power", 0.0, 1.0), Binary("weighted")),
            ]
        )

    @cached_property
    def _X(self) -> Array:
        """The features; those of diabetes and wine with their products and squares, at most 64."""
        X = data(self.source).X
        if X.shape[1] > 20:
            return X
        X = (X - X.mean(axis=0)) / X.std(axis=0)
        products = [X[:, i] * X[:, j] for i in range(X.shape[1]) for j in range(i, X.shape[1])]
        return np.column_stack([X, *products])[:, :64]

    def value(self, point: Point) -> float:
        """Return the log loss by cross-validation, plus the price of the features."""
        from sklearn.neighbors import KNeighborsClassifier

        known = data(self.source)
        chosen = np.array([bool(point[f"feature{i}"]) for i in range(self._X.shape[1])])
        if not chosen.any():
            return loss(known.y, np.tile(np.bincount(known.y) / len(known.y), (len(known.y), 1)))
        spread = np.maximum(self._X.std(axis=0), 1e-9) ** point["power"]
        X = (self._X / spread)[:, chosen]
        weights = "distance" if point["weighted"] else "uniform"
        losses = []
        for train, test in known.split(5):
            model = KNeighborsClassifier(point["k"], weights=weights, p=point["p"]).fit(X[train], known.y[train])
            losses.append(loss(known.y[test], model.predict_proba(X[test])))
        return float(np.mean(losses)) + PRICE * float(chosen.mean())


class TreeErrors(Task):
    """The number of errors of a small decision tree on a third of the data: few values, most points share them."""

    def __init__(self, source: str) -> None:
        require("sklearn", "scikit-learn", f"plateau-tree-{source}")
        self.source = source

    @property
    def name(self) -> str:
        """The data set."""
        return f"plateau-tree-{self.source}"

    @cached_property
    def space(self) -> Space:
        """The limits of the tree, and a switch for each of the first features."""
        return Space(
            [
                *(Integer("depth", 1, 12), Integer("leaves", 2, 40), Integer("leaf", 1, 30), Integer("split", 2, 60)),
                *(Real("impurity", 1e-5, 0.3, log=True), Real("pruning", 1e-5, 0.1, log=True)),
                *(Categorical("criterion", ["gini", "entropy"]), Categorical("splitter", ["best", "random"])),
                *(Binary(f"feature{i}") for i in range(min(data(self.source).X.shape[1], 30))),
            ]
        )

    def value(self, point: Point) -> float:
        """Return the number of errors."""
        from sklearn.tree import DecisionTreeClassifier

        known = data(self.source)
        chosen = [i for i in range(min(known.X.shape[1], 30)) if point[f"feature{i}"]] or [0]
        train, test = known.split(3)[0]
        model = DecisionTreeClassifier(
            criterion=point["criterion"],
            splitter=point["splitter"],
            max_depth=point["depth"],
            max_leaf_nodes=point["leaves"],
            min_samples_leaf=point["leaf"],
            min_samples_split=point["split"],
            min_impurity_decrease=point["impurity"],
            ccp_alpha=point["pruning"],
            random_state=0,
        )
        model.fit(known.X[train][:, chosen], known.y[train])
        return float((model.predict(known.X[test][:, chosen]) != known.y[test]).sum())
