"""Golden values of the vision-transformer family: timm's with every switch, and files in the names
their authors publish them in, read by timm, transformers or CONCH's own layers.

python crates/net/tests/golden/vit.py            (needs `pip install transformers` beside timm)
"""

import pathlib
import tempfile
from functools import partial

import timm
import torch
import torch.nn as nn
import torch.nn.functional as F
from safetensors.torch import save_file
from timm.layers import LayerNorm, Mlp, SwiGLUPacked
from timm.models.vision_transformer import VisionTransformer, checkpoint_filter_fn
from timm.optim import param_groups_layer_decay

from fill import fill, sample, signed, values
from generate import write

HERE = pathlib.Path(__file__).parent
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


# Files in published names. Each gives (config, tensors of the file, vectors).


def drawn(shapes):
    return {n: values(n, tuple(s)) for n, s in shapes.items()}


def shapes(state):
    return {n: tuple(t.shape) for n, t in state.items()}


def by_timm(c, file, state=None):
    """The file's tensors, brought to timm's names by timm, and what its network makes of them."""
    model = vit(c)
    model.load_state_dict(checkpoint_filter_fn(dict(state or file), model), strict=True)
    return c, file, embed(model, c, image(c["image"]))


def flat(**switched):
    c = config(**switched)
    return by_timm(c, drawn(shapes(vit(c).state_dict())))


def dinov2_names(state, c):
    """timm's names and shapes to those of facebookresearch/dinov2."""
    out = {"mask_token": (1, c["dim"])}
    for n, s in shapes(state).items():
        n = n.replace("mlp.fc1", "mlp.w12").replace("mlp.fc2", "mlp.w3") if c.get("mlp") else n
        if n == "pos_embed" and c.get("no_embed_class"):
            s = (1, s[1] + 1, s[2])
        out[{"reg_token": "register_tokens"}.get(n, n)] = s
    return out


def dinov2(**switched):
    c = config(**switched)
    return by_timm(c, drawn(dinov2_names(vit(c).state_dict(), c)))


def gpfm():
    """A teacher: `backbone.`, two blocks in each of two chunks, heads beside."""
    c = config(depth=4, layer_scale=1e-5)
    chunked = {}
    for n, s in dinov2_names(vit(c).state_dict(), c).items():
        if n.startswith("blocks."):
            block = int(n.split(".")[1])
            n = f"blocks.{block // 2}.{n[len('blocks.'):]}"
        chunked["backbone." + n] = s
    heads = {"dino_head.mlp.0.weight": (8, 48), "ibot_head.last_layer.weight_g": (5, 1)}
    file = drawn(chunked | heads)
    state = {}
    for n, t in file.items():
        if n.startswith("backbone."):
            n = n[len("backbone."):]
            state[".".join(["blocks"] + n.split(".")[2:]) if n.startswith("blocks.") else n] = t
    return by_timm(c, file, state)


TEXT = {"positional_embedding": (7, 32), "text_projection": (32, 24), "logit_scale": (1,),
        "token_embedding.weight": (11, 32), "ln_final.weight": (32,), "ln_final.bias": (32,),
        "transformer.resblocks.0.attn.in_proj_weight": (96, 32),
        "transformer.resblocks.0.ln_1.weight": (32,)}


def openai_clip():
    c, d = config(**CLIP), BASE["dim"]
    file = {"visual.class_embedding": (d,), "visual.positional_embedding": (17, d),
            "visual.conv1.weight": (d, 3, 8, 8), "visual.proj": (d, 24)}
    for norm in ["ln_pre", "ln_post"]:
        file |= {f"visual.{norm}.weight": (d,), f"visual.{norm}.bias": (d,)}
    for i in range(c["depth"]):
        p = f"visual.transformer.resblocks.{i}."
        file |= {p + "attn.in_proj_weight": (3 * d, d), p + "attn.in_proj_bias": (3 * d,),
                 p + "attn.out_proj.weight": (d, d), p + "attn.out_proj.bias": (d,),
                 p + "mlp.c_fc.weight": (4 * d, d), p + "mlp.c_fc.bias": (4 * d,),
                 p + "mlp.c_proj.weight": (d, 4 * d), p + "mlp.c_proj.bias": (d,)}
        for norm in ["ln_1", "ln_2"]:
            file |= {f"{p}{norm}.weight": (d,), f"{p}{norm}.bias": (d,)}
    return by_timm(c, drawn(file | TEXT))


def timm_clip():
    c = config(**CLIP)
    file = drawn(shapes(vit(c).state_dict()))
    file["head.bias"].zero_()
    return by_timm(c, file)


