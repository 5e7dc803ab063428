"""CONCH's vision tower from its published constants, in small: its vectors at a second image size, its gradients,
and its groups of layers: python crates/net/tests/golden/conch.py"""

import torch
import torch.nn as nn
import torch.nn.functional as F
from timm.optim import param_groups_layer_decay

from fill import sample, signed, values
from generate import write
from vit import config, image, vit

torch.set_num_threads(1)

POOLED = {"patch": 16, "image": 64, "pool": "attention", "attention": {"dim": 32, "heads": 4}}
PROJECTED = {"projection": {"dim": 32, "unit": True}}
OTHER = 96


class Conch(nn.Module):
    """A timm trunk, torch's attention with one query, layer norms of eps 1e-5, a square matrix."""

    def __init__(self, c, trunk=vit):
        super().__init__()
        d = c["attention"]["dim"]
        self.trunk = trunk(c)
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

    def embed(self, x, projected):
        y = self(x)
        return F.normalize(y @ self.proj_contrast, dim=-1) if projected else y


def tower(c):
    """The tower, and the tensors of its file."""
    net = Conch(c).eval()
    file = {"visual." + n: values("visual." + n, tuple(t.shape)) for n, t in net.state_dict().items()}
    net.load_state_dict({n[len("visual."):]: t for n, t in file.items()}, strict=True)
    return net, file


# The names here of what is not in the trunk.
WORDS = [("attn_pool_contrast.attn.out_proj", "attn_pool.proj"), ("attn_pool_contrast.attn.", "attn_pool."),
         ("attn_pool_contrast.ln_", "attn_pool.norm_"), ("attn_pool_contrast.", "attn_pool."),
         ("_proj_weight", ".weight"), ("ln_contrast", "attn_pool.norm"), ("proj_contrast", "projection.weight")]


def own(name):
    name = name.removeprefix("trunk.")
    for theirs, ours in WORDS:
        name = name.replace(theirs, ours)
    return name


def apart(named):
    """Under the names here: the biases of query, key and value apart, the projection turned."""
    for n, t in named:
        n = own(n)
        if n == "attn_pool.in_proj_bias":
            yield from zip((f"attn_pool.{p}.bias" for p in "qkv"), t.chunk(3))
        else:
            yield n, t.T if n == "projection.weight" else t


WANTED = ["cls_token", "pos_embed", "patch_embed.proj.weight", "blocks.0.attn.qkv.weight", "blocks.1.mlp.fc2.bias",
          "norm.weight", "projection.weight"]


def groups(c):
    """The trunk's are timm's; the pooler and the projection come after the last block, as a head does."""
    net = Conch(c)
    net.group_matcher = lambda coarse: {
        "stem": r"^trunk\.(?:cls_token|pos_embed|patch_embed)",
        "blocks": [(r"^trunk\.blocks\.(\d+)", None), (r"^trunk\.norm", (99999,))]}
    names = {id(p): n for n, p in net.named_parameters()}
    keep = {"trunk." + n for n in net.trunk.no_weight_decay()}
    out = {}
    for g in param_groups_layer_decay(net, 0.05, keep, layer_decay=0.75):
        for p in g["params"]:
            out |= {n: [g["lr_scale"], g["weight_decay"]] for n, _ in apart([(names[id(p)], p)])}
    return out


def main():
    c = config(**POOLED)
    net, file = tower(c)
    y = net.embed(image(c["image"]), True)
    (y * signed("weights", tuple(y.shape))).sum().backward()
    grads = dict(apart((n, p.grad) for n, p in net.named_parameters()))
    out = {"config": c | PROJECTED, "tensors": {n: list(t.shape) for n, t in file.items()}, "embed": sample(y),
           # The keys' bias shifts all weights of a query alike: its gradient is rounding.
           "grads": {n: sample(t) for n, t in grads.items()
                     if n in WANTED or n.startswith("attn_pool.") and n != "attn_pool.k.bias"},
           "layer_decay": groups(c)}
    net.trunk.set_input_size(OTHER)
    with torch.no_grad():
        x = image(OTHER)
        out["other"] = {"image": OTHER, "pooled": sample(net.embed(x, False)), "projected": sample(net.embed(x, True))}
    write("conch", out)


if __name__ == "__main__":
    main()
