"""Golden pixels of the views' operations, by torchvision on Pillow images.

python crates/pixels/tests/golden/views.py
"""

import json
import pathlib

import numpy as np
import torchvision.transforms.functional as F
from PIL import Image


def picture(w, h):
    state, out = 12345, np.zeros((h, w, 3), np.uint8)
    for y in range(h):
        for x in range(w):
            for c in range(3):
                state = (state * 1664525 + 1013904223) % 2**32
                out[y, x, c] = (x * (5 + c) + y * (9 - 2 * c) + 40 * c + (state >> 24) % 64) % 256
    return Image.fromarray(out)


def crop(img, x, y, w, h, size, flip_x, flip_y):
    out = F.resized_crop(img, y, x, h, w, [size, size])
    out = F.hflip(out) if flip_x else out
    return F.vflip(out) if flip_y else out


OPS = {
    "crop": crop,
    "brightness": F.adjust_brightness, "contrast": F.adjust_contrast,
    "saturation": F.adjust_saturation, "hue": F.adjust_hue,
    "grey": lambda img: F.rgb_to_grayscale(img, 3),
    "blur": lambda img, k, s: F.gaussian_blur(img, [k, k], [s, s]),
    "solarise": F.solarize,
}
CASES = [
    ("crop", 0, 0, 40, 32, 56, 0, 0), ("crop", 7, 3, 19, 23, 48, 1, 0),
    ("crop", 1, 2, 36, 29, 16, 0, 1), ("crop", 10, 10, 12, 15, 33, 1, 1),
    ("brightness", 0.6), ("brightness", 1.37), ("contrast", 0.61), ("contrast", 1.4),
    ("saturation", 0.8), ("saturation", 1.19), ("saturation", 0.0),
    ("hue", 0.1), ("hue", -0.07), ("hue", 0.5), ("hue", -0.5), ("grey",),
    ("blur", 9, 0.1), ("blur", 9, 1.3), ("blur", 23, 2.0), ("blur", 3, 5.0),
    ("solarise", 128), ("solarise", 30),
]


def main():
    out = []
    for op, *args in CASES:
        result = np.asarray(OPS[op](picture(40, 32), *args))
        out.append({"op": op, "args": args, "size": [result.shape[1], result.shape[0]],
                    "pixels": result.tobytes().hex()})
    path = pathlib.Path(__file__).with_suffix(".json")
    path.write_text(json.dumps(out, indent=0) + "\n")


if __name__ == "__main__":
    main()
