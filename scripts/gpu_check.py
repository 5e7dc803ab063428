#!/usr/bin/env python3
"""The parts of scripts/gpu_check.sh, and its report."""

import argparse
import csv
import json
import os
import platform
import shutil
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SCHEMA = "mithras.gpu-check/1"
#: Scores of two engines may differ by this much, places by a pixel.
SCORE, PLACE = 5e-3, 1.0
#: What is aimed at: (name, unit, at least or at most, number).
TARGETS = [("slide of 100 mm2", "s", "at most", 16.0), ("pretraining step, PyTorch's time over ours", "x", "at least", 1.0),
           ("pretraining step, share of the matrix peak", "", "at least", 0.5)]


class NotRun(Exception):
    """A part that cannot be run here, and why."""


class Check:
    def __init__(self, args):
        self.args, self.out = args, args.out
        self.ends = time.monotonic() + args.seconds
        self.parts, self.found, self.machine = [], {}, {}
        self.binary, self.bench = args.binary, args.bench
        self.device = "cpu" if args.cpu else "cuda"
        shutil.rmtree(self.out, ignore_errors=True)
        (self.out / "log").mkdir(parents=True)

    def left(self):
        return self.ends - time.monotonic()

    def part(self, name, limit, work):
        """Runs one part for at most `limit` s; whatever happens, the report so far is written."""
        begun = time.monotonic()
        limit *= 3 if self.args.cpu else 1  # machines without a GPU are slow ones
        row = {"name": name, "status": "done", "limit_s": limit, "why": None, "results": {}}
        self.now, self.until = name, begun + min(limit, self.left())
        try:
            if self.left() < 5:
                raise NotRun(f"the {self.args.seconds} s were over")
            row["results"] = work() or {}
        except NotRun as e:
            row["status"], row["why"] = "not run", str(e)
        except Exception as e:
            row["status"], row["why"] = "failed", str(e) or type(e).__name__
        row["seconds"] = round(time.monotonic() - begun, 2)
        self.parts.append(row)
        self.write()
        print(f"{name}: {row['status']} ({row['seconds']} s){': ' + row['why'] if row['why'] else ''}", flush=True)

    def run(self, *command):
        """Standard output of a command that ends in time and well; its log is kept."""
        command = [str(c) for c in command]
        log = self.out / "log" / f"{self.now.replace(' ', '-').replace(',', '')}.txt"
        limit = max(self.until - time.monotonic(), 1)
        try:
            done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=limit)
        except subprocess.TimeoutExpired:
            raise RuntimeError(f"stopped at its limit: {' '.join(command[:4])} ...") from None
        except FileNotFoundError:
            raise NotRun(f"{command[0]} is not there") from None
        with log.open("a") as f:
            f.write(f"$ {' '.join(command)}\n{done.stdout}{done.stderr}\n")
        if done.returncode:
            output = (done.stderr.strip() or done.stdout.strip() or "nothing").splitlines()
            line = next((x for x in output if x.startswith("error")), output[-1])
            raise RuntimeError(f"exit code {done.returncode}: {line[:300]}")
        return done.stdout

    def mithras(self, *args):
        if not self.binary or not self.binary.is_file():
            raise NotRun("the binary is missing; see the part `build`")
        return self.run(self.binary, *args)

    # The parts.

    def look(self):
        m = {"system": platform.platform(), "cores": os.cpu_count(), "asked": self.device}
        code = ("import json, torch; g = torch.cuda.is_available(); print(json.dumps({'torch': torch.__version__, 'cuda': torch.version.cuda,"
                " 'gpu': torch.cuda.get_device_name(0) if g else None, 'gpu_gib': torch.cuda.mem_get_info(0)[1] / 2**30 if g else None}))")
        m |= json.loads(self.run(sys.executable, "-c", code))
        if shutil.which("nvidia-smi"):
            m["nvidia_smi"] = self.run("nvidia-smi", "--query-gpu=name,driver_version,clocks.max.sm,power.limit", "--format=csv,noheader").strip()
        self.machine = m
        return m

    def need_device(self):
        if self.device == "cuda" and not self.machine.get("gpu"):
            raise NotRun("PyTorch sees no CUDA GPU here")

    def build(self):
        if self.binary and self.bench:
            raise NotRun("--binary and --bench were given")
        profile = ["--profile", self.args.profile]
        both = ["-p", "mithras-cli", "-p", "mithras-net", "--features", "mithras-cli/train", "--bin", "mithras", "--example", "bench"]
        self.run("cargo", "build", *profile, *both)
        where = json.loads(self.run("cargo", "metadata", "--format-version", "1", "--no-deps"))["target_directory"]
        folder = Path(where) / {"dev": "debug"}.get(self.args.profile, self.args.profile)
        self.binary, self.bench = folder / "mithras", folder / "examples" / "bench"
        return {"binary": str(self.binary.name)}

    def draw(self, name, side, figures):
        self.mithras("demo", "--draw-only", "--out", self.out / name, "--size", f"{side},{side}", "--figures", figures,
                     "--tissue-mm2", round(0.6 * (side * 0.25e-3) ** 2, 3), "--seed", 3)
        return {"side_px": side}

    def detect(self, slide, engine, *more):
        """Detects on a drawn slide. Gives wall seconds, candidates and the count."""
        out = self.out / "runs" / f"{slide}-{'-'.join((engine, *more)).replace('--', '')}"
        begun = time.monotonic()
        self.mithras("detect", self.out / slide / "drawn.tiff", "--out", out, "--engine", engine, *more, "--json")
        wall = time.monotonic() - begun
        with (out / "drawn" / "detections.csv").open() as f:
            rows = [(float(r["x_px"]), float(r["y_px"]), float(r["s_seg"]), float(r["s_cls"])) for r in csv.DictReader(f)]
        return wall, rows, json.loads((out / "drawn" / "counts.json").read_text())

    def reference(self):
        wall, self.rows, counts = self.detect("small", "rten")
        return {"wall_s": round(wall, 2), "candidates": len(self.rows), "windows": counts["windows"]}

    def parity(self, engine, *more):
        """Candidates of an engine against those of the embedded one."""
        if not hasattr(self, "rows"):
            raise NotRun("the reference is missing")
        _, rows, _ = self.detect("small", engine, *more)
        near = lambda a, b: abs(a[0] - b[0]) <= PLACE and abs(a[1] - b[1]) <= PLACE  # noqa: E731
        pairs = [(a, next((b for b in rows if near(a, b)), None)) for a in self.rows]
        lost = sum(b is None for _, b in pairs) + max(len(rows) - len(self.rows), 0)
        most = [max((abs(a[i] - b[i]) for a, b in pairs if b), default=0.0) for i in (2, 3)]
        result = {"candidates": len(rows), "not_in_both": lost, "s_seg_off_by": most[0], "s_cls_off_by": most[1]}
        if lost or max(most) > SCORE:
            raise RuntimeError(f"differs from the embedded engine: {result}")
        return result

    def speed(self, engine, *more):
        """Whole processes on the large slide; what 100 mm2 would take at the rate of its windows."""
        wall, _, counts = self.detect("large", engine, *more)
        rate = counts["windows"] / wall
        whole = wall * 100.0 / counts["analysed_mm2"]
        self.found["slide of 100 mm2"] = min(whole, self.found.get("slide of 100 mm2", float("inf")))
        return {"wall_s": round(wall, 2), "windows": counts["windows"], "windows_per_s": round(rate, 1),
                "analysed_mm2": counts["analysed_mm2"], "slide_of_100_mm2_s": round(whole, 1)}

    def windows(self):
        """The same networks in eager PyTorch, windows alone."""
        return json.loads(self.run(sys.executable, __file__, "--peer", "windows", self.device, 2 if self.args.cpu else 30,
                                   1 if self.args.cpu else 8))

    def encoder(self):
        name, batch = ("vit_tiny_patch16_224", 2) if self.args.cpu else ("vit_base_patch16_224", 128)
        precision = "f32" if self.args.cpu else "bf16"
        ours = json.loads(self.mithras("bench", "encoders", name, "--device", self.device, "--batch", batch, "--precision", precision,
                                       "--runs", 3 if self.args.cpu else 20, "--json"))
        peer = json.loads(self.run(sys.executable, __file__, "--peer", "encoder", self.device, 3 if self.args.cpu else 20, batch, name,
                                   precision))
        row = next(r for r in ours["encoders"] if r["encoder"] == name)
        own = 1e3 * row["crop_s"]
        return {"encoder": name, "precision": precision, "batch": batch, "ms_per_crop": own,
                "pytorch_ms_per_crop": peer["ms_per_crop"], "pytorch_over_ours": round(peer["ms_per_crop"] / own, 3)}

    def embed(self):
        """Features of the large slide by an ONNX file, as `embed` runs it."""
        onnx, package = self.out / "vit_small.onnx", self.out / "vit_small"
        self.run(sys.executable, ROOT / "benches/embed.py", "export", onnx)
        self.mithras("encoders", "convert", "--onnx", onnx, "--out", package, "--name", "vit_small", "--image", 224, "--mean",
                     "0.485,0.456,0.406", "--std", "0.229,0.224,0.225", "--mpp", 0.5, "--pooling", "class-token", "--license", "none")
        slide = self.out / ("small" if self.args.cpu else "large") / "drawn.tiff"
        how = ["--engine", "onnxruntime", "--provider", "cpu" if self.args.cpu else "cuda"]
        begun = time.monotonic()
        self.mithras("embed", slide, "--encoder", package, "--out", self.out / "features", *how)
        wall = time.monotonic() - begun
        tiles = int(self.run(sys.executable, "-c", "import h5py, sys; print(len(h5py.File(sys.argv[1])['coords']))",
                             self.out / "features" / "drawn.h5"))
        return {"tiles": tiles, "wall_s": round(wall, 2), "tiles_per_s": round(tiles / wall, 1)}

    def peak(self):
        return json.loads(self.run(sys.executable, __file__, "--peer", "matmul", self.device, 3 if self.args.cpu else 20,
                                   1024 if self.args.cpu else 8192, "f32" if self.args.cpu else "bf16"))

    def step(self):
        """The whole objective (reconstruction and both contrasts; AdamW), fused attention on both sides."""
        size, views, precision, runs = ("tiny", 2, "f32", 1) if self.args.cpu else ("base", 256, "bf16", 10)
        how = [size, views, precision, self.device, runs]
        if not self.bench or not self.bench.is_file():
            raise NotRun("the example `bench` is missing; see the part `build`")
        ours = json.loads(self.run(self.bench, "step", *how))["step_s"]
        peer = json.loads(self.run(sys.executable, ROOT / "crates/net/examples/bench_peer.py", "step", *how))["step_s"]
        flop = views * step_flop(768 if size == "base" else 192)
        result = {"size": size, "views": views, "precision": precision, "step_s": ours, "pytorch_step_s": peer,
                  "tflop_per_step": flop / 1e12, "tflop_per_s": flop / ours / 1e12}
        self.found["pretraining step, PyTorch's time over ours"] = peer / ours
        peak = next((p["results"].get("tflop_per_s") for p in self.parts if p["name"] == "matrix peak"), None)
        if peak:
            self.found["pretraining step, share of the matrix peak"] = result["share_of_peak"] = flop / ours / 1e12 / peak
        return result

    # The report.

    def targets(self):
        rows = []
        for name, unit, kind, wanted in TARGETS:
            found = None if self.args.cpu else self.found.get(name)
            met = None if found is None else (found <= wanted if kind == "at most" else found >= wanted)
            rows.append({"name": name, "unit": unit, "kind": kind, "wanted": wanted, "found": found, "met": met})
        return rows

    def write(self):
        targets = self.targets()
        report = {"schema": SCHEMA, "tried_without_gpu": self.args.cpu, "seconds": round(self.args.seconds - self.left(), 1),
                  "machine": self.machine, "targets": targets, "parts": self.parts}
        (self.out / "report.json").write_text(json.dumps(report, indent=2) + "\n")
        lines = ["# GPU check", ""]
        if self.args.cpu:
            lines += ["**Tried without a GPU, on small sizes: the figures mean nothing, and no target is judged.**", ""]
        lines += [f"- {k}: {v}" for k, v in self.machine.items() if v is not None] + ["", "| target | wanted | found | met |", "|---|---|---|---|"]
        for t in targets:
            found = "not measured" if t["found"] is None else f"{t['found']:.3g} {t['unit']}".strip()
            met = {None: "-", True: "yes", False: "no"}[t["met"]]
            lines.append(f"| {t['name']} | {t['kind']} {t['wanted']:g} {t['unit']} | {found} | {met} |")
        lines += ["", "| part | | s | what was found, or why not |", "|---|---|---|---|"]
        for p in self.parts:
            output = p["why"] or ", ".join(f"{k} {v:.4g}" if isinstance(v, float) else f"{k} {v}" for k, v in p["results"].items())
            lines.append(f"| {p['name']} | {p['status']} | {p['seconds']} | {output.replace('|', '/')} |")
        lines += ["", "A slide of 100 mm2 is reckoned from the whole process on the large drawn slide. Logs are in `log/`.", ""]
        (self.out / "report.md").write_text("\n".join(lines))

    def everything(self):
        # Side in px and figures.
        small, large = ((1400, 4), (1400, 4)) if self.args.cpu else ((3072, 20), (14000, 200))
        self.part("machine", 30, self.look)
        self.part("build", 240, self.build)
        self.part("draw small", 30, lambda: self.draw("small", *small))
        self.part("reference, rten on the CPU", 60, self.reference)
        engines = [("onnxruntime", "cpu"), ("onnxruntime", "cuda"), ("onnxruntime", "tensorrt"), ("torch", self.device)]
        for engine, provider in engines:
            self.part(f"parity, {engine} {provider}", 90, lambda e=engine, p=provider: self.on(p, self.parity, e))
        self.part("draw large", 60, lambda: self.draw("large", *large))
        for engine, provider in engines[0 if self.args.cpu else 1 :]:
            self.part(f"detection, {engine} {provider}", 60, lambda e=engine, p=provider: self.on(p, self.speed, e))
        for name, limit, work in [("windows in PyTorch", 40, self.windows), ("encoder, libtorch and PyTorch", 60, self.encoder),
                                  ("embedding, ONNX Runtime", 60, self.embed), ("matrix peak", 30, self.peak),
                                  ("pretraining step and PyTorch", 90, self.step)]:
            self.part(name, limit, lambda w=work: (self.need_device(), w())[1])
        bad = [p["name"] for p in self.parts if p["status"] == "failed"]
        print(f"\n{self.out / 'report.md'}\n{self.out / 'report.json'}")
        return 1 if bad else 0

    def on(self, provider, work, engine):
        """`work` with an engine, where its device is there."""
        if provider in ("cuda", "tensorrt") and (self.args.cpu or not self.machine.get("gpu")):
            raise NotRun("--cpu was given" if self.args.cpu else "PyTorch sees no CUDA GPU here")
        return work(engine, "--provider", provider)


