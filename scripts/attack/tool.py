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
#: Columns of tables of boxes.
BOXES = "image,xmin,ymin,xmax,ymax,label"


def limited():
    resource.setrlimit(resource.RLIMIT_AS, (BUDGET, BUDGET))


class Tool:
    def __init__(self, binary, seed, data, long):
        self.binary, self.data = Path(binary).resolve(), data
        self.random = random.Random(seed)
        #: Whether there is time for runs of minutes.
        self.long = long
        self.table = Table()
        #: Seconds of undisturbed runs, and whose turn it is, by campaign.
        self.took, self.turns = {}, {}
        self.training = None
        self.base = Path(tempfile.mkdtemp(prefix="attack-"))
        self.environment = {**os.environ, "MITHRAS_LIMITS": "memory=256M,decoded=1G,expansion=5000"}

    def command(self, arguments):
        return [str(self.binary), *map(str, arguments)]

    def mithras(self, *arguments, patience=PATIENCE):
        return subprocess.run(
            self.command(arguments),
            capture_output=True,
            timeout=patience,
            env=self.environment,
            # libtorch's libraries alone take more addresses than the budget.
            preexec_fn=None if arguments[0] == "train" else limited,
        )

    def check(self, campaign, what, *arguments, patience=PATIENCE):
        """Runs it and counts how it ended; what it stated, or None after a hang."""
        try:
            done = self.mithras(*arguments, patience=patience)
        except subprocess.TimeoutExpired:
            self.table.add(campaign, "hang", what)
            return None
        if b"\nUsage: " in done.stderr:
            raise SystemExit(f"the attack itself is wrong: {arguments}: {done.stderr.decode(errors='replace')}")
        self.table.add(campaign, outcome_of(done), f"{what}: {done.stderr[-300:]!r}")
        return done

    def must(self, *arguments):
        """Runs what has to work."""
        done = self.mithras(*arguments, patience=10 * PATIENCE)
        if done.returncode != 0:
            raise SystemExit(f"{arguments}: {done.stderr.decode(errors='replace')}")
        return done

    def empty(self, name):
        folder = self.base / name
        shutil.rmtree(folder, ignore_errors=True)
        return folder

    def once(self, name, make):
        """A file or folder that is made when it is first asked for."""
        path = self.base / name
        if not path.exists():
            make(path)
        return path

    def turn(self, campaign, choices):
        """One after the other, from a random one on."""
        at = self.turns.get(campaign, self.random.randrange(len(choices)))
        self.turns[campaign] = at + 1
        return choices[at % len(choices)]

    def trains(self):
        """Whether this is the training build."""
        if self.training is None:
            output = self.mithras("train", "segment", "--help")
            self.training = output.returncode == 0 and b"--resume" in output.stdout
        return self.training

    def drawn(self):
        """A drawn slide with its truth."""
        size = ["--size", "1600,1400", "--figures", "4", "--seed", "3"]
        return self.once("drawn", lambda out: self.must("demo", "--draw-only", "--out", out, *size)) / "drawn.tiff"

    def labels(self, truth, image):
        """Rows of a table of boxes, of a drawn slide's truth."""
        for row in truth.read_text().splitlines()[1:]:
            _, x, y, kind, _ = row.split(",")
            x, y, label = float(x), float(y), "mf" if kind == "mitotic" else "mimicker"
            yield f"{image},{x - 25:.0f},{y - 25:.0f},{x + 25:.0f},{y + 25:.0f},{label}"

    def corpus(self):
        """Crops around the drawn slide's nuclei."""

        def draw(out):
            rows = self.labels(self.drawn().parent / "truth.csv", "drawn.tiff")
            table = self.base / "labels.csv"
            table.write_text("\n".join([BOXES, *rows]) + "\n")
            images = ["--images", self.drawn().parent, "--cohort", "DRAWN"]
            self.must("corpus", "import", table, "--format", "csv", *images, "--out", out)

        return self.once("crops", draw)

    def package(self):
        """A sample to be reviewed."""
        make = lambda out: self.must("audit", "sample", self.corpus(), "--out", out, "--allow-short")
        return self.once("sample", make) / "package"