def by_transformers(c, kind, settings, vectors):
    """The names that transformers writes, and its network on the file it reads back."""
    with tempfile.TemporaryDirectory() as folder:
        kind(settings).save_pretrained(folder)
        path = pathlib.Path(folder) / "model.safetensors"
        from safetensors.torch import load_file
        file = drawn(shapes(load_file(path)))
        save_file(file, path, metadata={"format": "pt"})
        model, info = kind.from_pretrained(folder, output_loading_info=True)
        assert not any(info[k] for k in ["missing_keys", "unexpected_keys", "mismatched_keys"]), info
    return c, file, vectors(model.eval()(pixel_values=image(c["image"])))


def cls(out):
    return out.last_hidden_state[:, 0]


COMMON = {"hidden_size": 48, "num_hidden_layers": 2, "num_attention_heads": 3, "image_size": 32,
          "patch_size": 8}


def phikon():
    from transformers import ViTConfig, ViTModel
    return by_transformers(config(eps=1e-12), ViTModel, ViTConfig(**COMMON, intermediate_size=192), cls)


def hf_dinov2(**switched):
    from transformers import Dinov2Config, Dinov2Model
    settings = Dinov2Config(**COMMON, mlp_ratio=4, use_swiglu_ffn="mlp" in switched)
    return by_transformers(config(layer_scale=1e-5, **switched), Dinov2Model, settings, cls)


def hf_registers(**switched):
    from transformers import Dinov2WithRegistersConfig as Config, Dinov2WithRegistersModel as Model
    settings = Config(**COMMON, mlp_ratio=4, num_register_tokens=4, use_swiglu_ffn="mlp" in switched)
    c = config(layer_scale=1e-5, registers=4, no_embed_class=True, **switched)
    return by_transformers(c, Model, settings, cls)


def plip():
    from transformers import CLIPVisionConfig as Config, CLIPVisionModelWithProjection as Model
    settings = Config(**COMMON, intermediate_size=192, projection_dim=24)
    c, file, y = by_transformers(config(**CLIP), Model, settings, lambda out: out.image_embeds)
    text = {"text_model.final_layer_norm.weight": (32,), "text_projection.weight": (24, 32)}
    return c, file | drawn(text), y


class Conch(nn.Module):
    """The vision tower of CONCH from its published constants: a timm trunk, torch's attention with
    one query, layer norms of eps 1e-5, a square matrix."""

    def __init__(self, c):
        super().__init__()
        d = c["attention"]["dim"]
        self.trunk = vit(c)
        pool = nn.Module()
        pool.query = nn.Parameter(torch.empty(1, d))
        pool.attn = nn.MultiheadAttention(d, c["attention"]["heads"], kdim=c["dim"], vdim=c["dim"])
        pool.ln_q, pool.ln_k = nn.LayerNorm(d), nn.LayerNorm(c["dim"])
        self.attn_pool_contrast, self.ln_contrast = pool, nn.LayerNorm(d)
        self.proj_contrast = nn.Parameter(torch.empty(d, d))

    def forward(self, x):
        p = self.attn_pool_contrast
        k = p.ln_k(self.trunk.forward_features(x)).permute(1, 0, 2)
        q = p.ln_q(p.query).unsqueeze(1).expand(-1, len(x), -1)
        return self.ln_contrast(p.attn(q, k, k, need_weights=False)[0][0])


def conch(projected):
    c = config(pool="attention", attention={"dim": 32, "heads": 4})
    tower = Conch(c).eval()
    own = drawn({"visual." + n: s for n, s in shapes(tower.state_dict()).items()})
    tower.load_state_dict({n[len("visual."):]: t for n, t in own.items()}, strict=True)
    others = {"visual.attn_pool_caption.query": (5, 32), "visual.ln_caption.weight": (32,),
              "text.cls_emb": (32,), "text_decoder.text_projection": (32, 9), "logit_scale": (1,)}
    y = tower(image(c["image"]))
    if projected:
        c |= {"projection": {"dim": 32, "unit": True}}
        y = F.normalize(y @ tower.proj_contrast, dim=-1)
    return c, own | drawn(others), y


def wrapped(prefix, case):
    """Names behind a prefix; the tensors are those of the names without."""
    c, file, y = case
    return c, {prefix + n: t for n, t in file.items()}, y, prefix


REG = {"registers": 4, "no_embed_class": True, "layer_scale": 1e-5}

