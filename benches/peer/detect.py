"""The same job as `mithras detect`, the way one writes it in Python today: OpenSlide, PyTorch
(eager), scikit-image and scipy.

    python detect.py SLIDE --model PACKAGE --out FOLDER [--threads N] [--batch N] [--channels-last] [--compile]

Otsu tissue, windows of 512 at stride 400 over tissue at the model's resolution, overlapping
probabilities averaged, threshold, opening, connected regions, 128 px crops at native resolution,
second stage, operating point, 2 mm2 hotspot and density. Prints one JSON line with counts and the
seconds of every stage; imports, and loading the model, are in `start_s`.
"""

import time

BEGIN = time.perf_counter()

import argparse
import csv
import json
import math
from pathlib import Path

import numpy as np
import openslide
import torch
from PIL import Image
from scipy import ndimage
from scipy.spatial import cKDTree
from skimage.filters import threshold_otsu
from torch.utils.data import DataLoader, Dataset

import nets


class Patches(Dataset):
    """Squares of `side` px at `mpp`, read from level 0 with their corner at (x, y) there."""

    def __init__(self, slide, corners, side, scale, size):
        self.slide, self.corners, self.side, self.scale, self.size = slide, corners, side, scale, size

    def __len__(self):
        return len(self.corners)

    def __getitem__(self, i):
        x, y = self.corners[i]
        level0 = round(self.side * self.scale)
        patch = self.slide.read_region((round(x), round(y)), 0, (level0, level0)).convert("RGB")
        if patch.size != (self.size, self.size):
            patch = patch.resize((self.size, self.size), Image.BILINEAR)
        return torch.from_numpy(np.array(patch)).permute(2, 0, 1)


def tissue(slide, mpp):
    """Otsu on the grey thumbnail; (mask, level-0 px per mask px)."""
    step = 8.0 / mpp
    w, h = slide.dimensions
    grey = np.asarray(slide.get_thumbnail((math.ceil(w / step), math.ceil(h / step))).convert("L"))
    return grey <= threshold_otsu(grey), w / grey.shape[1]


def symmetric(classifier, x, copies, positive, least):
    """Mean answer over the first `copies` flips and quarter turns; where the first copy gives class `positive` less
    than `least`, its answer alone."""
    total = classifier(x)
    open_ = total[:, positive] >= least
    x = x[open_]
    for n in range(1, copies) if len(x) else ():
        y = x.flip(3) if n & 1 else x
        y = y.flip(2) if n & 2 else y
        total[open_] += classifier(y.transpose(2, 3) if n & 4 else y)
    total[open_] /= copies
    return total


