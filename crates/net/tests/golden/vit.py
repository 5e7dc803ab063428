"""Golden values of the vision-transformer family, timm's with every switch: python crates/net/tests/golden/vit.py"""

from functools import partial

import torch
import torch.nn as nn
from timm.layers import LayerNorm, Mlp, SwiGLUPacked
from timm.models.vision_transformer import VisionTransformer
from timm.optim import param_groups_layer_decay

from fill import fill, sample, signed
from generate import write

torch.set_num_threads(1)

BASE = {"dim": 48, "depth": 2, "heads": 3, "patch": 8, "image": 32, "classes": 0}
SWIGLU = {"mlp": "swi_glu", "mlp_ratio": 5.33334}
CLIP = {"pre_norm": True, "eps": 1e-5, "mlp": "quick_gelu", "projection": {"dim": 24}}

# What is switched on, and another image side.
SWITCHES = {
    "plain": ({}, 48),
    "layer_scale": ({"layer_scale": 1e-5}, 24),
    "patch_14": ({"patch": 14, "image": 56, "layer_scale": 1e-5}, 84),
    "registers": ({"registers": 4, "layer_scale": 1e-5}, 48),
    "free_registers": ({"registers": 4, "no_embed_class": True, "layer_scale": 1e-5}, 56),
    "no_embed_class": ({"no_embed_class": True}, 24),
    "swiglu": (SWIGLU | {"layer_scale": 1e-5}, 48),
    "pre_norm": ({"pre_norm": True, "eps": 1e-5}, 48),
    "quick_gelu": ({"mlp": "quick_gelu", "eps": 1e-5}, 48),
    "eps": ({"eps": 0.1}, 48),
    "mlp_ratio": ({"mlp_ratio": 3.4}, 48),
    "mean": ({"pool": "mean", "registers": 2}, 48),
    "uni_v2": (SWIGLU | {"registers": 8, "no_embed_class": True, "layer_scale": 1e-5}, 48),
    "virchow": ({"mlp": "swi_glu", "mlp_ratio": 5.3375, "layer_scale": 1e-5, "pool": "cls_mean"}, 48),
    "virchow2": ({"mlp": "swi_glu", "mlp_ratio": 5.3375, "layer_scale": 1e-5, "registers": 4,
                  "pool": "cls_mean"}, 48),
    "clip": (CLIP, 48),
}


def config(**switches):
    return BASE | switches


def vit(c, classes=0):
    act = {"quick_gelu": "quick_gelu", "swi_glu": nn.SiLU}.get(c.get("mlp"))
    projected = c.get("projection", {}).get("dim", 0)
    return VisionTransformer(
        img_size=c["image"], patch_size=c["patch"], num_classes=classes or projected,
        global_pool={"mean": "avg", "cls": "token"}.get(c.get("pool", "cls"), ""),
        embed_dim=c["dim"], depth=c["depth"], num_heads=c["heads"], mlp_ratio=c.get("mlp_ratio", 4.0),
        init_values=c.get("layer_scale"), no_embed_class=c.get("no_embed_class", False),
        reg_tokens=c.get("registers", 0), pre_norm=c.get("pre_norm", False),
        norm_layer=partial(LayerNorm, eps=c.get("eps", 1e-6)), act_layer=act,
        mlp_layer=SwiGLUPacked if c.get("mlp") == "swi_glu" else Mlp).eval()


def embed(model, c, x):
    tokens = model.forward_features(x)
    if c.get("pool") == "cls_mean":  # as Virchow's and Virchow2's cards have it
        return torch.cat([tokens[:, 0], tokens[:, 1 + c.get("registers", 0):].mean(1)], -1)
    return model.forward_head(tokens)


def image(side):
    return signed("input", (2, 3, side, side), 1.5)


def clip_head(model):
    """timm's CLIP has the projection as a head with a bias of zeros."""
    if isinstance(model.head, nn.Linear):
        nn.init.zeros_(model.head.bias)
    return model


@torch.no_grad()
def switches():
    out = []
    for name, (switched, other) in SWITCHES.items():
        c = config(**switched)
        model = clip_head(fill(vit(c)))
        case = {"name": name, "config": c, "other": other,
                "parameters": sum(p.numel() for p in model.parameters()),
                "tensors": {n: list(t.shape) for n, t in model.state_dict().items()},
                "features": sample(model.forward_features(image(c["image"]))),
                "embed": sample(embed(model, c, image(c["image"])))}
        model.set_input_size(other)
        case["embed_other"] = sample(embed(model, c, image(other)))
        out.append(case)
    write("vit_switches", out)


def gradients():
    out = {}
    for name, extra in [("uni_v2", {}), ("virchow2", {}), ("clip", {})]:
        c = config(**SWITCHES[name][0], **extra)
        model = clip_head(fill(vit(c)))
        y = embed(model, c, image(c["image"]))
        (y * signed("weights", tuple(y.shape))).sum().backward()
        params = dict(model.named_parameters())
        wanted = ["cls_token", "reg_token", "pos_embed", "patch_embed.proj.weight", "norm_pre.weight",
                  "blocks.0.ls1.gamma", "blocks.1.ls2.gamma", "blocks.0.attn.qkv.weight",
                  "blocks.1.mlp.fc1.weight", "blocks.1.mlp.fc2.bias", "norm.bias", "head.weight"]
        out[name] = {"config": c, "embed": sample(y),
                     "grads": {n: sample(params[n].grad) for n in wanted if n in params}}
    write("vit_gradients", out)


def groups():
    c = config(**SWITCHES["uni_v2"][0], pre_norm=True)
    model = vit(c, classes=3)
    names = {id(p): n for n, p in model.named_parameters()}
    layered = param_groups_layer_decay(model, 0.05, model.no_weight_decay(), layer_decay=0.75)
    write("vit_groups", {"config": c | {"classes": 3}, "layer_decay": {
        names[id(p)]: [g["lr_scale"], g["weight_decay"]] for g in layered for p in g["params"]}})


if __name__ == "__main__":
    for f in [switches, gradients, groups]:
        f()
