"""A plain PyTorch loop over the tiles that `mithras embed` wrote, to compare with.

    python embed.py export vit_small.onnx          a seeded ViT-S/16 as ONNX
    python embed.py loop SLIDE FEATURES.h5 [THREADS]

The loop reads the same tiles with OpenSlide, resizes them with Pillow, and runs them 32 at a time in
eager PyTorch. It prints tiles per second, and by how much its features differ (the two sides resample
slides by different filters).
"""

import sys
import time

import numpy as np
import torch

MEAN, STD = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]


def network():
    import timm

    torch.manual_seed(20260102)
    return timm.create_model("vit_small_patch16_224", pretrained=False, num_classes=0).eval()


def export(path):
    net = network()
    torch.onnx.export(
        net, (torch.zeros(2, 3, 224, 224),), path, input_names=["input"], output_names=["output"],
        dynamic_axes={"input": {0: "batch"}, "output": {0: "batch"}}, opset_version=17, dynamo=False)


@torch.no_grad()
def loop(slide, table, threads):
    import h5py
    import openslide
    from PIL import Image

    torch.set_num_threads(threads)
    net, slide = network(), openslide.open_slide(slide)
    with h5py.File(table) as f:
        coords, ours, a = f["coords"][:], f["features"][:], dict(f["coords"].attrs)
    side, level0 = int(a["patch_size"]), int(a["patch_size_level0"])
    mean, std = (np.float32(v) for v in (MEAN, STD))
    start, theirs = time.time(), []
    for part in np.array_split(coords, range(32, len(coords), 32)):
        tiles = [slide.read_region(tuple(map(int, xy)), 0, (level0, level0)).convert("RGB") for xy in part]
        tiles = [np.asarray(t.resize((side, side), Image.BILINEAR), np.float32) / 255 for t in tiles]
        x = (np.stack(tiles) - mean) / std
        theirs.append(net(torch.from_numpy(x.transpose(0, 3, 1, 2).copy())).numpy())
    seconds = time.time() - start
    theirs = np.concatenate(theirs)
    cosine = (theirs * ours).sum(1) / np.linalg.norm(theirs, axis=1) / np.linalg.norm(ours, axis=1)
    print(f"{len(coords)} tiles, {len(coords) / seconds:.1f} tiles/s, cosine with ours {cosine.min():.4f} at least")


if __name__ == "__main__":
    if sys.argv[1:2] == ["export"]:
        export(sys.argv[2])
    elif sys.argv[1:2] == ["loop"]:
        loop(sys.argv[2], sys.argv[3], int(sys.argv[4]) if len(sys.argv) > 4 else 2)
    else:
        sys.exit(__doc__)
