#!/usr/bin/env python3
"""The site: runs its tutorials, checks its links, commands and quoted errors, and builds the book.

  scripts/site.py [--binary FILE] [--quick] [--only STEP] [--page NAME] [--out DIR]

Steps: words, links, commands, errors, tutorials, book. The program is a build of mithras (default: the
release build); without a training build, tutorials and commands of training are skipped with a message. --quick
leaves out what is marked slow. The book is staged in DIR (default target/site) with a page for every
verb, and built where mdbook is on PATH (`cargo install mdbook`). words is scripts/words.py --check.

A tutorial is a page whose ```sh blocks are run in order in an empty folder that holds links to
docs/ and presets/; see docs/tutorials/index.md. Exit code 1: something is wrong, all of it is printed.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
#: Pages whose commands are run.
RUN = ["docs/tutorials/*.md", "docs/faq.md"]
#: What `mithras --help` does not list.
HIDDEN = ["manual"]
STEPS = ["words", "links", "commands", "errors", "tutorials", "book"]
#: Seconds that one block may take.
PATIENCE = 900


class Block:
    """A fenced block: language, words behind it, text, and the line it begins at."""

    def __init__(self, info, text, line):
        words = info.split()
        self.language, self.words = (words[0] if words else ""), words[1:]
        self.text, self.line = text, line


def split(text):
    """A page's fenced blocks, and its other lines with their numbers."""
    blocks, prose, fence = [], [], None
    for number, line in enumerate(text.splitlines(), 1):
        mark = re.match(r"\s*(```+|~~~+)(.*)$", line)
        if fence and mark and mark[1].startswith(fence[0]) and not mark[2].strip():
            blocks.append(Block(fence[1], "\n".join(fence[2]), fence[3]))
            fence = None
        elif fence:
            fence[2].append(line)
        elif mark:
            fence = (mark[1], mark[2].strip(), [], number)
        else:
            prose.append((number, line))
    if fence:
        raise ValueError(f"the block of line {fence[3]} does not end")
    return blocks, prose


# Links


def slug(heading):
    """The anchor that GitHub and mdBook give a heading."""
    heading = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading.replace("`", "")).strip().lower()
    return re.sub(r"[^\w\- ]", "", heading).replace(" ", "-")


def anchors(text):
    """All anchors of a page; a repeated heading has a number behind it."""
    found, seen = set(), {}
    for _, line in split(text)[1]:
        heading = re.match(r"#{1,6}\s+(.*?)\s*#*$", line)
        if heading:
            name = slug(heading[1])
            n = seen.get(name, 0)
            seen[name] = n + 1
            found.add(f"{name}-{n}" if n else name)
        found.update(re.findall(r'<a (?:id|name)="([^"]+)"', line))
    return found


def links(text):
    """`(line, target)` of a page's links and pictures."""
    for number, line in split(text)[1]:
        line = re.sub(r"`[^`]*`", lambda m: "`" * len(m[0]), line)
        for pattern in (
            r"\]\(\s*<?([^)\s>]+)>?(?:\s+\"[^\"]*\")?\s*\)",
            r"^\s*\[[^\]]+\]:\s+(\S+)",
            r"(?:href|src)=\"([^\"]+)\"",
            r"(?<![\(\"])(https?://[^\s)>\]\"'`,;]+[^\s)>\]\"'`,;.])",
        ):
            for target in re.findall(pattern, line):
                yield number, target


