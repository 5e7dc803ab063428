#!/usr/bin/env python3
"""Counts words of the house's old dialect, names that say too little, and lines of prose that are too long.

  scripts/words.py [--list WORD] [--by-folder] [--check]

The house writes plain English: CONTRIBUTING.md, "Words", has the rules. This script counts the words
that the rules replace, in sources, pages and scripts. Some uses are proper ("a cell beside a vessel"),
so there is a limit and not a ban: --check fails when a kind of file has more of them than LIMITS
allows, or when a page has a line of prose, or a source a comment, over 120 columns. Two kinds of names
have limits, too: a public type whose name another public type of the same crate has, and a function or
a type named by a preposition or a participle. A tuple of different kinds as a parameter has no names
where the function is called; these are counted, too. So are such tuples in lists, options and fields
that other files see. Lower a limit when a count has fallen.

No lint does this: `disallowed-names` of clippy looks at variables alone, `type_complexity` at the depth of a type,
and rustfmt refuses a long line only in nightly builds.
"""

import argparse
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
#: The words, and what is written instead.
WORDS = {
    "is no": (r"\b(?:is|are|was|were) no\b(?! (?:longer|better|more|less|worse|faster)\b)", "is not a, has no"),
    "is none": (r"\b(?:is|are|was|were) none\b", "is not one, there are none"),
    "anew": (r"\banew\b", "again, re-"),
    "goes on": (r"\b(?:go|goes|going|gone|went) on\b", "continues, resumes"),
    "lies": (r"\b(?:lie|lies|lay|lain|lying)\b", "is, is stored"),
    "stands": (r"\b(?:stand|stands|stood|standing)\b", "is, is listed"),
    "tells": (r"\b(?:tell|tells|told|telling)\b", "shows, reports, distinguishes"),
    "beside": (r"\bbeside\b", "next to, with, in addition to"),
    "says": (r"\b(?:say|says|said|saying)\b", "prints, reports, states"),
    "at hand": (r"\bat hand\b", "available, current"),
    "whoever": (r"\bwhoever\b", "who, everyone who, the user"),
    # Not the code `for word in words {`.
    "in words": (r"\bin words\b(?!\s*[\[{:\]])", "as text"),
    "hence": (r"\b(?:hence|thereof|therein|aloud)\b", "so, of this, in this, with a message"),
}
#: How many uses of all words together a kind of file may have.
LIMITS = {"rs": 14, "md": 3, "other": 14}
#: Columns of a line of prose, and of a comment.
COLUMNS = 120
#: What begins a comment, by the end of a file's name. Commands in presets are long, so TOML is not here.
COMMENTS = {".rs": r"//[/!]?", ".py": "#(?!!)", ".sh": "#(?!!)"}
#: How many names of public types occur twice in a crate, and how many public functions are named so.
NAME_LIMITS = {"types": 0, "functions": 0}
#: How many parameters are tuples of different kinds: a struct, or a parameter each, is clearer.
TUPLE_LIMIT = 0
#: How many tuples of different kinds are in lists, options or fields that other files see.
NESTED_LIMIT = 26
#: Function names that do not say what is returned or done.
VAGUE = ("of", "on", "one", "told", "said", "asked", "judge", "judged", "keep", "ask", "found", "said_once", "words")
#: Type names that do not say what the type is.
VAGUE_TYPES = ("Found", "Said", "Standing", "Asked", "Voices", "Told")
#: Names of modules that do not say what is in the file.
VAGUE_MODULES = ("apart", "ahead", "crowd", "guard", "words", "found", "pace", "desk", "weigh", "within")
#: A type with two versions for two builds, of which one is compiled.
TWO_BUILDS = {("remote", "Object")}


