"""Tissue mask of a slide: openslide-python + OpenCV next to this project's, the same steps, one thread each.

usage: python benches/peer/tissue.py TISSUE_SPEED_BINARY SLIDE... [--mpp UM_PER_PX] [--repeats N]

Steps: open the slide, read the overview at 8 um/px (finer for small slides, as `TissueOptions` does), grey, Otsu, fill
holes below 0.05 mm2, drop pieces below 0.02 mm2 (both at most 1 % of the slide). OpenSlide reads the level that suits
the overview and OpenCV averages it down (INTER_AREA). Both masks are compared: the share of pixels that agree.
"""

import argparse
import json
import math
import subprocess
import time

import cv2
import numpy as np
import openslide

cv2.setNumThreads(1)


def flip_small(mask: np.ndarray, value: bool, limit: int) -> np.ndarray:
    n, labels, stats, _ = cv2.connectedComponentsWithStats((mask == value).astype(np.uint8), connectivity=4)
    h, w = mask.shape
    for i in range(1, n):
        x, y, dx, dy, area = stats[i]
        at_border = x == 0 or y == 0 or x + dx == w or y + dy == h
        if area < limit and (value or not at_border):
            mask[labels == i] = not value
    return mask


def tissue(path: str, given: float | None) -> np.ndarray:
    slide = openslide.OpenSlide(path)
    w, h = slide.dimensions
    own = given or float(slide.properties[openslide.PROPERTY_NAME_MPP_X])
    mpp = max(min(8.0, own * max(w, h) / 512), own)
    size = (math.ceil(w * own / mpp), math.ceil(h * own / mpp))
    level = slide.get_best_level_for_downsample(mpp / own)
    rgb = np.asarray(slide.read_region((0, 0), level, slide.level_dimensions[level]).convert("RGB"))
    grey = cv2.cvtColor(cv2.resize(rgb, size, interpolation=cv2.INTER_AREA), cv2.COLOR_RGB2GRAY)
    threshold, _ = cv2.threshold(grey, 0, 255, cv2.THRESH_BINARY_INV | cv2.THRESH_OTSU)
    mask = grey <= threshold
    pixel, most = mpp * mpp * 1e-6, mask.size * 0.01
    limit = lambda mm2: math.ceil(min(mm2 / pixel, most))  # noqa: E731
    mask = flip_small(mask, False, limit(0.05))
    return flip_small(mask, True, limit(0.02))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("own")
    parser.add_argument("slides", nargs="+")
    parser.add_argument("--mpp", type=float)
    parser.add_argument("--repeats", type=int, default=7)
    a = parser.parse_args()
    for path in a.slides:
        peer = []
        for _ in range(a.repeats):
            start = time.process_time()
            mask = tissue(path, a.mpp)
            peer.append(time.process_time() - start)
        command = [a.own, path, str(a.repeats)] + ([str(a.mpp)] if a.mpp else [])
        ours = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
        theirs = np.unpackbits(np.array(ours["mask"], np.uint8))[: ours["width"] * ours["height"]]
        theirs = theirs.reshape(ours["height"], ours["width"]).astype(bool)
        h, w = min(mask.shape[0], theirs.shape[0]), min(mask.shape[1], theirs.shape[1])
        same = (mask[:h, :w] == theirs[:h, :w]).mean()
        fast, own = min(peer), min(ours["seconds"])
        print(
            f"{path.rsplit('/', 1)[-1]}: mithras {1000 * own:.1f} ms, openslide + OpenCV {1000 * fast:.1f} ms "
            f"(fastest of {a.repeats}, CPU time), {fast / own:.1f} times as fast; masks agree on {100 * same:.2f} %"
        )


if __name__ == "__main__":
    main()
