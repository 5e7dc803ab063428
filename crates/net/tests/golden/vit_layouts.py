"""Files in the names that encoders are published in, small, and what the reference makes of them: timm,
transformers or CONCH's own layers.

python crates/net/tests/golden/vit_layouts.py            (needs `pip install transformers` beside timm)
"""

import pathlib
import tempfile

import torch
from safetensors.torch import save_file
from timm.models.vision_transformer import checkpoint_filter_fn

from conch import POOLED, PROJECTED, tower
from fill import sample, values
from generate import write
from vit import BASE, CLIP, SWIGLU, config, embed, image, vit

HERE = pathlib.Path(__file__).parent
torch.set_num_threads(1)

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
    c = config(depth=4, **P14, **SCALED)
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


def openai_clip(patches):
    c, d = config(**CLIP, **patches), BASE["dim"]
    p = c["patch"]
    file = {"visual.class_embedding": (d,), "visual.positional_embedding": (17, d),
            "visual.conv1.weight": (d, 3, p, p), "visual.proj": (d, 24)}
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


def timm_clip(patches):
    c = config(**CLIP, **patches)
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


def common(c):
    return {"hidden_size": c["dim"], "num_hidden_layers": c["depth"], "num_attention_heads": c["heads"],
            "image_size": c["image"], "patch_size": c["patch"]}


def phikon():
    from transformers import ViTConfig, ViTModel
    c = config(eps=1e-12, **P16)
    return by_transformers(c, ViTModel, ViTConfig(**common(c), intermediate_size=192), cls)


def hf_dinov2(**switched):
    from transformers import Dinov2Config, Dinov2Model
    c = config(**SCALED, **switched)
    settings = Dinov2Config(**common(c), mlp_ratio=4, use_swiglu_ffn="mlp" in switched)
    return by_transformers(c, Dinov2Model, settings, cls)


def hf_registers(**switched):
    from transformers import Dinov2WithRegistersConfig as Config, Dinov2WithRegistersModel as Model
    c = config(**REG | switched)
    settings = Config(**common(c), mlp_ratio=4, num_register_tokens=4, use_swiglu_ffn="mlp" in switched)
    return by_transformers(c, Model, settings, cls)


def hf_clip(patches):
    from transformers import CLIPVisionConfig as Config, CLIPVisionModelWithProjection as Model
    c = config(**CLIP, **patches)
    settings = Config(**common(c), intermediate_size=192, projection_dim=24)
    c, file, y = by_transformers(c, Model, settings, lambda out: out.image_embeds)
    text = {"text_model.final_layer_norm.weight": (32,), "text_projection.weight": (24, 32)}
    return c, file | drawn(text), y


def conch(projected):
    c = config(**POOLED)
    net, file = tower(c)
    others = {"visual.attn_pool_caption.query": (5, 32), "visual.ln_caption.weight": (32,),
              "text.cls_emb": (32,), "text_decoder.text_projection": (32, 9), "logit_scale": (1,)}
    y = net.embed(image(c["image"]), projected)
    return (c | PROJECTED if projected else c), file | drawn(others), y


def wrapped(prefix, case):
    """Names behind a prefix; the tensors are those of the names without."""
    c, file, y = case
    return c, {prefix + n: t for n, t in file.items()}, y, prefix


def patch(side):
    """Of a row's own patches, four by four."""
    return {"patch": side, "image": 4 * side}


P8, P14, P16, P32 = patch(8), patch(14), patch(16), patch(32)
SCALED = {"layer_scale": 1e-5}
REG = SCALED | {"registers": 4, "no_embed_class": True}
UNI2 = P14 | SWIGLU | REG | {"registers": 8}
VIRCHOW = P14 | SCALED | {"mlp": "swi_glu", "mlp_ratio": 5.3375, "pool": "cls_mean"}
FLASH = P16 | SCALED | {"mlp": "swi_glu", "mlp_ratio": 2048 / 384}
HIBOU = P14 | REG | {"mlp": "swi_glu", "mlp_ratio": 5472 / 1024}

