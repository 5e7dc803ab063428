"""The verbs that write, and those that continue where they were killed, on small inputs of their own."""

import json
import shutil
from pathlib import Path

from tool import BOXES, MODEL, ROOT, SLIDES

PRESETS = ROOT / "presets"
ENCODER = ROOT / "crates/features/tests/golden/tiny.onnx"
SETTINGS = "--name tiny --image 32 --mean 0.7,0.5,0.6 --std 0.2,0.2,0.2 --mpp 0.5 --pooling mean --license none".split()
CPU = ["--device", "cpu", "--threads", "1"]


def detect(tool, out, *more):
    common = ["--model", MODEL, "--threads", "1", "--quiet"]
    return ["detect", tool.drawn(), "--out", out, *common, *more]


def build(tool, out):
    common = ["--preset", "tcga-mf-pseudo", "--no-tumour-filter", "--any-cohort", "--cohort", "D", "--threads", "1"]
    return ["corpus", "build", tool.drawn(), *common, "--model", MODEL, "--out", out]


def convert(out):
    return ["encoders", "convert", "--onnx", ENCODER, "--out", out, *SETTINGS]


def encoder(tool):
    return tool.once("encoder", lambda out: tool.must(*convert(out)))


def embed(tool, out):
    common = ["--encoder", encoder(tool), "--threads", "1"]
    return ["embed", tool.drawn(), "--out", out, *common]


def run(tool):
    """A finished run of `detect`."""
    return tool.once("run", lambda out: tool.must(*detect(tool, out)))


def reviewed(tool):
    """The same with a reviewer's figure."""

    def draw(out):
        shutil.copytree(run(tool), out)
        counts = json.loads((out / "drawn/counts.json").read_text())
        word = {"schema": "mithras.review/1", "time": 1.0, "slide": "drawn", "slide_digest": counts["slide"]["digest"]}
        word |= {"model_digest": counts["model"]["segmenter_sha256"], "key": "+500.00,500.00", "x": 500.0, "y": 500.0}
        (out / "reviews").mkdir()
        (out / "reviews/anna.jsonl").write_text(json.dumps(word | {"verdict": "figure", "added": True}) + "\n")

    return tool.once("reviewed", draw)


def readers(tool, folder):
    """Every verb that reads a finished run, but `gather`: commands."""
    truth, out = tool.drawn().parent / "truth.csv", lambda name: ["--out", tool.empty(f"read-{name}")]
    return [
        ["recount", folder, "--reviews", "anna"],
        ["recount", folder, "--operating-point", "0.4,0", "--into", tool.empty("read-moved")],
        ["export", "qupath", folder, *out("qupath")],
        ["report", folder, *out("pages")],
        ["evaluate", "detections", "--predictions", folder, "--truth", truth],
        ["audit", "sample", folder, "--allow-short", *out("sample")],
        ["corpus", "import", folder, "--format", "reviews", "--kind", "regions", *out("regions")],
    ]


def dataset(tool):
    """Four drawn images with every figure marked."""

    def draw(out):
        images, lines = tool.base / "fields", [BOXES]
        images.mkdir()
        for k in range(4):
            drawn = tool.base / f"field-{k}"
            size = ["--size", "800,700", "--figures", "3", "--seed", str(k)]
            tool.must("demo", "--draw-only", "--out", drawn, *size)
            (drawn / "drawn.tiff").rename(images / f"s{k}.tiff")
            lines += tool.labels(drawn / "truth.csv", f"s{k}.tiff")
        labels = tool.base / "fields.csv"
        labels.write_text("\n".join(lines) + "\n")
        words = ["--kind", "regions", "--format", "csv", "--images", images, "--exhaustive", "all"]
        tool.must("corpus", "import", labels, *words, "--out", out)

    return tool.once("dataset", draw)


def folds(tool):
    words = ["corpus", "split", dataset(tool), "--folds", "2", "--out"]
    return tool.once("folds.json", lambda out: tool.must(*words, out))


def train(tool, verb, out):
    if verb == "pretrain":
        return ["train", verb, "--preset", PRESETS / "pretrain-smoke.toml", "--corpus", tool.corpus(), *CPU, "--out", out]
    if verb == "detector":
        preset = PRESETS / "detector-smoke.toml"
        return ["train", verb, "--preset", preset, "--data", dataset(tool), *CPU, "--out", out]
    data = ["--data", dataset(tool), "--folds", folds(tool), "--fold", "0"]
    return ["train", verb, "--preset", PRESETS / f"{verb}-smoke.toml", *data, *CPU, "--out", out]


