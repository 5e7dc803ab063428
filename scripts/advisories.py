#!/usr/bin/env python3
"""Checks Cargo.lock against the RustSec advisory database, without further tools.

    scripts/advisories.py [DB]     DB: a clone of https://github.com/RustSec/advisory-db

Without DB the database is cloned into a temporary folder. Exit code 1: an advisory holds that is not among ACCEPTED;
2: the database is missing. `cargo deny check advisories` does the same where it is installed. Needs Python 3.11.
"""

import re
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SOURCE = "https://github.com/RustSec/advisory-db"
#: Advisories that are, and why.
ACCEPTED = {
    "RUSTSEC-2021-0153": "decodes texts of DICOM headers for dicom-encoding, which has no other; no fault is known in it",
    "RUSTSEC-2026-0192": "measures letters of the font that kuva bundles; no font of a user is read",
}


def version(text):
    """Orders as semantic versions do: a pre-release comes before its release."""
    core, _, pre = text.split("+")[0].partition("-")
    numbers = [int(n) for n in core.split(".")]
    parts = [(0, int(p), "") if p.isdigit() else (1, 0, p) for p in pre.split(".") if p]
    return (*numbers, *[0] * (3 - len(numbers))), (not pre, parts)


def next_breaking(text):
    """The first version that is not compatible with this one."""
    numbers = [int(n) for n in text.partition("-")[0].split(".")]
    at = next((i for i, n in enumerate(numbers) if n), len(numbers) - 1)
    return ".".join(map(str, [*numbers[:at], numbers[at] + 1]))


def meets(have, requirement):
    """Whether a version meets all parts of a requirement, e.g. `>= 1.2, < 2`."""
    for part in requirement.split(","):
        sign, text = re.fullmatch(r"\s*(>=|<=|>|<|=|\^|~)?\s*([0-9A-Za-z.+-]+)\s*", part).groups()
        a, b = version(have), version(text)
        if sign in ("^", None):
            fits = b <= a < version(next_breaking(text))
        elif sign == "~":
            numbers = text.split(".")
            at = min(1, len(numbers) - 1)
            fits = b <= a < version(".".join([*numbers[:at], str(int(numbers[at]) + 1)]))
        else:
            fits = {">=": a >= b, "<=": a <= b, ">": a > b, "<": a < b, "=": a == b}[sign]
        if not fits:
            return False
    return True


def advisories(folder):
    for path in sorted(folder.glob("crates/*/RUSTSEC-*.md")):
        yield tomllib.loads(path.read_text().split("```toml", 1)[1].split("```", 1)[0])


def main():
    with tempfile.TemporaryDirectory() as made:
        folder = Path(sys.argv[1] if len(sys.argv) > 1 else made)
        if folder == Path(made) and subprocess.run(["git", "clone", "-q", "--depth", "1", SOURCE, made]).returncode:
            print(f"no database: {SOURCE} cannot be reached; give the folder of a clone", file=sys.stderr)
            sys.exit(2)
        locked = {}
        for p in tomllib.loads((ROOT / "Cargo.lock").read_text())["package"]:
            if "source" in p:
                locked.setdefault(p["name"], []).append(p["version"])
        read, found = 0, []
        for about in advisories(folder):
            read += 1
            a, fixed = about["advisory"], about.get("versions", {})
            if a.get("withdrawn"):
                continue
            sound = [*fixed.get("patched", []), *fixed.get("unaffected", [])]
            for have in locked.get(a["package"], []):
                if not any(meets(have, r) for r in sound):
                    found.append((a["id"], a["package"], have, a.get("informational", "vulnerability")))
    if not read:
        print(f"{folder}: no advisories: not a clone of {SOURCE}?", file=sys.stderr)
        sys.exit(2)
    for name, package, have, kind in found:
        print(f"{name}  {package} {have}  {kind}{'  accepted: ' + ACCEPTED[name] if name in ACCEPTED else ''}")
    print(f"{read} advisories, {sum(map(len, locked.values()))} crates, {len(found)} found")
    sys.exit(any(f[0] not in ACCEPTED for f in found))


if __name__ == "__main__":
    main()
