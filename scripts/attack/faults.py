"""Faults that once were, each tried again; a build from before they ended fails here.

Two more need the inside of the program: an associated image that is replaced (`slide/tests/limits.rs`) and a
crowd of candidates (`mitosis/src/crowd.rs`).
"""

import json
import shutil
import socket
import subprocess
import time
import urllib.request
from contextlib import suppress
from pathlib import Path

from serve import Server
from table import outcome_of
from tool import MODEL, SLIDES
from verbs import detect

QUICK = ["--engine", "rten", "--threads", "1"]
TINY = ["--model", MODEL, *QUICK]
#: Names that lead out of a folder, or mean something to a terminal, a spreadsheet or a page.
NAMES = ["...svs", "..svs", "a..svs", "one\ntwo.svs", "\x1b[2Jred.svs", '=HYPERLINK("x","y").svs']


def named(tool):
    """Slides whose names do harm, through `detect`: what it stated, and the files it left outside."""
    folder = tool.empty("names")
    (folder / "slides").mkdir(parents=True)
    for name in NAMES:
        shutil.copy(SLIDES / "svs_jpeg_420.svs", folder / "slides" / name)
    out = folder / "results" / "out"
    done = tool.mithras("detect", *(folder / "slides" / n for n in NAMES), *TINY, "--stages", "1", "--operating-point", "0.3,0", "--out", out)
    outside = [p for p in folder.rglob("*") if p.is_file() and out not in p.parents and p.parent.name != "slides"]
    # A slide's own files are in a folder of its own.
    return done, out, outside + [p for p in [out / "state.json", out / "counts.json"] if p.exists()]


def names_lead_nowhere(tool):
    done, _, outside = named(tool)
    return done.returncode == 0 and not outside, outside or done.stderr[-200:]


def names_command_nothing(tool):
    done, out, _ = named(tool)
    cells = (out / "counts.csv").read_text()
    formula = any(line.startswith(("=", '"=')) for line in cells.splitlines())
    return not formula and b"\x1b" not in done.stdout + done.stderr, done.stderr[-200:]


