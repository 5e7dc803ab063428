"""The two networks as plain PyTorch modules, with the weights of a mithras model package.

The package's ONNX files hold the weights in the order of execution, batch norm folded into the
convolutions; modules are filled in that order and `check` compares every output with ONNX
Runtime's. Folded batch norm makes these modules a little faster than unfolded ones: to the peer's
advantage.
"""

import tomllib
from pathlib import Path

import numpy as np
import onnx
import timm
import torch
from onnx import numpy_helper
from torch import nn
from torch.nn import functional as F


class Stage(nn.Module):
    def __init__(self, i, o):
        super().__init__()
        self.first = nn.Conv2d(i, o, 3, padding=1)
        self.second = nn.Conv2d(o, o, 3, padding=1)

    def forward(self, x):
        return F.relu(self.second(F.relu(self.first(x), inplace=True)), inplace=True)


class EfficientUNet(nn.Module):
    """`widths` are those of the decoder's stages; with less than five its logits are enlarged."""

    def __init__(self, encoder, widths):
        super().__init__()
        self.encoder = timm.create_model(encoder, features_only=True, pretrained=False)
        fold(self.encoder)
        skips = self.encoder.feature_info.channels()
        ins, joins = [skips[4], *widths[:-1]], [skips[3], skips[2], skips[1], skips[0], 0]
        self.decoder = nn.ModuleList(Stage(i + j, o) for i, j, o in zip(ins, joins, widths))
        self.head = nn.Conv2d(widths[-1], 1, 3, padding=1)

    def forward(self, image):
        f = self.encoder(image)
        x = f[4]
        for stage, skip in zip(self.decoder, [f[3], f[2], f[1], f[0], None]):
            x = F.interpolate(x, scale_factor=2, mode="nearest")
            x = stage(x if skip is None else torch.cat([x, skip], 1))
        x = self.head(x)
        if len(self.decoder) < 5:
            x = F.interpolate(x, scale_factor=2 ** (5 - len(self.decoder)), mode="bilinear")
        return torch.sigmoid(x)


class Classifier(nn.Module):
    def __init__(self, architecture, classes):
        super().__init__()
        self.net = timm.create_model(architecture, pretrained=False, num_classes=classes)

    def forward(self, image):
        return torch.softmax(self.net(image), 1)


def fold(net):
    """Convolutions get a bias; timm's norm-act layers keep their activation alone."""
    for module in list(net.modules()):
        for name, child in list(module.named_children()):
            if isinstance(child, nn.BatchNorm2d):
                setattr(module, name, getattr(child, "act", nn.Identity()))
            elif isinstance(child, nn.Conv2d) and child.bias is None:
                child.bias = nn.Parameter(torch.zeros(child.out_channels))


class Weights:
    """Initialisers by name, f16 ones with their Cast resolved."""

    def __init__(self, path):
        self.graph = onnx.load(path).graph
        self.at = {i.name: numpy_helper.to_array(i) for i in self.graph.initializer}
        for node in self.graph.node:
            if node.op_type == "Cast" and node.input[0] in self.at:
                self.at[node.output[0]] = self.at[node.input[0]].astype(np.float32)

    def of(self, name):
        return torch.from_numpy(np.array(self.at[name], np.float32))


def fill(convs, nodes, w):
    """Convolutions in the order of execution."""
    assert len(convs) == len(nodes), f"{len(convs)} convolutions here, {len(nodes)} in the file"
    with torch.no_grad():
        for conv, node in zip(convs, nodes):
            conv.weight.copy_(w.of(node.input[1]))
            conv.bias.copy_(w.of(node.input[2]))


def attribute(node, name):
    return next(onnx.helper.get_attribute_value(a) for a in node.attribute if a.name == name)


def load_unet(path):
    w = Weights(path)
    nodes = [n for n in w.graph.node if n.op_type == "Conv"]
    # A stage of the decoder begins with an upsampling, and has two convolutions; then the head.
    nearest = [n for n in w.graph.node if n.op_type == "Resize" and attribute(n, "mode") == b"nearest"]
    first = nodes[-1 - 2 * len(nearest) : -1 : 2]
    encoder = w.graph.name.replace("efficient-unet-", "efficientnet_")
    net = EfficientUNet(encoder, [w.of(n.input[1]).shape[0] for n in first])
    fill([m for m in net.modules() if isinstance(m, nn.Conv2d)], nodes, w)
    return net.eval()


def load_efficientnet(path, architecture, classes):
    w, net = Weights(path), Classifier(architecture, classes)
    fold(net.net)
    nodes = [n for n in w.graph.node if n.op_type == "Conv"]
    fill([m for m in net.modules() if isinstance(m, nn.Conv2d)], nodes, w)
    mat = next(n for n in w.graph.node if n.op_type == "MatMul")
    add = next(n for n in w.graph.node if mat.output[0] in n.input)
    with torch.no_grad():
        net.net.classifier.weight.copy_(w.of(mat.input[1]).T)
        net.net.classifier.bias.copy_(next(w.of(i) for i in add.input if i in w.at))
    return net.eval()


