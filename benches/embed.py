"""`mithras embed` against TRIDENT's way of doing it, on the same tiles, in turn.

    python benches/embed.py SLIDE [--encoder vit_small_patch16_224] [--mithras target/release/mithras]
        [--engine openvino] [--precision f32|bf16] [--threads 2] [--repeats 3] [--json]

The encoder is timm's with seeded weights, once as a package (`encoders convert --onnx`). TRIDENT's way:
a `Dataset` that reads one tile by OpenSlide and transforms it with torchvision, a `DataLoader` in batches
of 64, eager PyTorch in f32 under `inference_mode`, features and places into HDF5. Its worker processes
are 0, 1 and 2, and the best of the three counts. Whole processes are timed, imports and loading on both
sides; `loop` is the time without them: of ours what the log states of the slide, finding its tissue and
writing the file included. Their tiles are those of our file: finding tissue is not timed for
them. Tiles differ in how a slide is resampled, and in what is beyond its edge (theirs is
black), so the features are compared by their median cosine.
"""

import argparse
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

MEAN, STD = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]


def network(name):
    import timm
    import torch

    torch.manual_seed(20260102)
    return timm.create_model(name, pretrained=False, num_classes=0).eval()


def peer(a):
    """Runs in a process of its own; prints the seconds of its loop."""
    import h5py
    import numpy as np
    import openslide
    import torch
    from torch.utils.data import DataLoader, Dataset
    from torchvision import transforms

    torch.set_num_threads(a.threads)
    with h5py.File(a.table) as f:
        coords, attrs = f["coords"][:], dict(f["coords"].attrs)
    side, level0 = int(attrs["patch_size"]), int(attrs["patch_size_level0"])
    change = transforms.Compose([transforms.Resize(224), transforms.ToTensor(), transforms.Normalize(MEAN, STD)])

    class Tiles(Dataset):
        slide = None

        def __len__(self):
            return len(coords)

        def __getitem__(self, i):
            if self.slide is None:  # a reader per worker
                self.slide = openslide.open_slide(a.slide)
            tile = self.slide.read_region(tuple(map(int, coords[i])), 0, (level0, level0)).convert("RGB")
            return change(tile.resize((side, side))), coords[i]

    net = network(a.encoder)
    start = time.time()
    features = []
    with torch.inference_mode():
        for x, _ in DataLoader(Tiles(), batch_size=64, num_workers=a.workers):
            features.append(net(x).numpy())
    features = np.concatenate(features)
    with h5py.File(a.out, "w") as f:
        f["features"], f["coords"] = features, coords
    print(json.dumps({"tiles": len(coords), "loop": time.time() - start}))


def timed(command):
    start = time.time()
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return time.time() - start, done.stdout, done.stderr


def compare(a):
    import h5py
    import numpy as np
    import torch

    folder = pathlib.Path(tempfile.mkdtemp())
    net, onnx = network(a.encoder), folder / "net.onnx"
    torch.onnx.export(
        net, (torch.zeros(2, 3, 224, 224),), onnx, input_names=["input"], output_names=["output"],
        dynamic_axes={"input": {0: "batch"}, "output": {0: "batch"}}, opset_version=17, dynamo=False)
    numbers = lambda v: ",".join(map(str, v))
    timed([a.mithras, "encoders", "convert", "--onnx", onnx, "--out", folder / "pkg", "--name", "bench",
           "--image", "224", "--mean", numbers(MEAN), "--std", numbers(STD), "--mpp", "0.5",
           "--pooling", "class token", "--license", "none"])
    ours, theirs = [], {0: [], 1: [], 2: []}
    for k in range(a.repeats):
        out = folder / f"run{k}"
        wall, _, log = timed([a.mithras, "embed", a.slide, "--encoder", folder / "pkg", "--engine", a.engine,
                              "--precision", a.precision, "--threads", str(a.threads), "--out", out, "--log", "json"])
        events = [json.loads(line) for line in log.splitlines() if line.startswith("{")]
        ours.append((wall, sum(e["seconds"] for e in events if e["event"] == "slide-ended")))
        table = next(out.glob("**/*.h5"))
        for workers, times in theirs.items():
            wall, printed, _ = timed([sys.executable, __file__, a.slide, "--encoder", a.encoder, "--threads", str(a.threads),
                                   "--table", table, "--workers", str(workers), "--out", folder / "peer.h5"])
            printed = json.loads(printed)
            times.append((wall, printed["loop"]))
    with h5py.File(table) as f, h5py.File(folder / "peer.h5") as g:
        x, y = f["features"][:], g["features"][:]
    cosine = (x * y).sum(1) / np.linalg.norm(x, axis=1) / np.linalg.norm(y, axis=1)
    middle = statistics.median
    best = min(theirs, key=lambda w: middle(t[0] for t in theirs[w]))
    mine, own_loop = middle(t[0] for t in ours), middle(t[1] for t in ours)
    wall, loop = middle(t[0] for t in theirs[best]), middle(t[1] for t in theirs[best])
    n = printed["tiles"]
    result = {
        "encoder": a.encoder, "tiles": n, "engine": a.engine, "precision": a.precision, "threads": a.threads, "repeats": a.repeats,
        "mithras_s": mine, "mithras_tiles_per_s": n / mine, "mithras_loop_s": own_loop, "peer_workers": best, "peer_s": wall,
        "peer_loop_s": loop, "peer_tiles_per_s": n / wall, "peer_loop_tiles_per_s": n / loop,
        "ratio": wall / mine, "ratio_of_loops": loop / own_loop, "ratio_to_loop": loop / mine, "median_cosine": float(np.median(cosine)),
    }
    if a.json:
        print(json.dumps(result))
        return
    print(f"{n} tiles, {a.encoder}, {a.threads} threads, medians of {a.repeats}")
    print(f"mithras, {a.engine} in {a.precision}: {mine:.1f} s, {n / mine:.1f} tiles/s (its loop alone {own_loop:.1f} s, {n / own_loop:.1f})")
    print(f"PyTorch, {best} workers: {wall:.1f} s, {n / wall:.1f} tiles/s (its loop alone {loop:.1f} s, {n / loop:.1f})")
    print(f"ratio {wall / mine:.2f}; of the loops {loop / own_loop:.2f}; to their loop alone {loop / mine:.2f}; median cosine {np.median(cosine):.4f}")


if __name__ == "__main__":
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("slide")
    p.add_argument("--encoder", default="vit_small_patch16_224")
    p.add_argument("--mithras", default="target/release/mithras")
    p.add_argument("--engine", default="openvino")
    p.add_argument("--precision", default="f32")
    p.add_argument("--threads", type=int, default=2)
    p.add_argument("--repeats", type=int, default=3)
    p.add_argument("--json", action="store_true")
    for inner in ["--table", "--out"]:
        p.add_argument(inner, help=argparse.SUPPRESS)
    p.add_argument("--workers", type=int, help=argparse.SUPPRESS)
    a = p.parse_args()
    peer(a) if a.table else compare(a)
