#!/usr/bin/env python3
"""`scripts/site.py` finds what it is there to find, on pages with one fault each."""

import importlib.util
import subprocess
import tempfile
import unittest
from pathlib import Path



def script(name):
    spec = importlib.util.spec_from_file_location(f"{name}_script", Path(__file__).with_name(f"{name}.py"))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


site, words = script("site"), script("words")

HELP = {
    (): "  -h, --help",
    ("detect",): "      --out <DIR>\n  -q, --quiet\n",
    ("corpus",): "",
    ("corpus", "import"): "--format --out",
    ("corpus", "split"): "--folds",
}


class Repository(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.root = Path(self.folder.name).resolve()
        subprocess.run(["git", "init", "-q"], cwd=self.root, check=True)
        for name in ("docs/tutorials", "presets", "scripts", "crates/x/src"):
            (self.root / name).mkdir(parents=True)
        self.write("docs/SUMMARY.md", "- [a](a.md)\n")
        self.write("docs/a.md", "# One `thing`, twice\n## Twice\n## Twice\n")
        # A substitute for the program: prints its arguments, and fails on request.
        self.write("bin/mithras", '#!/bin/sh\necho "ran $*"\n[ "$1" != fail ] || exit 1\n').chmod(0o755)

    def tearDown(self):
        self.folder.cleanup()

    def write(self, name, text):
        path = self.root / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return path

    def links(self, text):
        self.write("docs/b.md", text)
        return site.check_links(self.root, site.pages(self.root))

    def run_page(self, text, quick=False):
        page = self.write("docs/tutorials/t.md", text)
        return site.run_page(self.root, page, self.root / "bin", quick)

    def test_links_and_anchors(self):
        good = "[a](a.md#one-thing-twice) [b](#b) ![p](../bin/mithras) [t](a.md#twice-1)\n# B\n"
        self.assertEqual(self.links(good)[0], [])
        for bad in ("[a](gone.md)", "[a](a.md#gone)", "[a](../../etc)", '<img src="no.png">', "[a]: no.md"):
            self.assertEqual(len(self.links(bad)[0]), 1, bad)
        self.assertEqual(self.links("```\n[a](gone.md)\n```\n`[a](gone.md)`"), ([], []))
        self.assertEqual(self.links("see https://a.example/x.")[1], ["https://a.example/x"])
        self.assertEqual(len(self.links("in `docs/gone.md` and `docs/a.md`")[0]), 1)
        self.assertEqual(len(self.links("in `x/src/`, `x/src/gone/` and `other/src/a.rs`")[0]), 1)

    def test_what_sources_name(self):
        self.write("crates/x/src/lib.rs", "//! docs/a.md\n//! docs/gone.md\n")
        self.assertEqual(len(self.links("")[0]), 1)

    def test_every_verb_is_compared(self):
        root = Path(__file__).resolve().parent.parent
        jobs = [line.split() for line in (root / "scripts/compare_outputs.sh").read_text(encoding="utf-8").splitlines()]
        run = {" ".join(words) for words in jobs if words and words[0] in ("job", "served")}
        examples = (root / "crates/cli/src/examples.txt").read_text(encoding="utf-8").splitlines()
        asked = [line.split()[1:3] for line in examples if line.startswith("mithras ")]
        groups = {"audit", "bench", "corpus", "data", "detectors", "encoders", "evaluate", "experiment", "export", "slide", "survival"}
        verbs = {" ".join(words) if words[0] in groups else words[0] for words in asked if words}
        trains = ("detector segment finetune probe test package mine pseudo-label pretrain calibrate export").split()
        verbs |= {f"train {verb}" for verb in trains}
        missing = sorted(v for v in verbs if not any(f" {v} " in f"{line} " for line in run))
        self.assertEqual(missing, [])

    def test_every_page_is_in_the_summary(self):
        self.assertEqual(site.check_summary(self.root), [])
        self.write("docs/b.md", "")
        self.assertEqual(site.check_summary(self.root), ["docs/SUMMARY.md: b.md is not listed"])
        self.write("docs/SUMMARY.md", "- [a](a.md)\n- [b](b.md)\n<!-- notes -->\n")
        self.write("docs/notes/c.md", "# C\n")
        self.assertEqual(site.check_summary(self.root), [])
        self.write("docs/decisions/d.md", "# D\n")
        self.assertEqual(site.check_summary(self.root), ["docs/SUMMARY.md: decisions/d.md is not listed"])

    def test_decisions_have_all_parts(self):
        page = "docs/decisions/0007-a.md"
        self.write(page, "# 7. A\n\nB.\n\n**Reason.** C.\n\n**Rejected.** D.\n")
        self.assertEqual(site.check_decisions(self.root), [])
        for bad, fault in (
            ("# 7. A\n\n**Reason.** C.\n", "no part **Rejected.**"),
            ("# 7. A\n\n**Reason.** C.\n\n**Rejected.**\n", "no part **Rejected.**"),
            ("# 7. A\n\n**Rejected.** D.\n", "no part **Reason.**"),
            ("# 8. A\n\n**Reason.** C.\n\n**Rejected.** D.\n", "the title is not '# 7. ...'"),
        ):
            self.write(page, bad)
            self.assertEqual(site.check_decisions(self.root), [f"{page}: {fault}"])

    def test_packages_that_cargo_is_given(self):
        self.write("crates/x/Cargo.toml", '[package]\nname = "mithras-x"\n')
        page = self.write("docs/b.md", "`cargo test -p mithras-x`, `mkdir -p gone`, `cargo bench -p x`\n")
        self.assertEqual(site.check_packages(self.root, [page]), ["docs/b.md:1: cargo -p x: no such package"])
        self.write("crates/x/src/lib.rs", "//! cargo run -p gone\n")
        self.assertEqual(len(site.check_packages(self.root, [])), 1)

    def test_reports_name_cases_and_tests(self):
        self.write("scripts/oddities.py", '@case("A", "one odd")\ndef a(d):\nlayout("b", x=1)\n@dicom_case("A, B", "c")\n')
        self.write("crates/x/src/lib.rs", "fn it_is_read() {}\n")
        odd = "| what | file |\n|---|---|\n| one odd | `a` |\n| layout b | `b` |\n| c | `c` |\n"
        tables = "\n| what | test |\n|---|---|\n"

        def faults(text):
            self.write("docs/reports.md", text)
            return site.check_reports(self.root)

        for good in ("`it_is_read`", "`m::it_is_...`", "`it_is_read`, `lib::it_is_read`"):
            self.assertEqual(faults(f"{odd}{tables}| x | {good} |\n"), [], good)
        for bad in ("`it_is_rea`", "`gone_...`", "nothing"):
            self.assertEqual(len(faults(f"{odd}{tables}| x | {bad} |\n")), 1, bad)
        self.assertEqual(len(faults(odd.replace("| c |", "| d |"))), 2)
        self.assertEqual(len(faults(odd.replace("| layout b | `b` |\n", ""))), 1)

    def test_commands(self):
        def faults(line, known=HELP):
            page = self.write("docs/b.md", f"```sh\n{line}\n```\n")
            return site.check_commands(self.root, [page], known)

        for good in (
            "mithras detect a.svs --out DIR -- --gone",
            "mithras corpus import|split --folds 3",
            "mithras detect --out a && mithras corpus split \\\n  --folds 2   # --gone",
            "cargo run --release -- detect --quiet",
            "cargo run -p mithras-net --example bench -- mae 1",
            "mithras VERB --help",
        ):
            self.assertEqual(faults(good), [], good)
        for bad in ("mithras detekt", "mithras detect --outt a", "mithras corpus gone", "mithras corpus split --out"):
            self.assertEqual(len(faults(bad)), 1, bad)
        # A build without training cannot check its verbs.
        training = HELP | {("train",): "", ("train", "probe"): "--out"}
        self.assertEqual(faults("mithras train probe --gone"), [])
        self.assertEqual(len(faults("mithras train probe --gone", training)), 1)

    def test_commands_of_scripts(self):
        def faults(line):
            self.write("scripts/reproduce/a.sh", f"#!/bin/sh\n{line}\n")
            return site.check_commands(self.root, [], HELP)

        (self.root / "scripts/reproduce").mkdir(parents=True)
        for good in ("mithras detect a --out b", 'once "$a" mithras corpus split \\\n  --folds 2', "[ -e x ] || mithras detect -q"):
            self.assertEqual(faults(good), [], good)
        for bad in ("mithras detekt", "once x mithras detect --outt a", "mithras corpus split \\\n  --out a"):
            self.assertEqual(len(faults(bad)), 1, bad)

    def test_quoted_errors(self):
        self.write("crates/x/src/lib.rs", '"cannot read {path}: it is \\\n     \\"damaged\\""\n')
        code = site.sources(self.root)

        def faults(text):
            return site.check_errors(self.root, [self.write("docs/faq.md", text)], code)

        self.assertEqual(faults('```text sources\nerror: cannot read ...: it is "damaged"\n```'), [])
        self.assertEqual(len(faults("```text sources\ncannot open ...\n```")), 1)
        self.assertEqual(faults("```sh\nmithras\n```\n```text\nx\n```"), [])
        self.assertEqual(len(faults("```text\nx\n```")), 1)
        self.assertEqual(len(faults("```sh not-run\nmithras\n```\n```text\nx\n```")), 1)

    def test_tutorials(self):
        self.assertEqual(self.run_page("```sh\nmithras a\nls\n```\n```text\nran ...\n...\npresets\n```"), ([], False))
        for bad in (
            "```sh\nmithras a\n```\n```text\nran b\n```",
            "```sh\nmithras a\n```\n```text\n```",
            "```sh\nmithras a\n```\n```text\nran a\nmore\n```",
            "```sh\nmithras fail\n```",
            "```sh\nmithras fail | cat\n```",
            "```sh exit=1\nmithras a\n```",
        ):
            self.assertEqual(len(self.run_page(bad)[0]), 1, bad)
        self.assertEqual(self.run_page("```sh exit=1\nmithras fail\n```\n```sh not-run\nfalse\n```"), ([], False))
        slow = "```sh slow\nmithras fail\n```"
        self.assertEqual(self.run_page(slow, quick=True), ([], True))
        self.assertEqual(len(self.run_page(slow)[0]), 1)

    def test_words_and_long_lines(self):
        self.assertEqual(words.count("It is no slide, it tells us anew."), {"is no": 1, "tells": 1, "anew": 1})
        self.assertEqual(words.count("if it is None: it is none", code=True), {"is none": 1})
        self.assertEqual(words.count("It is no longer slow; understand the standard."), {})
        long = "word " * 30
        for allowed in (f"| {long} |", f"```\n{long}\n```", f"# {long}", "x" * 200, f"- {'x' * 200}"):
            self.assertEqual(words.long_lines(allowed), [], allowed)
        self.assertEqual(words.long_lines(f"a\n{long}"), [(2, 150)])
        self.assertEqual(words.long_lines(f"```\na\n```\n- {long}"), [(4, 152)])

    def test_long_comments(self):
        long = "word " * 30
        for code in (f"/// {long}", f"//! {long}", f"    // {long}"):
            self.assertEqual(words.long_comments(f"a\n{code}", words.COMMENTS[".rs"]), [(2, len(code))], code)
        for code in (f"let a = \"{long}\";", f"/// | {long} |", f"/// ```\n/// {long}\n/// ```", f"// {'x' * 200}"):
            self.assertEqual(words.long_comments(code, words.COMMENTS[".rs"]), [], code)
        # A fence that does not end hides nothing of the next comment.
        self.assertEqual(words.long_comments(f"// ```\na\n// {long}", words.COMMENTS[".rs"]), [(3, 153)])
        self.assertEqual(words.long_comments(f"#!{long}\n# {long}", words.COMMENTS[".sh"]), [(2, 152)])

    def test_names_of_types_and_functions(self):
        a, b = "pub struct Item;\npub fn of() {}\npub type Result<T> = T;\n", "    pub enum Item {}\npub fn off() {}\n"
        sources = {"crates/x/src/a.rs": a, "crates/x/src/b.rs": b, "crates/y/src/a.rs": a, "crates/x/tests/t.rs": a}
        twice, vague = words.public_names(sources)
        self.assertEqual(twice, ["x: Item in crates/x/src/a.rs, crates/x/src/b.rs"])
        self.assertEqual(vague, ["crates/x/src/a.rs: of", "crates/y/src/a.rs: of"])
        self.assertEqual(words.public_names({"crates/cli/src/a.rs": a, "crates/cli/src/b.rs": b}), ([], []))

    def test_tuples_as_parameters(self):
        text = (
            "pub fn a<T: Fn(u8) -> u8>((x, y): (u32, u32), f: T, (n, s): (usize, &str)) {}\n"
            "    fn b(&self, at: (u8, u8, u8), rest: &[(u8, i8)]) -> (u8, i8) {}\n"
            "fn c(e: &(dyn Error + 'static), f: impl Fn((u8, i8)), by: Vec<(u8, i8)>) {}\n"
        )
        wanted = ["x: a (usize, &str)", "x: b (u8, u8, u8)"]
        self.assertEqual(words.tuple_parameters("x", text), wanted)

    def test_a_block_without_an_end(self):
        with self.assertRaisesRegex(ValueError, "line 2"):
            site.split("a\n```sh\nb\n")


if __name__ == "__main__":
    unittest.main()
