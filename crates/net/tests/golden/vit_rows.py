"""Names and shapes of every vision transformer's row at full width, and timm's own facts:
python crates/net/tests/golden/vit_rows.py"""

import re

import timm
import torch
import torch.nn as nn
from timm.layers import SwiGLUPacked

from conch import Conch
from generate import write

GIANT = {"img_size": 224, "patch_size": 14, "num_heads": 24, "embed_dim": 1536, "mlp_ratio": 2.66667 * 2,
         "init_values": 1e-5, "no_embed_class": True, "mlp_layer": SwiGLUPacked, "act_layer": nn.SiLU}
HUGE = {"init_values": 1e-5, "mlp_ratio": 5.3375, "mlp_layer": SwiGLUPacked, "act_layer": nn.SiLU}

# timm's name and arguments as the authors' own instructions (or TRIDENT's) give them.
ROWS = {
    "augreg-vits16": ("vit_small_patch16_224.augreg_in21k_ft_in1k", {}),
    "augreg-vitb16": ("vit_base_patch16_224.augreg_in21k_ft_in1k", {}),
    "augreg-vitl16": ("vit_large_patch16_224.augreg_in21k_ft_in1k", {}),
    "mae-vitb16": ("vit_base_patch16_224.mae", {}),
    "mae-vitl16": ("vit_large_patch16_224.mae", {}),
    "mae-vith14": ("vit_huge_patch14_224.mae", {}),
    "dinov2-vits14": ("vit_small_patch14_dinov2.lvd142m", {}),
    "dinov2-vitb14": ("vit_base_patch14_dinov2.lvd142m", {}),
    "dinov2-vitl14": ("vit_large_patch14_dinov2.lvd142m", {}),
    "dinov2-vitg14": ("vit_giant_patch14_dinov2.lvd142m", {}),
    "dinov2-vits14-reg4": ("vit_small_patch14_reg4_dinov2.lvd142m", {}),
    "dinov2-vitb14-reg4": ("vit_base_patch14_reg4_dinov2.lvd142m", {}),
    "dinov2-vitl14-reg4": ("vit_large_patch14_reg4_dinov2.lvd142m", {}),
    "dinov2-vitg14-reg4": ("vit_giant_patch14_reg4_dinov2.lvd142m", {}),
    "clip-vitb16": ("vit_base_patch16_clip_quickgelu_224.openai", {"num_classes": 512}),
    "clip-vitb32": ("vit_base_patch32_clip_quickgelu_224.openai", {"num_classes": 512}),
    "plip": ("vit_base_patch32_clip_quickgelu_224", {"num_classes": 512}),
    "lunit-vits8": ("vit_small_patch8_224", {}),
    "lunit-vits16": ("vit_small_patch16_224", {}),
    "uni_v1": ("vit_large_patch16_224", {"init_values": 1e-5}),
    "uni_v2": ("vit_giant_patch14_224", GIANT | {"depth": 24, "reg_tokens": 8}),
    "digepath": ("vit_large_patch16_224", {"init_values": 1e-5}),
    "gpfm": ("vit_large_patch14_dinov2", {"img_size": 224}),
    "virchow": ("vit_huge_patch14_224", HUGE),
    "virchow2": ("vit_huge_patch14_224", HUGE | {"reg_tokens": 4}),
    "virchow2-cls": ("vit_huge_patch14_224", HUGE | {"reg_tokens": 4}),
    "phikon": ("vit_base_patch16_224", {}),
    "phikon_v2": ("vit_large_patch16_224", {"init_values": 1e-5}),
    "gigapath": ("vit_giant_patch14_dinov2", {
        "img_size": 224, "patch_size": 16, "embed_dim": 1536, "depth": 40, "num_heads": 24,
        "mlp_ratio": 5.33334}),
    "gigapath-flash": ("vit_small_patch16_224", {
        "mlp_ratio": 2048 / 384, "mlp_layer": SwiGLUPacked, "act_layer": nn.SiLU, "init_values": 1e-5}),
    "hoptimus0": ("vit_giant_patch14_reg4_dinov2", {"img_size": 224}),
    "hoptimus1": ("vit_giant_patch14_reg4_dinov2", {"img_size": 224}),
    # As its teacher, of a base's width.
    "h0-mini": ("vit_base_patch14_reg4_dinov2", {
        "img_size": 224, "mlp_ratio": 2.66667 * 2, "mlp_layer": SwiGLUPacked, "act_layer": nn.SiLU}),
    "midnight12k": ("vit_giant_patch14_dinov2", {"img_size": 224}),
    "openmidnight": ("vit_giant_patch14_reg4_dinov2", {"img_size": 224}),
    "hibou_l": ("vit_large_patch14_reg4_dinov2", {
        "img_size": 224, "mlp_ratio": 5472 / 1024, "mlp_layer": SwiGLUPacked, "act_layer": nn.SiLU}),
    "kaiko-vits8": ("vit_small_patch8_224", {}),
    "kaiko-vits16": ("vit_small_patch16_224", {}),
    "kaiko-vitb8": ("vit_base_patch8_224", {}),
    "kaiko-vitb16": ("vit_base_patch16_224", {}),
    "kaiko-vitl14": ("vit_large_patch14_reg4_dinov2", {"img_size": 224}),
    "conch_v1": ("vit_base_patch16_224", {"img_size": 448}),
    "conch_v1_projected": ("vit_base_patch16_224", {"img_size": 448}),
}


def conch(trunk):
    """Its file's names, below `visual.`"""
    whole = nn.Module()
    whole.visual = Conch({"dim": 768, "attention": {"dim": 512, "heads": 8}}, lambda _: trunk)
    return whole


def rows():
    """Every parameter's shape at full size (no values), and timm's own facts where it has weights."""
    out = {}
    for name, (timm_name, kwargs) in ROWS.items():
        with torch.device("meta"):
            model = timm.create_model(timm_name, **({"num_classes": 0} | kwargs))
            if name.startswith("conch"):
                model = conch(model)
        blocks = {n: int(found[1]) for n in model.state_dict() if (found := re.search(r"\bblocks\.(\d+)\.", n))}
        row = {"blocks": 1 + max(blocks.values()),
               "tensors": {n: list(t.shape) for n, t in model.state_dict().items() if not blocks.get(n)}}
        if "." in timm_name:
            cfg = model.pretrained_cfg
            row["facts"] = {"image": cfg["input_size"][1], "mean": cfg["mean"], "std": cfg["std"],
                            "interpolation": cfg["interpolation"],
                            # OpenAI cuts nothing off (timm's is the default of all its models).
                            "crop": 1.0 if timm_name.endswith(".openai") else cfg["crop_pct"]}
        out[name] = row
    write("vit_rows", out)


if __name__ == "__main__":
    rows()
