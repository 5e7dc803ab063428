"""Golden outputs of the convolutional and window-attention encoders: python crates/net/tests/golden/conv.py

timm 1.0.31, torchvision 0.26. ResNet-50 v2's network is the script that stands beside its weights;
without them (MITHRAS_DATA names the folder) the files that it has a part in stay as they are.
"""

import importlib.util
import json
import os
import pathlib
import re
import sys

import timm
import torch
import torch.nn as nn
import torchvision
from timm.models.swin_transformer import SwinTransformer, checkpoint_filter_fn
from timm.optim import param_groups_layer_decay

from fill import fill, sample, signed, values

HERE = pathlib.Path(__file__).parent
torch.set_num_threads(1)
torch.use_deterministic_algorithms(True)


def write(name, value):
    text = json.dumps(value, indent=1)
    # One line per list of numbers or names.
    text = re.sub(r"\[\s+((?:[^\[\]{}]|\n)*?)\s+\]", lambda m: "[" + " ".join(m[1].split()) + "]", text)
    (HERE / f"{name}.json").write_text(text + "\n")


class ConvStem(nn.Module):
    """Two 3x3 convolutions of stride 2, then a 1x1: `proj.0, 1, 3, 4, 6`, `norm`."""

    def __init__(self, img_size, patch_size, in_chans, embed_dim, norm_layer, **_):
        super().__init__()
        assert patch_size == 4 and in_chans == 3
        self.grid_size, layers, i = (img_size // 4,) * 2, [], 3
        for o in (embed_dim // 8, embed_dim // 4):
            layers += [nn.Conv2d(i, o, 3, 2, 1, bias=False), nn.BatchNorm2d(o), nn.ReLU()]
            i = o
        self.proj = nn.Sequential(*layers, nn.Conv2d(i, embed_dim, 1))
        self.norm = norm_layer(embed_dim)

    def forward(self, x):
        return self.norm(self.proj(x).permute(0, 2, 3, 1))


def swin_conv_stem(image, classes):
    return SwinTransformer(img_size=image, patch_size=4, window_size=7, embed_dim=96, depths=(2, 2, 6, 2),
                           num_heads=(3, 6, 12, 24), embed_layer=ConvStem, num_classes=classes, drop_path_rate=0)


class ResNetV2(nn.Module):
    """The script's network, a mean over places, a linear layer."""

    def __init__(self, script, classes):
        super().__init__()
        for name, part in script.ResNet50V2Stage3().named_children():
            setattr(self, name, part)
        self.fc, self.features = nn.Linear(1024, classes), script.ResNet50V2Stage3.forward

    def forward(self, x):
        return self.fc(self.features(self, x).mean((2, 3)))

    def group_matcher(self, coarse=False):
        """timm's for its own ResNets v2, in the script's names."""
        return {"stem": r"^(?:norm0|conv|norm1)\.", "blocks": [(r"^stages\.(\d+)\.(\d+)", None), (r"^norm\.", (99999,))]}


def resnet_v2_script():
    data = pathlib.Path(os.environ.get("MITHRAS_DATA", HERE.parents[4] / "shared" / "data"))
    path = data / "weights" / "resnet50v2.py"
    if not path.exists():
        return None, None
    spec = importlib.util.spec_from_file_location("resnet50v2", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module, path.parent / "resnet50v2_imagenet_stage3.safetensors"


def torchvision_embed(model, x):
    return torch.flatten(model.avgpool(model.features(x)), 1)


def timm_embed(model, x):
    return model.forward_head(model.forward_features(x), pre_logits=True)


@torch.no_grad()
def encoders():
    cases = []

    def case(name, image, model, embed):
        model = fill(model).eval()
        x = signed("input", (1, 3, image, image), 1.5)
        cases.append({"name": name, "image": image, "parameters": sum(p.numel() for p in model.parameters()),
                      "embed": sample(embed(model, x)), "logits": sample(model(x))})

    # 224 is native, 288 and 160 have windows and halves that do not come out even.
    for image in (224, 288, 152):
        case("swin_tiny_patch4_window7_224", image,
             timm.create_model("swin_tiny_patch4_window7_224", img_size=image, num_classes=10), timm_embed)
    for image in (224, 288):
        case("swin_tiny_convstem_window7_224", image, swin_conv_stem(image, 10), timm_embed)
    for image in (224, 75):
        case("resnet50", image, timm.create_model("resnet50", num_classes=10), timm_embed)
    case("resnet50", 96, torchvision.models.resnet50(num_classes=10),
         lambda m, x: nn.Sequential(*list(m.children())[:-1])(x).flatten(1))
    # 224 is what all are fed here; odd sides show which end `SAME` pads.
    for name in [f"{port}efficientnet_b{i}" for port in ("", "tf_") for i in range(8)] + [
            "efficientnet_lite0", "efficientnet_lite2", "efficientnetv2_s", "tf_efficientnetv2_s"]:
        for image in (224, 75):
            case(name, image, timm.create_model(name, num_classes=10), timm_embed)
    write("conv_encoders", cases)


def step(name, model, image, grads, buffers=()):
    """In f64: in f32 rounding decides which side of a ReLU a value falls on, and gradients jump."""
    model = fill(model).double().train()
    out = model(signed("input", (2, 3, image, image), 1.5).double())
    (out * signed("weights", (2, 10))).sum().backward()
    params, state = dict(model.named_parameters()), dict(model.named_buffers())
    return {"name": name, "image": image, "logits": sample(out),
            "grads": {n: sample(params[n].grad) for n in grads}, "buffers": {n: sample(state[n]) for n in buffers}}


def steps(script):
    write("conv_steps", [
        step("resnet50v2_stage3", ResNetV2(script, 10), 128,
             ["norm0.bias", "conv.weight", "norm1.weight", "stages.0.0.downsample.weight", "stages.1.2.norm2.bias",
              "stages.2.0.conv2.weight", "stages.2.5.conv3.weight", "norm.weight", "fc.weight"],
             ["norm0.running_mean", "stages.1.0.norm1.running_var", "norm.running_mean"]),
        step("efficientnetv2_s", timm.create_model("efficientnetv2_s", num_classes=10), 128,
             ["conv_stem.weight", "bn1.bias", "blocks.0.1.conv.weight", "blocks.1.0.conv_exp.weight",
              "blocks.2.3.bn2.weight", "blocks.3.0.conv_dw.weight", "blocks.4.2.se.conv_expand.weight",
              "blocks.5.0.conv_pwl.weight", "conv_head.weight", "classifier.weight"],
             ["bn1.running_var", "blocks.1.0.bn1.running_mean", "blocks.3.0.bn3.running_var", "bn2.running_var"]),
        step("resnet50", timm.create_model("resnet50", num_classes=10), 128,
             ["conv1.weight", "bn1.bias", "layer1.0.downsample.0.weight", "layer2.1.conv2.weight",
              "layer4.0.bn3.weight", "layer4.2.conv3.weight", "fc.weight"],
             ["bn1.running_mean", "layer3.0.downsample.1.running_var", "layer4.2.bn3.running_mean"]),
        step("tf_efficientnet_b0", timm.create_model("tf_efficientnet_b0", num_classes=10), 128,
             ["conv_stem.weight", "bn1.bias", "blocks.1.0.conv_dw.weight", "blocks.3.1.se.conv_expand.weight",
              "blocks.5.0.conv_pwl.weight", "conv_head.weight", "classifier.weight"],
             ["bn1.running_var", "blocks.2.0.bn2.running_mean", "bn2.running_var"]),
        step("swin_tiny_convstem_window7_224", swin_conv_stem(160, 10), 160,
             ["patch_embed.proj.0.weight", "patch_embed.proj.6.bias", "patch_embed.norm.weight",
              "layers.0.blocks.1.attn.relative_position_bias_table", "layers.1.downsample.reduction.weight",
              "layers.2.blocks.3.attn.qkv.weight", "layers.3.blocks.1.attn.relative_position_bias_table",
              "layers.3.blocks.1.mlp.fc2.bias", "norm.weight", "head.fc.weight"],
             ["patch_embed.proj.1.running_mean", "patch_embed.proj.4.running_var"])])


def groups(script):
    out = {}
    for name, model in [("resnet50v2_stage3", ResNetV2(script, 2)),
                        ("resnet50", timm.create_model("resnet50", num_classes=2)),
                        ("swin_tiny_patch4_window7_224", timm.create_model("swin_tiny_patch4_window7_224", num_classes=2)),
                        ("efficientnetv2_s", timm.create_model("efficientnetv2_s", num_classes=2))]:
        names = {id(p): n for n, p in model.named_parameters()}
        keep = model.no_weight_decay() if hasattr(model, "no_weight_decay") else ()
        out[name] = [{"scale": g["lr_scale"], "decay": g["weight_decay"], "names": sorted(names[id(p)] for p in g["params"])}
                     for g in param_groups_layer_decay(model, 0.05, keep, layer_decay=0.75)]
    write("conv_groups", out)


def shapes(model):
    return {n: tuple(t.shape) for n, t in model.state_dict().items()}


def at(image):
    return signed("input", (1, 3, image, image), 1.5)


@torch.no_grad()
def layouts():
    """Files as published: names and shapes of each, and vectors of the reference filled under those names."""
    out = []

    def case(rows, layout, names, **more):
        out.append({"rows": rows.split(), "layout": layout, "names": {n: list(s) for n, s in names.items()}} | more)

    def vectors(embed, model, *images):
        return [{"image": i, "embed": sample(embed(model, at(i)))} for i in images]

    model = fill(torchvision.models.efficientnet_v2_s()).eval()
    case("bertram-v2s", "torchvision", shapes(model), classes=1000, victim="features.5.3.block.2.fc2.weight",
         vectors=vectors(torchvision_embed, model, 224, 75))
    model = fill(timm.create_model("efficientnet_b7", num_classes=1000)).eval()
    case("mdfs-b7", "timm", shapes(model), classes=1000, victim="blocks.5.3.se.conv_expand.weight",
         vectors=vectors(timm_embed, model, 64))
    # A texture classifier's two parts.
    resnet = torchvision.models.resnet50(num_classes=9).eval()
    parts = {}
    for n, s in shapes(resnet).items():
        part, name = ("classifier", "module." + n[3:]) if n.startswith("fc.") else ("model", "module.encoder." + n)
        parts[part + "/" + name] = s
        if not n.endswith("num_batches_tracked"):
            resnet.state_dict()[n].copy_(values(name, s))
    case("impash", "texture", parts, classes=9, victim="encoder.layer3.2.bn2.running_var",
         vectors=[{"image": i, "logits": sample(resnet(at(i)))} for i in (64, 224)])
    model = fill(swin_conv_stem(224, 0)).eval()
    case("ctranspath chief", "timm", shapes(model), classes=0, victim="layers.2.downsample.norm.weight",
         vectors=vectors(timm_embed, model, 224))
    # timm's older Swin: patches merge at the end of a stage, buffers are stored.
    old = {re.sub(r"layers\.(\d+)\.downsample", lambda m: f"layers.{int(m[1]) - 1}.downsample", n): s
           for n, s in shapes(model).items()}
    state = {n: values(n, s) for n, s in old.items() if not n.endswith("num_batches_tracked")}
    result = model.load_state_dict(checkpoint_filter_fn(dict(state), model), strict=False)
    assert not result.unexpected_keys and all(k.endswith("num_batches_tracked") for k in result.missing_keys), result
    for i, depth in enumerate((2, 2, 6, 2)):
        for j in range(depth):
            old[f"layers.{i}.blocks.{j}.attn.relative_position_index"] = (49, 49)
            if j % 2 and i < 3:
                old[f"layers.{i}.blocks.{j}.attn_mask"] = ((8 >> i) ** 2, 49, 49)
    case("ctranspath chief", "old_swin", old, classes=0, victim="layers.1.downsample.norm.weight",
         vectors=vectors(timm_embed, model, 224))
    write("conv_layouts", out)


@torch.no_grad()
def resnet_v2(script, weights):
    from safetensors.torch import load_file

    model = fill(script.ResNet50V2Stage3()).eval()
    seeded = [{"image": i, "features": sample(model(signed("input", (1, 3, i, i), 1.5)))} for i in (224, 96, 75)]
    model.load_state_dict({k: v.float() for k, v in load_file(weights).items()}, strict=False)
    x = torch.sin(torch.arange(3 * 64 * 64, dtype=torch.float32) * 0.01).reshape(1, 3, 64, 64)
    y = model(x)
    write("resnet50v2", {"parameters": sum(p.numel() for p in model.parameters()), "seeded": seeded,
                         "real": {"features": sample(y), "mean": y.mean().item(), "max": y.max().item()}})


if __name__ == "__main__":
    script, weights = resnet_v2_script()
    if script is None:
        print("SKIPPED: no resnet50v2.py; set MITHRAS_DATA", file=sys.stderr)
    else:
        resnet_v2(script, weights)
        groups(script)
        steps(script)
    for f in [layouts, encoders]:
        f()
