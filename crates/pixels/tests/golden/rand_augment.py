"""Golden pixels of RandAugment's operations, by timm on Pillow images.

python crates/pixels/tests/golden/rand_augment.py
"""

import json
import pathlib
import random

import numpy as np
from PIL import Image
from timm.data import auto_augment as aa


def picture(w, h):
    state, out = 12345, np.zeros((h, w, 3), np.uint8)
    for y in range(h):
        for x in range(w):
            for c in range(3):
                state = (state * 1664525 + 1013904223) % 2**32
                out[y, x, c] = (x * (5 + c) + y * (9 - 2 * c) + 40 * c + (state >> 24) % 64) % 230
    return Image.fromarray(out)


hparams = dict(img_mean=(124, 116, 104), interpolation=Image.BICUBIC)
cases = []
for kind, name in enumerate(aa._RAND_INCREASING_TRANSFORMS):
    for level in [0.0, 4.3, 9.0, 10.0]:
        for negate in [False, True]:
            if name == "PosterizeIncreasing" and level == 10.0:
                continue  # 0 bits: this Pillow refuses what timm asks for
            random.random = lambda: 0.9 if negate else 0.1
            op = aa.AugmentOp(name, prob=1.0, magnitude=level, hparams=dict(hparams))
            out = np.asarray(op(picture(20, 16)))
            cases.append(dict(kind=kind, level=level, negate=negate, pixels=out.tobytes().hex()))
unique, seen = [], set()
for c in cases:
    key = (c["kind"], c["pixels"])
    if key not in seen:
        seen.add(key)
        unique.append(c)
path = pathlib.Path(__file__).with_name("rand_augment.json")
path.write_text("[\n" + ",\n".join(json.dumps(c) for c in unique) + "\n]\n")
print(len(unique))