def resumable(tool):
    """Verbs that continue where they were killed: name, and the command for a folder."""
    verbs = {
        "detect": lambda out: detect(tool, out, "--resume"),
        "corpus build": lambda out: build(tool, out),
        "embed": lambda out: embed(tool, out),
    }
    if tool.trains():
        for verb in ("pretrain", "segment", "finetune"):
            verbs[f"train {verb}"] = lambda out, verb=verb: [*train(tool, verb, out), "--resume"]
        if tool.long:
            verbs["train detector"] = lambda out: train(tool, "detector", out)
    return verbs


def tables(tool):
    """Counts of sixty slides, and the follow-up of thirty made-up patients."""
    r = tool.random

    def counts(out):
        rows = (f"s{k},done,{r.randrange(40)},{r.random() * 90:.3f}\n" for k in range(60))
        Path(out).write_text("slide,status,hotspot_count,density_per_20mm2\n" + "".join(rows))

    def clinical(out):
        people = [f"p{p},{r.randrange(1, 99)},{p % 2},{r.randrange(30, 80)}" for p in range(30)]
        rows = (f"s{k},{people[k // 2]}\n" for k in range(60))
        Path(out).write_text("slide,patient,months,dead,age\n" + "".join(rows))

    return tool.once("counts.csv", counts), tool.once("clinical.csv", clinical)


def images(tool):
    def draw(out):
        Path(out).mkdir()
        tool.must("slide", "thumbnail", tool.drawn(), "--out", Path(out) / "one.png", "--size", "600")

    return tool.once("images", draw)


def robustness(tool, out):
    words = ["--images", images(tool), "--no-figures", "--mpp", "0.25", "--model", MODEL, "--changes", "clean"]
    return ["evaluate", "robustness", *words, "--out", out]


def writing(tool, out):
    """Every verb that writes: commands."""
    slide, crops = tool.drawn(), tool.corpus()
    counts, clinical = tables(tool)
    study = ["--counts", counts, "--clinical", clinical, "--join", "slide=slide", "--patient", "patient"]
    study += ["--time", "months", "--event", "dead", "--covariates", "age", "--replicates", "50"]
    labels = [tool.base / "labels.csv", "--format", "csv", "--images", slide.parent]
    fields = [tool.base / "fields.csv", "--format", "csv", "--images", tool.base / "fields", "--kind", "regions"]
    words = [
        detect(tool, out / "run", "--stages", "1", "--operating-point", "0.3,0"),
        detect(tool, out / "run"),
        ["gather", run(tool), "--into", out / "all"],
        build(tool, out / "corpus"),
        embed(tool, out / "features"),
        ["embed", "--crops", crops, "--encoder", encoder(tool), "--out", out / "f.parquet"],
        convert(out / "encoder"),
        ["classify", SLIDES / "flat.png", "--model", "atypical", "--mpp", "0.25", "--out", out / "classes.csv"],
        ["slide", "thumbnail", slide, "--out", out / "t.png", "--size", "2000"],
        ["slide", "tissue", slide, "--out", out / "tissue"],
        ["demo", "--draw-only", "--out", out / "demo", "--size", "900,800", "--figures", "2"],
        ["corpus", "import", *labels, "--out", out / "crops"],
        ["corpus", "merge", crops, "--out", out / "merged"],
        ["corpus", "split", dataset(tool), "--folds", "2", "--out", out / "folds.json"],
        ["corpus", "import", *fields, "--exhaustive", "all", "--out", out / "regions"],
        ["corpus", "labelled", dataset(tool), "--folds", folds(tool), "--out", out / "labelled"],
        ["corpus", "import", reviewed(tool), "--format", "reviews", "--kind", "regions", "--out", out / "reviews"],
        ["export", "qupath", reviewed(tool), "--out", out / "qupath"],
        ["audit", "sample", crops, "--out", out / "sample", "--allow-short"],
        robustness(tool, out / "robust"),
        ["survival", "study", *study, "--out", out / "study"],
    ]
    if tool.trains():
        words += [train(tool, verb, out / verb) for verb in ("pretrain", "segment", "finetune", "detector")]
    return words