LAYOUTS = {
    "lunit-vits8": lambda: flat(),
    "uni_v1": lambda: flat(layer_scale=1e-5),
    "uni_v2": lambda: flat(**SWITCHES["uni_v2"][0]),
    "virchow": lambda: flat(**SWITCHES["virchow"][0]),
    "virchow2": lambda: flat(**SWITCHES["virchow2"][0]),
    "gigapath": lambda: flat(**SWIGLU, layer_scale=1e-5),
    "hoptimus0": lambda: flat(**SWIGLU, **REG),
    "kaiko-vitl14": lambda: flat(**REG),
    "mae-vitb16": lambda: wrapped("module.", flat()),
    "augreg-vitb16": lambda: wrapped("model.", flat()),
    "dinov2-vitb14": lambda: dinov2(layer_scale=1e-5),
    "dinov2-vitb14-reg4": lambda: dinov2(**REG),
    "openmidnight": lambda: dinov2(**SWIGLU, **REG),
    "gpfm": gpfm,
    "phikon": phikon,
    "phikon_v2": lambda: hf_dinov2(),
    "midnight12k": lambda: hf_dinov2(**SWIGLU),
    "hibou_l": lambda: hf_registers(**SWIGLU),
    "clip-vitb16": openai_clip,
    "clip-vitb32": timm_clip,
    "plip": plip,
    "conch_v1": lambda: conch(False),
    "conch_v1_projected": lambda: conch(True),
}


@torch.no_grad()
def layouts():
    out = []
    for name, make in LAYOUTS.items():
        c, file, y, *prefix = make()
        # A few are written as their own values, not drawn from their name.
        zeros = [n for n, t in file.items() if not t.any()]
        out.append({"name": name, "config": c, "prefix": (prefix or [""])[0], "zeros": zeros,
                    "tensors": {n: list(t.shape) for n, t in file.items()}, "embed": sample(y)})
        print(name, len(file))
    write("vit_layouts", out)


def nested():
    """A teacher below `teacher`, as torch.save writes it: GPFM's file in small."""
    c = config(dim=8, heads=2, layer_scale=1e-5, image=16)
    file = drawn({"backbone." + n: s for n, s in dinov2_names(vit(c).state_dict(), c).items()})
    torch.save({"teacher": file, "iteration": 3}, HERE / "teacher.pth")
    with torch.no_grad():
        state = {n[len("backbone."):]: t for n, t in file.items()}
        _, _, y = by_timm(c, file, state)
    write("vit_teacher", {"config": c, "embed": sample(y)})


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
    "lunit-vits8": ("vit_small_patch8_224", {}),
    "uni_v1": ("vit_large_patch16_224", {"init_values": 1e-5}),
    "uni_v2": ("vit_giant_patch14_224", GIANT | {"depth": 24, "reg_tokens": 8}),
    "gpfm": ("vit_large_patch14_dinov2", {"img_size": 224}),
    "virchow": ("vit_huge_patch14_224", HUGE),
    "virchow2": ("vit_huge_patch14_224", HUGE | {"reg_tokens": 4}),
    "phikon_v2": ("vit_large_patch16_224", {"init_values": 1e-5}),
    "gigapath": ("vit_giant_patch14_dinov2", {
        "img_size": 224, "patch_size": 16, "embed_dim": 1536, "depth": 40, "num_heads": 24,
        "mlp_ratio": 5.33334}),
    "gigapath-flash": ("vit_small_patch16_224", {
        "mlp_ratio": 2048 / 384, "mlp_layer": SwiGLUPacked, "act_layer": nn.SiLU, "init_values": 1e-5}),
    "hoptimus0": ("vit_giant_patch14_reg4_dinov2", {"img_size": 224}),
    "midnight12k": ("vit_giant_patch14_dinov2", {"img_size": 224}),
    "openmidnight": ("vit_giant_patch14_reg4_dinov2", {"img_size": 224}),
    "kaiko-vits8": ("vit_small_patch8_224", {}),
    "kaiko-vitb8": ("vit_base_patch8_224", {}),
    "kaiko-vitl14": ("vit_large_patch14_reg4_dinov2", {"img_size": 224}),
}


def rows():
    """Every parameter's shape at full size (no values), and timm's own facts where it has weights."""
    out = {}
    for name, (timm_name, kwargs) in ROWS.items():
        with torch.device("meta"):
            model = timm.create_model(timm_name, **({"num_classes": 0} | kwargs))
        blocks = [n for n in model.state_dict() if n.startswith("blocks.")]
        row = {"blocks": 1 + max(int(n.split(".")[1]) for n in blocks),
               "tensors": {n: list(t.shape) for n, t in model.state_dict().items()
                           if not n.startswith("blocks.") or n.startswith("blocks.0.")}}
        if "." in timm_name:
            cfg = model.pretrained_cfg
            row["facts"] = {"image": cfg["input_size"][1], "mean": cfg["mean"], "std": cfg["std"],
                            "interpolation": cfg["interpolation"],
                            # OpenAI cuts nothing off (timm's is the default of all its models).
                            "crop": 1.0 if timm_name.endswith(".openai") else cfg["crop_pct"]}
        out[name] = row
    write("vit_rows", out)


if __name__ == "__main__":
    for f in [switches, gradients, groups, layouts, nested, rows]:
        f()
