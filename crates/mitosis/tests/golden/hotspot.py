"""Writes hotspot.json: figures inside the 2 mm2 square of every figure, by scipy's cKDTree.

Run: python3 hotspot.py (needs numpy, scipy).
"""

import json
import math
import pathlib

import numpy as np
from scipy.spatial import cKDTree

HALF_SIDE_MM = math.sqrt(2) / 2
rng = np.random.default_rng(20)


def case(n, extent, mpp, clusters):
    if clusters:
        centres = rng.uniform(0, extent, (clusters, 2))
        points = centres[rng.integers(0, clusters, n)] + rng.normal(0, 1500, (n, 2))
    else:
        points = rng.uniform(0, extent, (n, 2))
    points = np.round(points * 2) / 2
    mm = points * np.asarray(mpp) / 1000
    tree = cKDTree(mm)
    counts = [len(hits) for hits in tree.query_ball_point(mm, HALF_SIDE_MM, p=np.inf)]
    return {"mpp": list(mpp), "points": points.tolist(), "counts": counts}


cases = [
    case(300, 40_000, (0.25, 0.25), 0),
    case(400, 60_000, (0.2456, 0.2456), 7),
    case(150, 15_000, (0.23, 0.27), 3),
    case(1, 1_000, (0.5, 0.5), 0),
]
text = json.dumps(cases, separators=(",", ":"))
pathlib.Path(__file__).with_name("hotspot.json").write_text(text.replace("},{", "},\n{") + "\n")