def main():
    p = argparse.ArgumentParser()
    p.add_argument("slide")
    p.add_argument("--model", required=True)
    p.add_argument("--out", required=True)
    p.add_argument("--mpp", type=float)
    p.add_argument("--threads", type=int, default=0)
    p.add_argument("--batch", type=int, default=4)
    p.add_argument("--workers", type=int, default=0)
    p.add_argument("--channels-last", action="store_true")
    p.add_argument("--compile", action="store_true", help="both networks by torch.compile")
    a = p.parse_args()
    if a.threads:
        torch.set_num_threads(a.threads)
    seconds, clock = {}, [BEGIN]

    def lap(stage):
        now = time.perf_counter()
        seconds[stage] = seconds.get(stage, 0.0) + now - clock[0]
        clock[0] = now

    card, unet, classifier = nets.load(a.model)
    if a.channels_last:
        unet = unet.to(memory_format=torch.channels_last)
    if a.compile:
        unet, classifier = torch.compile(unet), torch.compile(classifier, dynamic=True)
    s, c, rule, op = (card[k] for k in ("segmenter", "classifier", "candidates", "operating_point"))
    slide = openslide.OpenSlide(a.slide)
    mpp = a.mpp or float(slide.properties[openslide.PROPERTY_NAME_MPP_X])
    lap("start_s")

    mask, step = tissue(slide, mpp)
    scale = s["mpp"] / mpp
    width, height = (int(d / scale) for d in slide.dimensions)
    side, stride = s["window"], s["stride"]
    corners = []
    for y in range(0, height, stride):
        for x in range(0, width, stride):
            x0, y0, x1, y1 = (v * scale / step for v in (x, y, x + side, y + side))
            if mask[int(y0):math.ceil(y1), int(x0):math.ceil(x1)].any():
                corners.append((x * scale, y * scale))
    lap("tissue_s")

    norm = lambda part: [torch.tensor(part[k]).view(1, 3, 1, 1) for k in ("mean", "std")]

    def batches(points, side, card, size, batch):
        mean, std = norm(card)
        data = Patches(slide, points, side, card["mpp"] / mpp, size)
        for i, pixels in enumerate(DataLoader(data, batch_size=batch, num_workers=a.workers)):
            yield i * batch, (pixels.float() / 255 - mean) / std

    total = np.zeros((height + side, width + side), np.float32)
    number = np.zeros_like(total)
    with torch.inference_mode():
        for first, x in batches(corners, side, s, side, a.batch):
            lap("read_s")
            if a.channels_last:
                x = x.to(memory_format=torch.channels_last)
            for k, map_ in enumerate(unet(x)[:, 0].numpy()):
                x0, y0 = (round(v / scale) for v in corners[first + k])
                total[y0:y0 + side, x0:x0 + side] += map_
                number[y0:y0 + side, x0:x0 + side] += 1
            lap("segment_s")
    mean = np.divide(total, number, out=total, where=number > 0)[:height, :width]

    r = rule["opening_radius"]
    hot = mean >= rule["threshold"]
    if r:
        hot = ndimage.binary_opening(hot, np.ones((2 * r + 1, 2 * r + 1)))
    labels, n = ndimage.label(hot, np.ones((3, 3)))
    index = np.arange(1, n + 1)
    area = ndimage.sum_labels(hot, labels, index)
    index = index[area >= rule["min_area_px"]]
    s_seg = ndimage.mean(mean, labels, index)
    centres = [((x + 0.5) * scale, (y + 0.5) * scale) for y, x in ndimage.center_of_mass(hot, labels, index)]
    lap("extract_s")

    s_cls = []
    half = c["crop"] * c["mpp"] / mpp / 2
    with torch.inference_mode():
        points = [(x - half, y - half) for x, y in centres]
        for _, x in batches(points, c["crop"], c, c["input"], 32):
            positive = c["classes"].index(c["positive"])
            s_cls.extend(symmetric(classifier, x, c.get("symmetries", 1), positive, c.get("symmetries_from", 0.0))[
                :, positive].tolist())
    # The likeliest of candidates so near to each other represents all.
    near_um = rule.get("min_separation_um", rule.get("apart_um"))
    if near_um and centres:
        tree, left = cKDTree(centres), set(range(len(centres)))
        for k in sorted(left, key=lambda k: -s_cls[k]):
            if k in left:
                left -= set(tree.query_ball_point(centres[k], near_um / mpp)) - {k}
        left = sorted(left)
        centres, s_seg, s_cls = ([of[k] for k in left] for of in (centres, s_seg, s_cls))
    lap("classify_s")

    accepted = [f >= op["seg"] and g >= op["cls"] for f, g in zip(s_seg, s_cls)]
    figures = np.array([p for p, ok in zip(centres, accepted) if ok]).reshape(-1, 2)
    mm2 = float((number > 0).sum()) * (s["mpp"] / 1000) ** 2
    most = 0
    if len(figures):
        near = cKDTree(figures).query_ball_point(figures, math.sqrt(2) / 2 * 1000 / mpp, p=math.inf)
        most = max(map(len, near))
    out = Path(a.out)
    out.mkdir(parents=True, exist_ok=True)
    with open(out / "detections.csv", "w", newline="") as f:
        rows = csv.writer(f)
        rows.writerow(["x_px", "y_px", "x_um", "y_um", "s_seg", "s_cls", "accepted"])
        for (x, y), f_, g, ok in zip(centres, s_seg, s_cls, accepted):
            rows.writerow([x, y, x * mpp, y * mpp, f_, g, ok])
    lap("write_s")
    result = {"windows": len(corners), "candidates": len(centres), "accepted": len(figures),
              "analysed_mm2": mm2, "hotspot": most, "per_20_mm2": 20 * len(figures) / mm2 if mm2 else 0,
              "threads": torch.get_num_threads(), "total_s": time.perf_counter() - BEGIN, **seconds}
    (out / "counts.json").write_text(json.dumps(result))
    print(json.dumps({k: round(v, 4) if isinstance(v, float) else v for k, v in result.items()}))


if __name__ == "__main__":
    main()
