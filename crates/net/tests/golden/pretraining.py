"""Golden values of pretraining: a small MAE on timm's blocks, the losses in their matrix form.

python crates/net/tests/golden/pretraining.py
"""

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from timm.models.vision_transformer import Block, PatchEmbed

from fill import fill, sample, signed, uniform
from generate import write

DIM, DEPTH, HEADS, PATCH, IMAGE = 48, 2, 3, 16, 64
D_DIM, D_DEPTH, D_HEADS, D_P = 32, 2, 4, 24
N, BETA, TAU, FACTOR = 4, 0.75, 0.1, 0.1


def positions(dim, grid):
    """Sine and cosine of the column, then of the row; zero for the class token."""

    def axis(p):
        omega = 1.0 / 10000 ** (np.arange(dim // 4, dtype=np.float64) / (dim / 4))
        angle = p.reshape(-1)[:, None] * omega[None]
        return np.concatenate([np.sin(angle), np.cos(angle)], 1)

    columns, rows = np.meshgrid(np.arange(grid, dtype=np.float64), np.arange(grid, dtype=np.float64))
    table = np.concatenate([axis(columns), axis(rows)], 1)
    table = np.concatenate([np.zeros([1, dim]), table])
    return nn.Parameter(torch.from_numpy(table).float()[None], requires_grad=False)


class Mae(nn.Module):
    def __init__(self, image=IMAGE):
        super().__init__()
        norm = lambda d, **_: nn.LayerNorm(d, eps=1e-6)
        blocks = lambda d, n, h: nn.ModuleList(
            [Block(d, h, 4, qkv_bias=True, norm_layer=norm) for _ in range(n)])
        self.patch_embed = PatchEmbed(image, PATCH, 3, DIM)
        self.cls_token = nn.Parameter(torch.zeros(1, 1, DIM))
        self.blocks, self.norm = blocks(DIM, DEPTH, HEADS), norm(DIM)
        self.decoder_embed = nn.Linear(DIM, D_DIM)
        self.mask_token = nn.Parameter(torch.zeros(1, 1, D_DIM))
        self.decoder_blocks, self.decoder_norm = blocks(D_DIM, D_DEPTH, D_HEADS), norm(D_DIM)
        self.decoder_pred = nn.Linear(D_DIM, PATCH * PATCH * 3)
        self.head_image, self.head_token = nn.Linear(DIM, D_P), nn.Linear(DIM, D_P)
        fill(self)
        # Fixed: not drawn.
        self.pos_embed = positions(DIM, image // PATCH)
        self.decoder_pos_embed = positions(D_DIM, image // PATCH)

    def forward(self, x, noise, visible):
        n, t = noise.shape
        order = torch.argsort(noise, dim=1, stable=True)
        restore = torch.argsort(order, dim=1, stable=True)
        keep = order[:, :visible]
        mask = torch.ones(n, t).scatter(1, keep, 0.0)
        tokens = self.patch_embed(x) + self.pos_embed[:, 1:]
        tokens = torch.gather(tokens, 1, keep[..., None].expand(-1, -1, DIM))
        cls = (self.cls_token + self.pos_embed[:, :1]).expand(n, -1, -1)
        y = torch.cat([cls, tokens], 1)
        for block in self.blocks:
            y = block(y)
        latent = self.norm(y)
        y = self.decoder_embed(latent)
        full = torch.cat([y[:, 1:], self.mask_token.expand(n, t - visible, -1)], 1)
        full = torch.gather(full, 1, restore[..., None].expand(-1, -1, D_DIM))
        y = torch.cat([y[:, :1], full], 1) + self.decoder_pos_embed
        for block in self.decoder_blocks:
            y = block(y)
        return latent, self.decoder_pred(self.decoder_norm(y))[:, 1:], mask, keep


def pixels(x):
    n, c, h, w = x.shape
    t = x.reshape(n, c, h // PATCH, PATCH, w // PATCH, PATCH)
    t = torch.einsum("nchpwq->nhwpqc", t).reshape(n, -1, PATCH * PATCH * c)
    return (t - t.mean(-1, keepdim=True)) / (t.var(-1, keepdim=True) + 1e-6) ** 0.5


def scl(z, y):
    """Eq. 1 with the whole similarity matrix."""
    s = z @ z.T / TAU
    eye = torch.eye(len(z), dtype=torch.bool)
    log_p = s - torch.logsumexp(s.masked_fill(eye, -torch.inf), 1, keepdim=True)
    positive = (y[:, None] == y[None]) & ~eye
    count = positive.sum(1)
    mean = log_p.masked_fill(~positive, 0.0).sum(1) / count.clamp(min=1)
    return -FACTOR * mean.sum() / len(z)


def main():
    model = Mae()
    tiles = (IMAGE // PATCH) ** 2
    x = signed("input", (2 * N, 3, IMAGE, IMAGE), 1.5)
    noise = torch.from_numpy(uniform("noise", 2 * N * tiles).astype(np.float32)).reshape(2 * N, tiles)
    labels = torch.tensor([0, 1, 1, 0] * 2)
    cells = (signed("cells", (2 * N, tiles)) > 0.2).long() * labels[:, None]
    latent, pred, mask, keep = model(x, noise, tiles // 4)
    per_tile = ((pred - pixels(x)) ** 2).mean(-1)
    mim = (per_tile * mask).sum() / mask.sum()
    z_image = F.normalize(model.head_image(latent[:, 0]), dim=-1)
    z_token = F.normalize(model.head_token(latent[:, 1:]), dim=-1)
    image = scl(z_image, labels)
    token = scl(z_token.reshape(-1, D_P), torch.gather(cells, 1, keep).reshape(-1))
    total = mim + BETA * image + (1 - BETA) * token
    total.backward()
    params = dict(model.named_parameters())
    write("mae", {
        "positions": sample(model.pos_embed), "latent": sample(latent), "prediction": sample(pred),
        "mim": mim.item(), "image": image.item(), "token": token.item(), "total": total.item(),
        "grads": {n: sample(params[n].grad) for n in [
            "cls_token", "patch_embed.proj.weight", "patch_embed.proj.bias", "mask_token",
            "blocks.0.attn.qkv.weight", "blocks.1.mlp.fc2.weight", "norm.weight",
            "decoder_embed.weight", "decoder_blocks.1.attn.proj.weight", "decoder_pred.weight",
            "head_image.weight", "head_token.bias"]}})


class SupMae(nn.Module):
    """The published classification branch beside the masked autoencoder."""

    def __init__(self):
        super().__init__()
        self.fc1, self.norm, self.fc2 = nn.Linear(DIM, 4 * DIM), nn.BatchNorm1d(4 * DIM), nn.Linear(4 * DIM, 2)
        fill(self, "classifier.")

    def forward(self, latent):
        return self.fc2(F.relu(self.norm(self.fc1(latent[:, 1:].mean(1)))))


def supmae():
    model, head = Mae(), SupMae()
    tiles = (IMAGE // PATCH) ** 2
    x = signed("input", (2 * N, 3, IMAGE, IMAGE), 1.5)
    noise = torch.from_numpy(uniform("noise", 2 * N * tiles).astype(np.float32)).reshape(2 * N, tiles)
    labels = torch.tensor([0, 1, 1, 0] * 2)
    latent, pred, mask, _ = model(x, noise, tiles // 4)
    logits = head(latent)
    entropy = F.cross_entropy(logits, labels)
    mim = (((pred - pixels(x)) ** 2).mean(-1) * mask).sum() / mask.sum()
    (mim + 0.01 * entropy).backward()
    params = {f"classifier.{n}": p for n, p in head.named_parameters()} | dict(model.named_parameters())
    state = head.state_dict()
    write("supmae", {
        "logits": sample(logits), "entropy": entropy.item(), "mim": mim.item(),
        "grads": {n: sample(params[n].grad) for n in [
            "classifier.fc1.weight", "classifier.norm.weight", "classifier.norm.bias", "classifier.fc2.weight",
            "classifier.fc2.bias", "blocks.1.mlp.fc2.weight", "norm.weight", "decoder_pred.weight"]},
        "buffers": {f"classifier.{n}": sample(state[n]) for n in ["norm.running_mean", "norm.running_var"]}})


if __name__ == "__main__":
    main()
    supmae()
