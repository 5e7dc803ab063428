"""A tiny seeded encoder and its features by PyTorch: run with torch, onnx, numpy, pillow.

    python generate.py        writes tiny.onnx and golden.json beside this file

The Rust tests draw the same pictures. `tiny.onnx` has the names of a common exporter (`input`,
`output`); `nan.onnx` is the same network with one weight that is not a number, `tokens.onnx` gives
a vector per patch, `mixed.onnx` centres over the batch, so that an image tells on its neighbour. `open.onnx` states
no width, as exporters leave it out where they cannot tell.
"""

import json
from pathlib import Path

import numpy as np
import onnx
import torch
from torch import nn

HERE = Path(__file__).parent
MEAN, STD = [0.7032, 0.5361, 0.6610], [0.2172, 0.2608, 0.2072]
SIDE, WIDTH = 32, 6


class Tokens(nn.Module):
    """Patches of 8 px with a vector each."""

    def __init__(self):
        super().__init__()
        self.patch = nn.Conv2d(3, 16, 8, stride=8)
        self.mix = nn.Linear(16, 16)

    def forward(self, x):
        t = torch.nn.functional.gelu(self.patch(x)).flatten(2).transpose(1, 2)
        return t + self.mix(t)


class Pooled(nn.Module):
    def __init__(self, tokens):
        super().__init__()
        self.tokens, self.norm, self.head = tokens, nn.LayerNorm(16), nn.Linear(16, WIDTH)

    def forward(self, x):
        return self.head(self.norm(self.tokens(x).mean(1)))


class Mixed(nn.Module):
    """Centred over the batch, as batch normalisation left in its training mode is."""

    def __init__(self, net):
        super().__init__()
        self.net = net

    def forward(self, x):
        y = self.net(x)
        return y - y.mean(0, keepdim=True)


def seeded(net):
    g = torch.Generator().manual_seed(20260102)
    for p in net.parameters():
        p.data = torch.randn(p.shape, generator=g) * (0.7 if p.dim() > 1 else 0.3)
    return net.eval()


def picture(side, k):
    """A drawn uint8 HWC picture; the Rust tests draw the same."""
    y, x = np.mgrid[0:side, 0:side]
    planes = [(x * 7 + y * 3 + k * 31) % 256, (x * x // 5 + y * (k + 1)) % 256, (x ^ y ^ k) % 256]
    return np.stack(planes, -1).astype(np.uint8)


def slide():
    """White, with a drawn block of 5 x 3 tiles that begins at column 2, row 1."""
    image = np.full((6 * SIDE, 9 * SIDE, 3), 245, np.uint8)
    y, x = np.mgrid[0:3 * SIDE, 0:5 * SIDE]
    block = np.stack([120 + (x * 3 + y) % 80, 40 + (x + y * 5) % 60, 110 + (x * y) % 70], -1)
    image[SIDE:4 * SIDE, 2 * SIDE:7 * SIDE] = block.astype(np.uint8)
    return image


@torch.no_grad()
def features(net, rgb):
    x = (rgb.astype(np.float32) / np.float32(255) - np.float32(MEAN)) / np.float32(STD)
    return net(torch.from_numpy(x.astype(np.float32).transpose(2, 0, 1)[None].copy()))[0].tolist()


def export(net, name):
    torch.onnx.export(
        net, (torch.zeros(2, 3, SIDE, SIDE),), str(HERE / name), input_names=["input"],
        output_names=["output"], dynamic_axes={"input": {0: "batch"}, "output": {0: "batch"}},
        opset_version=17, dynamo=False)


def main():
    from PIL import Image

    torch.set_num_threads(1)
    tokens = Tokens()
    net = seeded(Pooled(tokens))
    export(net, "tiny.onnx")
    model = onnx.load(HERE / "tiny.onnx")
    model.graph.output[0].type.tensor_type.shape.dim[1].dim_param = "width"
    onnx.save(model, HERE / "open.onnx")
    export(net.tokens, "tokens.onnx")
    export(Mixed(net), "mixed.onnx")
    large = picture(100, 3)
    resized = {
        name: features(net, np.asarray(Image.fromarray(large).resize((SIDE, SIDE), by)))
        for name, by in [("bilinear", Image.BILINEAR), ("bicubic", Image.BICUBIC)]
    }
    image = slide()
    tiles = {}
    for y in range(0, image.shape[0], SIDE):
        for x in range(0, image.shape[1], SIDE):
            tiles[f"{x}_{y}"] = features(net, image[y:y + SIDE, x:x + SIDE])
    golden = {"pictures": [features(net, picture(SIDE, k)) for k in range(5)], "resized": resized, "tiles": tiles}
    (HERE / "golden.json").write_text(json.dumps(golden) + "\n")
    net.head.weight.data[2, 3] = float("nan")
    export(net, "nan.onnx")


if __name__ == "__main__":
    main()
