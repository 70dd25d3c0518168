"""Make cocabo.json from the published code: python make_cocabo.py CHECKOUT

CHECKOUT is a copy of github.com/rubinxin/CoCaBO_code at commit b7af310. What is taken from it needs numpy and
scipy only.
"""

from __future__ import annotations

import json
import math
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, sys.argv[1])
from methods.CoCaBO_Base import CoCaBO_Base  # type: ignore[import-not-found]
from utils.probability import distr  # type: ignore[import-not-found]


def main() -> None:
    """Follow the bandits of two variables over 30 rounds of values in [-1, 0], both ends of which were seen before."""
    rng = np.random.default_rng(0)
    sizes, rounds = [3, 5], 30
    bounds = [{"name": "x", "type": "continuous", "domain": (-1, 1)}]
    method = CoCaBO_Base(None, 4, bounds, "LCB", sizes)
    method.C_list = sizes
    arms = rng.integers(0, sizes, (4 + rounds, 2))
    values = np.round(-rng.random(4 + rounds), 3)
    values[:2] = -1.0, 0.0
    gammas = [math.sqrt(c * math.log(c) / ((math.e - 1) * 2 * rounds / 3)) for c in sizes]  # as in CoCaBO.runOptim
    weights = [np.ones(c) for c in sizes]
    steps = []
    for t in range(4, 4 + rounds):
        likely = [distr(w, gamma) for w, gamma in zip(weights, gammas, strict=True)]
        method.data, method.result = [arms[: t + 1].astype(float)], [values[: t + 1, None]]
        rewards = method.compute_reward_for_all_cat_variable(arms[t : t + 1], 1).ravel()
        weights = method.update_weights_for_all_cat_var(list(rewards), list(arms[t]), weights, gammas, likely, 1)
        steps.append({"probabilities": likely, "rewards": rewards.tolist()})
    golden = {
        "sizes": sizes,
        "rounds": rounds,
        "gammas": gammas,
        "arms": arms.tolist(),
        "values": values.tolist(),
        "steps": steps,
        "weights": [w.tolist() for w in weights],
    }
    Path(__file__).with_name("cocabo.json").write_text(json.dumps(golden) + "\n")


if __name__ == "__main__":
    main()
