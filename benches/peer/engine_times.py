"""Median seconds per window and per crop of eager PyTorch, to be next to

    cargo run --release -p mithras-infer --example engine_times -- PACKAGE

    python engine_times.py PACKAGE [RUNS] [THREADS]
"""

import sys
import time

import torch

import nets


def median(net, x, runs):
    seconds = []
    with torch.inference_mode():
        net(x)
        for _ in range(runs):
            t = time.perf_counter()
            net(x)
            seconds.append((time.perf_counter() - t) / len(x))
    return sorted(seconds)[runs // 2]


def main():
    package, runs = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 9
    if len(sys.argv) > 3:
        torch.set_num_threads(int(sys.argv[3]))
    card, unet, vit = nets.load(package)
    w, s = card["segmenter"]["window"], card["classifier"]["input"]
    for batch in (1, 4):
        x = torch.randn(batch, 3, w, w)
        print(f"window_s batch {batch}: {median(unet, x, runs):.4f}")
    last = unet.to(memory_format=torch.channels_last)
    for batch in (1, 4):
        x = torch.randn(batch, 3, w, w).to(memory_format=torch.channels_last)
        print(f"window_s batch {batch} channels-last: {median(last, x, runs):.4f}")
    for batch in (1, 32):
        x = torch.randn(batch, 3, s, s)
        print(f"crop_s batch {batch}: {median(vit, x, runs):.4f}")
    print(f"threads {torch.get_num_threads()}, torch {torch.__version__}")


if __name__ == "__main__":
    main()
