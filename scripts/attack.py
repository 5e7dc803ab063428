"""Attacks a build of mithras; see attack.sh. Needs Python's standard library alone."""

import argparse
import json
import os
import random
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SLIDES = ROOT / "crates/slide/tests/golden/slides"
MODEL = ROOT / "crates/infer/tests/golden/tiny"
COLUMNS = ["tried", "right error", "success", "panic", "hang", "over budget", "silent change"]
BAD = COLUMNS[3:]
#: A process beyond this is ended by the system: that counts as over budget.
BUDGET = 3 << 30
PATIENCE = 60


class Table:
    def __init__(self):
        self.rows = {}
        self.lock = threading.Lock()
        self.found = []

    def add(self, campaign, outcome, what=""):
        with self.lock:
            row = self.rows.setdefault(campaign, dict.fromkeys(COLUMNS, 0))
            row["tried"] += 1
            row[outcome] += 1
            if outcome in BAD:
                self.found.append(f"{campaign}: {outcome}: {what}")

    def show(self):
        width = max(map(len, self.rows), default=8)
        print(f"| {'campaign':<{width}} | " + " | ".join(COLUMNS) + " |")
        print("|---" * (len(COLUMNS) + 1) + "|")
        for name, row in self.rows.items():
            cells = " | ".join(f"{row[c]:>{len(c)}}" for c in COLUMNS)
            print(f"| {name:<{width}} | {cells} |")
        for line in self.found[:40]:
            print(line)
        return not self.found


def limited():
    import resource

    resource.setrlimit(resource.RLIMIT_AS, (BUDGET * 2, BUDGET * 2))


def outcome_of(done):
    """What a finished process stands for."""
    said = done.stderr.decode(errors="replace")
    if "memory allocation of" in said or done.returncode == -signal.SIGKILL:
        return "over budget"
    if "panicked at" in said or "the reader stopped" in said and done.returncode == 101:
        return "panic"
    if done.returncode == 101 or done.returncode < 0:
        return "panic"
    if done.returncode == 0:
        return "success"
    return "right error" if said.strip() or done.stdout.strip() else "panic"