def pages(root):
    """Every page that is, or would be, in the repository; in a copy without Git all but built ones."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "*.md"],
        cwd=root, capture_output=True, text=True,
    )
    if listed.returncode == 0:
        names = [name for name in listed.stdout.split("\n") if name and (root / name).exists()]
    else:
        names = [str(page.relative_to(root)) for page in root.rglob("*.md")]
        names = [name for name in names if not name.startswith((".", "target", "dist", "runs"))]
    return sorted(root / name for name in names)


def check_links(root, files):
    """Faults of relative links, anchors and named files; and the external links, unread."""
    faults, external, known = [], set(), {}
    tops = "docs|crates|scripts|deploy|presets|models|benches"
    for page in files:
        text = page.read_text(encoding="utf-8")
        where = page.relative_to(root)
        for line, target in links(text):
            if re.match(r"[a-z]+:", target):
                external.add(target)
                continue
            path, _, anchor = target.partition("#")
            to = (page.parent / path).resolve() if path else page
            if not to.is_relative_to(root) or not to.exists():
                faults.append(f"{where}:{line}: {target}: no such file")
            elif anchor and to.suffix == ".md":
                if to not in known:
                    known[to] = anchors(to.read_text(encoding="utf-8"))
                if anchor not in known[to]:
                    faults.append(f"{where}:{line}: {target}: no such heading")
        for line, words in split(text)[1]:
            # Files named in the text, from the repository's root.
            for name in re.findall(rf"`((?:{tops})/[\w./-]+\.\w+)(?::\d+)?`", words):
                if not (root / name).exists() and not (root / "crates" / name).exists():
                    faults.append(f"{where}:{line}: `{name}`: no such file")
            # Places in crates, from the folder `crates`.
            for name in re.findall(r"`(\w+/(?:src|tests|templates)/[\w./-]*)`", words):
                crate = name.partition("/")[0]
                if (root / "crates" / crate).is_dir() and not (root / "crates" / name).exists():
                    faults.append(f"{where}:{line}: `crates/{name}`: no such file")
    for source in sorted(root.glob("crates/**/*")):
        if source.suffix not in (".rs", ".txt") or not source.is_file():
            continue
        for line, words in enumerate(source.read_text(encoding="utf-8").splitlines(), 1):
            for name in re.findall(r"\bdocs/[\w/-]+\.md\b", words):
                if not (root / name).exists():
                    faults.append(f"{source.relative_to(root)}:{line}: {name}: no such file")
    return faults, sorted(external)


#: Places in docs/SUMMARY.md that the book fills with every page of a folder, in the order of names.
FOLDERS = {"<!-- decisions -->": "decisions", "<!-- notes -->": "notes"}


def check_summary(root):
    """Every page below docs/ is in the book's summary, once."""
    summary = (root / "docs/SUMMARY.md").read_text(encoding="utf-8")
    filled = tuple(f"{folder}/" for place, folder in FOLDERS.items() if place in summary)
    listed = [t for _, t in links((root / "docs/SUMMARY.md").read_text(encoding="utf-8"))]
    here = {str(p.relative_to(root / "docs")) for p in pages(root) if (root / "docs") in p.parents}
    missing = sorted(name for name in here - set(listed) - {"SUMMARY.md"} if not name.startswith(filled))
    double = sorted({t for t in listed if listed.count(t) > 1})
    return [f"docs/SUMMARY.md: {name} is not listed" for name in missing] + [
        f"docs/SUMMARY.md: {name} is listed twice" for name in double
    ]


#: What a page of docs/decisions has, each at the beginning of a paragraph.
DECISION = ("**Reason.**", "**Rejected.**")


def check_decisions(root):
    """Every page of docs/decisions has a numbered title, the reason, and what was rejected."""
    faults = []
    for page in sorted((root / "docs/decisions").glob("*.md")):
        text = page.read_text(encoding="utf-8")
        number = page.name.partition("-")[0].lstrip("0")
        if not re.match(rf"# {re.escape(number)}\. \S", text):
            faults.append(f"{page.relative_to(root)}: the title is not '# {number}. ...'")
        for part in DECISION:
            if not re.search(rf"^{re.escape(part)} \S", text, re.M):
                faults.append(f"{page.relative_to(root)}: no part {part}")
    return faults


def check_packages(root, files):
    """Every `cargo ... -p NAME` of pages, scripts and sources names a package of the workspace."""
    names = re.compile(r'^name = "([^"]+)"', re.M)
    known = {names.search(toml.read_text(encoding="utf-8"))[1] for toml in sorted(root.glob("crates/*/Cargo.toml"))}
    sources = [*root.glob("scripts/**/*.sh"), *root.glob("crates/**/*.rs"), *root.glob("examples/*.rs")]
    faults = []
    for page in [*files, *sorted(sources)]:
        for line, text in enumerate(page.read_text(encoding="utf-8").splitlines(), 1):
            for command in re.findall(r"cargo [^`;&|]*", text):
                for name in re.findall(r"\s-p ([a-z][\w-]*)", command):
                    if name not in known:
                        faults.append(f"{page.relative_to(root)}:{line}: cargo -p {name}: no such package")
    return faults


# Verbs and their help


#: A case of scripts/oddities.py by its kind, or by the name of a layout or a text.
ODD = [(r'^@(?:dicom_)?case\([^\n]*"([^"\n]+)"\)$', "{}"), (r'^@?(?:refused_)?layout\("(\w+)"', "layout {}")]
ODD.append((r'^personal\("(\w+)"', "text in {}"))


