"""mithras against the plain Python pipeline, in one run on one slide.

    python end_to_end.py --frames FRAMES --model PACKAGE [--mithras target/release/mithras]
                         [--yolo ONNX] [--count N] [--repeats N] [--threads N] [--json OUT.json]

Tiles real frames into a slide in a temporary folder, then runs each contestant `repeats` times, in
turn, so that a busy moment of the machine meets all of them. Wall seconds are of the whole process
(imports, model loading and writing included). Prints medians, the ratio to the peer (over 1: faster
than the peer), the processor seconds, and how far the results agree.
"""

import argparse
import csv
import json
import os
import platform
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).parent


def contestants(a, slide, out):
    ours = [a.mithras, "detect", slide, "--out", out, "--model", a.bundled or a.model, "--quiet",
            "--threads", str(a.threads)]
    peer = [sys.executable, str(HERE / "peer/detect.py"), slide, "--model", a.model, "--out", out,
            "--threads", str(a.threads)]
    table = {
        "peer: PyTorch eager": peer,
        "peer: PyTorch eager, channels-last, batch 1": [*peer, "--channels-last", "--batch", "1"],
        "peer: torch.compile, NHWC, batch 1": [*peer, "--channels-last", "--batch", "1", "--compile"],
        "mithras native bf16": [*ours, "--engine", "native", "--precision", "bf16"],
        "mithras native f32": [*ours, "--engine", "native", "--precision", "f32"],
        "mithras auto": ours,
        "mithras openvino bf16": [*ours, "--engine", "openvino", "--precision", "bf16"],
        "mithras openvino f32": [*ours, "--engine", "openvino", "--precision", "f32"],
        "mithras onnxruntime/openvino": [*ours, "--engine", "onnxruntime", "--provider", "openvino"],
        "mithras onnxruntime/cpu": [*ours, "--engine", "onnxruntime", "--provider", "cpu"],
        "mithras rten": [*ours, "--engine", "rten"],
    }
    if a.yolo:
        table["YOLO at 0.5 um/px, OpenVINO f32"] = [
            sys.executable, str(HERE / "peer/boxes.py"), slide, "--onnx", a.yolo, "--out", out, "--threads", str(a.threads)]
    return {k: v for k, v in table.items() if not a.only or any(o in k for o in a.only)}


def timed(command):
    begin, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    _, error = process.communicate()
    wall, after = time.perf_counter() - begin, resource.getrusage(resource.RUSAGE_CHILDREN)
    if process.returncode:
        return None, error.decode(errors="replace").strip().splitlines()[-3:]
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return {"wall": wall, "cpu": cpu}, None


def figures(out):
    """Accepted figures, level-0 px."""
    for path in sorted(Path(out).rglob("detections.csv")):
        with open(path, newline="") as f:
            return [(float(r["x_px"]), float(r["y_px"]), float(r["s_seg"]), float(r["s_cls"] or "nan"))
                    for r in csv.DictReader(f) if r["accepted"].lower() == "true"]
    return []


def agreement(ours, theirs, radius=8.0):
    """Figures of both within 2 um of each other, and the largest difference of their scores."""
    left, shared, seg, cls = list(theirs), 0, 0.0, 0.0
    for x, y, s, c in ours:
        near = min(left, key=lambda t: (t[0] - x) ** 2 + (t[1] - y) ** 2, default=None)
        if near and (near[0] - x) ** 2 + (near[1] - y) ** 2 <= radius ** 2:
            left.remove(near)
            shared += 1
            seg, cls = max(seg, abs(near[2] - s)), max(cls, abs(near[3] - c))
    return shared, seg, cls


def machine():
    cpu = next((l.split(":")[1].strip() for l in open("/proc/cpuinfo") if l.startswith("model name")), platform.processor())
    flags = next((l for l in open("/proc/cpuinfo") if l.startswith("flags")), "")
    has = [f for f in ("avx2", "avx512f", "avx512_bf16", "amx_bf16") if f in flags.split()]
    return f"{cpu}, {os.cpu_count()} cores, {' '.join(has)}; load {os.getloadavg()[0]:.1f} at the start"


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--frames", required=True)
    p.add_argument("--model", required=True)
    p.add_argument("--mithras", default=str(HERE.parent / "target/release/mithras"))
    p.add_argument("--count", type=int, default=4)
    p.add_argument("--repeats", type=int, default=3)
    p.add_argument("--threads", type=int, default=os.cpu_count())
    p.add_argument("--bundled", help="mithras runs this package of its own, and the peer --model")
    p.add_argument("--only", nargs="*")
    p.add_argument("--yolo", help="ONNX file of a YOLO, for a detector of boxes by OpenVINO (peer/boxes.py)")
    p.add_argument("--json")
    a = p.parse_args()
    line = machine()
    print(line)
    with tempfile.TemporaryDirectory() as tmp:
        slide = str(Path(tmp) / "frames.tiff")
        subprocess.run([sys.executable, HERE / "make_slide.py", a.frames, slide, "--frames", str(a.count)], check=True)
        runs, found, failed = {}, {}, {}
        for repeat in range(a.repeats):
            for name in contestants(a, slide, tmp):
                if name in failed:
                    continue
                slug = name.replace(" ", "-").replace("/", "-").replace(":", "").replace(",", "")
                out = str(Path(tmp) / f"{slug}-{repeat}")
                took, error = timed(contestants(a, slide, out)[name])
                if error:
                    failed[name] = " ".join(error)
                    continue
                runs.setdefault(name, []).append(took)
                found[name] = figures(out)
                print(f"  {repeat + 1}/{a.repeats} {name}: {took['wall']:.1f} s", file=sys.stderr, flush=True)
    median = {k: {m: statistics.median(r[m] for r in v) for m in ("wall", "cpu")} for k, v in runs.items()}
    peer = next((k for k in median if k.startswith("peer")), None)
    print(f"\n| {'contestant':<45} | wall s | processor s | faster than peer | figures | shared with peer, largest score difference |")
    print("|---|---|---|---|---|---|")
    rows = []
    for name, m in median.items():
        ratio = median[peer]["wall"] / m["wall"] if peer else float("nan")
        shared, seg, cls = agreement(found[name], found.get(peer, []))
        rows.append({"name": name, **m, "ratio": ratio, "figures": len(found[name]), "shared": shared, "seg": seg, "cls": cls})
        print(f"| {name:<45} | {m['wall']:.1f} | {m['cpu']:.1f} | {ratio:.2f} | {len(found[name])} | {shared}, s_seg {seg:.1e}, s_cls {cls:.1e} |")
    for name, error in failed.items():
        print(f"\n{name} did not run: {error}")
    if a.json:
        Path(a.json).write_text(json.dumps({"machine": line, "repeats": a.repeats, "rows": rows, "failed": failed}, indent=1))


if __name__ == "__main__":
    main()