class Attack:
    def __init__(self, binary, seed, end):
        self.binary, self.seed, self.end = Path(binary).resolve(), seed, end
        self.random = random.Random(seed)
        self.table = Table()
        self.base = Path(tempfile.mkdtemp(prefix="attack-"))
        self.environment = {**os.environ, "MITHRAS_LIMITS": "memory=256M,decoded=1G,expansion=5000"}

    def mithras(self, *arguments, timeout=PATIENCE, **more):
        command = [self.binary, *map(str, arguments)]
        return subprocess.run(
            command, capture_output=True, timeout=timeout, env=self.environment, preexec_fn=limited, **more
        )

    def tell(self, campaign, what, *arguments):
        try:
            done = self.mithras(*arguments)
        except subprocess.TimeoutExpired:
            self.table.add(campaign, "hang", what)
            return None
        result = outcome_of(done)
        self.table.add(campaign, result, f"{what}: {done.stderr[-300:]!r}")
        return done

    # ---- mutation ----

    def mutated(self, data):
        """Random damage: bits, bytes, cuts, doubled and removed parts, numbers at their borders."""
        b, r = bytearray(data), self.random
        for _ in range(r.choice([1, 1, 2, 4, 16])):
            if not b:
                break
            at = r.randrange(min(len(b), r.choice([64, 1024, len(b)])))
            kind = r.randrange(7)
            if kind == 0:
                b[at] ^= 1 << r.randrange(8)
            elif kind == 1:
                b[at] = r.choice([0, 1, 127, 128, 255])
            elif kind == 2:
                del b[at:]
            elif kind == 3:
                del b[at : at + r.randrange(1, 64)]
            elif kind == 4:
                b[at:at] = b[at : at + r.randrange(1, 64)]
            elif kind == 5:
                value = r.choice([0, 1, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 1 << 20])
                b[at : at + 4] = struct.pack(r.choice("<>") + "I", value)
            else:
                b[at : at + 8] = struct.pack("<Q", r.choice([0, 1, 1 << 31, 1 << 40, (1 << 64) - 1]))
        return bytes(b)

    def tiff_lie(self, data):
        """One field of one directory says something else; None for what is no small TIFF."""
        if data[:4] not in (b"II*\0", b"MM\0*"):
            return None
        e, r, b = "<" if data[:2] == b"II" else ">", self.random, bytearray(data)
        places, at = [], struct.unpack_from(e + "I", b, 4)[0]
        while at and len(places) < 400:
            n = struct.unpack_from(e + "H", b, at)[0]
            places += [at + 2 + 12 * i for i in range(n)]
            at = struct.unpack_from(e + "I", b, at + 2 + 12 * n)[0]
        for _ in range(r.choice([1, 1, 2, 3])):
            place = r.choice(places)
            value = r.choice([0, 1, 2, 5, 7, 8, 16, 65535, 1 << 20, 1 << 31, (1 << 32) - 1, len(b), at])
            field = r.randrange(3)
            if field == 0:
                struct.pack_into(e + "H", b, place + 2, r.randrange(20))
            else:
                struct.pack_into(e + "I", b, place + 4 * field, value)
        return bytes(b)

    def files(self, campaign, seeds, commands, change=None):
        if not seeds:
            return
        seed = self.random.choice(seeds)
        data = (change or self.mutated)(seed.read_bytes())
        if data is None:
            data = self.mutated(seed.read_bytes())
        path = self.base / f"victim{seed.suffix}"
        path.write_bytes(data)
        for command in commands:
            out = self.base / "out"
            words = [str(w).replace("FILE", str(path)).replace("OUT", str(out)) for w in command]
            kept = shutil.copy(path, self.base / "kept")
            self.tell(campaign, f"{seed.name} {words[:2]}", *words)
            if path.read_bytes() != Path(kept).read_bytes():
                self.table.add(campaign, "silent change", f"{seed.name}: the input was written to")
            shutil.rmtree(out, ignore_errors=True)

    def package(self):
        """A model package with a changed network and a card that fits it."""
        import hashlib

        folder = self.base / "model"
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(MODEL, folder)
        name = self.random.choice(["segmenter.onnx", "classifier.onnx"])
        old = hashlib.sha256((folder / name).read_bytes()).hexdigest()
        (folder / name).write_bytes(self.mutated((folder / name).read_bytes()))
        new = hashlib.sha256((folder / name).read_bytes()).hexdigest()
        card = folder / "card.toml"
        text = card.read_text().replace(old, new)
        if self.random.random() < 0.3:
            text = self.mutated(text.encode()).decode(errors="replace")
        card.write_text(text)
        out = self.base / "out"
        slide = SLIDES / "svs_jpeg_420.svs"
        arguments = ["--stages", "2", "--engine", "rten", "--threads", "1", "--out", out]
        self.tell("ONNX and card", name, "detect", slide, "--model", folder, *arguments)
        shutil.rmtree(out, ignore_errors=True)

    # ---- runs ----

    def drawn(self):
        slide = self.base / "drawn/drawn.tiff"
        if not slide.exists():
            size = ["--size", "1600,1400", "--figures", "4", "--seed", "3"]
            self.mithras("demo", "--draw-only", "--out", slide.parent, *size)
        return slide

    def detect(self, out, *more):
        common = ["--model", MODEL, "--engine", "rten", "--threads", "1", "--quiet"]
        return ["detect", self.drawn(), "--out", out, *common, *more]

    @staticmethod
    def results(folder):
        skip = {"state.json", ".lock"}
        files = (p for p in sorted(folder.rglob("*")) if p.is_file() and p.name not in skip)
        return {p.name: p.read_bytes() for p in files if p.parent != folder}

    def kill_and_resume(self):
        whole, cut = self.base / "whole", self.base / "cut"
        if not whole.exists():
            self.tell("kill and resume", "whole run", *self.detect(whole))
        shutil.rmtree(cut, ignore_errors=True)
        command = [self.binary, *map(str, self.detect(cut, "--resume"))]
        for _ in range(3):
            process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            time.sleep(self.random.uniform(0.02, 1.5))
            process.kill()
            process.wait()
        done = self.tell("kill and resume", "resume", *self.detect(cut, "--resume"))
        if done is None or done.returncode != 0:
            self.table.add("kill and resume", "silent change", f"no resumption: {done and done.stderr[-300:]!r}")
            return
        same = self.results(whole) == self.results(cut)
        left = [p.name for p in cut.rglob(".writing-*")]
        self.table.add("kill and resume", "success" if same else "silent change", "other bytes after a kill")
        if left:
            self.table.add("kill and resume", "silent change", f"left over: {left}")

    def two_at_once(self):
        out, campaign = self.base / "shared", "two processes"
        shutil.rmtree(out, ignore_errors=True)
        command = [self.binary, *map(str, self.detect(out, "--resume"))]
        pair = [subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) for _ in range(2)]
        try:
            said = [p.communicate(timeout=PATIENCE) for p in pair]
        except subprocess.TimeoutExpired:
            [p.kill() for p in pair]
            self.table.add(campaign, "hang", "two runs into one folder")
            return
        for p, (_, err) in zip(pair, said):
            done = subprocess.CompletedProcess(p.args, p.returncode, b"", err or b"-")
            self.table.add(campaign, outcome_of(done), err[-300:])
        self.tell(campaign, "after both", *self.detect(out, "--resume"))
        whole = self.base / "whole"
        if whole.exists() and self.results(whole) != self.results(out):
            self.table.add(campaign, "silent change", "other bytes after two at once")

    def full_disk(self):
        """Every writing verb on a disk of a few pages, in a name space of its own."""
        campaign, small = "full disk", self.base / "small"
        small.mkdir(exist_ok=True)
        size = self.random.choice([4, 16, 48, 96, 200])
        slide = self.drawn()
        verbs = [
            self.detect(small / "out", "--stages", "1"),
            ["slide", "thumbnail", slide, "--out", small / "t.png", "--size", "2000"],
            ["slide", "tissue", slide, "--out", small / "tissue"],
            ["demo", "--draw-only", "--out", small / "demo", "--size", "900,800", "--figures", "2"],
        ]
        words = [str(w) for w in self.random.choice(verbs)]
        script = f'mount -t tmpfs -o size={size}k none "{small}" || exit 77; exec "$@"'
        command = ["unshare", "-rm", "sh", "-c", script, "sh", str(self.binary), *words]
        try:
            done = subprocess.run(command, capture_output=True, timeout=PATIENCE, env=self.environment)
        except subprocess.TimeoutExpired:
            return self.table.add(campaign, "hang", words[:2])
        if done.returncode == 77 or b"unshare:" in done.stderr:
            return None
        result = outcome_of(done)
        said = done.stderr + done.stdout
        if result == "right error" and b"space" not in said and b"written" not in said:
            result = "silent change"
        return self.table.add(campaign, result, f"{words[:2]} on {size} KiB: {said[-300:]!r}")

    def tables(self):
        """CSV tables through the statistics."""
        text = "time,event,x,g\n" + "".join(
            f"{self.random.randrange(1, 99)},{k % 2},{self.random.random():.3f},{'ab'[k % 2]}\n" for k in range(30)
        )
        path = self.base / "t.csv"
        path.write_bytes(self.mutated(text.encode()))
        verb = self.random.choice(
            [
                ["survival", "km", path, "--time", "time", "--event", "event"],
                ["survival", "cox", path, "--time", "time", "--event", "event", "--covariates", "x"],
                ["evaluate", "detections", "--predictions", self.base, "--truth", path],
            ]
        )
        self.tell("CSV", verb[1], *verb)

    def corpora(self, seeds):
        """A corpus whose shard or manifest is changed and signed anew."""
        import hashlib

        if not seeds:
            return
        source, folder = self.random.choice(seeds), self.base / "corpus"
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(source, folder)
        for p in folder.rglob("*"):
            p.chmod(0o755 if p.is_dir() else 0o644)
        manifest = folder / "manifest.json"
        about = json.loads(manifest.read_text())
        shard = folder / about["shards"][0]["file"]
        data = self.mutated(shard.read_bytes())
        shard.write_bytes(data)
        about["shards"][0].update(bytes=len(data), sha256=hashlib.sha256(data).hexdigest())
        text = json.dumps(about)
        if self.random.random() < 0.2:
            text = self.mutated(text.encode()).decode(errors="replace")
        manifest.write_text(text)
        for verb in ("verify", "inspect"):
            self.tell("Parquet and JSON", source.name, "corpus", verb, folder)

    def run(self, hostile):
        tiffs = [p for p in SLIDES.iterdir() if p.suffix in (".svs", ".tif", ".tiff")]
        flat = [p for p in SLIDES.iterdir() if p.suffix in (".png", ".jpg")]
        j2k = [p for p in tiffs if "jp2k" in p.name]
        read = [["slide", "info", "FILE", "--json"], ["slide", "thumbnail", "FILE", "--out", "OUT.png"]]
        tissue = [["slide", "tissue", "FILE", "--mpp", "0.25", "--out", "OUT"]]
        corpora = [p for p in (hostile.glob("corpus_*") if hostile.is_dir() else []) if p.is_dir()]
        known = [p for p in (hostile.iterdir() if hostile.is_dir() else []) if p.suffix in (".tif", ".svs", ".png")]
        for path in sorted(known):
            self.tell("hostile files", path.name, "slide", "info", path, "--json")
        for path in sorted(hostile.glob("onnx_*")):
            out = self.base / "out"
            slide = SLIDES / "svs_jpeg_420.svs"
            self.tell("hostile files", path.name, "detect", slide, "--model", path, "--engine", "rten", "--out", out)
        turns = [
            lambda: self.files("TIFF fields", tiffs, read + tissue, self.tiff_lie),
            lambda: self.files("TIFF bytes", tiffs, read),
            lambda: self.files("JPEG 2000", j2k, read),
            lambda: self.files("PNG and JPEG", flat, read),
            lambda: self.package(),
            lambda: self.tables(),
            lambda: self.corpora(corpora),
        ]
        slow = [self.kill_and_resume, self.two_at_once, self.full_disk]
        count = 0
        while time.monotonic() < self.end:
            turns[count % len(turns)]()
            if count % 20 == 0:
                slow[count // 20 % len(slow)]()
            count += 1
        shutil.rmtree(self.base, ignore_errors=True)
        return self.table.show()


def main():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("--minutes", type=float, default=2)
    p.add_argument("--binary", required=True)
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--hostile", type=Path, default=ROOT.parent / "shared/data/hostile")
    a = p.parse_args()
    attack = Attack(a.binary, a.seed, time.monotonic() + 60 * a.minutes)
    sys.exit(0 if attack.run(a.hostile) else 1)


if __name__ == "__main__":
    main()