def check_reports(root):
    """Every case of scripts/oddities.py has a row in docs/reports.md, every row a case or tests that exist."""
    page, script = root / "docs/reports.md", root / "scripts/oddities.py"
    if not page.exists():
        return []
    text = script.read_text(encoding="utf-8")
    cases = {form.format(kind) for pattern, form in ODD for kind in re.findall(pattern, text, re.M)}
    files = [*root.glob("crates/*/src/**/*.rs"), *root.glob("crates/*/tests/**/*.rs"), *root.glob("scripts/**/*.py")]
    code = "".join(p.read_text(encoding="utf-8") for p in sorted(files))
    defined = set(re.findall(r"\b(?:fn|def|mod) (\w+)", code))
    listed, faults, tests = set(), [], None
    for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), 1):
        cells = [c.strip() for c in line.strip().strip("|").split("|")] if line.startswith("|") else []
        if not cells or set(line) <= set("|- "):
            tests = None if not cells else tests
            continue
        if tests is None:
            tests = cells.index("test") if "test" in cells else -1 if "file" in cells else -2
            continue
        if tests < 0:
            listed |= {cells[0]} if tests == -1 else set()
            continue
        named = re.findall(r"`([\w:]+(?:\.\.\.)?)`", cells[tests])
        if not named:
            faults.append(f"docs/reports.md:{number}: no test is named")
        for name in named:
            last = name.split("::")[-1]
            own = last.removesuffix("...")
            found = any(d.startswith(own) for d in defined) if last != own else own in defined
            if not found:
                faults.append(f"docs/reports.md:{number}: no such test: {name}")
    faults += [f"docs/reports.md: no row for the odd file: {kind}" for kind in sorted(cases - listed)]
    return faults + [f"docs/reports.md: no odd file is called: {kind}" for kind in sorted(listed - cases)]


def helps(binary):
    """`{("detect",): help, ("corpus", "import"): help, ...}`, in the order of the help."""

    # A build without training, as the tests take it, starts in a tenth of the time.
    plain = os.environ.get("MITHRAS_TEST_PROGRAM", binary)

    def ask(verb):
        program = plain if verb and verb[0] not in ("train", *HIDDEN) else binary
        done = subprocess.run([program, *verb, "--help"], capture_output=True, text=True)
        if done.returncode:
            raise SystemExit(f"site: mithras {' '.join(verb)} --help: {done.stderr.strip()}")
        return done.stdout

    def below(text):
        section = re.search(r"^Commands:\n((?:  .*\n)*)", text, re.M)
        names = re.findall(r"^  ([a-z][\w-]*)(?: |$)", section[1], re.M) if section else []
        return [name for name in names if name != "help"]

    found, level = {(): ask(())}, [(name,) for name in below(ask(())) + HIDDEN]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        while level:
            answers = dict(zip(level, pool.map(ask, level)))
            found.update(answers)
            level = [(*verb, name) for verb, text in answers.items() for name in below(text)]
    return dict(sorted(found.items()))


def commands(text):
    """`(line, words)` of every `mithras ...` that a page shows."""
    blocks, prose = split(text)
    shown = []
    for block in blocks:
        if block.language in ("sh", "bash", ""):
            joined = re.sub(r"\\\n\s*", " ", block.text)
            shown += [(block.line, line) for line in joined.splitlines()]
    for line, words in prose:
        shown += [(line, code) for code in re.findall(r"`([^`]+)`", words)]
    for line, command in shown:
        command = re.sub(r"(^|\s)#.*$", "", command)
        for part in re.split(r"&&|;|\s\|\s", command):
            match = re.match(r"\s*(?:\$ )?(?:cargo run (?:--\w+ )*-- |mithras )(.*)", part)
            if match:
                yield line, match[1].split()


def faults_of_command(words, known):
    """What is wrong with a command: a verb or a flag that the help does not know."""
    verbs = [()]
    words = [w.strip("[](),.") for w in words]
    while words and re.fullmatch(r"[a-z][a-z0-9-]*(\|[a-z][a-z0-9-]*)*", words[0]):
        further = [(*v, w) for v in verbs for w in words[0].split("|")]
        unknown = [v for v in further if v not in known]
        if unknown:
            if any(v in known and any(len(k) == len(v) + 1 and k[: len(v)] == v for k in known) for v in verbs):
                return [f"mithras {' '.join(unknown[0])}: no such verb"]
            break
        verbs, words = further, words[1:]
    wrong = []
    for word in words:
        if word in ("--", ">", ">>", "<"):
            break
        flag = re.match(r"--[a-z][a-z0-9-]*", word)
        # In "finetune|probe|test" it is enough that one of them has the flag.
        if flag and not any(re.search(rf"(?<![\w-]){flag[0]}(?![\w-])", known[v]) for v in verbs):
            wrong.append(f"mithras {' '.join(verbs[0])} {flag[0]}: no such flag")
    return wrong


