"""Slides and tables of which a part is missing, cannot be read, or is written in an odd way."""

import json
import shutil
import struct
import subprocess

from answers import passes, refused
from table import outcome_of
from tool import MODEL, PATIENCE, SLIDES
from verbs import detect

POINT = ["--stages", "1", "--operating-point", "0.3,0"]
TINY = ["--model", MODEL, "--threads", "1", *POINT]


def counts_of(folder):
    return [json.loads(p.read_text()) for p in sorted(folder.rglob("counts.json"))]


def without_tiles(source, path, left_out):
    """Copies a little-endian TIFF, with the byte counts of tiles of all its reduced levels set to 0."""
    b = bytearray(source.read_bytes())
    at = struct.unpack_from("<I", b, 4)[0]
    first = True
    while at:
        n = struct.unpack_from("<H", b, at)[0]
        for k in range(n):
            entry = at + 2 + 12 * k
            tag, kind, count, place = struct.unpack_from("<HHII", b, entry)
            if tag != 325 or first:
                continue
            size = {3: 2, 4: 4}[kind]
            where = entry + 8 if count * size <= 4 else place
            for i in range(count):
                if left_out(i):
                    b[where + i * size : where + (i + 1) * size] = bytes(size)
        first = False
        at = struct.unpack_from("<I", b, at + 2 + 12 * n)[0]
    path.write_bytes(b)


def coarse_tiles_may_be_absent(tool):
    """Tiles that a converter left out of a coarse level change neither the tissue nor the figures."""
    whole, slide = tool.empty("whole"), tool.base / "drawn.tiff"
    tool.must(*detect(tool, whole, *POINT))
    [wanted] = counts_of(whole)
    for name, left_out in (("half", lambda i: i % 2 == 0), ("none", lambda i: True)):
        without_tiles(tool.drawn(), slide, left_out)
        out = tool.empty(name)
        done, output = passes(tool, "detect", slide, *TINY, "--out", out)
        if done is None or done.returncode != 0:
            return False, f"{name}: {output}"
        [got] = counts_of(out)
        area = got["tissue_mm2"] / wanted["tissue_mm2"]
        if got["figures"] != wanted["figures"] or abs(area - 1) > 0.02:
            return False, f"{name}: {got['figures']} figures of {wanted['figures']}, tissue {area:.3f} of the whole"
    return True, ""


def no_quote_takes_rows(tool):
    """A quotation mark that is not closed is an error with its line; text where tabs part the cells."""
    folder, source = tool.empty("quotes"), tool.data / "hostile/attack/02_unclosed_quote"
    folder.mkdir()
    for k in range(1, 6):
        shutil.copy(SLIDES / "svs_jpeg_420.svs", folder / f"s{k}.tiff")
    for name in ("list.csv", "survival.csv", "classes.csv"):
        shutil.copy(source / name, folder)
    times = ["--time", "time", "--event", "event", "--json"]
    for words in (
        ["detect", "--list", folder / "list.csv", *TINY, "--out", folder / "out"],
        ["survival", "km", "--table", folder / "survival.csv", *times],
        ["evaluate", "classification", "--predictions", folder / "classes.csv"],
    ):
        done, output = passes(tool, *words)
        if done is None or outcome_of(done) != "right error" or b"line" not in done.stderr:
            return False, f"{words[:2]}: {output}"
    table = folder / "notes.tsv"
    rows = "".join(f'{k}\t{k % 2}\t3" of {k}\n' for k in range(1, 31))
    table.write_text("time\tevent\tnote\n" + rows)
    done, output = passes(tool, "survival", "km", "--table", table, *times)
    return done is not None and done.returncode == 0 and b"30" in done.stdout, output


def a_sound_cell_is_checked(tool):
    """Probabilities outside of 0 to 1, and columns that are not what they are called."""
    table = tool.base / "likely.csv"
    for cells in ("2.0,0.1", "-0.5,1.5", "12,88"):
        table.write_text(f"file,truth,class,p_a,p_b\n1,a,a,0.9,0.1\n2,b,b,0.2,0.8\n3,a,a,{cells}\n")
        held = refused(tool, [["evaluate", "classification", "--predictions", table]])
        if not held[0]:
            return held
    return True, ""


