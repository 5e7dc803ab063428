"""Faults that once were, each tried again; a build from before they ended fails here.

Those of damaged slides and tables are in `files.py`, those of result folders in `bound.py`. Two more need the inside
of the program: an associated image that is replaced (`slide/tests/limits.rs`) and a crowd of candidates
(`mitosis/src/crowd.rs`).
"""

import json
import os
import shutil
import socket
import subprocess
import threading
import time
import urllib.request
from contextlib import suppress
from pathlib import Path

from answers import passes, refused, within_bounds
from bound import BOUND
from files import FILES
from serve import Server
from table import outcome_of
from tool import BOXES, MODEL, SLIDES
from verbs import detect, encoder, readers, reviewed, run

QUICK = ["--threads", "1"]
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
    hostile, out = tool.data / "hostile", ["--out", tool.empty("out")]
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


def graphs_have_limits(tool):
    folder = tool.data / "hostile/attack/10_onnx_aborts"
    quick = [*QUICK, "--out", tool.empty("out")]
    packages = [["detect", SLIDES / "svs_jpeg_420.svs", "--model", folder / n, *quick] for n in ("if", "chain", "loop")]
    return refused(tool, packages)


def tables_have_limits(tool):
    sparse, classes, wide = tool.base / "sparse.csv", tool.base / "classes.csv", tool.base / "wide.csv"
    sparse.write_text(f"{BOXES}\none.tiff,1,1,51,51,mf\n")
    with sparse.open("r+b") as file:
        file.truncate(2 << 30)
    classes.write_text("file,truth,class\n" + "".join(f"{k},c{k},c{k * 7 % 10000}\n" for k in range(10_000)))
    many = [f"x{k}" for k in range(2000)]
    rows = (",".join([str(k + 1), str(k % 2), *(str(tool.random.random()) for _ in many)]) for k in range(100))
    wide.write_text("\n".join([",".join(["time", "event", *many]), *rows]) + "\n")
    times = ["--time", "time", "--event", "event"]
    folder = tool.data / "hostile/attack"
    return refused(tool, [
        ["survival", "km", "--table", folder / "14_tables_without_limit/bomb.parquet", *times],
        ["corpus", "import", "--format", "csv", sparse],
        ["corpus", "import", "--format", "sliderunner", folder / "13_sqlite_view_without_end/v.sqlite"],
        ["evaluate", "classification", "--predictions", classes],
        ["survival", "cox", "--table", wide, *times, "--covariates", ",".join(many)],
    ])


def special_files_are_refused(tool):
    """A pipe in place of a file that a folder from elsewhere may hold, and a device without end."""
    package, folder, table = tool.empty("pipe-model"), tool.empty("pipe-run"), tool.base / "pipe.csv"
    shutil.copytree(MODEL, package)
    shutil.copytree(run(tool), folder)
    table.unlink(missing_ok=True)
    os.mkfifo(table)
    (package / "card.toml").unlink()
    os.mkfifo(package / "card.toml")
    state = next(folder.rglob("state.json"))
    gather = ["gather", folder]
    if not (held := refused(tool, [
        ["detect", SLIDES / "svs_jpeg_420.svs", "--model", package, *QUICK, "--out", tool.empty("out")],
        ["corpus", "import", "--format", "csv", table],
    ]))[0]:
        return held
    for make in (os.mkfifo, lambda path: path.symlink_to("/dev/zero")):
        state.unlink()
        make(state)
        if not (held := refused(tool, [gather]))[0]:
            return held
    return True, ""


def a_full_output_is_an_error(tool):
    folder, table = run(tool), tool.base / "km.csv"
    table.write_text("time,event\n1,1\n2,0\n3,1\n")
    classes = tool.base / "few-classes.csv"
    classes.write_text("file,truth,class\n1,a,a\n2,b,a\n3,b,b\n")
    for words in (
        ["slide", "info", SLIDES / "svs_jpeg_420.svs"],
        ["survival", "km", "--table", table, "--time", "time", "--event", "event"],
        ["gather", folder, "--json"],
        ["evaluate", "classification", "--predictions", classes],
        ["export", "qupath", folder, "--out", tool.empty("qupath")],
    ):
        with open("/dev/full", "wb") as full:
            done = subprocess.run(tool.command(words), stdout=full, stderr=subprocess.PIPE, env=tool.environment, timeout=60)
        if done.returncode != 1 or b"standard output" not in done.stderr:
            return False, f"{words[:2]}: {done.returncode} {done.stderr[-200:]!r}"
    return True, ""


