"""The binary under attack, with limits on memory and time."""

import os
import random
import resource
import shutil
import subprocess
import tempfile
from pathlib import Path

from table import Table, outcome_of

ROOT = Path(__file__).resolve().parent.parent.parent
SLIDES = ROOT / "crates/slide/tests/golden/slides"
MODEL = ROOT / "crates/infer/tests/golden/tiny"
#: Address space of a process; what asks for more is over budget.
BUDGET = 6 << 30
PATIENCE = 60


def limited():
    resource.setrlimit(resource.RLIMIT_AS, (BUDGET, BUDGET))


class Tool:
    def __init__(self, binary, seed, data):
        self.binary, self.data = Path(binary).resolve(), data
        self.random = random.Random(seed)
        self.table = Table()
        self.base = Path(tempfile.mkdtemp(prefix="attack-"))
        self.environment = {**os.environ, "MITHRAS_LIMITS": "memory=256M,decoded=1G,expansion=5000"}

    def command(self, arguments):
        return [str(self.binary), *map(str, arguments)]

    def mithras(self, *arguments):
        return subprocess.run(
            self.command(arguments),
            capture_output=True,
            timeout=PATIENCE,
            env=self.environment,
            preexec_fn=limited,
        )

    def tell(self, campaign, what, *arguments):
        """Runs it and counts how it ended; what it said, or None after a hang."""
        try:
            done = self.mithras(*arguments)
        except subprocess.TimeoutExpired:
            self.table.add(campaign, "hang", what)
            return None
        if b"\nUsage: " in done.stderr:
            raise SystemExit(f"the attack itself is wrong: {arguments}: {done.stderr.decode(errors='replace')}")
        self.table.add(campaign, outcome_of(done), f"{what}: {done.stderr[-300:]!r}")
        return done

    def must(self, *arguments):
        """Runs what has to work."""
        done = self.mithras(*arguments)
        if done.returncode != 0:
            raise SystemExit(f"{arguments}: {done.stderr.decode(errors='replace')}")
        return done

    def empty(self, name):
        folder = self.base / name
        shutil.rmtree(folder, ignore_errors=True)
        return folder

    def drawn(self):
        """A drawn slide with its truth."""
        slide = self.base / "drawn/drawn.tiff"
        if not slide.exists():
            size = ["--size", "1600,1400", "--figures", "4", "--seed", "3"]
            self.must("demo", "--draw-only", "--out", slide.parent, *size)
        return slide

    def corpus(self):
        """Crops around the drawn slide's nuclei."""
        folder = self.base / "crops"
        if not folder.exists():
            truth = self.base / "labels.csv"
            rows = (self.drawn().parent / "truth.csv").read_text().splitlines()[1:]
            lines = ["image,x,y,label"]
            for row in rows:
                _, x, y, kind, _ = row.split(",")
                lines.append(f"drawn.tiff,{x},{y},{'mf' if kind == 'mitotic' else 'mimicker'}")
            truth.write_text("\n".join(lines) + "\n")
            images = ["--images", self.drawn().parent, "--cohort", "DRAWN"]
            self.must("corpus", "import", truth, "--format", "csv", *images, "--out", folder)
        return folder

    def package(self):
        """A sample to be reviewed."""
        folder = self.base / "sample"
        if not folder.exists():
            self.must("audit", "sample", self.corpus(), "--out", folder, "--allow-short")
        return folder / "package"