def files():
    """Every file that is, or would be, in the repository; in a copy without Git all but built ones."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT, capture_output=True, text=True,
    )
    if listed.returncode == 0:
        names = listed.stdout.splitlines()
    else:
        names = [str(p.relative_to(ROOT)) for p in ROOT.rglob("*") if p.is_file()]
        names = [name for name in names if not name.startswith((".", "target", "dist", "runs"))]
    return sorted(name for name in set(names) if (ROOT / name).is_file())


def kind(name):
    """The kind of a file, or None where its words are not ours."""
    if name == "scripts/words.py" or "/vendor/" in name or "/golden/" in name or name.endswith("openseadragon.js"):
        return None
    suffix = Path(name).suffix
    if suffix in (".rs", ".md"):
        return suffix[1:]
    if suffix in (".py", ".sh", ".toml", ".txt", ".html", ".js", ".css", ".yml") and name != "Cargo.lock":
        return "other"
    return None


def count(text, code=False):
    """`{word: number of uses}` of a text; with `code`, the operator `is None` of Python is not a word."""
    if code:
        text = re.sub(r"\bis None\b", "", text)
    found = {word: len(re.findall(pattern, text, re.I)) for word, (pattern, _) in WORDS.items()}
    return Counter({word: n for word, n in found.items() if n})


def long_lines(text):
    """`(line, columns)` of prose over COLUMNS: not code, tables, headings or lines of one link."""
    faults, fence = [], None
    for number, line in enumerate(text.splitlines(), 1):
        mark = re.match(r"\s*(```+|~~~+)", line)
        if mark and (fence is None or mark[1].startswith(fence)):
            fence = None if fence else mark[1]
        elif fence is None and len(line) > COLUMNS:
            words = re.sub(r"^\s*(?:[-*>]|\d+\.)?\s*", "", line)
            if not line.lstrip().startswith(("|", "#", "<", "!")) and len(words.split()) > 1:
                faults.append((number, len(line)))
    return faults


def long_comments(text, mark):
    """`(line, columns)` of comments over COLUMNS: not tables, fenced blocks or comments of one word."""
    faults, fence = [], False
    for number, line in enumerate(text.splitlines(), 1):
        comment = re.match(rf"\s*{mark}(.*)$", line)
        words = comment[1].strip() if comment else ""
        if not comment:
            fence = False
        elif words.startswith("```"):
            fence = not fence
        elif len(line) > COLUMNS and not fence and not words.startswith("|") and len(words.split()) > 1:
            faults.append((number, len(line)))
    return faults


def long_strings(text):
    """`(line, columns)` of a TOML file's texts of several lines over COLUMNS."""
    faults, inside = [], False
    for number, line in enumerate(text.splitlines(), 1):
        if (inside or line.endswith('"""')) and len(line) > COLUMNS and "{" not in line:
            faults.append((number, len(line)))
        inside ^= line.count('"""') % 2 == 1
    return faults


def public_names(sources):
    """`(types, functions)` of `{file name: text}`: names that occur twice in a crate, and vague function names."""
    places, functions = {}, []
    for name, text in sources.items():
        crate, _, path = name.removeprefix("crates/").partition("/")
        # The command line is a program: nothing outside sees its types.
        if not path.startswith("src/") or path.startswith("src/main.rs") or crate == "cli":
            continue
        for word in re.findall(r"^\s*pub (?:unsafe )?(?:struct|enum|trait|type) (\w+)", text, re.M):
            if word != "Result" and (crate, word) not in TWO_BUILDS:
                places.setdefault((crate, word), set()).add(name)
        if "/tests" in path:
            continue
        code = text.split("#[cfg(test)]\nmod tests")[0]
        functions += [f"{name}: {w}" for w in re.findall(r"^ *[\w() ]*\bfn (\w+)", code, re.M) if w in VAGUE]
        names = re.findall(r"^ *[\w() ]*\b(?:struct|enum|trait|type) (\w+)", code, re.M)
        functions += [f"{name}: {w}" for w in names if w in VAGUE_TYPES]
        modules = re.findall(r"^ *(?:pub(?:\([\w ]+\))? )?mod (\w+);", code, re.M)
        functions += [f"{name}: module {w}" for w in modules if w in VAGUE_MODULES]
    twice = [f"{c}: {w} in {', '.join(sorted(at))}" for (c, w), at in sorted(places.items()) if len(at) > 1]
    return twice, functions