def names_need_no_utf8(tool):
    folder = tool.empty("latin")
    folder.mkdir()
    odd = lambda name: os.fsencode(folder) + b"/" + name.replace("%", "\xe9").encode("latin-1")
    for source, name in ((SLIDES / "svs_jpeg_420.svs", "caf%.svs"), (SLIDES / "flat.png", "caf%.png")):
        shutil.copy(source, odd(name))
    Path(os.fsdecode(odd("t%.csv"))).write_text("time,event\n1,1\n2,0\n3,1\n")
    slide, out, mpp = odd("caf%.svs"), odd("o%"), ["--mpp", "0.25"]
    common = [*map(str, TINY), "--stages", "1", "--operating-point", "0.3,0"]
    for words in (
        ["slide", "info", slide],
        ["slide", "thumbnail", slide, "--out", odd("t%.png")],
        ["slide", "tissue", slide, *mpp, "--out", odd("tissue%")],
        ["slide", "deidentify", slide, odd("copy%.svs")],
        ["quality", slide, "--out", odd("quality%")],
        ["detect", slide, *common, "--out", out],
        ["gather", out],
        ["recount", out, "--operating-point", "0.4,0", "--into", odd("moved%")],
        ["export", "qupath", out, "--out", odd("q%")],
        ["report", out, "--out", odd("p%")],
        ["embed", slide, "--encoder", str(encoder(tool)), *QUICK, "--out", odd("f%")],
        ["classify", odd("caf%.png"), "--model", "atypical", *mpp, "--out", odd("c%.csv")],
        ["survival", "km", "--table", odd("t%.csv"), "--time", "time", "--event", "event"],
        ["demo", "--draw-only", "--size", "900,800", "--figures", "2", "--out", odd("d%")],
    ):
        done = subprocess.run([str(tool.binary), *words], capture_output=True, env=tool.environment, timeout=60)
        if outcome_of(done) != "success":
            return False, f"{words[:2]}: {done.returncode} {done.stderr[-200:]!r}"
    return True, ""


