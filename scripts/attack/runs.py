"""Kills, full disks and neighbours, over every verb that writes."""

import shutil
import subprocess
import time

from table import outcome_of
from tool import MODEL, PATIENCE


def detect(tool, out, *more):
    common = ["--model", MODEL, "--engine", "rten", "--threads", "1", "--quiet"]
    return ["detect", tool.drawn(), "--out", out, *common, *more]


def build(tool, out):
    common = ["--preset", "tcga-mf-pseudo", "--no-tumour-filter", "--cohort", "D", "--threads", "1"]
    return ["corpus", "build", tool.drawn(), *common, "--model", MODEL, "--engine", "rten", "--out", out]


def resumable(tool, out):
    """Verbs that go on where they were killed: name, command."""
    return {"detect": detect(tool, out, "--resume"), "corpus build": build(tool, out)}


def writing(tool, out):
    """Every verb that writes: commands."""
    slide, crops = tool.drawn(), tool.corpus()
    image = tool.base / "images/one.png"
    if not image.exists():
        image.parent.mkdir()
        tool.must("slide", "thumbnail", slide, "--out", image, "--size", "600")
    counts, clinical, r = tool.base / "counts.csv", tool.base / "clinical.csv", tool.random
    if not counts.exists():
        rows = (f"s{k},done,{r.randrange(40)},{r.random() * 90:.3f}\n" for k in range(60))
        counts.write_text("slide,status,hotspot_count,density_per_20mm2\n" + "".join(rows))
        rows = (f"s{k},p{k // 2},{r.randrange(1, 99)},{k % 2},{r.randrange(30, 80)}\n" for k in range(60))
        clinical.write_text("slide,patient,months,dead,age\n" + "".join(rows))
    study = ["--counts", counts, "--clinical", clinical, "--join", "slide=slide", "--patient", "patient"]
    study += ["--time", "months", "--event", "dead", "--covariates", "age", "--replicates", "50"]
    return [
        detect(tool, out / "run", "--stages", "1"),
        detect(tool, out / "run"),
        build(tool, out / "corpus"),
        ["slide", "thumbnail", slide, "--out", out / "t.png", "--size", "2000"],
        ["slide", "tissue", slide, "--out", out / "tissue"],
        ["demo", "--draw-only", "--out", out / "demo", "--size", "900,800", "--figures", "2"],
        ["corpus", "import", tool.base / "labels.csv", "--format", "csv", "--images", slide.parent, "--out", out / "crops"],
        ["corpus", "interchange", crops, "--out", out / "noisy"],
        ["corpus", "merge", crops, crops, "--out", out / "merged"],
        ["audit", "sample", crops, "--out", out / "sample", "--allow-short"],
        ["evaluate", "robustness", "--images", image.parent, "--no-figures", "--mpp", "0.25", "--model", MODEL, "--changes", "clean", "--out", out / "robust"],
        ["survival", "study", *study, "--out", out / "study"],
    ]


def results(folder):
    """What must be equal after a kill: all but times and locks."""
    skip = {"state.json", ".lock", "run.json", "counts.csv", "summary.html", "build.json", "manifest.json"}
    # `.runs` holds a record per process: a killed and a resumed one are two.
    files = (p for p in sorted(folder.rglob("*")) if p.is_file() and p.name not in skip and p.parent.name != ".runs")
    return {str(p.relative_to(folder)): p.read_bytes() for p in files}


def whole(tool, name):
    """The same run, undisturbed."""
    out = tool.base / f"whole-{name.replace(' ', '-')}"
    if not out.exists():
        tool.must(*resumable(tool, out)[name])
    return out


def kill_and_resume(tool):
    name = tool.random.choice(["detect", "corpus build"])
    campaign, reference, cut = f"kill and resume: {name}", whole(tool, name), tool.empty("cut")
    command = resumable(tool, cut)[name]
    for _ in range(3):
        process = subprocess.Popen(
            tool.command(command), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=tool.environment
        )
        time.sleep(tool.random.uniform(0.02, 1.5))
        process.kill()
        process.wait()
    done = tool.tell(campaign, "resume", *command)
    if done is None or done.returncode != 0:
        tool.table.add(campaign, "silent change", f"no resumption: {done and done.stderr[-300:]!r}")
        return
    same = results(reference) == results(cut)
    tool.table.add(campaign, "success" if same else "silent change", "other bytes after a kill")
    left = [p.name for p in cut.rglob(".writing-*")]
    if left:
        tool.table.add(campaign, "silent change", f"left over: {left}")


def two_at_once(tool):
    name = tool.random.choice(["detect", "corpus build"])
    campaign, reference, out = f"two processes: {name}", whole(tool, name), tool.empty("shared")
    command = tool.command(resumable(tool, out)[name])
    pair = [
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=tool.environment)
        for _ in range(2)
    ]
    try:
        said = [p.communicate(timeout=PATIENCE) for p in pair]
    except subprocess.TimeoutExpired:
        for p in pair:
            p.kill()
        tool.table.add(campaign, "hang", "two runs into one folder")
        return
    for p, (out_said, err) in zip(pair, said, strict=True):
        done = subprocess.CompletedProcess(p.args, p.returncode, out_said, err)
        tool.table.add(campaign, outcome_of(done), err[-300:])
    tool.tell(campaign, "after both", *resumable(tool, out)[name])
    if results(reference) != results(out):
        tool.table.add(campaign, "silent change", "other bytes after two at once")


def full_disk(tool):
    """A writing verb on a disk of a few pages, in a name space of its own."""
    small = tool.base / "small"
    small.mkdir(exist_ok=True)
    size = tool.random.choice([4, 16, 48, 96, 200])
    words = [str(w) for w in tool.random.choice(writing(tool, small))]
    campaign = "full disk"
    script = f'mount -t tmpfs -o size={size}k none "{small}" || exit 77; exec "$@"'
    command = ["unshare", "-rm", "sh", "-c", script, "sh", str(tool.binary), *words]
    try:
        done = subprocess.run(command, capture_output=True, timeout=PATIENCE, env=tool.environment)
    except subprocess.TimeoutExpired:
        tool.table.add(campaign, "hang", words[:2])
        return
    if done.returncode == 77 or b"unshare:" in done.stderr:
        return
    result, said = outcome_of(done), done.stderr + done.stdout
    if result == "right error" and b"space" not in said and b"written" not in said:
        result = "silent change"
    tool.table.add(campaign, result, f"{words[:2]} on {size} KiB: {said[-300:]!r}")
    shutil.rmtree(small, ignore_errors=True)