#: The read of that number, of files whose name ends so, fails as a broken disk does; how many there were.
SHIM = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
static long reads;
static int fails(int fd) {
  const char *name = getenv("SHIM_FILE"), *at = getenv("SHIM_AT");
  char link[64], path[4096];
  if (!name || !at || fd < 3) return 0;
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  ssize_t n = readlink(link, path, sizeof path - 1);
  if (n < (ssize_t)strlen(name)) return 0;
  path[n] = 0;
  if (strcmp(path + n - strlen(name), name)) return 0;
  long this = __sync_add_and_fetch(&reads, 1);
  // At each read: the program ends without the libraries' own ends.
  const char *log = getenv("SHIM_LOG");
  FILE *f = log ? fopen(log, "w") : 0;
  if (f) { fprintf(f, "%ld", this); fclose(f); }
  return this == atol(at);
}
ssize_t pread64(int fd, void *b, size_t n, off64_t o) {
  static ssize_t (*real)(int, void *, size_t, off64_t);
  if (!real) real = dlsym(RTLD_NEXT, "pread64");
  if (fails(fd)) { errno = EIO; return -1; }
  return real(fd, b, n, o);
}
ssize_t read(int fd, void *b, size_t n) {
  static ssize_t (*real)(int, void *, size_t);
  if (!real) real = dlsym(RTLD_NEXT, "read");
  if (fails(fd)) { errno = EIO; return -1; }
  return real(fd, b, n);
}
"""


def a_read_error_is_an_error(tool):
    """A slide of which one read fails is failed, or as if all had been read; `--resume` then does it."""
    cc, slide = shutil.which("cc"), tool.base / "broken-disk.tiff"
    if cc is None:
        return None, "no C compiler is installed"
    source, shim, log = tool.base / "shim.c", tool.base / "shim.so", tool.base / "shim.log"
    source.write_text(SHIM)
    made = subprocess.run([cc, "-shared", "-fPIC", "-o", shim, source, "-ldl"], capture_output=True)
    if made.returncode != 0:
        return None, f"the shim does not compile: {made.stderr[-200:]!r}"
    shutil.copy(tool.drawn(), slide)

    def run(out, at):
        shimmed = {"LD_PRELOAD": str(shim), "SHIM_FILE": slide.name, "SHIM_AT": str(at), "SHIM_LOG": str(log)}
        words = tool.command(["detect", slide, *TINY, "--quiet", "--resume", "--out", out])
        return subprocess.run(words, capture_output=True, timeout=120, env={**tool.environment, **shimmed})

    whole, log_before = tool.empty("whole"), log.unlink(missing_ok=True)
    if run(whole, -1).returncode != 0 or log_before or not log.exists():
        return False, "no read of the slide was seen"
    reads, failed = int(log.read_text()), 0
    [wanted] = counts_of(whole)
    for at in sorted(tool.random.sample(range(1, reads + 1), min(6, reads))):
        out = tool.empty("injected")
        done = run(out, at)
        if outcome_of(done) not in ("success", "right error"):
            return False, f"read {at} of {reads}: {done.returncode} {done.stderr[-200:]!r}"
        failed += done.returncode != 0
        if done.returncode == 0 and counts_of(out) != [wanted]:
            return False, f"read {at} of {reads} failed, and the slide is done with other numbers"
        if done.returncode != 0 and (run(out, -1).returncode != 0 or counts_of(out) != [wanted]):
            return False, f"read {at} of {reads}: the slide is not done again"
    return failed > 0, f"no error in {reads} reads ended the slide"


def large_tiles_are_decoded_once(tool):
    """8,192 x 8,192 px in tiles of 4,096 px, each touched by hundreds of windows."""
    slide = tool.data / "hostile/attack/16_large_tiles_decoded_anew/t.tif"
    out = ["--mpp", "0.25", "--force-mpp", "--memory", "4G", *TINY, "--out", tool.empty("out")]
    done, output = passes(tool, "detect", slide, *out, patience=4 * PATIENCE)
    return done is not None and done.returncode == 0, output


def hidden_files_are_named(tool):
    folder = tool.empty("hidden")
    folder.mkdir()
    for name in (".hidden.svs", "plain.svs"):
        shutil.copy(SLIDES / "svs_jpeg_420.svs", folder / name)
    done, output = passes(tool, "detect", folder, *TINY, "--out", tool.empty("out"))
    return done is not None and done.returncode == 0 and b".hidden.svs" in done.stderr, output


def no_text_survives_a_copy(tool):
    """A comment or application data in the JPEG of any tile, or bytes behind its end: found, and not in the copy."""
    plain, name = (SLIDES / "svs_jpeg_420.svs").read_bytes(), b"scanned for Jane Doe"
    first = struct.unpack_from("<I", plain, 4)[0]
    entries = [first + 2 + 12 * k for k in range(struct.unpack_from("<H", plain, first)[0])]
    fields = {struct.unpack_from("<H", plain, at)[0]: struct.unpack_from("<II", plain, at + 4) for at in entries}
    for place in ("comment", "data", "end"):
        count, offsets = fields[324]
        tile = tool.random.randrange(count)
        at, size = (struct.unpack_from("<I", plain, fields[tag][1] + 4 * tile)[0] for tag in (324, 325))
        marker = {"comment": b"\xff\xfe", "data": b"\xff\xe5", "end": b""}[place]
        segment = marker + struct.pack(">H", len(name) + 2) + name
        old = plain[at : at + size]
        new = old[:2] + segment + old[2:] if marker else old + name
        b = bytearray(plain)
        struct.pack_into("<I", b, offsets + 4 * tile, len(plain))
        struct.pack_into("<I", b, fields[325][1] + 4 * tile, len(new))
        slide, copy = tool.base / "named.svs", tool.empty("unnamed.svs")
        slide.write_bytes(b + new)
        copy.unlink(missing_ok=True)
        found, output = passes(tool, "slide", "info", "--deidentified-check", slide)
        if marker and (found is None or b"tiff.jpeg." not in found.stdout):
            return False, f"{place} of tile {tile} is not found: {output}"
        done, output = passes(tool, "slide", "deidentify", slide, copy)
        if done is None or done.returncode != 0 or b"Jane" in copy.read_bytes():
            return False, f"{place} of tile {tile}: {output}"
    return True, ""


def points_are_not_guessed(tool):
    """Numbers with a comma and with a point in one column, of which one may part thousands: those with a comma are in
    a row that is left out."""
    table = tool.base / "points.csv"
    rows = [";1;0,5", *(f"{k};1;{k * 7 % 5}.200" for k in range(1, 13))]
    table.write_text("\n".join(["time;event;x", *rows]) + "\n")
    times = ["--time", "time", "--event", "event", "--covariates", "x"]
    return refused(tool, [["survival", "cox", "--table", table, *times]])


FILES = [
    coarse_tiles_may_be_absent,
    no_quote_takes_rows,
    a_sound_cell_is_checked,
    a_read_error_is_an_error,
    large_tiles_are_decoded_once,
    hidden_files_are_named,
    no_text_survives_a_copy,
    points_are_not_guessed,
]