def results_are_bound(tool):
    """Cut or foreign results are named by every reader, stop no other, and are done again by `--resume`."""
    folder = tool.empty("bound")
    shutil.copytree(reviewed(tool), folder)
    for name in ("counts.json", "detections.csv", "state.json", "tissue.geojson", "thumbnail.jpg"):
        path = next(folder.rglob(name))
        whole = path.read_bytes()
        path.unlink() if name == "thumbnail.jpg" else path.write_bytes(whole[: len(whole) // 2])
        for words in [*readers(tool, folder), ["gather", folder]]:
            done, output = passes(tool, *words)
            if done is None or outcome_of(done) != "right error" or name.encode() not in done.stderr + done.stdout:
                return False, f"{name}, {words[:2]}: {output}"
        tool.must(*detect(tool, folder, "--resume"))
        done, output = passes(tool, "gather", folder)
        if done is None or done.returncode != 0:
            return False, f"{name}, done again: {output}"
    return True, ""


def the_umask_is_kept(tool):
    out = tool.empty("private")
    words = tool.command(detect(tool, out))
    done = subprocess.run(["sh", "-c", 'umask 077; exec "$0" "$@"', *words], capture_output=True, env=tool.environment, timeout=120)
    sample = tool.empty("private-audit")
    drawn = tool.command(["audit", "sample", tool.corpus(), "--out", sample, "--allow-short"])
    subprocess.run(["sh", "-c", 'umask 077; exec "$0" "$@"', *drawn], capture_output=True, env=tool.environment, timeout=120)
    if not (sample / "key.json").is_file():
        return False, "no sample was drawn"
    open_ones = [str(p) for folder in (out, sample) for p in folder.rglob("*") if p.stat().st_mode & 0o077]
    return done.returncode == 0 and not open_ones, open_ones[:3] or done.stderr[-200:]


def no_cell_commands_a_terminal(tool):
    table, out = tool.base / "list.csv", tool.empty("out")
    slide = SLIDES / "svs_jpeg_420.svs"
    table.write_text(f"slide,note\n{slide},\x1b]0;title\x07\x1b[31mred\n")
    common = [*TINY, "--stages", "1", "--operating-point", "0.3,0"]
    done, output = passes(tool, "detect", "--list", table, *common, "--out", out)
    cells = (out / "counts.csv").read_bytes() if done is not None and done.returncode == 0 else b"\x1b"
    return b"\x1b" not in cells, output


def no_link_leads_out(tool):
    """A review log that is a link out of the folder is not written through; a plain file is written."""
    folder, outside = tool.empty("linked"), tool.base / "outside.jsonl"
    shutil.copytree(run(tool), folder)
    outside.unlink(missing_ok=True)
    reviews = folder / "reviews"
    reviews.mkdir(exist_ok=True)
    (reviews / "sym.jsonl").symlink_to(outside)
    server = Server(tool, ["view", folder, "--no-browser"])
    word = {"slide": 0, "key": "+5.00,5.00", "x": 5, "y": 5, "verdict": "figure", "added": True}
    answers = {}
    try:
        for name in ("plain", "sym"):
            try:
                post(server, "/api/review", {"reviewer": name, **word})
                answers[name] = "was taken"
            except OSError as e:
                answers[name] = e
    finally:
        server.process.kill()
        server.process.wait()
    kept = reviews / "plain.jsonl"
    if answers["plain"] != "was taken" or not kept.is_file() or not kept.read_text().strip():
        return False, f"a log of its own is not written: {answers}"
    return not outside.exists() and answers["sym"] != "was taken", answers


def servers(tool):
    """Both servers by name: started, with the path and the body of a verdict, and the folder of its logs."""
    package, folder = tool.empty("served-package"), tool.empty("served-run")
    shutil.copytree(tool.package(), package)
    shutil.copytree(run(tool), folder)
    audit = Server(tool, ["audit", "serve", package])
    items = post(audit, "/open", {"reviewer": "anna"})["items"]
    item = items[0]["id"] if isinstance(items[0], dict) else items[0]
    word = lambda who: {"reviewer": who, "item": item, "entry": {"verdict": "unsure"}}
    yield "audit serve", audit, "/set", word, package / "reviews"
    word = lambda who: {"reviewer": who, "slide": 0, "key": "+5.00,5.00", "x": 5, "y": 5, "verdict": "figure", "added": True}
    yield "view", Server(tool, ["view", folder, "--no-browser"]), "/api/review", word, folder / "reviews"


def end(server):
    server.process.kill()
    server.process.wait()


def strangers_read_and_write_nothing(tool):
    """Without the page's token, or with another one, no log is read and no verdict written; with it one is."""
    for name, server, path, word, logs in servers(tool):
        try:
            post(server, path, word("anna"))
            kept = (logs / "anna.jsonl").read_bytes()
            for base in ("", "/" + "0" * 32):
                for asked, body in [("/", None), ("/log/anna.jsonl", None), (path, word("anna")), (path, word("eve"))]:
                    data = None if body is None else json.dumps(body).encode()
                    request = urllib.request.Request(f"http://{server.host}{base}{asked}", data, {"Content-Type": "application/json"})
                    with suppress(OSError), urllib.request.urlopen(request, timeout=5) as answer:
                        return False, f"{name}: {base}{asked} is answered with {answer.status}"
            if (logs / "anna.jsonl").read_bytes() != kept or (logs / "eve.jsonl").exists():
                return False, f"{name}: a verdict of a stranger was written"
        finally:
            end(server)
    return True, ""


def a_crowd_locks_nobody_out(tool):
    """Two hundred connections that never finish a request, and come back when they are turned away."""
    for name, server, *_ in servers(tool):
        ended = threading.Event()

        def crowd(server=server, ended=ended):
            while not ended.is_set():
                with suppress(OSError), socket.create_connection(server.address, timeout=1) as one:
                    one.sendall(b"GET /")
                    one.settimeout(0.5)
                    while not ended.is_set():
                        with suppress(TimeoutError):
                            if not one.recv(9):
                                break

        threads = [threading.Thread(target=crowd, daemon=True) for _ in range(200)]
        try:
            for thread in threads:
                thread.start()
            time.sleep(1)
            took = [server.answers() for _ in range(5)]
            if any(t is None or t > 5 for t in took):
                return False, f"{name}: {took}"
        finally:
            ended.set()
            end(server)
            for thread in threads:
                thread.join()
    return True, ""


def many_logs_need_few_handles(tool):
    """Sixty reviewers where 48 files may be open."""
    package = tool.empty("many-logs")
    shutil.copytree(tool.package(), package)
    (few := tool.base / "few-files.sh").write_text('ulimit -n 48; exec "$@"\n')
    server = Server(tool, ["audit", "serve", package], ["sh", few])
    try:
        items = post(server, "/open", {"reviewer": "anna"})["items"]
        item = items[0]["id"] if isinstance(items[0], dict) else items[0]
        for k in range(60):
            post(server, "/set", {"reviewer": f"r{k}", "item": item, "entry": {"verdict": "unsure"}})
        return server.answers() is not None, "no answer"
    except OSError as e:
        return False, e
    finally:
        end(server)


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
    graphs_have_limits,
    tables_have_limits,
    special_files_are_refused,
    a_full_output_is_an_error,
    names_need_no_utf8,
    results_are_bound,
    the_umask_is_kept,
    no_cell_commands_a_terminal,
    no_link_leads_out,
    strangers_read_and_write_nothing,
    a_crowd_locks_nobody_out,
    many_logs_need_few_handles,
    *FILES,
    *BOUND,
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