def script_commands(text):
    """`(line, words)` of every `mithras ...` in a shell script, with its continued lines."""
    lines = text.splitlines()
    for number, line in enumerate(lines, 1):
        match = re.match(r"\s*(?:once \S+ |\[.*?\] (?:\|\||&&) )?mithras (.*)", line)
        if match:
            words, at = match[1], number
            while words.endswith("\\"):
                words, at = words[:-1] + " " + lines[at].strip(), at + 1
            yield number, re.sub(r"\s#.*$", "", words).split()


def knows_training(known):
    """A build without training has no verb below `train`."""
    return any(len(verb) > 1 and verb[0] == "train" for verb in known)


def check_commands(root, files, known):
    shown = [(page, commands(page.read_text(encoding="utf-8"))) for page in files]
    scripts = sorted(root.glob("scripts/reproduce/*.sh"))
    shown += [(script, script_commands(script.read_text(encoding="utf-8"))) for script in scripts]
    training = knows_training(known)
    return [
        f"{page.relative_to(root)}:{line}: {fault}"
        for page, lines in shown
        for line, words in lines
        if training or words[:1] != ["train"]
        for fault in faults_of_command(words, known)
    ]


# Errors that are quoted


def sources(root):
    """All of the program's sources, with texts over several lines joined."""
    text = "\n".join(p.read_text(encoding="utf-8") for p in sorted(root.glob("crates/*/src/**/*.rs")))
    return re.sub(r"\\\n\s*", "", text).replace('\\"', '"')


def check_errors(root, run, code):
    """A shown text follows a command that is run, or its words are in the sources (`text sources`)."""
    faults = []
    for page in run:
        where, follows = page.relative_to(root), False
        for block in split(page.read_text(encoding="utf-8"))[0]:
            if block.language == "sh":
                follows = "not-run" not in block.words
            elif block.language == "text" and "sources" in block.words:
                for fragment in re.split(r"\.\.\.|\n", block.text):
                    fragment = re.sub(r"^(error|warning): ", "", fragment.strip())
                    if len(fragment) > 3 and fragment not in code:
                        faults.append(f"{where}:{block.line}: not in the sources: {fragment}")
            elif block.language == "text":
                if not follows:
                    faults.append(f"{where}:{block.line}: this text follows no command that is run")
                follows = False
    return faults


# Tutorials


def matches(expected, output):
    """Whether an output is as shown; `...` represents anything in a line, alone for any lines."""
    pattern = ""
    for line in expected.splitlines():
        if line.strip() == "...":
            pattern += r"(?:[^\n]*\n)*?"
        else:
            parts = (re.escape(part) for part in line.rstrip().split("..."))
            pattern += "[^\n]*?".join(parts) + r"[ \t]*\n"
    return re.fullmatch(pattern, output if output.endswith("\n") or not output else output + "\n")


def run_page(root, page, bin_folder, quick):
    """Faults of a page's commands, and whether slow ones were left out."""
    where, output, expected_code = page.relative_to(root), None, 0
    with tempfile.TemporaryDirectory(prefix="site-") as folder:
        for name in ("docs", "presets"):
            os.symlink(root / name, Path(folder) / name)
        path = f"{bin_folder}:{os.environ['PATH']}"
        environment = {**os.environ, "PATH": path, "LC_ALL": "C.UTF-8", "COLUMNS": "100"}
        for block in split(page.read_text(encoding="utf-8"))[0]:
            if block.language == "text" and "sources" not in block.words and output is not None:
                if not matches(block.text, output):
                    return [f"{where}:{block.line}: shown:\n{block.text}\n--- but was:\n{output}"], False
                output = None
            if block.language != "sh" or "not-run" in block.words:
                continue
            if quick and "slow" in block.words:
                return [], True
            expected_code = next((int(w[5:]) for w in block.words if w.startswith("exit=")), 0)
            began = time.monotonic()
            try:
                done = subprocess.run(
                    ["bash", "-euo", "pipefail", "-c", block.text],
                    cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                    stderr=subprocess.STDOUT, text=True, errors="replace", timeout=PATIENCE,
                )
            except subprocess.TimeoutExpired:
                return [f"{where}:{block.line}: took more than {PATIENCE} s"], False
            output = done.stdout
            if "-v" in sys.argv:
                print(f"{where}:{block.line} {time.monotonic() - began:.1f} s\n{output}", flush=True)
            if done.returncode != expected_code:
                wrong = f"exit code {done.returncode}, not {expected_code}"
                return [f"{where}:{block.line}: {wrong}:\n{block.text}\n---\n{output}"], False
    return [], False