def step_flop(dim, tokens=50, blocks=12, all_tokens=197, decoder=512, decoder_blocks=8):
    """Operations of one view's step, counted by hand: forward and twice that backward, matrix products of the blocks alone."""
    block = lambda d, t: t * (24 * d * d + 4 * t * d)  # noqa: E731
    return 3 * (blocks * block(dim, tokens) + decoder_blocks * block(decoder, all_tokens))


def eager(path, device):
    """The shipped segmenter as eager PyTorch operations, its weights in f32, channels last."""
    import onnx
    import torch
    import torch.nn.functional as F
    from onnx import numpy_helper

    graph = onnx.load(path).graph
    weights = {i.name: torch.from_numpy(numpy_helper.to_array(i).copy()).float().to(device) for i in graph.initializer}
    steps = []
    for n in graph.node:
        a = {x.name: onnx.helper.get_attribute_value(x) for x in n.attribute}
        if n.op_type == "Cast":
            weights[n.output[0]] = weights[n.input[0]]
            continue
        if n.op_type == "Conv":
            work = lambda x, w, b=None, a=a: F.conv2d(x, w, b, a["strides"], a["pads"][:2], groups=a["group"])  # noqa: E731
        elif n.op_type == "Resize":
            how = {"mode": "nearest"} if a["mode"] == b"nearest" else {"mode": "bilinear", "align_corners": False}
            work = lambda x, s, how=how: F.interpolate(x, scale_factor=s[2:].tolist(), **how)  # noqa: E731
        else:
            work = {"Clip": lambda x, low, high: x.clamp_(low, high), "Relu": torch.relu_, "Add": torch.add, "Sigmoid": torch.sigmoid,
                    "Concat": lambda *x: torch.cat(x, 1)}[n.op_type]
        steps.append((work, [i for i in n.input if i], n.output[0]))
    # Numbers and scales stay on the processor.
    weights = {k: float(v) if v.dim() == 0 else v.cpu() if k.startswith("scales") else v for k, v in weights.items()}

    def forward(image):
        values = {"image": image}
        for work, inputs, output in steps:
            values[output] = work(*[values[i] if i in values else weights[i] for i in inputs])
        return values["probability"]

    return forward


