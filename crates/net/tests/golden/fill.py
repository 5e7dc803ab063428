"""Weights drawn from their name, the same here and in tests/common/mod.rs.

Element i of the parameter `name`: z = splitmix64 number i of the seed FNV-1a(name),
u = (z >> 40) / 2^24 in [0, 1), s = 2 u - 1. Then
    *running_var            2 + u
    *pos_embed, *_token     s / 10
    two or more axes        s sqrt(6 / fan_in), fan_in = product of all axes but the first
    *weight (one axis)      1 + s / 10
    anything else           s / 10
in f64, rounded to f32.
"""

import math

import numpy as np
import torch


def uniform(name, n):
    seed = 0xCBF29CE484222325
    for byte in name.encode():
        seed = (seed ^ byte) * 0x100000001B3 % 2**64
    with np.errstate(over="ignore"):
        z = np.uint64(seed) + np.arange(1, n + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        z = z ^ (z >> np.uint64(31))
    return (z >> np.uint64(40)).astype(np.float64) / 2.0**24


def signed(name, shape, scale=1.0):
    """s * scale as a tensor, for inputs."""
    u = uniform(name, math.prod(shape))
    return torch.from_numpy(((2 * u - 1) * scale).astype(np.float32)).reshape(shape)


def values(name, shape):
    u = uniform(name, math.prod(shape))
    s = 2 * u - 1
    if name.endswith("running_var"):
        v = 2 + u  # small activations: rounding is not amplified
    elif name.endswith(("pos_embed", "_token")):
        v = s / 10
    elif len(shape) >= 2:
        v = s * math.sqrt(6 / math.prod(shape[1:]))
    elif name.endswith("weight"):
        v = 1 + s / 10
    else:
        v = s / 10
    return torch.from_numpy(v.astype(np.float32)).reshape(shape)


def fill(model, prefix=""):
    with torch.no_grad():
        for name, t in model.state_dict().items():
            if not name.endswith("num_batches_tracked"):
                t.copy_(values(prefix + name, tuple(t.shape)))
    return model


def sample(t, n=32):
    """At most n evenly strided values, and the sum of magnitudes."""
    flat = t.detach().double().reshape(-1)
    step = max(1, flat.numel() // n)
    return {
        "shape": list(t.shape),
        "values": [float(f"{v:.9g}") for v in flat[::step][:n].tolist()],
        "abs_sum": float(f"{flat.abs().sum().item():.9g}"),
    }