def check_tutorials(root, run, binary, quick):
    faults = []
    asked = subprocess.run(
        [binary, "train", "test", "--run", "none", "--data", "none"], capture_output=True, text=True
    )
    trains = "--features train" not in asked.stderr
    for page in run:
        where = page.relative_to(root)
        if "<!-- needs: train -->" in page.read_text(encoding="utf-8") and not trains:
            print(f"SKIPPED {where}: this is not a training build", flush=True)
            continue
        began = time.monotonic()
        found, cut = run_page(root, page, binary.parent, quick)
        rest = "; its slow part SKIPPED by --quick" if cut else ""
        took = time.monotonic() - began
        print(f"{'FAILED' if found else 'ok'}  {where}  {took:.1f} s{rest}", flush=True)
        faults += found
    return faults


# The book


def stage(root, out, known):
    """The book's sources: docs/, a page per verb, and named files as links."""
    source = out / "src"
    if source.exists():
        shutil.rmtree(source)
    shutil.copytree(root / "docs", source, ignore=shutil.ignore_patterns("book.toml", "__pycache__"))
    for name in ("book.toml", "site.css"):
        shutil.copy(root / "docs" / name, out / name)
    toml = (out / "book.toml").read_text(encoding="utf-8")
    (out / "book.toml").write_text(toml.replace('src = "."', 'src = "src"'), encoding="utf-8")
    address = re.search(r'^repository = "(.*)"', (root / "Cargo.toml").read_text(), re.M)[1]

    for page in source.rglob("*.md"):
        depth = "../" * (len(page.relative_to(source).parts) - 1)
        lines, fenced = [], False
        for line in page.read_text(encoding="utf-8").splitlines():
            fenced ^= bool(re.match(r"\s*```", line))
            if not fenced and not line.startswith("#"):
                named = r"(?<!\[)`docs/((?!SUMMARY)[\w/-]+\.md)`(?!\])"
                line = re.sub(named, rf"[`docs/\1`]({depth}\1)", line)
                beyond = rf"\]\({re.escape(depth)}\.\./([^)]+)\)"
                line = re.sub(beyond, rf"]({address}/blob/main/\1)", line)
            lines.append(line)
        page.write_text("\n".join(lines) + "\n", encoding="utf-8")

    (source / "verbs").mkdir()
    entries = []
    for verb in [v for v in known if len(v) == 1]:
        parts = [f"# mithras {verb[0]}\n"]
        for name, text in known.items():
            if name[:1] == verb:
                heading = "" if len(name) == 1 else f"\n## mithras {' '.join(name)}\n"
                parts.append(f"{heading}\n```text\n{text.rstrip()}\n```\n")
        (source / f"verbs/{verb[0]}.md").write_text("".join(parts), encoding="utf-8")
        entries.append(f"- [{verb[0]}](verbs/{verb[0]}.md)")
    summary = source / "SUMMARY.md"
    text = summary.read_text(encoding="utf-8")
    if "<!-- verbs -->" not in text:
        return ["docs/SUMMARY.md: no place for the verbs (<!-- verbs -->)"]
    text = text.replace("<!-- verbs -->", "# Verbs\n\n" + "\n".join(entries))
    for place, folder in FOLDERS.items():
        below = []
        for page in sorted(source.glob(f"{folder}/*.md")):
            if page.name != "index.md":
                title = page.read_text(encoding="utf-8").partition("\n")[0].lstrip("# ")
                below.append(f"  - [{title}]({folder}/{page.name})")
        text = text.replace(place, "\n".join(below))
    summary.write_text(text, encoding="utf-8")
    staged = sorted(source.rglob("*.md"))
    faults = []
    for page in staged:
        for line, target in links(page.read_text(encoding="utf-8")):
            path = target.partition("#")[0]
            if path and not re.match(r"[a-z]+:", target) and not (page.parent / path).exists():
                faults.append(f"{page}:{line}: {target}: not in the book")
    return faults


