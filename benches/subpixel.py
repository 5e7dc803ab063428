"""How far `s_cls` moves when a candidate's centre moves by half a pixel, and what averaging takes off it.

    python benches/subpixel.py PACKAGE ROBUSTNESS FRAMES [--mpp 0.2456] [--count 150]

ROBUSTNESS is a folder of `mithras evaluate robustness` on FRAMES (its candidates.csv is read, the unchanged
images alone). Each of COUNT candidates from 0.3 is sampled bilinearly at four centres half a pixel apart and
classified by ONNX Runtime: alone, as the mean over two and four flips, over four shifts by a quarter of a
pixel, and over both. Prints mean, 95th percentile and most of the spread over the four centres.
"""

import argparse
import csv
import tomllib
from pathlib import Path

import numpy as np
import onnxruntime
from PIL import Image

CENTRES = [(0, 0), (0.5, 0), (0, 0.5), (0.5, 0.5)]
SHIFTS = [(-0.25, -0.25), (0.25, -0.25), (-0.25, 0.25), (0.25, 0.25)]


def sample(image, x, y, card, mpp):
    """The classifier's input around (x, y), normalised, [side, side, 3]."""
    side = card["input"]
    grid = (np.arange(side) + 0.5 - side / 2) * (card["crop"] * card["mpp"] / mpp / side) - 0.5
    xs = np.clip(x + grid, 0, image.shape[1] - 1.001)
    ys = np.clip(y + grid, 0, image.shape[0] - 1.001)
    x0, y0 = xs.astype(int), ys.astype(int)
    fx, fy = (xs - x0)[None, :, None], (ys - y0)[:, None, None]
    upper = image[y0][:, x0] * (1 - fx) + image[y0][:, x0 + 1] * fx
    lower = image[y0 + 1][:, x0] * (1 - fx) + image[y0 + 1][:, x0 + 1] * fx
    return ((upper * (1 - fy) + lower * fy) / 255 - card["mean"]) / card["std"]


def flips(v, n):
    return [v, v[:, ::-1], v[::-1], v[::-1, ::-1]][:n]


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ["package", "robustness", "frames"]:
        p.add_argument(name, type=Path)
    p.add_argument("--mpp", type=float, default=0.2456)
    p.add_argument("--count", type=int, default=150)
    a = p.parse_args()
    card = tomllib.loads((a.package / "card.toml").read_text())["classifier"]
    session = onnxruntime.InferenceSession(a.package / card["file"])
    figure = card["classes"].index(card["positive"])

    def score(crops):
        x = np.stack(crops).transpose(0, 3, 1, 2).astype(np.float32)
        return session.run(None, {"image": x})[0][:, figure].mean()

    rows = [r for r in csv.DictReader((a.robustness / "candidates.csv").open()) if r["perturbation"] == "clean"]
    rows = [r for r in rows if float(r["s_seg"]) >= 0.3]
    np.random.default_rng(1).shuffle(rows)
    images, spreads = {}, {}
    for r in rows[: a.count]:
        if r["image"] not in images:
            file = next(a.frames.glob(r["image"] + ".*"))
            images[r["image"]] = np.asarray(Image.open(file).convert("RGB")).astype(np.float32)
        image, x, y = images[r["image"]], float(r["x_um"]) / a.mpp, float(r["y_um"]) / a.mpp
        scores = {}
        for dx, dy in CENTRES:
            at = sample(image, x + dx, y + dy, card, a.mpp)
            shifted = [sample(image, x + dx + i, y + dy + j, card, a.mpp) for i, j in SHIFTS]
            ways = {
                "alone": [at], "two flips": flips(at, 2), "four flips": flips(at, 4), "four shifts": shifted,
                "two flips of four shifts": [f for s in shifted for f in flips(s, 2)],
            }
            for way, crops in ways.items():
                scores.setdefault(way, []).append(score(crops))
        for way, s in scores.items():
            spreads.setdefault(way, []).append(max(s) - min(s))
    for way, s in spreads.items():
        print(f"{way:26} mean {np.mean(s):.4f}, 95th percentile {np.quantile(s, 0.95):.4f}, most {np.max(s):.4f}")


if __name__ == "__main__":
    main()
