"""Networks at seeded weights for infer's tests: run with torch, timm, onnx.

    python generate.py tiny            writes tiny/ beside this file (kept in git, < 300 KB)
    python generate.py full FOLDER     writes a package of the real size (kept out of git)

`full` is what the engines meet in use: an EfficientNet-b0 encoder (timm, features_only) with a
plain U-Net decoder, and timm's vit_tiny_patch16_224; weights are drawn from a seed, so nothing is
learnt, but the outputs vary with the input.
"""

import hashlib
import json
import sys
from pathlib import Path

import numpy as np
import onnx
import torch
from onnx import TensorProto, helper, numpy_helper
from torch import nn

HERE = Path(__file__).parent
MEAN, STD = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]


class Block(nn.Sequential):
    def __init__(self, i, o):
        super().__init__(
            nn.Conv2d(i, o, 3, padding=1, bias=False), nn.BatchNorm2d(o), nn.ReLU(),
            nn.Conv2d(o, o, 3, padding=1, bias=False), nn.BatchNorm2d(o), nn.ReLU())


class EfficientUNet(nn.Module):
    """Encoder features at strides 2, 4, 8, 16, 32; nearest upsampling; sigmoid inside."""

    def __init__(self):
        super().__init__()
        import timm
        self.encoder = timm.create_model("efficientnet_b0", features_only=True, pretrained=False)
        skips = self.encoder.feature_info.channels()  # 16, 24, 40, 112, 320
        widths = [256, 128, 64, 32, 16]
        ins = [skips[4], *widths[:4]]
        joins = [skips[3], skips[2], skips[1], skips[0], 0]
        self.blocks = nn.ModuleList(Block(i + j, o) for i, j, o in zip(ins, joins, widths))
        self.head = nn.Conv2d(16, 1, 3, padding=1)

    def forward(self, image):
        f = self.encoder(image)
        x = f[4]
        for block, skip in zip(self.blocks, [f[3], f[2], f[1], f[0], None]):
            x = nn.functional.interpolate(x, scale_factor=2, mode="nearest")
            x = block(x if skip is None else torch.cat([x, skip], 1))
        return torch.sigmoid(self.head(x))


class TinySegmenter(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(3, 8, 3, padding=1), nn.SiLU(), nn.Conv2d(8, 8, 3, stride=2, padding=1),
            nn.BatchNorm2d(8), nn.ReLU(), nn.Upsample(scale_factor=2), nn.Conv2d(8, 1, 3, padding=1))

    def forward(self, image):
        return torch.sigmoid(self.body(image))


class Softmax(nn.Module):
    def __init__(self, net):
        super().__init__()
        self.net = net

    def forward(self, image):
        return torch.softmax(self.net(image), 1)


def tiny_classifier():
    return Softmax(nn.Sequential(
        nn.Conv2d(3, 8, 8, stride=8), nn.GELU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(),
        nn.LayerNorm(8), nn.Linear(8, 3)))


def seed(net):
    """Weights that keep activations in range, batch-norm statistics that are not the identity."""
    g = torch.Generator().manual_seed(20260101)
    for m in net.modules():
        if isinstance(m, (nn.Conv2d, nn.Linear)):
            fan = m.weight[0].numel()
            m.weight.data = torch.randn(m.weight.shape, generator=g) * (2.0 / fan) ** 0.5
            if m.bias is not None:
                m.bias.data = torch.randn(m.bias.shape, generator=g) * 0.1
        elif isinstance(m, nn.BatchNorm2d):
            m.weight.data = 0.8 + 0.4 * torch.rand(m.weight.shape, generator=g)
            m.bias.data = torch.randn(m.bias.shape, generator=g) * 0.1
    return net.eval()


@torch.no_grad()
def settle(net, side):
    """Batch-norm statistics from a picture, so that deep layers neither die nor blow up."""
    for m in net.modules():
        if isinstance(m, nn.BatchNorm2d):
            m.momentum = None
    net.train()
    for _ in range(2):
        net(normalise(picture(side)))
    return net.eval()


