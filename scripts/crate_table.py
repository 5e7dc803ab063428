#!/usr/bin/env python3
"""Writes the table of crates in docs/ARCHITECTURE.md from `cargo metadata`, so that it cannot drift.

    scripts/crate_table.py            # writes the table
    scripts/crate_table.py --check    # exit code 1 where it is not up to date

What a crate does is the `description` of its Cargo.toml; what it uses are its dependencies outside tests.
"""

import json
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs/ARCHITECTURE.md"
BEGIN, END = "<!-- crates: scripts/crate_table.py -->\n", "<!-- end of crates -->\n"


def short(package):
    """The folder and the name in code of a package."""
    return package.removeprefix("mithras-")


def table():
    command = ["cargo", "metadata", "--format-version", "1", "--no-deps", "--offline"]
    packages = json.loads(subprocess.run(command, cwd=ROOT, capture_output=True, check=True).stdout)["packages"]
    ours = {short(p["name"]) for p in packages}
    lines = ["| crate | does | uses |\n", "|---|---|---|\n"]
    for package in sorted(packages, key=lambda p: short(p["name"])):
        uses = {short(d["name"]) for d in package["dependencies"] if d["kind"] != "dev"} & ours
        optional = {short(d["name"]) for d in package["dependencies"] if d["optional"]}
        names = [f"`{u}`" + (" (optional)" if u in optional else "") for u in sorted(uses)]
        does = package["description"].rstrip(".")
        lines.append(f"| `{short(package['name'])}` | {does} | {', '.join(names) or 'none of ours'} |\n")
    return "".join(lines)


def main():
    page = PAGE.read_text(encoding="utf-8")
    if page.count(BEGIN) != 1 or page.count(END) != 1:
        sys.exit(f"{PAGE}: the lines {BEGIN.strip()} and {END.strip()} must each occur once")
    before, rest = page.split(BEGIN)
    _, after = rest.split(END)
    made = before + BEGIN + "\n" + table() + "\n" + END + after
    if sys.argv[1:] == ["--check"]:
        if made != page:
            sys.exit("docs/ARCHITECTURE.md: the table of crates is out of date; run scripts/crate_table.py")
    elif sys.argv[1:]:
        sys.exit(__doc__)
    else:
        PAGE.write_text(made, encoding="utf-8")


if __name__ == "__main__":
    main()