def dead_in_book(book):
    """Links of the built pages that lead nowhere: mdbook names files and headings again."""
    made = {p.resolve(): p.read_text(encoding="utf-8") for p in book.rglob("*.html")}
    faults = []
    for page, text in made.items():
        if page.name in ("404.html", "print.html", "toc.html"):
            continue
        body = text[text.find("<main>") : text.find("</main>")]
        for target in re.findall(r'(?:href|src)="([^"]+)"', body):
            path, _, anchor = target.partition("#")
            to = (page.parent / path).resolve() if path else page
            if re.match(r"[a-z]+:", target):
                continue
            if not to.exists() or anchor and f'id="{anchor}"' not in made.get(to, ""):
                faults.append(f"{page.relative_to(book.resolve())}: {target}: leads nowhere")
    return faults


def build(out):
    """The book, by mdbook; every page must come out as one."""
    if not shutil.which("mdbook"):
        print(f"SKIPPED the book's pages: mdbook is not on PATH (cargo install mdbook, then mdbook build {out})")
        return []
    done = subprocess.run(["mdbook", "build", str(out)], capture_output=True, text=True)
    output = done.stdout + done.stderr
    if done.returncode or re.search(r"\b(WARN|ERROR)\b", output):
        return [f"mdbook: {output}"]
    faults = []
    for page in (out / "src").rglob("*.md"):
        name = page.relative_to(out / "src")
        html = name.with_name("index.html") if name.name == "README.md" else name.with_suffix(".html")
        if name.name != "SUMMARY.md" and not (out / "book" / html).exists():
            faults.append(f"mdbook made no page of {name}")
    faults += dead_in_book(out / "book")
    print(f"the book: {out / 'book/index.html'}")
    return faults


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--binary", type=Path)
    parser.add_argument("--quick", action="store_true", help="without what is marked slow")
    parser.add_argument("--only", choices=STEPS)
    parser.add_argument("--page", help="only the tutorials with this in their name")
    parser.add_argument("--out", type=Path, default=ROOT / "target/site")
    parser.add_argument("-v", action="store_true", help="print what the tutorials print")
    a = parser.parse_args()
    steps = [a.only] if a.only else STEPS
    binary = a.binary or Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"), "release/mithras")
    if set(steps) & {"commands", "tutorials", "book"} and not binary.exists():
        sys.exit(f"site: {binary}: no such file; build it (cargo build --release) or name one by --binary")
    # Under its own name, which its help repeats.
    home = tempfile.TemporaryDirectory(prefix="site-bin-")
    os.symlink(binary.resolve(), Path(home.name) / "mithras")
    binary = Path(home.name) / "mithras"
    files = pages(ROOT)
    run = sorted(p for pattern in RUN for p in ROOT.glob(pattern))
    run = [p for p in run if not a.page or a.page in p.name]
    faults, began = [], time.monotonic()
    known = helps(binary) if set(steps) & {"commands", "book"} else {}
    if "words" in steps:
        checked = subprocess.run([sys.executable, ROOT / "scripts/words.py", "--check"], capture_output=True, text=True)
        print(checked.stdout, end="")
        faults += [f"words: {line}" for line in checked.stderr.splitlines()]
        faults += ["words: scripts/words.py --check failed"] * bool(checked.returncode)
    if "links" in steps:
        found, external = check_links(ROOT, files)
        faults += found + check_summary(ROOT) + check_decisions(ROOT) + check_packages(ROOT, files) + check_reports(ROOT)
        print(f"links of {len(files)} pages; {len(external)} external ones, not fetched:")
        print("".join(f"  {target}\n" for target in external), end="")
    if "commands" in steps:
        faults += check_commands(ROOT, files, known)
        print(f"commands against the help of {len(known)} verbs")
        if not knows_training(known):
            print("SKIPPED commands of `train`: this is not a training build", flush=True)
    if "errors" in steps:
        faults += check_errors(ROOT, run, sources(ROOT))
    if "tutorials" in steps:
        faults += check_tutorials(ROOT, run, binary, a.quick)
    if "book" in steps:
        a.out.mkdir(parents=True, exist_ok=True)
        faults += stage(ROOT, a.out, known) or build(a.out)
    for fault in faults:
        print(f"FAULT {fault}")
    print(f"site: {len(faults)} faults, {time.monotonic() - began:.0f} s")
    sys.exit(bool(faults))


if __name__ == "__main__":
    main()
