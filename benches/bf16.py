"""What bf16 does to the bundled detector on real frames, and what it saves.

    python bf16.py --frames FRAMES --model PACKAGE [--mithras target/release/mithras] [--mpp 0.2456]

First OpenVINO through its Python package, one thread, windows of 512 px at stride 700: every layer in
bf16, the encoder alone, the decoder alone (cut before the first Resize, as `mithras` does), and the
classifier, each against f32. A region is a connected part of the f32 map above 0.1 of at least 20 px.
Then `mithras detect` with either precision: candidates, figures, scores and seconds.
"""

import argparse
import csv
import subprocess
import tempfile
import time
from pathlib import Path

import numpy as np
import onnx
import openvino
from PIL import Image
from scipy import ndimage

HERE = Path(__file__).parent
MEAN = np.array([0.485, 0.456, 0.406], np.float32)
STD = np.array([0.229, 0.224, 0.225], np.float32)


def plane(image):
    return np.ascontiguousarray(((np.asarray(image, np.float32) / 255 - MEAN) / STD).transpose(2, 0, 1)[None])


def compiled(path, precision, shapes):
    core = openvino.Core()
    model = core.read_model(path)
    model.reshape(shapes)
    hints = {"INFERENCE_PRECISION_HINT": precision, "INFERENCE_NUM_THREADS": 1}
    return core.compile_model(model, "CPU", hints)


def crossing(path):
    """Values made before the first Resize and read from there on."""
    graph = onnx.load(path).graph
    at = next(i for i, n in enumerate(graph.node) if n.op_type == "Resize")
    live = {"image"}
    for n in graph.node:
        if live & set(n.input):
            live |= set(n.output)
    made = {o for n in graph.node[:at] for o in n.output} & live
    return sorted({i for n in graph.node[at:] for i in n.input} & made)


def segmenters(path, folder):
    whole, between = {"image": [1, 3, 512, 512]}, crossing(path)
    parts = [str(folder / "first.onnx"), str(folder / "second.onnx")]
    onnx.utils.extract_model(path, parts[0], ["image"], between, check_model=False)
    onnx.utils.extract_model(path, parts[1], between, ["probability"], check_model=False)
    probe = compiled(parts[0], "f32", whole)(np.zeros([1, 3, 512, 512], np.float32))
    shapes = {n: list(probe[n].shape) for n in between}

    def one(precision):
        network = compiled(path, precision, whole)
        return lambda x: network(x)[0].copy()

    def two(first, second):
        a = compiled(parts[0], first, whole).create_infer_request()
        b = compiled(parts[1], second, shapes).create_infer_request()
        for n in between:
            b.set_tensor(n, a.get_tensor(n))

        def run(x):
            a.infer({"image": x}, share_inputs=True)
            return b.infer()[0].copy()

        return run

    return {"f32": one("f32"), "bf16": one("bf16"), "encoder in bf16": two("bf16", "f32"), "decoder in bf16": two("f32", "bf16")}


def timed(network, inputs):
    start = time.perf_counter()
    out = [network(x) for x in inputs]
    return out, 1e3 * (time.perf_counter() - start) / len(inputs)


def rows(folder):
    out = []
    for path in sorted(Path(folder).glob("*/detections.csv")):
        with open(path, newline="") as f:
            for r in csv.DictReader(f):
                scores = [float(r["s_seg"]), float(r["s_cls"] or "nan")]
                out.append((path.parent.name, float(r["x_px"]), float(r["y_px"]), *scores, r["accepted"] == "true"))
    return out


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--frames", required=True, type=Path)
    p.add_argument("--model", required=True, type=Path)
    p.add_argument("--mithras", default=str(HERE.parent / "target/release/mithras"))
    p.add_argument("--mpp", default="0.2456")
    a = p.parse_args()
    files = sorted(f for f in a.frames.iterdir() if f.is_file())
    images = [Image.open(f).convert("RGB") for f in files]
    places = [(im, x, y) for im in images for y in range(0, im.height - 511, 700) for x in range(0, im.width - 511, 700)]
    windows = [plane(im.crop((x, y, x + 512, y + 512))) for im, x, y in places]
    with tempfile.TemporaryDirectory() as tmp:
        networks = segmenters(str(a.model / "segmenter.onnx"), Path(tmp))
        maps, regions = None, []
        for name, network in networks.items():
            found, ms = timed(network, windows)
            if maps is None:
                maps = [m.reshape(512, 512) for m in found]
                for m in maps:
                    labels, n = ndimage.label(m > 0.1)
                    regions.append([labels == k for k in range(1, n + 1) if (labels == k).sum() >= 20])
                print(f"{len(windows)} windows, {sum(map(len, regions))} regions; f32 {ms:.1f} ms a window")
                continue
            moved = [abs(m[r].mean() - q.reshape(512, 512)[r].mean()) for m, q, rs in zip(maps, found, regions) for r in rs]
            print(f"{name}: {ms:.1f} ms a window, regions moved by {np.median(moved):.4f} (median), {max(moved):.4f} (most)")
        crops = []
        for (im, x, y), rs in zip(places, regions):
            for r in rs:
                cy, cx = (round(v) for v in ndimage.center_of_mass(r))
                box = (x + cx - 32, y + cy - 32, x + cx + 32, y + cy + 32)
                crops.append(plane(im.crop(box).resize((128, 128), Image.BILINEAR)))
        path, shape = str(a.model / "classifier.onnx"), {"image": [1, 3, 128, 128]}
        both = []
        for precision in ("f32", "bf16"):
            network = compiled(path, precision, shape)
            both.append(np.array([network(c)[0].ravel() for c in crops]))
        off = np.abs(both[0] - both[1]).max(1)
        print(f"classifier in bf16, {len(crops)} crops: off by {np.median(off):.4f} (median), {off.max():.4f} (most)")

        tables = []
        for precision in ("f32", "bf16"):
            out = Path(tmp) / precision
            start = time.perf_counter()
            command = [a.mithras, "detect", *map(str, files), "--mpp", a.mpp, "--model", str(a.model), "--engine", "openvino"]
            subprocess.run([*command, "--precision", precision, "--threads", "1", "--quiet", "--out", str(out)], check=True, stdout=subprocess.DEVNULL)
            tables.append(rows(out))
            print(f"detect {precision}: {time.perf_counter() - start:.1f} s, {len(tables[-1])} candidates, {sum(r[5] for r in tables[-1])} figures")
        f32, bf16 = tables
        same = len(f32) == len(bf16) and all(a[0] == b[0] and np.hypot(a[1] - b[1], a[2] - b[2]) <= 2 for a, b in zip(f32, bf16))
        print("the same candidates" if same else "NOT the same candidates")
        if same:
            print("the same figures" if all(a[5] == b[5] for a, b in zip(f32, bf16)) else "NOT the same figures")
            for what, keep in (("figures", True), ("other candidates", False)):
                pairs = [(abs(a[3] - b[3]), abs(a[4] - b[4])) for a, b in zip(f32, bf16) if a[5] == keep]
                seg, cls = np.array(pairs).T
                print(f"{what}: s_seg off by {np.median(seg):.4f} (median), {seg.max():.4f} (most); s_cls {cls.max():.4f} (most), {(seg > 5e-3).sum()} and {(cls > 5e-3).sum()} above 5e-3")


if __name__ == "__main__":
    main()
