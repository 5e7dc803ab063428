"""Writes candidates.json: regions and peaks of random maps by scipy.ndimage.

Run: python3 candidates.py (needs numpy, scipy). Probabilities are whole 256ths, exact in f32.
"""

import json
import pathlib

import numpy as np
from scipy import ndimage

rng = np.random.default_rng(5)


def smooth_map(h, w, sigma):
    noise = ndimage.gaussian_filter(rng.normal(size=(h, w)), sigma)
    scaled = (noise - noise.min()) / (noise.max() - noise.min())
    return np.round(scaled * 256).astype(int)


def regions(p, threshold, radius, min_area):
    mask = p >= threshold
    if radius:
        mask = ndimage.binary_opening(mask, np.ones((2 * radius + 1,) * 2))
    labels, n = ndimage.label(mask, np.ones((3, 3)))
    ids = range(1, n + 1)
    out = []
    for i, (y, x) in zip(ids, ndimage.center_of_mass(mask, labels, ids)):
        area = int((labels == i).sum())
        if area >= min_area:
            out.append([x + 0.5, y + 0.5, float(ndimage.mean(p, labels, i)), area])
    return out


def peaks(p, threshold, distance):
    top = ndimage.maximum_filter(p, 2 * distance + 1, mode="constant")
    ys, xs = np.nonzero((p == top) & (p >= threshold))
    return [[x + 0.5, y + 0.5, float(p[y, x]), 1] for y, x in zip(ys.tolist(), xs.tolist())]


cases = []
for h, w, sigma, threshold, radius, min_area in [
    (40, 60, 1.0, 140, 0, 1),
    (64, 64, 1.5, 150, 1, 1),
    (64, 48, 2.0, 140, 1, 20),
    (50, 70, 2.5, 120, 2, 5),
    (33, 33, 3.0, 100, 3, 1),
]:
    q = smooth_map(h, w, sigma)
    cases.append(
        {
            "rule": {
                "method": "regions",
                "threshold": threshold / 256,
                "opening_radius": radius,
                "min_area_px": min_area,
            },
            "width": w,
            "map256": q.ravel().tolist(),
            "found": regions(q / 256, threshold / 256, radius, min_area),
        }
    )
for h, w, sigma, threshold, distance in [(40, 40, 1.0, 64, 3), (60, 50, 2.0, 100, 8)]:
    # All values differ, so that no rule for ties is needed.
    order = ndimage.gaussian_filter(rng.normal(size=(h, w)), sigma).ravel().argsort().argsort()
    q = np.asarray(order).reshape(h, w)
    cases.append(
        {
            "rule": {"method": "peaks", "threshold": threshold / 256, "min_distance_px": distance},
            "width": w,
            "map4096": q.ravel().tolist(),
            "found": peaks(q / 4096, threshold / 256, distance),
        }
    )
text = json.dumps(cases, separators=(",", ":"))
pathlib.Path(__file__).with_name("candidates.json").write_text(text.replace("},{", "},\n{") + "\n")
