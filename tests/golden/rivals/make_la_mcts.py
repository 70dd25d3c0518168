"""Write la-mcts.json: the boundaries and clusters that scikit-learn, which the published code of LA-MCTS uses, finds.

The tests only read the JSON. To make it again, in an environment of its own:

    pip install numpy scikit-learn==1.9.1
    python tests/golden/rivals/make_la_mcts.py

Nothing here imports the package. The options are those of the published code: `SVC(kernel="rbf", gamma="auto")` and
`KMeans(n_clusters=2)` with ten starts.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
from sklearn.cluster import KMeans
from sklearn.svm import SVC


def main() -> None:
    """Write the file."""
    boundaries, clusters = [], []
    for n, d, seed in ((25, 2, 0), (40, 6, 1), (120, 20, 2)):
        rng = np.random.default_rng(seed)
        x, z = np.round(rng.random((n, d)), 6), np.round(rng.random((20, d)), 6)
        good = x[:, 0] + 0.5 * np.sin(6.0 * x[:, 1]) + 0.1 * rng.standard_normal(n) > 0.6
        machine = SVC(kernel="rbf", gamma="auto", tol=1e-6).fit(x, good)
        decision = machine.decision_function(z)
        boundaries.append({"x": x.tolist(), "good": good.tolist(), "z": z.tolist(), "decision": decision.tolist()})
        points = np.round(np.column_stack([x, 0.5 + 0.5 * rng.standard_normal(n)]), 6)
        means = KMeans(n_clusters=2, n_init=10, random_state=0).fit(points)
        clusters.append({"points": points.tolist(), "labels": means.labels_.tolist(), "spread": float(means.inertia_)})
    golden = {"boundaries": boundaries, "clusters": clusters}
    Path(__file__).with_name("la-mcts.json").write_text(json.dumps(golden) + "\n")


if __name__ == "__main__":
    main()
