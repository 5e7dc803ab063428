"""Golden outputs of timm 1.0 and torch 2.11: python crates/net/tests/golden/generate.py"""

import json
import pathlib
import re

import timm
import torch
import torch.nn as nn
import torch.nn.functional as F
from timm.optim import param_groups_layer_decay, param_groups_weight_decay

from fill import fill, sample, signed, values

HERE = pathlib.Path(__file__).parent
torch.set_num_threads(2)
torch.use_deterministic_algorithms(True)


def write(name, value):
    text = json.dumps(value, indent=1)
    # One line per list of numbers.
    text = re.sub(r"\[\s+((?:[^\[\]{}]|\n)*?)\s+\]", lambda m: "[" + " ".join(m[1].split()) + "]", text)
    (HERE / f"{name}.json").write_text(text + "\n")


class Unet(nn.Module):
    """Efficient-UNet: timm's features and a plain decoder."""

    def __init__(self):
        super().__init__()
        self.encoder = timm.create_model("efficientnet_b0", features_only=True)
        skips, c = [16, 24, 40, 112, 320], 320
        self.decoder = nn.ModuleList()
        for i, o in enumerate([256, 128, 64, 32, 16]):
            k = c + (skips[3 - i] if i < 4 else 0)
            self.decoder.append(nn.ModuleDict(dict(
                conv1=nn.Conv2d(k, o, 3, padding=1, bias=False), bn1=nn.BatchNorm2d(o),
                conv2=nn.Conv2d(o, o, 3, padding=1, bias=False), bn2=nn.BatchNorm2d(o))))
            c = o
        self.head = nn.Conv2d(16, 1, 3, padding=1)

    def forward(self, x):
        maps = self.encoder(x)
        y = maps[-1]
        for i, d in enumerate(self.decoder):
            y = F.interpolate(y, scale_factor=2, mode="nearest")
            if i < 4:
                y = torch.cat([y, maps[3 - i]], 1)
            y = F.relu(d["bn1"](d["conv1"](y)))
            y = F.relu(d["bn2"](d["conv2"](y)))
        return self.head(y)


@torch.no_grad()
def encoders():
    cases = []
    for name, image, kwargs in [
        ("efficientnet_b0", 96, {}), ("efficientnet_b7", 64, {}), ("efficientnet_lite0", 96, {}),
        ("efficientnet_lite2", 96, {}),
        ("efficientnetv2_s", 96, {}), ("vit_tiny_patch16_224", 224, {}),
        ("vit_tiny_patch16_224", 224, {"global_pool": "avg"}), ("vit_small_patch16_224", 224, {}),
        ("vit_base_patch16_224", 224, {}), ("vit_large_patch16_224", 224, {"depth": 2}),
        ("vit_huge_patch14_224", 224, {"depth": 2}),
    ]:
        model = fill(timm.create_model(name, num_classes=10, **kwargs)).eval()
        x = signed("input", (2, 3, image, image), 1.5)
        tokens = model.forward_features(x)
        cases.append({"name": name, "image": image, "depth": kwargs.get("depth"),
                      "pool": {"avg": "mean"}.get(kwargs.get("global_pool"), "cls"),
                      "parameters": sum(p.numel() for p in model.parameters()),
                      "features": sample(tokens),
                      "embed": sample(model.forward_head(tokens, pre_logits=True)),
                      "logits": sample(model(x))})
    write("encoders", cases)


def train_step():
    model = fill(timm.create_model("efficientnet_b0", num_classes=10)).train()
    out = model(signed("input", (2, 3, 128, 128), 1.5))
    (out * signed("weights", (2, 10))).sum().backward()
    params, buffers = dict(model.named_parameters()), dict(model.named_buffers())
    write("train_step", {
        "logits": sample(out),
        "grads": {n: sample(params[n].grad) for n in [
            "conv_stem.weight", "bn1.bias", "blocks.1.0.se.conv_reduce.weight",
            "blocks.3.1.conv_dw.weight", "blocks.5.0.conv_pwl.weight", "blocks.6.0.bn3.weight",
            "conv_head.weight", "classifier.weight", "classifier.bias"]},
        "buffers": {n: sample(buffers[n]) for n in [
            "bn1.running_mean", "bn1.running_var", "blocks.2.1.bn2.running_mean",
            "blocks.4.0.bn3.running_var", "bn2.running_mean", "bn2.running_var"]}})