def parts(text):
    """The items of a list between brackets, split at commas outside of inner brackets."""
    found, depth, item = [], 0, ""
    for i, letter in enumerate(text):
        if letter in "([{<":
            depth += 1
        elif letter in ")]}" or (letter == ">" and text[i - 1] not in "-="):
            depth -= 1
        if letter == "," and depth == 0:
            found.append(item.strip())
            item = ""
        else:
            item += letter
    return [*found, item.strip()] if item.strip() else found


def bracket(text, start):
    """Where the bracket that opens at `start` is closed."""
    depth = 0
    for i in range(start, len(text)):
        if text[i] in "(<":
            depth += 1
        elif text[i] == ")" or (text[i] == ">" and text[i - 1] not in "-="):
            depth -= 1
        if depth == 0:
            return i
    return len(text)


def tuple_parameters(name, text):
    """`file: function (types)` of parameters that are tuples of different kinds; pairs of one kind are fine."""
    faults = []
    text = text.split("#[cfg(test)]\nmod tests")[0]
    for match in re.finditer(r"^ *(?:pub(?:\([\w: ]+\))? )?(?:const |async |unsafe )*fn (\w+)", text, re.M):
        at = match.end()
        if text[at] == "<":
            at = bracket(text, at) + 1
        inside = re.sub(r"//.*", "", text[at + 1 : bracket(text, at)])
        for parameter in parts(inside):
            kind = re.sub(r"^\([^)]*\)|^[^:(]*", "", parameter, count=1).lstrip(": ")
            kind = re.sub(r"^&(?:'\w+ )?(?:mut )?", "", kind)
            kinds = parts(kind[1:-1]) if kind.startswith("(") and kind.endswith(")") else []
            # `From` of a tuple is the form of a list for serde.
            if match[1] != "from" and len(kinds) > 1 and not (len(kinds) == 2 and kinds[0] == kinds[1]):
                faults.append(f"{name}: {match[1]} ({', '.join(kinds)})")
    return faults


def tuple_types(kind):
    """Every tuple of several kinds within the text of a type; what a closure or an iterator takes or gives is no field."""
    faults, i = [], 0
    while i < len(kind):
        if kind[i] != "(":
            i += 1
            continue
        end = bracket(kind, i)
        kinds = parts(kind[i + 1 : end])
        own = not re.search(r"(?:\bfn|\bFn|FnMut|FnOnce|Item = )$", kind[:i])
        texts = all(re.fullmatch(r"&?(?:'\w+ )?(?:mut )?(?:String|str)", k) for k in kinds)
        if own and len(kinds) > 1 and not (len(kinds) == 2 and (kinds[0] == kinds[1] or texts)):
            faults.append(", ".join(kinds))
        for k in kinds:
            faults += tuple_types(k)
        i = end + 1
    return faults