def picture(side):
    """A drawn uint8 HWC picture; the Rust tests draw the same."""
    y, x = np.mgrid[0:side, 0:side]
    return np.stack([(x * 7 + y * 3) % 256, (x * x // 5 + y) % 256, (x ^ y) % 256], -1).astype(np.uint8)


def normalise(rgb):
    x = (rgb.astype(np.float32) / np.float32(255) - np.float32(MEAN)) / np.float32(STD)
    return torch.from_numpy(x.astype(np.float32).transpose(2, 0, 1)[None].copy())


def export(net, side, path):
    torch.onnx.export(
        net, (torch.zeros(1, 3, side, side),), str(path), input_names=["image"],
        output_names=["probability"], dynamic_axes={"image": {0: "N"}, "probability": {0: "N"}},
        opset_version=17, dynamo=False)


def to_f16(path):
    """f32 initialisers of rank > 1 become f16 with a Cast behind each."""
    model = onnx.load(path)
    graph = model.graph
    casts = []
    for init in graph.initializer:
        if init.data_type == TensorProto.FLOAT and len(init.dims) > 1:
            name = init.name
            half = numpy_helper.from_array(numpy_helper.to_array(init).astype(np.float16), name + "_f16")
            init.CopyFrom(half)
            casts.append(helper.make_node("Cast", [half.name], [name], to=TensorProto.FLOAT))
    nodes = casts + list(graph.node)
    del graph.node[:]
    graph.node.extend(nodes)
    onnx.checker.check_model(model)
    onnx.save(model, path)


def sha(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


def card(folder, name, window, stride, crop, side, classes, positive):
    text = f'''schema = 1
name = "{name}"
license = "no licence needed: seeded weights"

[segmenter]
file = "segmenter.onnx"
sha256 = "{sha(folder / "segmenter.onnx")}"
architecture = "seeded"
mpp = 0.25
window = {window}
stride = {stride}
mean = {MEAN}
std = {STD}

[candidates]
method = "regions"
threshold = 0.3
opening_radius = 1
min_area_px = 20

[classifier]
file = "classifier.onnx"
sha256 = "{sha(folder / "classifier.onnx")}"
architecture = "seeded"
mpp = 0.25
crop = {crop}
input = {side}
mean = {MEAN}
std = {STD}
classes = {json.dumps(classes)}
positive = "{positive}"

[operating_point]
seg = 0.3
cls = 0.5
provenance = "none: seeded weights"
'''
    (folder / "card.toml").write_text(text)


def tiny():
    folder = HERE / "tiny"
    folder.mkdir(exist_ok=True)
    seg, cls = settle(seed(TinySegmenter()), 64), seed(tiny_classifier())
    export(seg, 64, folder / "segmenter.onnx")
    export(cls, 32, folder / "classifier.onnx")
    # Expected outputs, before weights are rounded to f16: the tests allow for that rounding.
    with torch.no_grad():
        s = seg(normalise(picture(64)))[0, 0].numpy()
        c = cls(normalise(picture(32)))[0].numpy()
    to_f16(folder / "segmenter.onnx")
    to_f16(folder / "classifier.onnx")
    card(folder, "tiny", 64, 48, 32, 32, ["a", "b", "c"], "b")
    golden = {"segmenter": {"mean": float(s.mean()), "std": float(s.std()), "corner": s[:2, :8].ravel().tolist()},
              "classifier": c.tolist(), "resize": resized()}
    (folder / "golden.json").write_text(json.dumps(golden) + "\n")


def resized():
    """Pillow's bilinear resize, up as crops go (16 to 28) and down."""
    from PIL import Image
    source = Image.fromarray(picture(16))
    return {str(n): np.asarray(source.resize((n, n), Image.BILINEAR)).ravel().tolist() for n in (28, 9)}


def full(folder):
    import timm
    folder.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(20260101)
    seg = settle(seed(EfficientUNet()), 256)
    cls = Softmax(timm.create_model("vit_tiny_patch16_224", pretrained=False, num_classes=2)).eval()
    torch.nn.init.normal_(cls.net.head.weight, std=0.5)
    export(seg, 512, folder / "segmenter.onnx")
    export(cls, 224, folder / "classifier.onnx")
    to_f16(folder / "segmenter.onnx")
    to_f16(folder / "classifier.onnx")
    card(folder, "seeded-full", 512, 400, 128, 224, ["non_mitotic", "mitotic"], "mitotic")


if __name__ == "__main__":
    if sys.argv[1:2] == ["tiny"]:
        tiny()
    elif sys.argv[1:2] == ["full"] and len(sys.argv) == 3:
        full(Path(sys.argv[2]))
    else:
        sys.exit(__doc__)
