#!/usr/bin/env python3
"""Runs every verb with two binaries and compares every byte that they write.

    scripts/compare_outputs.py OLD NEW [--jobs scripts/compare_outputs.sh]

The jobs run twice with OLD: what differs between these two runs (times, rates) differs by nature and is
left out, token by token. Everything else must be equal with NEW. Exit code 1 if anything is not.
"""
import argparse, os, pathlib, re, shutil, subprocess, sys, tempfile

HERE = pathlib.Path(__file__).resolve().parent
TOKENS = re.compile(rb"[^\s,\";:()<>]+")


def run(binary, jobs, at, keep):
    """All files that the jobs leave in the folder `at`, which is then moved to `keep`."""
    shutil.rmtree(at, ignore_errors=True)
    at.mkdir(parents=True)
    # Under one name, which records and help texts repeat.
    program = at.parent / "mithras"
    program.unlink(missing_ok=True)
    shutil.copy(binary, program)
    env = dict(os.environ, MITHRAS=str(program), COLUMNS="100", TERM="dumb")
    subprocess.run(["bash", str(jobs)], cwd=at, env=env, check=True, stdin=subprocess.DEVNULL)
    shutil.rmtree(keep, ignore_errors=True)
    shutil.move(at, keep)
    files = (p for p in keep.rglob("*") if p.is_file())
    return {str(p.relative_to(keep)): p.read_bytes() for p in files}


def differs(name, one, two, new):
    """Why `new` is not what `one` and `two` agree on, or None."""
    if one == two:
        return None if new == one else first(one, new)
    a, b, c = (TOKENS.findall(x) for x in (one, two, new))
    if len(a) != len(b):
        return None  # grows by nature, as a log of rates does
    if len(a) != len(c):
        return f"{len(a)} words, now {len(c)}"
    for x, y, z in zip(a, b, c):
        if x == y and z != x:
            return f"{x[:60]!r}, now {z[:60]!r}"
    return None


def never_well(jobs):
    """Verbs (of one or two words) whose jobs all end badly, from lines of an exit code and arguments."""
    well, all_of = set(), {}
    for line in jobs.splitlines():
        code, *words = line.split()
        verb = " ".join([w for w in words[:2] if re.fullmatch("[a-z][a-z0-9-]*", w)])
        all_of[verb] = True
        # A server that was stopped.
        if code in ("0", "143"):
            well.add(verb)
    return [verb for verb in all_of if verb not in well]


def first(one, new):
    for number, (x, y) in enumerate(zip(one.splitlines(), new.splitlines()), 1):
        if x != y:
            return f"line {number}: {x[:160]!r}, now {y[:160]!r}"
    return f"{len(one)} bytes, now {len(new)}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("old", type=pathlib.Path)
    parser.add_argument("new", type=pathlib.Path)
    parser.add_argument("--jobs", type=pathlib.Path, default=HERE / "compare_outputs.sh")
    parser.add_argument("--keep", type=pathlib.Path, help="folder that keeps what was written")
    args = parser.parse_args()
    work = args.keep or pathlib.Path(tempfile.mkdtemp(prefix="mithras-compare-"))
    at, jobs = work / "at", args.jobs.resolve()
    one = run(args.old.resolve(), jobs, at, work / "old-1")
    two = run(args.old.resolve(), jobs, at, work / "old-2")
    new = run(args.new.resolve(), jobs, at, work / "new")
    wrong = []
    for name in sorted(one.keys() | two.keys() | new.keys()):
        if name not in one or name not in new:
            wrong.append(f"{name}: {'only now' if name in new else 'missing now'}")
        elif name in two and (why := differs(name, one[name], two[name], new[name])):
            wrong.append(f"{name}: {why}")
    for verb in never_well(new["jobs.txt"].decode()):
        print(f"every job of `{verb}` is refused")
    steady = sum(one[n] == two.get(n) for n in one)
    print(f"{len(one)} files, {steady} the same in two runs of the old binary; {len(wrong)} differ now")
    print("\n".join(wrong))
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
