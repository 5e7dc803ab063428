"""Attacks a build of mithras; see attack.sh. Needs Python's standard library alone."""

import argparse
import itertools
import shutil
import sys
import time
from pathlib import Path

import faults
import mutate
import runs
import serve
from tool import ROOT, SLIDES, Tool


def campaigns(tool, data):
    """Damaged files of every kind that is read."""
    tiffs = [p for p in sorted(SLIDES.iterdir()) if p.suffix in (".svs", ".tif", ".tiff")]
    flat = [p for p in sorted(SLIDES.iterdir()) if p.suffix in (".png", ".jpg")]
    j2k = [p for p in tiffs if "jp2k" in p.name]
    dicom = sorted((data / "slides").glob("*.dcm")) + sorted((SLIDES.parent / "dicom").glob("*/*.dcm"))
    corpora = [p for p in sorted((data / "hostile").glob("corpus_*")) if p.is_dir()]
    return [
        lambda: mutate.slides(tool, "TIFF fields", tiffs, mutate.READ + mutate.TISSUE, mutate.tiff_lie),
        lambda: mutate.slides(tool, "TIFF bytes", tiffs, mutate.READ, mutate.damaged),
        lambda: mutate.slides(tool, "JPEG 2000", j2k, mutate.READ, mutate.damaged),
        lambda: mutate.slides(tool, "PNG and JPEG", flat, mutate.READ, mutate.damaged),
        lambda: mutate.slides(tool, "DICOM", dicom, mutate.READ, mutate.damaged),
        lambda: mutate.package(tool),
        lambda: mutate.tables(tool),
        lambda: mutate.corpora(tool, corpora),
        lambda: mutate.imports(tool),
    ]


def main():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("--minutes", type=float, default=2)
    p.add_argument("--binary", required=True)
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--only", choices=["faults", "files", "runs", "servers", "disk"], help="one kind of campaign")
    p.add_argument("--data", type=Path, default=ROOT.parent / "shared/data")
    a = p.parse_args()
    end = time.monotonic() + 60 * a.minutes
    tool = Tool(a.binary, a.seed, a.data, a.minutes >= 10)
    try:
        files, slow = [], []
        if a.only in (None, "faults"):
            faults.known(tool)
        if a.only in (None, "files"):
            mutate.known(tool, a.data / "hostile")
            files = campaigns(tool, a.data)
        if a.only in (None, "runs"):
            slow += [runs.kill_and_resume, runs.two_at_once, runs.full_disk]
        if a.only in (None, "servers"):
            slow.append(serve.attack)
        if a.only == "disk":
            slow.append(runs.full_disk)
        for count in itertools.count():
            if time.monotonic() > end or not (files or slow):
                break
            if files:
                files[count % len(files)]()
            if slow and (count % 12 == 0 or not files):
                slow[count // (12 if files else 1) % len(slow)](tool)
        print(f"{a.minutes:g} minutes, seed {a.seed}")
        sys.exit(0 if tool.table.show() else 1)
    finally:
        shutil.rmtree(tool.base, ignore_errors=True)


if __name__ == "__main__":
    main()