def peer(what, device, runs, size, *more):
    """PyTorch's side, in a process of its own: one line of JSON."""
    import torch

    runs, size = int(runs), int(size)

    def median(work):
        seconds = []
        for _ in range(runs + 2):
            begun = time.perf_counter()
            work()
            if device == "cuda":
                torch.cuda.synchronize()
            seconds.append(time.perf_counter() - begun)
        return sorted(seconds[2:])[runs // 2]

    with torch.inference_mode():
        if what == "matmul":
            a = torch.rand(size, size, device=device, dtype=torch.bfloat16 if more[0] == "bf16" else torch.float32)
            print(json.dumps({"side": size, "tflop_per_s": 2 * size**3 / median(lambda: a @ a) / 1e12}))
        elif what == "windows":
            net, x = eager(ROOT / "models/mithras-standard/segmenter.onnx", device), torch.rand(size, 3, 512, 512, device=device)
            x = x.to(memory_format=torch.channels_last)
            print(json.dumps({"batch": size, "windows_per_s": size / median(lambda: net(x))}))
        elif what == "encoder":
            import timm

            net = timm.create_model(more[0], num_classes=0).eval().to(device)
            x = torch.rand(size, 3, 224, 224, device=device)
            with torch.autocast(device, torch.bfloat16, enabled=more[1] == "bf16"):
                print(json.dumps({"ms_per_crop": 1e3 * median(lambda: net(x)) / size}))


def main():
    if sys.argv[1:2] == ["--peer"]:
        return peer(*sys.argv[2:])
    a = argparse.ArgumentParser(description=__doc__)
    a.add_argument("--out", type=Path, default=ROOT / "target/gpu-check")
    a.add_argument("--cpu", action="store_true")
    a.add_argument("--seconds", type=int, default=465)
    a.add_argument("--binary", type=lambda p: Path(p).resolve())
    a.add_argument("--bench", type=lambda p: Path(p).resolve())
    a.add_argument("--profile", default="release")
    args = a.parse_args()
    if bool(args.binary) != bool(args.bench):
        a.error("--binary and --bench go together")
    args.out = args.out.resolve()
    return Check(args).everything()


if __name__ == "__main__":
    sys.exit(main())
