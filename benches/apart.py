"""What keeping candidates apart takes away: of figures, and of what is false.

    python benches/apart.py MIDOG++.json ROBUSTNESS...

Prints how many labelled figures have another near them (boxes of MIDOG++, taken at 0.25 um/px), and for every folder of
`evaluate robustness`, of a package without `min_separation_um`, the true and the false from even odds over all its
images when of candidates so near to each other the likeliest alone is kept.
"""

import collections
import json
import pathlib
import sys

import numpy as np
from scipy.spatial import cKDTree

RADII = [0, 5, 8, 10, 12, 14, 15]
MATCH = 7.5


def neighbours(path):
    by = collections.defaultdict(list)
    for a in json.loads(pathlib.Path(path).read_text())["annotations"]:
        if a["category_id"] == 1:
            x0, y0, x1, y1 = a["bbox"]
            by[a["image_id"]].append(((x0 + x1) / 8, (y0 + y1) / 8))
    near = [cKDTree(c).query(c, k=2)[0][:, 1] for c in by.values() if len(c) > 1]
    near, n = np.concatenate(near), sum(map(len, by.values()))
    print(f"{n} figures; with another within " + ", ".join(f"{r} um: {np.sum(near < r) / n:.2%}" for r in RADII[1:]))


def apart(found, radius):
    kept = []
    for f in sorted(found, key=lambda f: -f["s_cls"]):
        if all(np.hypot(f["x_um"] - k["x_um"], f["y_um"] - k["y_um"]) > radius for k in kept):
            kept.append(f)
    return kept


def hits(truth, found):
    """True figures with a candidate of their own, nearest first, in the order of the truth."""
    left, n = list(found), 0
    for x, y in truth:
        near = [(np.hypot(f["x_um"] - x, f["y_um"] - y), i) for i, f in enumerate(left)]
        if near and min(near)[0] <= MATCH:
            left.pop(min(near)[1])
            n += 1
    return n


def main():
    neighbours(sys.argv[1])
    for folder in sys.argv[2:]:
        rows = json.loads((pathlib.Path(folder) / "robustness.json").read_text())["rows"]
        for radius in RADII:
            true = false = 0
            for image in (image for row in rows for image in row["images"]):
                found = [f for f in image["found"] if f["s_seg"] >= 0.3 and f["s_cls"] >= 0.5]
                found = apart(found, radius) if radius else found
                n = hits(image["truth"], found)
                true, false = true + n, false + len(found) - n
            print(f"{folder} {radius:3} um: {true} true, {false} false")


if __name__ == "__main__":
    main()
