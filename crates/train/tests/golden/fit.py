"""What timm's evaluation transform makes of a picture of 300 x 260 px:
python crates/train/tests/golden/fit.py (timm 1.0.31, torchvision 0.26, Pillow 13)."""

import json
import pathlib

import numpy as np
import timm
from PIL import Image
from timm.data import create_transform, resolve_data_config

HERE = pathlib.Path(__file__).parent
# Every so many pixels are kept: 32 x 32 of each picture.
KEPT = 32


def picture(width=300, height=260):
    x, y = np.meshgrid(np.arange(width), np.arange(height))
    planes = [x * 7 + y * 3, x * x // 5 + y, x ^ y]
    # Off 0 and 255, which a cubic filter would overshoot.
    return Image.fromarray(np.stack([60 + p % 128 for p in planes], -1).astype(np.uint8))


def shown(**config):
    """After Resize and CenterCrop, before the values are normalised."""
    transform = create_transform(**config, is_training=False)
    image = picture()
    for step in transform.transforms[:2]:
        image = step(image)
    pixels = np.asarray(image)
    step = pixels.shape[0] // KEPT
    return {"side": pixels.shape[0], "step": step, "pixels": pixels[::step, ::step].flatten().tolist()}


augreg = timm.get_pretrained_cfg("vit_small_patch16_224.augreg_in21k_ft_in1k").to_dict()
augreg = resolve_data_config(pretrained_cfg=augreg)
assert (augreg["crop_pct"], augreg["interpolation"]) == (0.9, "bicubic"), augreg
golden = {
    "augreg-vits16": shown(**augreg),
    # As its makers write it: Resize(256, bicubic), CenterCrop(224).
    "gigapath": shown(input_size=(3, 224, 224), crop_pct=0.875, interpolation="bicubic"),
    # Resize(448, bicubic), CenterCrop(448).
    "conch_v1": shown(input_size=(3, 448, 448), crop_pct=1.0, interpolation="bicubic"),
    # Resize(224, bilinear), CenterCrop(224).
    "kaiko-vits16": shown(input_size=(3, 224, 224), crop_pct=1.0, interpolation="bilinear"),
}
(HERE / "fit.json").write_text(json.dumps(golden, separators=(",", ":")) + "\n")
