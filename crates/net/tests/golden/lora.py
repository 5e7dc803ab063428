"""Golden values of LoRA: peft's adapters on timm's ViT and Swin with weights drawn from their names.

python crates/net/tests/golden/lora.py            (needs `pip install peft`, which brings transformers)
"""

from functools import partial

import torch
from peft import LoraConfig, get_peft_model
from timm.layers import LayerNorm
from timm.models.swin_transformer import SwinTransformer
from timm.models.vision_transformer import VisionTransformer

from fill import fill, sample, signed, values
from generate import write

torch.set_num_threads(1)
LAYERS = {"qkv": ["attn.qkv"], "proj": ["attn.proj"], "mlp": ["mlp.fc1", "mlp.fc2"]}


def vit():
    return VisionTransformer(img_size=32, patch_size=8, num_classes=3, embed_dim=48, depth=2, num_heads=3,
                             norm_layer=partial(LayerNorm, eps=1e-6))


def swin():
    return SwinTransformer(img_size=32, patch_size=4, num_classes=3, embed_dim=24, depths=(2, 2), num_heads=(3, 6),
                           window_size=4, drop_path_rate=0.0)


def ours(name):
    """The name of a trained parameter here."""
    name = name.removeprefix("base_model.model.").replace(".modules_to_save.default", "")
    return name.replace(".lora_A.default.weight", ".lora_a").replace(".lora_B.default.weight", ".lora_b")


def case(family, make, head, lora):
    base = fill(make())
    wanted = [n for t in lora["targets"] for n in LAYERS[t]]
    net = get_peft_model(base, LoraConfig(r=lora["rank"], lora_alpha=lora["alpha"], lora_dropout=0.0, bias="none",
                                          target_modules=wanted, modules_to_save=[head])).eval()
    trained = {ours(n): p for n, p in net.named_parameters() if p.requires_grad}
    start = {n: [float(p.detach().min()), float(p.detach().max())] for n, p in trained.items() if ".lora_" in n}
    with torch.no_grad():
        for n, p in trained.items():
            p.copy_(values(n, tuple(p.shape)))
    count, total = net.get_nb_trainable_parameters()
    x = signed("input", (2, 3, 32, 32), 1.5)
    logits = net(x)
    (logits * signed("weights", (2, 3))).sum().backward()
    out = {"family": family, "lora": lora, "trained": count, "total": total - sum(
        p.numel() for n, p in net.named_parameters() if "original_module" in n),  # the head is there twice
        "start": start, "logits": sample(logits), "grads": {n: sample(p.grad) for n, p in sorted(trained.items())}}
    merged = net.merge_and_unload()
    state = merged.state_dict()
    out["merged_logits"] = sample(merged(x))
    out["merged"] = {n: sample(state[n]) for n in sorted(state) if any(n.endswith(w + ".weight") for w in wanted)}
    return out


write("lora", [
    case("vit", vit, "head", {"rank": 4, "alpha": 12.0, "targets": ["qkv", "proj"]}),
    case("vit", vit, "head", {"rank": 2, "alpha": 1.0, "targets": ["mlp", "qkv"]}),
    case("swin", swin, "head.fc", {"rank": 3, "alpha": 6.0, "targets": ["qkv", "proj", "mlp"]}),
])