def nested_tuples(name, text):
    """`file: name (types)` of tuples of different kinds that other files see: in lists and options of parameters and of
    results, and in fields. What a function gives as one tuple has names where it is taken."""
    text = re.sub(r"//[^\n]*", "", text.split("#[cfg(test)]\nmod tests")[0])
    text = re.sub(r'"(?:[^"\\]|\\.)*"', '""', text)
    found = []
    for match in re.finditer(r"^ *pub(?:\([\w: ]+\))? (?:const |async |unsafe )*fn (\w+)", text, re.M):
        at = match.end()
        if text[at] == "<":
            at = bracket(text, at) + 1
        end = bracket(text, at)
        types = [re.sub(r"^[^:(]*:|^\([^)]*\)\s*:", "", p, count=1).strip() for p in parts(text[at + 1 : end])]
        result = re.match(r"\s*->\s*(.*?)\s*(?:\bwhere\b|[{;])", text[end + 1 :], re.S)
        result = result[1] if result else ""
        while (inner := re.fullmatch(r"(?:std::result::)?(?:Result|Option)<(.*)>", result, re.S)) is not None:
            result = parts(inner[1])[0]
        whole = result.startswith("(") and bracket(result, 0) == len(result) - 1
        types += parts(result[1:-1]) if whole else [result]
        found += [(match[1], t) for kind in types for t in tuple_types(kind)]
    for match in re.finditer(r"^ *pub(?:\([\w: ]+\))? (?:const|static) (\w+): ([^=]*)=", text, re.M):
        found += [(match[1], t) for t in tuple_types(match[2])]
    for match in re.finditer(r"^ *pub(?:\([\w: ]+\))? (\w+): ([^\n]*?),?$", text, re.M):
        found += [(match[1], t) for t in tuple_types(match[2])]
    return [f"{name}: {item} ({kinds})" for item, kinds in found]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--check", action="store_true", help="fail above a limit")
    parser.add_argument("--by-folder", action="store_true", help="a row per crate or folder")
    parser.add_argument("--list", metavar="WORD", help="print the lines with a word, or with `all`; or `tuples`")
    parser.add_argument("paths", nargs="*", help="only files whose name begins so")
    a = parser.parse_args()
    kinds, folders, faults, sources = {}, {}, [], {}
    for name in files():
        sort = kind(name)
        if sort is None or (a.paths and not name.startswith(tuple(a.paths))):
            continue
        text = (ROOT / name).read_text(encoding="utf-8", errors="replace")
        found = count(text, name.endswith(".py"))
        if name.endswith(".rs"):
            sources[name] = text
        kinds.setdefault(sort, Counter()).update(found)
        parts = name.split("/")
        folder = "/".join(parts[:2]) if len(parts) > 2 else parts[0]
        folders.setdefault(f"{folder} ({sort})", Counter()).update(found)
        if a.list:
            patterns = [p for w, (p, _) in WORDS.items() if a.list in (w, "all")]
            for number, line in enumerate(text.splitlines(), 1):
                if any(re.search(p, line, re.I) for p in patterns):
                    print(f"{name}:{number}:{line}")
        if sort == "md":
            faults += [f"{name}:{n}: a line of prose of {c} columns, more than {COLUMNS}" for n, c in long_lines(text)]
        elif Path(name).suffix in COMMENTS:
            long = long_comments(text, COMMENTS[Path(name).suffix])
            faults += [f"{name}:{n}: a comment of {c} columns, more than {COLUMNS}" for n, c in long]
        if name.endswith(".toml"):
            faults += [f"{name}:{n}: a text of {c} columns, more than {COLUMNS}" for n, c in long_strings(text)]
    if not a.list:
        head = f"{'':28}" + "".join(f"{word:>9}" for word in WORDS) + f"{'all':>9}"
        print(head)
        for title, found in sorted((folders if a.by_folder else kinds).items()):
            print(f"{title:28}" + "".join(f"{found[w]:9}" for w in WORDS) + f"{sum(found.values()):9}")
    twice, vague = public_names(sources)
    tuples = [t for name, text in sources.items() if "/src/" in name and "tests" not in name for t in tuple_parameters(name, text)]
    nested = [t for name, text in sources.items() if "/src/" in name and "tests" not in name for t in nested_tuples(name, text)]
    if a.list == "tuples":
        print("\n".join(tuples + nested))
    if not a.list:
        print(f"tuples of different kinds as parameters: {len(tuples)}; in lists and fields: {len(nested)}")
        print(f"names of public types that occur twice in a crate: {len(twice)}; vague names: {len(vague)}")
    if a.check:
        if len(tuples) > TUPLE_LIMIT:
            faults.append(f"{len(tuples)} tuples as parameters, more than {TUPLE_LIMIT}; scripts/words.py --list tuples")
        if len(nested) > NESTED_LIMIT:
            faults.append(f"{len(nested)} tuples in lists and fields, more than {NESTED_LIMIT}; scripts/words.py --list tuples")
        for sort, found in (("types", twice), ("functions", vague)):
            if len(found) > NAME_LIMITS[sort]:
                faults.append(f"{len(found)} names of {sort}, more than {NAME_LIMITS[sort]}: {'; '.join(found)}")
        for sort, found in kinds.items():
            if sum(found.values()) > LIMITS[sort]:
                faults.append(
                    f"{sum(found.values())} uses in {sort} files, more than {LIMITS[sort]}; "
                    f"see them with scripts/words.py --list all"
                )
        for fault in faults:
            print(f"FAULT {fault}")
        sys.exit(bool(faults))


if __name__ == "__main__":
    main()
