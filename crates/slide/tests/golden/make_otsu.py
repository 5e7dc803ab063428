"""Otsu thresholds by scikit-image for `otsu.json`:  python make_otsu.py [FOLDER OF REAL PICTURES]

Per case: a 256-bin histogram of 8-bit greys and skimage.filters.threshold_otsu of an image that has
it. Of real pictures only the histograms of their grey overviews are kept.
"""

import json
import sys
from pathlib import Path

import numpy as np
from PIL import Image
from skimage.filters import threshold_otsu


def case(name, grey):
    histogram = np.bincount(grey.ravel(), minlength=256)
    pairs = [[int(v), int(n)] for v, n in enumerate(histogram) if n]
    return {"name": name, "histogram": pairs, "threshold": int(threshold_otsu(grey))}


def main():
    rng = np.random.default_rng(11)
    cases = []
    for k in range(24):
        n = int(rng.integers(50, 40_000))
        share = rng.uniform(0.02, 0.98)
        dark = rng.normal(rng.uniform(60, 170), rng.uniform(2, 40), int(n * share) + 1)
        light = rng.normal(rng.uniform(180, 245), rng.uniform(1, 12), n)
        grey = np.clip(np.concatenate([dark, light]), 0, 255).astype(np.uint8)
        cases.append(case(f"mixture {k}", grey))
    cases.append(case("two values", np.array([10] * 5 + [200] * 7, np.uint8)))
    cases.append(case("gap", np.array([0, 0, 1, 254, 255], np.uint8)))
    cases.append(case("uniform", np.arange(256, dtype=np.uint8)))
    for path in sorted(Path(sys.argv[1]).rglob("*"))[:6] if len(sys.argv) > 1 else []:
        rgb = np.asarray(Image.open(path).convert("RGB").resize((512, 512), Image.BOX)).astype(int)
        grey = ((299 * rgb[..., 0] + 587 * rgb[..., 1] + 114 * rgb[..., 2] + 500) // 1000).astype(np.uint8)
        cases.append(case(f"frame {path.name}", grey))
    text = ",\n".join(json.dumps(c, separators=(",", ":")) for c in cases)
    (Path(__file__).parent / "otsu.json").write_text(f"[\n{text}\n]\n")


if __name__ == "__main__":
    main()
