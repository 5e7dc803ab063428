"""Results that are another slide's or of a later version, names that a folder needs itself, and ends by a signal."""

import csv
import shutil
import signal
import subprocess
import time

from answers import passes
from tool import MODEL, SLIDES
from verbs import reviewed, writing

QUICK = ["--model", MODEL, "--threads", "1", "--quiet"]


def two_slides(tool):
    """Words that detect two different slides into a folder."""
    folder = tool.base / "two-slides"
    if not folder.exists():
        folder.mkdir()
        for name, seed in (("one", "3"), ("two", "4")):
            drawn = tool.empty("second")
            size = ["--size", "900,800", "--figures", "2", "--seed", seed]
            tool.must("demo", "--draw-only", "--out", drawn, *size)
            shutil.copy(drawn / "drawn.tiff", folder / f"{name}.tiff")
    return lambda out, *more: ["detect", folder / "one.tiff", folder / "two.tiff", *QUICK, "--out", out, *more]


def rows_of(table):
    with table.open(newline="") as f:
        return {row["slide"]: row["status"] for row in csv.DictReader(f)}


def foreign_results_are_named(tool):
    """A slide's results copied over another's, and a state of a later version: named, and no other slide stops."""
    words, run = two_slides(tool), tool.base / "two-run"
    if not run.exists():
        tool.must(*words(run))
    for name in ("counts.json", "detections.csv", "state.json"):
        folder = tool.empty("foreign")
        shutil.copytree(run, folder)
        shutil.copy(folder / "two" / name, folder / "one" / name)
        done, output = passes(tool, "gather", folder)
        printed = b"" if done is None else done.stdout + done.stderr
        mark = b"slide `two`" if name == "state.json" else name.encode()
        if done is None or done.returncode == 0 or mark not in printed or b"one" not in printed:
            return False, f"{name}: {output}"
        rows = rows_of(folder / "counts.csv")
        if rows.get("two") != "finished" or rows.get("one") == "finished":
            return False, f"{name}: the table has {rows}"
        # A state of another slide is another file's: only the user knows which.
        tool.must(*words(folder, "--overwrite" if name == "state.json" else "--resume"))
        done, output = passes(tool, "gather", folder)
        if done is None or done.returncode != 0:
            return False, f"{name}, done again: {output}"
    state = folder / "one/state.json"
    state.write_text(state.read_text().replace("mithras.state/1", "mithras.state/9"))
    for command in (["gather", folder], words(folder, "--resume")):
        done, output = passes(tool, *command)
        if done is None or done.returncode == 0 or b"mithras.state/9" not in done.stdout + done.stderr:
            return False, f"later schema, {command[0]}: {output}"
    return rows_of(folder / "counts.csv").get("two") == "finished", "a later state stops the other slide"


def slides_named_as_tables_are_slides(tool):
    folder, out = tool.empty("called"), tool.empty("out")
    folder.mkdir()
    names = ["counts.csv", "run.json", "summary.html", "recount.csv", "cases.csv", "reviews", "good"]
    for name in names:
        shutil.copy(SLIDES / "svs_jpeg_420.svs", folder / f"{name}.svs")
    point = ["--stages", "1", "--operating-point", "0.3,0"]
    for command in (["detect", folder, *QUICK, *point, "--out", out], ["gather", out]):
        done, output = passes(tool, *command)
        if done is None or done.returncode != 0:
            return False, f"{command[0]}: {output}"
        if not (out / "counts.csv").is_file() or not (out / "summary.html").is_file():
            return False, "a slide takes the place of a table"
        if len(rows_of(out / "counts.csv")) != len(names):
            return False, rows_of(out / "counts.csv")
    return True, ""


def no_verb_leaves_halves(tool):
    """Verbs that write, each killed some times; what is half written is gone after the same command's end."""
    out = tool.empty("halves")
    wanted = [["slide", "tissue"], ["demo"], ["embed"], ["audit", "sample"], ["survival", "study"], ["gather"]]
    wanted += [["export", "qupath"], ["corpus", "import", str(reviewed(tool))]]
    for words in writing(tool, out):
        if not any([str(w) for w in words[: len(verb)]] == verb for verb in wanted) or "--crops" in words:
            continue
        place = words[words.index("--into" if words[0] == "gather" else "--out") + 1]
        for _ in range(5):
            process = subprocess.Popen(tool.command(words), stdout=-3, stderr=-3, env=tool.environment)
            time.sleep(tool.random.uniform(0.01, 0.4))
            process.kill()
            process.wait()
        # A start that came to its end has left its results, which the last one would refuse to replace.
        shutil.rmtree(place, ignore_errors=True)
        done, output = passes(tool, *words)
        if done is None or done.returncode != 0:
            return False, f"{words[:2]}: {output}"
        left = [p for p in [*place.rglob(".writing-*"), *place.parent.glob(".writing-*")]]
        if left:
            return False, f"{words[:2]} leaves {[str(p.relative_to(out)) for p in left]}"
    return True, ""


def a_closed_terminal_leaves_tables(tool):
    """SIGHUP after the first slide: the tables of what is done are there."""
    words, out = two_slides(tool), tool.empty("hung-up")
    process = subprocess.Popen(tool.command(words(out)), stdout=-3, stderr=subprocess.PIPE, env=tool.environment)
    end = time.monotonic() + 60
    while process.poll() is None and time.monotonic() < end:
        if any(b'"finished"' in p.read_bytes() for p in out.glob("*/state.json")):
            process.send_signal(signal.SIGHUP)
            break
        time.sleep(0.005)
    output = process.communicate(timeout=60)[1]
    done = rows_of(out / "counts.csv") if (out / "counts.csv").is_file() else {}
    return "finished" in done.values() and process.returncode != -signal.SIGHUP, f"{done} {output[-200:]!r}"


BOUND = [
    foreign_results_are_named,
    slides_named_as_tables_are_slides,
    no_verb_leaves_halves,
    a_closed_terminal_leaves_tables,
]
