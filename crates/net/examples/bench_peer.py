"""The peer of bench.rs in PyTorch: python bench_peer.py scl|unet|mae [threads], or step SIZE VIEWS PRECISION DEVICE RUNS"""

import os
import pathlib
import resource
import sys
import time

import torch
import torch.nn.functional as F

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "tests/golden"))
from generate import Unet  # noqa: E402

torch.use_deterministic_algorithms(False)
# That script sets two; the other contestant takes what the environment states.
torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", os.cpu_count())))


def timed(what, n, f):
    f()
    best = [float("inf")] * 2
    for _ in range(n):
        wall, cpu = time.perf_counter(), time.process_time()
        f()
        best = [min(best[0], time.perf_counter() - wall), min(best[1], time.process_time() - cpu)]
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(f"{what}: wall {best[0]:.3f} s, cpu {best[1]:.2f} s, peak so far {peak:.2f} GiB", flush=True)


def naive(z, y):
    s = z @ z.T / 0.1
    eye = torch.eye(len(z), dtype=torch.bool, device=z.device)
    log_p = s - torch.logsumexp(s.masked_fill(eye, -torch.inf), 1, keepdim=True)
    positive = (y[:, None] == y[None]) & ~eye
    return -0.1 * (log_p.masked_fill(~positive, 0.0).sum(1) / positive.sum(1).clamp(min=1)).mean()


def scl():
    for k in [4096, 8192]:
        z = F.normalize(torch.randn(k, 512), dim=1).requires_grad_()
        y = (torch.rand(k) > 0.85).long()
        timed(f"naive token loss K={k}, value and gradient", 3, lambda: naive(z, y).backward())


def unet():
    for layout in [torch.contiguous_format, torch.channels_last]:
        for bf16 in [False, True]:
            model = Unet().to(memory_format=layout)
            opt = torch.optim.AdamW(model.parameters(), fused=True)
            x = torch.rand(8, 3, 256, 256).contiguous(memory_format=layout)
            y = (torch.rand(8, 1, 256, 256) > 0.9).float()

            def step():
                with torch.autocast("cpu", torch.bfloat16, enabled=bf16):
                    logits = model(x)
                logits = logits.float()
                p = logits.sigmoid()
                dice = 1 - (2 * (p * y).sum() + 1) / (p.sum() + y.sum() + 1)
                opt.zero_grad()
                (F.binary_cross_entropy_with_logits(logits, y) + dice).backward()
                opt.step()

            timed(f"U-Net step 8x256x256 {layout} bf16={bf16}", 3, step)


def mae_step(dim, heads, n, bf16, device):
    import pretraining as p

    torch.set_default_device(device)
    p.DIM, p.DEPTH, p.HEADS, p.D_DIM, p.D_DEPTH, p.D_HEADS, p.D_P = dim, 12, heads, 512, 8, 16, 512
    model = p.Mae(224).to(device)
    model.pos_embed, model.decoder_pos_embed = model.pos_embed.to(device), model.decoder_pos_embed.to(device)
    opt = torch.optim.AdamW(model.parameters(), fused=True)
    x, labels = torch.rand(n, 3, 224, 224), torch.arange(n) % 2
    cells, target = (torch.rand(n, 196) > 0.8).long(), p.pixels(x)

    def step():
        with torch.autocast(device, torch.bfloat16, enabled=bf16):
            latent, pred, mask, keep = model(x, torch.rand(n, 196), 49)
            zi, zt = model.head_image(latent[:, 0]), model.head_token(latent[:, 1:])
        zi, zt = F.normalize(zi.float(), dim=-1), F.normalize(zt.float(), dim=-1)
        mim = (((pred.float() - target) ** 2).mean(-1) * mask).sum() / mask.sum()
        tok = naive(zt.reshape(-1, 512), torch.gather(cells, 1, keep).reshape(-1))
        opt.zero_grad()
        (mim + 0.75 * naive(zi, labels) + 0.25 * tok).backward()
        opt.step()

    return step


def mae():
    for dim, heads, n in [(192, 3, 32), (768, 12, 8)]:
        for bf16 in [False, True]:
            step = mae_step(dim, heads, n, bf16, "cpu")
            timed(f"MAE {dim} step, {n} views, whole objective, bf16={bf16}", 3, step)


def step(size, views, precision, device, runs):
    """Seconds as JSON: the median of the runs after as many again and one, the device's work waited for."""
    dim, heads = (768, 12) if size == "base" else (192, 3)
    one, seconds = mae_step(dim, heads, int(views), precision == "bf16", device), []
    for _ in range(2 * int(runs) + 1):
        begun = time.perf_counter()
        one()
        if device == "cuda":
            torch.cuda.synchronize()
        seconds.append(time.perf_counter() - begun)
    print(f'{{"step_s": {sorted(seconds[int(runs) + 1 :])[int(runs) // 2]}}}')


if __name__ == "__main__":
    if sys.argv[1] == "step":
        sys.exit(step(*sys.argv[2:7]))
    if len(sys.argv) > 2:
        torch.set_num_threads(int(sys.argv[2]))
    {"scl": scl, "unet": unet, "mae": mae}[sys.argv[1]]()
