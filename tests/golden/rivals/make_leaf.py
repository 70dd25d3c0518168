"""Write leaf.json: kernels of LightGBM's trees, with the settings and the kernel of the published LEAF-GP.

The tests only read the JSON and need none of this. To make it again, get cog-imperial/tree_kernel_gp at 104b912 and, in
an environment of its own:

    pip install "numpy<2" lightgbm==4.7.0
    python tests/golden/rivals/make_leaf.py FOLDER

Nothing here imports the package. Each case has codes x with targets y, codes z, and in how many trees each row of z has
the leaf of each row of x.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import lightgbm  # type: ignore[import-not-found]
import numpy as np

sys.path.insert(0, sys.argv[1])
from leaf_gp.gbm_model import GbmModel  # type: ignore[import-not-found]
from leaf_gp.lgbm_processing import order_tree_model_dict  # type: ignore[import-not-found]

CASES = {
    "bits": [2] * 8,
    "reals": [0] * 4,
    "ordinals": [5, 4, 7, 3],
    "three categories": [-3, -3, 2, 2],
    "six categories": [-6, -6, 2, 0],
}


def columns(cardinalities: list[int], n: int, rng: np.random.Generator) -> np.ndarray:
    """Draw codes: reals for 0, integers below |c| otherwise."""
    return np.stack([rng.random(n) if c == 0 else rng.integers(0, abs(c), n) * 1.0 for c in cardinalities], axis=1)


def kernel(x: np.ndarray, y: np.ndarray, z: np.ndarray, categories: list[int]) -> tuple[np.ndarray, int]:
    """Return the published kernel between z and x, and the number of trees."""
    settings: dict[str, str | int] = {"boosting_type": "gbdt", "max_depth": 3, "min_data_in_leaf": 1, "verbose": -1}
    if categories:
        settings["min_data_per_group"] = 1
    data = lightgbm.Dataset(x, label=y, categorical_feature=categories or "auto", params={"verbose": -1})
    model = lightgbm.train(settings, data, num_boost_round=50)
    trees = GbmModel(order_tree_model_dict(model.dump_model(), cat_column=categories))
    return trees.get_gram_mat(z, x), trees.n_trees


golden = {}
for seed, (name, cardinalities) in enumerate(CASES.items()):
    for n in (8, 40, 120):
        rng = np.random.default_rng([seed, n])
        x, z = (np.round(columns(cardinalities, rows, rng), 5) for rows in (n, 12))
        unordered = [j for j, c in enumerate(cardinalities) if c < 0]
        effects = [rng.normal(size=max(2, abs(c))) for c in cardinalities]
        y = rng.normal(size=n) * 0.2
        for j, (c, effect) in enumerate(zip(cardinalities, effects, strict=True)):
            y += np.sin(3.0 * x[:, j]) * effect[0] if c == 0 else effect[x[:, j].astype(int)]
        y = np.round(y, 5)
        found, trees = kernel(x, y, z, unordered)
        golden[f"{name}, {n}"] = {
            "cardinalities": cardinalities,
            "x": x.tolist(),
            "y": y.tolist(),
            "z": z.tolist(),
            "trees": trees,
            "kernel": np.round(found * trees).astype(int).tolist(),
        }
Path(__file__).with_name("leaf.json").write_text(json.dumps(golden) + "\n")
