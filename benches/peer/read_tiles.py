"""The peer of `cargo bench -p mithras-slide`: the same 512-px tiles with openslide-python, one thread.

    python benches/peer/read_tiles.py SLIDE [REPEATS]
"""

import sys
import time

import numpy as np
import openslide


def once(path):
    slide = openslide.OpenSlide(path)
    w, h = slide.dimensions
    n = 0
    for y in range(0, h - 511, 512):
        for x in range(0, w - 511, 512):
            np.asarray(slide.read_region((x, y), 0, (512, 512)).convert("RGB"))
            n += 1
    slide.close()
    return n


def main():
    path = sys.argv[1]
    repeats = int(sys.argv[2]) if len(sys.argv) > 2 else 10
    once(path)
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        n = once(path)
        times.append(time.perf_counter() - start)
    times.sort()
    print(f"{n} tiles, fastest {n / times[0]:.1f} tiles/s, median {n / times[len(times) // 2]:.1f} tiles/s")


if __name__ == "__main__":
    main()
