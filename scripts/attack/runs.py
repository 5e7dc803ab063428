"""Kills, full disks and neighbours, over every verb that writes."""

import shutil
import subprocess
import time

from table import outcome_of
from tool import PATIENCE
from verbs import resumable, writing

#: What a training is for.
MADE = {"model.safetensors", "mined.csv", "segmenter.onnx", "classifier.onnx"}


def results(folder):
    """What must be equal after a kill: all but times and locks; of a training, what it made."""
    weights = [p for p in sorted(folder.rglob("*")) if p.name in MADE]
    if weights:
        return {str(p.relative_to(folder)): p.read_bytes() for p in weights}
    skip = {"state.json", ".lock", "run.json", "counts.csv", "summary.html", "build.json", "manifest.json"}
    # `.runs` holds a record per process: a killed and a resumed one are two.
    files = (p for p in sorted(folder.rglob("*")) if p.is_file() and p.name not in skip and p.parent.name != ".runs")
    return {str(p.relative_to(folder)): p.read_bytes() for p in files}


def whole(tool, name):
    """The same run, undisturbed, and how long it took."""
    out = tool.base / f"whole-{name.replace(' ', '-')}"
    if name not in tool.took:
        command, begun = resumable(tool)[name](out), time.monotonic()
        tool.must(*command)
        tool.took[name] = time.monotonic() - begun
    return out, tool.took[name]


def kill_and_resume(tool):
    verbs = resumable(tool)
    name = tool.turn("kill", list(verbs))
    campaign, cut = f"kill and resume: {name}", tool.empty("cut")
    (reference, took), command = whole(tool, name), verbs[name](cut)
    for _ in range(3):
        process = subprocess.Popen(
            tool.command(command), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=tool.environment
        )
        time.sleep(tool.random.uniform(0.02, max(1.5, 0.5 * took)))
        process.kill()
        process.wait()
    done = tool.check(campaign, "resume", *command, patience=10 * PATIENCE)
    if done is None or done.returncode != 0:
        tool.table.add(campaign, "silent change", f"no resumption: {done and done.stderr[-300:]!r}")
        return
    same = results(reference) == results(cut)
    tool.table.add(campaign, "success" if same else "silent change", "other bytes after a kill")
    left = [p.name for p in cut.rglob(".writing-*")]
    if left:
        tool.table.add(campaign, "silent change", f"left over: {left}")


def two_at_once(tool):
    verbs = resumable(tool)
    name = tool.turn("two", ["detect", "corpus build", "embed"])
    campaign, (reference, _), out = f"two processes: {name}", whole(tool, name), tool.empty("shared")
    command = tool.command(verbs[name](out))
    pair = [
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=tool.environment)
        for _ in range(2)
    ]
    try:
        output = [p.communicate(timeout=PATIENCE) for p in pair]
    except subprocess.TimeoutExpired:
        for p in pair:
            p.kill()
        tool.table.add(campaign, "hang", "two runs into one folder")
        return
    for p, (out_said, err) in zip(pair, output, strict=True):
        done = subprocess.CompletedProcess(p.args, p.returncode, out_said, err)
        tool.table.add(campaign, outcome_of(done), err[-300:])
    tool.check(campaign, "after both", *verbs[name](out))
    if results(reference) != results(out):
        tool.table.add(campaign, "silent change", "other bytes after two at once")


def full_disk(tool):
    """A writing verb on a disk of a few pages, in a name space of its own."""
    small = tool.base / "small"
    small.mkdir(exist_ok=True)
    size = tool.random.choice([4, 16, 48, 96, 200])
    words = [str(w) for w in tool.turn("full", writing(tool, small))]
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
    result, output = outcome_of(done), done.stderr + done.stdout
    if result == "right error" and b"space" not in output and b"written" not in output:
        result = "silent change"
    tool.table.add(campaign, result, f"{words[:2]} on {size} KiB: {output[-300:]!r}")
    shutil.rmtree(small, ignore_errors=True)