def unet():
    model = fill(Unet()).eval()
    with torch.no_grad():
        out = model(signed("input", (1, 3, 96, 128), 1.5))
    write("unet", {"parameters": sum(p.numel() for p in model.parameters()), "logits": sample(out, 64)})


def groups():
    out = {}
    for name in ["efficientnet_b0", "vit_tiny_patch16_224"]:
        model = timm.create_model(name, num_classes=2)
        names = {id(p): n for n, p in model.named_parameters()}
        keep = model.no_weight_decay() if hasattr(model, "no_weight_decay") else ()
        layered = param_groups_layer_decay(model, 0.05, keep, layer_decay=0.75)
        flat = param_groups_weight_decay(model, 0.05, no_weight_decay_list=keep)
        out[name] = {
            "layer_decay": {names[id(p)]: [g["lr_scale"], g["weight_decay"]]
                            for g in layered for p in g["params"]},
            "weight_decay": sorted(names[id(p)] for g in flat if g["weight_decay"] for p in g["params"])}
    write("groups", out)


SHAPES = {"w": (5, 7), "b": (5,), "conv": (4, 3, 3, 3)}


def adamw():
    params = {n: nn.Parameter(values(n, s)) for n, s in SHAPES.items()}
    opt = torch.optim.AdamW([
        {"params": [params["w"], params["conv"]], "weight_decay": 0.05, "lr_scale": 1.0},
        {"params": [params["b"]], "weight_decay": 0.0, "lr_scale": 0.5}], betas=(0.9, 0.95))
    norms = []
    for step in range(5):
        for g in opt.param_groups:
            g["lr"] = 0.01 * (step + 1) * g["lr_scale"]
        for n, p in params.items():
            p.grad = signed(f"grad.{step}.{n}", p.shape)
        norms.append(float(torch.nn.utils.clip_grad_norm_(params.values(), 3.0)))
        opt.step()
    write("adamw", {"norms": norms, "params": {n: sample(p, 1000) for n, p in params.items()}})


def lars():
    """LARS as in the MAE reference: trust ratio and decay on matrices only, momentum after."""
    params = {n: values(n, s) for n, s in SHAPES.items()}
    mu = {n: torch.zeros(s) for n, s in SHAPES.items()}
    lr, wd, momentum, trust = 0.3, 0.01, 0.9, 0.001
    for step in range(5):
        for n, p in params.items():
            g = signed(f"grad.{step}.{n}", p.shape)
            if p.ndim > 1:
                g = g + wd * p
                pn, gn = p.norm(), g.norm()
                g = g * (trust * pn / gn if pn > 0 and gn > 0 else 1.0)
            mu[n] = momentum * mu[n] + g
            params[n] = p - lr * mu[n]
    write("lars", {n: sample(p, 1000) for n, p in params.items()})


def losses():
    logits = signed("logits", (2, 1, 8, 8), 4.0).requires_grad_()
    target = (signed("target", (2, 1, 8, 8)) > 0.3).float()
    keep = (signed("keep", (2, 1, 8, 8)) > -0.5).float()
    bce = F.binary_cross_entropy_with_logits(logits, target, reduction="none", pos_weight=torch.tensor(3.0))
    bce = bce[keep > 0].mean()
    p, t = torch.sigmoid(logits)[keep > 0], target[keep > 0]
    dice = 1 - (2 * (p * t).sum() + 1) / (p.sum() + t.sum() + 1)
    (0.7 * bce + 0.3 * dice).backward()
    out = {"segment": {"bce": bce.item(), "dice": dice.item(), "grad": sample(logits.grad, 128)}}
    x = signed("class_logits", (6, 4), 3.0).requires_grad_()
    y = torch.tensor([0, 3, 1, 1, 2, 0])
    loss = nn.CrossEntropyLoss(torch.tensor([1.0, 2.0, 0.5, 3.0]), label_smoothing=0.1)(x, y)
    loss.backward()
    out["classify"] = {"loss": loss.item(), "grad": sample(x.grad)}
    write("losses", out)


if __name__ == "__main__":
    for f in [groups, adamw, lars, losses, train_step, unet, encoders]:
        f()
