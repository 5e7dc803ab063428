"""Ratios of this project's speed to its peers, against a committed table: called by benches/all.sh."""

import argparse
import importlib.util
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parent.parent
TABLE = ROOT / "benches/ratios.json"
RELEASE = ROOT / "target/release"
DATA = Path(os.environ.get("MITHRAS_DATA", ROOT.parent / "shared/data"))
SLIDE = DATA / "slides/CMU-1-Small-Region.svs"
# A ratio below this share of the table's is a regression.
KEPT = 0.8


class Skipped(Exception):
    """A peer is not installed."""


class Failed(Exception):
    """A program that is there ended with an error."""


def need(*modules):
    missing = [m for m in modules if importlib.util.find_spec(m) is None]
    if missing:
        raise Skipped(f"needs {', '.join(missing)} (benches/requirements.txt)")


def run(*command, **more):
    done = subprocess.run([str(c) for c in command], cwd=ROOT, capture_output=True, text=True, **more)
    if done.returncode:
        raise Failed(f"{Path(str(command[0])).name} ended with {done.returncode}: {done.stderr.strip()[-300:]}")
    return done.stdout


def python(script, *arguments, **more):
    return run(sys.executable, ROOT / script, *arguments, **more)


def json_of(script, *arguments):
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "out.json"
        python(script, *arguments, "--json", out)
        return json.loads(out.read_text())


def reading(a):
    need("openslide")
    printed = run("cargo", "bench", "-q", "--locked", "-p", "mithras-slide", "--bench", "read", "--", "tiles_mithras",
                  env={**os.environ, "MITHRAS_BENCH_SLIDE": str(SLIDE)})
    # divan: fastest, slowest, median and mean of items per second.
    rates = re.findall(r"([\d.]+) ([KM]?)item/s", printed)
    ours = float(rates[2][0]) * {"": 1, "K": 1e3, "M": 1e6}[rates[2][1]]
    theirs = float(re.search(r"median ([\d.]+)", python("benches/peer/read_tiles.py", SLIDE))[1])
    return {"tiles of 512 px / openslide-python": ours / theirs}


def tissue(a):
    need("openslide", "cv2")
    printed = python("benches/peer/tissue.py", RELEASE / "examples/tissue_speed", SLIDE)
    return {"tissue mask / OpenSlide and OpenCV": float(re.search(r"([\d.]+) times as fast", printed)[1])}


def hotspot(a):
    need("numpy", "scipy")
    import numpy as np
    from scipy.spatial import cKDTree

    n = 20_000
    i = np.arange(n, dtype=np.uint64)
    at = lambda k: ((i * k) % 2**32 % 100_003).astype(float)  # noqa: E731
    points = np.stack([at(2_654_435_761), at(40_503)], 1)
    ours = json.loads(run(RELEASE / "examples/hotspot_speed", n))
    start = time.perf_counter()
    counts = cKDTree(points).query_ball_point(points, np.sqrt(2) / 2 * 1000 / 0.25, p=np.inf, return_length=True)
    theirs = time.perf_counter() - start
    assert counts.max() == ours["count"], (counts.max(), ours)
    return {"hotspot of 20,000 figures / scipy cKDTree": theirs / ours["seconds"]}


def corpus(a):
    need("datasets", "webdataset", "pyarrow")
    with tempfile.TemporaryDirectory() as folder:
        crops = Path(folder) / "crops"
        run(RELEASE / "examples/read_speed", crops, "--make", 6000)
        printed = python("benches/peer/corpus_read.py", crops, RELEASE / "examples/read_speed")
    rate = lambda name: float(re.search(re.escape(name) + r": (\d+)", printed)[1])  # noqa: E731
    return {
        "shuffled crops, decoded / webdataset": rate("shuffled and decoded") / rate("webdataset (buffer 8192), decoded"),
        "shuffled crops / webdataset": rate("shuffled, every byte summed") / rate("webdataset (buffer 8192), not decoded"),
    }


def survival(a):
    need("lifelines", "sksurv")
    if not shutil.which("Rscript"):
        raise Skipped("needs R with its package survival")
    return {f"{task} / {peer}": theirs / ours
            for task, ours, peers in json_of("benches/peer/survival.py") for peer, theirs in peers.items()}


def embedding(a):
    need("timm", "torchvision", "openslide", "openvino")
    all = {}
    for precision in ["f32", "bf16"]:
        printed = python("benches/embed.py", SLIDE, "--precision", precision, "--threads", a.threads, "--json")
        all[f"embed, ViT-S, {precision} / PyTorch"] = json.loads(printed.splitlines()[-1])["ratio"]
    return all


