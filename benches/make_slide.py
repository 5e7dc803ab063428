"""Tiles real frames into one pyramidal TIFF: 256 px JPEG tiles, resolution written, white margin.

    python make_slide.py FRAMES OUT.tiff [--frames N] [--mpp 0.2456]
"""

import argparse
import math
from pathlib import Path

import numpy as np
import tifffile
from PIL import Image


def main():
    p = argparse.ArgumentParser()
    p.add_argument("frames")
    p.add_argument("out")
    p.add_argument("--frames", dest="count", type=int, default=0)
    p.add_argument("--mpp", type=float, default=0.2456)
    a = p.parse_args()
    files = sorted(f for f in Path(a.frames).iterdir() if f.suffix.lower() in (".png", ".jpg", ".bmp", ".tif", ".tiff"))
    if a.count:
        # Spread over the slides, not the first of one.
        files = [files[i * len(files) // a.count] for i in range(a.count)]
    tiles = [np.asarray(Image.open(f).convert("RGB")) for f in files]
    h, w = tiles[0].shape[:2]
    columns = math.ceil(math.sqrt(len(tiles)))
    rows = math.ceil(len(tiles) / columns)
    margin = 1024
    canvas = np.full((rows * h + 2 * margin, columns * w + 2 * margin, 3), 243, np.uint8)
    for i, tile in enumerate(tiles):
        y, x = margin + i // columns * h, margin + i % columns * w
        canvas[y:y + h, x:x + w] = tile
    per_cm = (1e4 / a.mpp, 1e4 / a.mpp)
    options = dict(tile=(256, 256), photometric="rgb", compression="jpeg", compressionargs={"level": 90},
                   resolutionunit="CENTIMETER")
    with tifffile.TiffWriter(a.out, bigtiff=False) as tiff:
        tiff.write(canvas, resolution=per_cm, **options)
        factor = 4
        while min(canvas.shape[0], canvas.shape[1]) // factor > 256:
            small = np.asarray(Image.fromarray(canvas).reduce(factor))
            tiff.write(small, subfiletype=1, resolution=tuple(r / factor for r in per_cm), **options)
            factor *= 4
    print(f"{a.out}: {len(tiles)} frames, {canvas.shape[1]}x{canvas.shape[0]} px")


if __name__ == "__main__":
    main()