def post(server, path, body):
    request = urllib.request.Request(server.url.rstrip("/") + path, json.dumps(body).encode(), {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=5) as answer:
        return json.load(answer)


def a_full_disk_tears_no_review(tool):
    """Verdicts until the disk is full, and one more when there is room again: every line must be whole."""
    package = tool.empty("torn")
    shutil.copytree(tool.package(), package)
    reviews = package / "reviews"
    reviews.mkdir()
    (script := tool.base / "small-disk.sh").write_text(
        f'mount -t tmpfs -o size=8k none "{reviews}" && head -c 4096 /dev/zero > "{reviews}/filler" && exec "$@"\n'
    )
    server = Server(tool, ["audit", "serve", package], ["unshare", "-rm", "sh", script])
    if not server.url:
        return None, "no small disk can be made here"
    inside = Path(f"/proc/{server.process.pid}/root") / reviews.relative_to("/")
    try:
        items = post(server, "/open", {"reviewer": "anna"})["items"]
        items = [item["id"] if isinstance(item, dict) else item for item in items]  # plain ones in early versions
        review = lambda k: post(server, "/set", {"reviewer": "anna", "item": items[k % len(items)], "entry": {"verdict": "unsure"}})
        with suppress(OSError):
            for k in range(1000):
                review(k)
        (inside / "filler").unlink()
        review(0)
        log = (inside / "anna.jsonl").read_text()
    finally:
        server.process.kill()
        server.process.wait()
    for line in log.splitlines():
        try:
            json.loads(line)
        except ValueError:
            return False, line
    return True, ""


def a_stalled_request_holds_up_nobody(tool):
    server = Server(tool, ["audit", "serve", tool.package()])
    try:
        with socket.create_connection(server.address) as stalled:
            stalled.sendall(f"POST /{server.path.rstrip('/')}/open HTTP/1.1\r\nHost: {server.host}\r\nContent-Length: 5000\r\n\r\n{{".encode())
            time.sleep(0.5)
            took = server.answers()
            return took is not None and took < 5, took
    finally:
        server.process.kill()
        server.process.wait()


def passes(tool, *arguments):
    """How it ended, and that in words; None where it did not within its time."""
    try:
        done = tool.mithras(*arguments)
    except subprocess.TimeoutExpired:
        return None, "hang"
    return done, f"{outcome_of(done)}: {done.stderr[-200:]!r}"


def within_bounds(tool, commands):
    """Each ends within its time and memory, by success or an error that states why."""
    for words in commands:
        done, output = passes(tool, *words)
        if done is None or outcome_of(done) not in ("success", "right error"):
            return False, f"{words[:3]}: {output}"
    return True, ""


def strips_are_decoded_once(tool):
    out = ["--mpp", "0.25", "--stages", "1", "--operating-point", "0.3,0", *TINY, "--out", tool.empty("out")]
    done, output = passes(tool, "detect", tool.data / "hostile/strip4000.tif", *out)
    return done is not None and done.returncode == 0, output


def directories_have_a_budget(tool):
    files = [tool.data / "hostile" / n for n in ("amp_4000x100k.tif", "amp_300x1M.tif")]
    return within_bounds(tool, [["slide", "info", f, "--json"] for f in files])


def bombs_cost_little(tool):
    names = ["png_bomb_rgba16_20000.png", "bomb_strip_1GB.tif", "bomb_planar_strip_1GB.tif", "bomb_deflate_409600.tif"]
    thumbnail = lambda n: ["slide", "thumbnail", tool.data / "hostile" / n, "--out", tool.base / "t.png"]
    return within_bounds(tool, [thumbnail(n) for n in names])


def one_tile_is_not_the_slide(tool):
    out = ["--max-unread", "1", *TINY, "--stages", "1", "--operating-point", "0.3,0", "--out", tool.empty("out")]
    done, output = passes(tool, "detect", tool.data / "hostile/one_zero_tile.svs", *out)
    return done is not None and done.returncode == 0, output


def absent_pixels_are_reported(tool):
    out = tool.empty("out")
    done, output = passes(tool, "detect", tool.data / "hostile/third_counts_zero.svs", *TINY, "--stages", "1", "--operating-point", "0.3,0", "--out", out)
    counts = [json.loads(p.read_text()) for p in out.rglob("counts.json")]
    return bool(counts) and all(c.get("absent_mm2", 0) > 0 for c in counts), output


def other_kinds_are_no_damage(tool):
    for name in ("bits16.tif", "orientation6.tif", "fillorder2.tif"):
        done, output = passes(tool, "slide", "thumbnail", tool.data / "hostile" / name, "--out", tool.base / "t.png")
        if done is None or done.returncode == 0 or b"damaged" in done.stderr:
            return False, f"{name}: {output}"
    return True, ""


def models_and_corpora_may_lie(tool):
    hostile, out = tool.data / "hostile", ["--engine", "rten", "--out", tool.empty("out")]
    packages = [["detect", SLIDES / "svs_jpeg_420.svs", "--model", hostile / n, *out] for n in ("onnx_shape_panic", "onnx_16GiB_abort")]
    return within_bounds(tool, packages + [["corpus", "verify", hostile / n] for n in ("corpus_62", "corpus_149")])


def kills_leave_nothing(tool):
    """What a killed process was writing is gone when its folder has been taken again."""
    out = tool.empty("killed")
    for _ in range(30):
        process = subprocess.Popen(tool.command(detect(tool, out, "--resume")), stdout=-3, stderr=-3, env=tool.environment)
        time.sleep(tool.random.uniform(0.02, 0.8))
        process.kill()
        process.wait()
    folders = [p for p in out.iterdir() if p.is_dir() and not p.name.startswith(".")]
    for folder in folders[:1]:
        (folder / ".writing-Zx81Kq").write_text("half of a table")
    tool.must(*detect(tool, out, "--resume"))
    left = [p.name for p in out.rglob(".writing-*")]
    return not left, left


def a_slide_may_not_change(tool):
    """A slide that is written to while it is read."""
    slide, out = tool.base / "changing.svs", tool.empty("out")
    shutil.copy(tool.data / "slides/CMU-1-Small-Region.svs", slide)
    slide.chmod(0o644)
    command = tool.command(["detect", slide, "--model", MODEL, *QUICK, "--out", out])
    process = subprocess.Popen(command, stdout=-3, stderr=subprocess.PIPE, env=tool.environment)
    # Its folder is made when the slide has been opened.
    while process.poll() is None and not any(out.glob("changing/*")):
        time.sleep(0.02)
    with slide.open("r+b") as file:
        file.seek(200_000)
        file.write(b"another")
    output = process.communicate(timeout=120)[1]
    return process.returncode != 0 and b"chang" in output, output[-200:]


FAULTS = [
    names_lead_nowhere,
    a_full_disk_tears_no_review,
    strips_are_decoded_once,
    directories_have_a_budget,
    a_stalled_request_holds_up_nobody,
    one_tile_is_not_the_slide,
    absent_pixels_are_reported,
    bombs_cost_little,
    other_kinds_are_no_damage,
    models_and_corpora_may_lie,
    kills_leave_nothing,
    names_command_nothing,
    a_slide_may_not_change,
]


def known(tool):
    """All of them; files that are not here are left out openly."""
    if not (tool.data / "hostile").is_dir():
        print("SKIPPED: no folder of hostile files")
        return
    for fault in FAULTS:
        held, output = fault(tool)
        name = fault.__name__.replace("_", " ")
        if held is None:
            print(f"SKIPPED: {name}: {output}", flush=True)
            continue
        tool.table.add("old faults", "success" if held else "silent change", f"{name}: {output}")
        print(f"{'held' if held else 'FAILED'}: {name}", flush=True)