def load_vit(path, architecture, classes):
    w, net = Weights(path), Classifier(architecture, classes)
    vit = net.net
    norms = [n for n in w.graph.node if n.op_type == "LayerNormalization"]
    mats = [w.of(n.input[1]) for n in w.graph.node if n.op_type == "MatMul" and n.input[1] in w.at]
    gemms = [n for n in w.graph.node if n.op_type == "Gemm"]
    adds = [w.of(i) for n in w.graph.node if n.op_type == "Add" for i in n.input
            if i in w.at and w.at[i].ndim >= 1]
    conv = next(n for n in w.graph.node if n.op_type == "Conv")
    with torch.no_grad():
        vit.patch_embed.proj.weight.copy_(w.of(conv.input[1]))
        vit.patch_embed.proj.bias.copy_(w.of(conv.input[2]))
        cls = [a for a in w.at.values() if a.dtype == np.float32 and a.shape == tuple(vit.cls_token.shape)]
        vit.cls_token.copy_(torch.from_numpy(np.array(cls[0])))
        vit.pos_embed.copy_(adds.pop(0))
        for module, node in zip([m for m in vit.modules() if isinstance(m, nn.LayerNorm)], norms, strict=True):
            module.weight.copy_(w.of(node.input[1]))
            module.bias.copy_(w.of(node.input[2]))
        linears = [m for m in vit.modules() if isinstance(m, nn.Linear)]
        if gemms:
            head = linears.pop()
            head.weight.copy_(w.of(gemms[-1].input[1]))
            head.bias.copy_(w.of(gemms[-1].input[2]))
        for linear, weight, bias in zip(linears, mats, adds, strict=True):
            linear.weight.copy_(weight.T)
            linear.bias.copy_(bias)
        # The exporter moved the scale of the scores into the query.
        for block in vit.blocks:
            d = block.attn.qkv.in_features
            scale = (d // block.attn.num_heads) ** 0.5
            block.attn.qkv.weight[:d] *= scale
            block.attn.qkv.bias[:d] *= scale
    return net.eval()


class ResNetV2(nn.Module):
    """The operations of the file one by one, as eager PyTorch runs them: timm has no network cut after its third stage."""

    def __init__(self, path):
        super().__init__()
        w = Weights(path)
        self.nodes = [n for n in w.graph.node if n.op_type != "Cast"]
        self.named = {}
        for node in self.nodes:
            for name in node.input:
                if name in w.at and name not in self.named:
                    self.named[name] = f"w{len(self.named)}"
                    self.register_parameter(self.named[name], nn.Parameter(w.of(name)))

    def forward(self, image):
        at = {"image": image}
        for node in self.nodes:
            x, *more = [getattr(self, self.named[n]) if n in self.named else at[n] for n in node.input]
            if node.op_type == "Conv":
                stride, pads = attribute(node, "strides"), attribute(node, "pads")
                x = F.conv2d(x, *more, stride=stride, padding=pads[:2])
            elif node.op_type == "MaxPool":
                x = F.max_pool2d(x, attribute(node, "kernel_shape"), attribute(node, "strides"), attribute(node, "pads")[:2])
            else:
                x = {
                    "Relu": F.relu, "Add": torch.add, "Mul": torch.mul, "MatMul": torch.matmul,
                    "GlobalAveragePool": lambda x: x.mean((2, 3), keepdim=True),
                    "Flatten": lambda x: x.flatten(1), "Softmax": lambda x: torch.softmax(x, -1),
                }[node.op_type](x, *more)
            at[node.output[0]] = x
        return x


def load_resnet_v2(path, architecture, classes):
    return ResNetV2(path).eval()


def load(package):
    """(card, segmenter, classifier) of a package folder."""
    package = Path(package)
    card = tomllib.loads((package / "card.toml").read_text())
    c = card["classifier"]
    unet = load_unet(package / card["segmenter"]["file"])
    known = {"efficientnet": load_efficientnet, "resnet50v2": load_resnet_v2, "vit": load_vit}
    of = next(load for start, load in known.items() if c["architecture"].startswith(start))
    return card, unet, of(package / c["file"], c["architecture"], len(c["classes"]))


def check(package):
    """Largest difference to ONNX Runtime on noise, per network."""
    import onnxruntime
    card, unet, classifier = load(package)
    out = {}
    for key, net, side in (("segmenter", unet, card["segmenter"]["window"]),
                           ("classifier", classifier, card["classifier"]["input"])):
        x = torch.randn(1, 3, side, side, generator=torch.Generator().manual_seed(1))
        session = onnxruntime.InferenceSession(Path(package) / card[key]["file"])
        with torch.inference_mode():
            mine = net(x).numpy()
        out[key] = float(np.abs(mine - session.run(None, {"image": x.numpy()})[0]).max())
        # On noise, far from any slide, sums in another order show more: a real window of 512 px of the
        # bundled segmenter differs by 2e-4.
        assert out[key] < 5e-3, f"{key} differs by {out[key]}"
    return out


if __name__ == "__main__":
    import sys
    print(check(sys.argv[1]))