# Rows that are one in small, the layout, and what makes the file.
LAYOUTS = [
    ("lunit-vits8 kaiko-vits8 kaiko-vitb8", "timm", lambda: flat(**P8)),
    ("lunit-vits16 kaiko-vits16 kaiko-vitb16", "timm", lambda: flat(**P16)),
    ("augreg-vits16 augreg-vitb16 augreg-vitl16", "timm", lambda: wrapped("model.", flat(**P16))),
    ("mae-vitb16 mae-vitl16", "timm", lambda: wrapped("module.", flat(**P16))),
    ("mae-vith14", "timm", lambda: wrapped("module.", flat(**P14))),
    ("uni_v1 digepath", "timm", lambda: flat(**P16, **SCALED)),
    ("uni_v2", "timm", lambda: flat(**UNI2)),
    ("virchow", "timm", lambda: flat(**VIRCHOW)),
    ("virchow2", "timm", lambda: flat(**VIRCHOW | {"registers": 4})),
    ("virchow2-cls", "timm", lambda: flat(**VIRCHOW | {"registers": 4, "pool": "cls"})),
    ("gigapath", "timm", lambda: flat(**P16, **SWIGLU, **SCALED)),
    ("gigapath-flash", "timm", lambda: flat(**FLASH)),
    ("gpfm", "dino_v2", gpfm),
    ("phikon", "hf_vit", phikon),
    ("phikon_v2", "hf_dino_v2", lambda: hf_dinov2(**P16)),
    ("hibou_l", "hf_dino_v2", lambda: hf_registers(**HIBOU)),
    ("hibou_l", "dino_v2", lambda: dinov2(**HIBOU)),
    ("dinov2-vits14 dinov2-vitb14 dinov2-vitl14", "timm", lambda: flat(**P14, **SCALED)),
    ("dinov2-vits14 dinov2-vitb14 dinov2-vitl14", "dino_v2", lambda: dinov2(**P14, **SCALED)),
    ("dinov2-vits14 dinov2-vitb14 dinov2-vitl14", "hf_dino_v2", lambda: hf_dinov2(**P14)),
    ("dinov2-vitg14", "timm", lambda: flat(**P14, **SWIGLU, **SCALED)),
    ("dinov2-vitg14", "dino_v2", lambda: dinov2(**P14, **SWIGLU, **SCALED)),
    ("dinov2-vitg14 midnight12k", "hf_dino_v2", lambda: hf_dinov2(**P14, **SWIGLU)),
    ("dinov2-vits14-reg4 dinov2-vitb14-reg4 dinov2-vitl14-reg4 kaiko-vitl14", "timm", lambda: flat(**P14, **REG)),
    ("dinov2-vits14-reg4 dinov2-vitb14-reg4 dinov2-vitl14-reg4", "dino_v2", lambda: dinov2(**P14, **REG)),
    ("dinov2-vits14-reg4 dinov2-vitb14-reg4 dinov2-vitl14-reg4", "hf_dino_v2", lambda: hf_registers(**P14)),
    ("dinov2-vitg14-reg4 hoptimus0 hoptimus1 h0-mini", "timm", lambda: flat(**P14, **SWIGLU, **REG)),
    ("dinov2-vitg14-reg4 openmidnight", "dino_v2", lambda: dinov2(**P14, **SWIGLU, **REG)),
    ("dinov2-vitg14-reg4", "hf_dino_v2", lambda: hf_registers(**P14, **SWIGLU)),
    ("clip-vitb16", "open_ai_clip", lambda: openai_clip(P16)),
    ("clip-vitb16", "timm", lambda: timm_clip(P16)),
    ("clip-vitb16", "hf_clip", lambda: hf_clip(P16)),
    ("clip-vitb32", "open_ai_clip", lambda: openai_clip(P32)),
    ("clip-vitb32", "timm", lambda: timm_clip(P32)),
    ("clip-vitb32 plip", "hf_clip", lambda: hf_clip(P32)),
    ("conch_v1", "conch", lambda: conch(False)),
    ("conch_v1_projected", "conch", lambda: conch(True)),
]


@torch.no_grad()
def layouts():
    out = []
    for rows, layout, make in LAYOUTS:
        c, file, y, *prefix = make()
        # A few are written as their own values, not drawn from their name.
        zeros = [n for n, t in file.items() if not t.any()]
        out.append({"rows": rows.split(), "layout": layout, "config": c, "prefix": (prefix or [""])[0],
                    "zeros": zeros, "tensors": {n: list(t.shape) for n, t in file.items()}, "embed": sample(y)})
        print(rows, layout, len(file))
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


if __name__ == "__main__":
    for f in [layouts, nested]:
        f()