def training(a):
    need("torch")
    import torch

    lib = Path(torch.__file__).parent / "lib"
    env = {**os.environ, "LD_LIBRARY_PATH": str(lib), "OMP_NUM_THREADS": "1"}
    words = ["step", "tiny", 32, "f32", "cpu", 5]
    ours = json.loads(run(RELEASE / "examples/bench", *words, env=env))["step_s"]
    theirs = json.loads(python("crates/net/examples/bench_peer.py", *words, env=env))["step_s"]
    return {"pretraining step, ViT-tiny, f32 / PyTorch": theirs / ours}


def detection(a):
    need("openslide", "timm", "onnx", "skimage")
    frames = ["--frames", a.frames, "--count", 9, "--repeats", a.repeats, "--threads", a.threads]
    models = {m: ROOT / f"models/mithras-{m}" for m in ["standard", "fast"]}
    standard = json_of("benches/end_to_end.py", *frames, "--model", models["standard"], "--only", "PyTorch eager",
                       "native", "openvino f32")
    fast = json_of("benches/end_to_end.py", *frames, "--model", models["fast"], "--only", "native", "openvino f32")
    wall = {r["name"]: r["wall"] for r in standard["rows"]}
    eager, last = wall["peer: PyTorch eager"], wall["peer: PyTorch eager, channels-last, batch 1"]
    all = {}
    for model, rows in [("standard", standard["rows"]), ("fast", fast["rows"])]:
        ours = {r["name"]: r["wall"] for r in rows if r["name"].startswith("mithras")}
        f32 = ours["mithras native f32"]
        all[f"detect, {model}, native / PyTorch eager, standard"] = eager / f32
        all[f"detect, {model}, native / PyTorch channels-last, standard"] = last / f32
        all[f"detect, {model}, native bf16 / PyTorch eager, standard"] = eager / ours["mithras native bf16"]
        if openvino := ours.get("mithras openvino f32"):
            all[f"detect, {model}, native / OpenVINO"] = openvino / f32
        else:
            print(f"SKIPPED detect, {model}, native / OpenVINO: OpenVINO was not found (mithras doctor)")
    return all


MEASURES = {f.__name__: f for f in [reading, tissue, hotspot, corpus, survival, embedding, training, detection]}


def machine():
    line = next((l.split(":")[1].strip() for l in open("/proc/cpuinfo") if l.startswith("model name")), platform.processor())
    return f"{line}, {os.cpu_count()} cores"


def main():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("frames")
    p.add_argument("--only", default=",".join(MEASURES))
    p.add_argument("--write", action="store_true")
    p.add_argument("--repeats", type=int, default=3)
    p.add_argument("--threads", type=int, default=os.cpu_count())
    a = p.parse_args()
    unknown = set(a.only.split(",")) - set(MEASURES)
    if unknown:
        p.error(f"{', '.join(unknown)}: not one of {', '.join(MEASURES)}")
    table = json.loads(TABLE.read_text()) if TABLE.is_file() else {"version": 1, "machine": machine(), "ratios": {}}
    if table["machine"] != machine():
        print(f"the table is of {table['machine']}, this is {machine()}: ratios may differ for that alone")
        if a.write:
            print("none of its ratios is kept")
            table["ratios"] = {}
    print(f"load at the start: {os.getloadavg()[0]:.1f}")
    slower, failed = [], []
    for name in a.only.split(","):
        try:
            measured = MEASURES[name](a)
        except Skipped as e:
            print(f"SKIPPED {name}: {e}", flush=True)
            continue
        except Failed as e:
            print(f"FAILED {name}: {e}", flush=True)
            failed.append(name)
            continue
        for what, ratio in measured.items():
            before = table["ratios"].get(what)
            fell = before is not None and ratio < KEPT * before
            slower += [what] * fell
            print(f"{what}: {ratio:.2f}" + (f" (table: {before:.2f})" if before else "") + (" SLOWER" if fell else ""),
                  flush=True)
            if a.write:
                table["ratios"][what] = round(ratio, 3)
    if a.write:
        table["machine"] = machine()
        TABLE.write_text(json.dumps(table, indent=1) + "\n")
        print(f"written: {TABLE}")
    if failed:
        sys.exit(f"did not run: {', '.join(failed)}")
    if slower and not a.write:
        sys.exit(f"{len(slower)} ratios fell by {100 - 100 * KEPT:.0f} % or more: {'; '.join(slower)}")


if __name__ == "__main__":
    main()
