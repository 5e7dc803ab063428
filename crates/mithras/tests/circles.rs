//! No circle of imports between files: each can be read after those that it uses.
//!
//! Read from the text: paths that begin with `crate`, `super`, `self` or the name of a child module, in `use` lines
//! and inside functions, followed through re-exports to the file that holds the item. A parent that declares and
//! re-exports a child does not use it; one that calls it, or names in its own code what it re-exports, does.
//! The compiler allows circles within a crate, and no lint looks for them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// Files of one crate by module path (`["job", "task"]`), the root being empty.
type Modules = BTreeMap<Vec<String>, File>;

struct File {
    path: PathBuf,
    /// Imports outside tests: the path from the root, and whether it is a re-export with this name.
    uses: Vec<(Vec<String>, Option<String>)>,
    /// Names of child modules.
    children: BTreeSet<String>,
}

fn sources(folder: &Path, at: &[String], all: &mut Vec<(Vec<String>, PathBuf)>) {
    for entry in std::fs::read_dir(folder).expect("a folder").flatten() {
        let path = entry.path();
        let stem = path.file_stem().expect("a name").to_string_lossy().into_owned();
        let mut module = at.to_vec();
        if path.is_dir() {
            module.push(stem);
            sources(&path, &module, all);
        } else if path.extension().is_some_and(|e| e == "rs") && stem != "tests" {
            if !["lib", "main", "mod"].contains(&stem.as_str()) {
                module.push(stem);
            }
            all.push((module, path));
        }
    }
}

/// The text without comments, strings' contents being of no matter, and without inline test modules.
fn code(path: &Path) -> String {
    let text = std::fs::read_to_string(path).expect("a source file");
    let body = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
    let lines = body.lines().filter(|l| !l.trim_start().starts_with("//"));
    lines.fold(String::new(), |text, line| text + "\n" + line)
}

/// `a::{b, c::{d, e}}` as `a::b`, `a::c::d`, `a::c::e`, each with the name that it gets.
fn spread(tree: &str, before: &[String], out: &mut Vec<(Vec<String>, String)>) {
    let tree = tree.trim();
    if let Some(open) = tree.find('{') {
        let mut path = before.to_vec();
        path.extend(segments(&tree[..open]));
        let inner = &tree[open + 1..tree.rfind('}').unwrap_or(tree.len())];
        let (mut depth, mut start) = (0, 0);
        for (i, c) in inner.char_indices().chain([(inner.len(), ',')]) {
            match c {
                '{' => depth += 1,
                '}' => depth -= 1,
                ',' if depth == 0 => {
                    if !inner[start..i].trim().is_empty() {
                        spread(&inner[start..i], &path, out);
                    }
                    start = (i + 1).min(inner.len());
                }
                _ => {}
            }
        }
        return;
    }
    let (path, name) = tree.split_once(" as ").map_or((tree, None), |(p, n)| (p, Some(n.trim())));
    let mut all = before.to_vec();
    all.extend(segments(path));
    let last = all.last().cloned().unwrap_or_default();
    if last == "self" {
        all.pop();
    }
    let name = name.map_or_else(|| all.last().cloned().unwrap_or_default(), str::to_owned);
    out.push((all, name));
}

fn segments(path: &str) -> impl Iterator<Item = String> + '_ {
    path.split("::").map(str::trim).filter(|s| !s.is_empty()).map(str::to_owned)
}

/// A path from the crate's root; none of another crate.
fn absolute(
    path: Vec<String>,
    module: &[String],
    children: &BTreeSet<String>,
) -> Option<Vec<String>> {
    let mut from = module.to_vec();
    let mut path = path.into_iter().peekable();
    match path.peek().map(String::as_str) {
        Some("crate") => {
            from.clear();
            path.next();
        }
        Some("self") => drop(path.next()),
        Some("super") => {
            while path.peek().is_some_and(|s| s == "super") {
                path.next();
                from.pop();
            }
        }
        // A child of this module, or another crate.
        Some(first) if children.contains(first) => {}
        _ => return None,
    }
    from.extend(path);
    Some(from)
}

/// Whether a line begins a `use` of the file, which is read elsewhere; one inside a function is not.
fn is_use(line: &str) -> bool {
    let line = line.strip_prefix("pub").unwrap_or(line).trim_start();
    let line = line.strip_prefix('(').and_then(|l| l.split_once(')')).map_or(line, |(_, l)| l);
    line.trim_start().starts_with("use ")
}

/// Paths from `crate`, `super` or a child in the code itself. In an inline module `super` is the file, so its paths
/// from there are left out.
fn inline_paths(text: &str, children: &BTreeSet<String>) -> Vec<Vec<String>> {
    let (mut inside, mut found) = (false, Vec::new());
    let starts: Vec<String> = ["crate", "super", "self"]
        .into_iter()
        .chain(children.iter().map(String::as_str))
        .map(|first| format!("{first}::"))
        .collect();
    for line in text.lines() {
        inside = match inside {
            false => !line.starts_with(' ') && line.contains("mod ") && line.ends_with('{'),
            true => line != "}",
        };
        let ours = |at: usize| {
            let before = &line[..at];
            let joined = |c: char| c.is_alphanumeric() || matches!(c, '_' | ':' | '$');
            !before.ends_with(joined) && !before.ends_with("in ") && !is_use(before)
        };
        for start in starts.iter().filter(|w| *w == "crate::" || !inside) {
            for (at, _) in line.match_indices(start.as_str()).filter(|(at, _)| ours(*at)) {
                let name = |c: char| !(c.is_alphanumeric() || matches!(c, '_' | ':'));
                let path = &line[at..];
                found.push(segments(&path[..path.find(name).unwrap_or(path.len())]).collect());
            }
        }
    }
    found
}

/// The text without its `use` and `mod` lines and without what is between quotation marks.
fn body(text: &str) -> String {
    let (mut rest, mut inside) = (String::new(), false);
    for line in text.lines() {
        inside |= is_use(line);
        if inside {
            inside = !line.contains(';');
        } else if !(line.contains("mod ") && line.ends_with(';')) {
            rest.extend(line.split('"').step_by(2));
            rest.push('\n');
        }
    }
    rest
}

/// Whether the text has `name` as a type, or calls it.
fn is_named(text: &str, name: &str) -> bool {
    let word = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_');
    let function = name.starts_with(char::is_lowercase);
    text.match_indices(name).any(|(at, _)| {
        let (before, after) = (&text[..at], &text[at + name.len()..]);
        let whole = !word(before.chars().next_back()) && !word(after.chars().next());
        let own = [".", "fn ", "::"].iter().any(|b| before.ends_with(b));
        whole && (!function || after.starts_with('(') && !own)
    })
}

fn read(root: &Path) -> Modules {
    let mut all = Vec::new();
    sources(root, &[], &mut all);
    let names: BTreeSet<Vec<String>> = all.iter().map(|(m, _)| m.clone()).collect();
    let mut modules = Modules::new();
    for (module, path) in all {
        let children: BTreeSet<String> = names
            .iter()
            .filter(|m| m.len() == module.len() + 1 && m.starts_with(&module))
            .map(|m| m[module.len()].clone())
            .collect();
        let mut uses = Vec::new();
        let text = code(&path);
        for statement in text.split(';') {
            let Some(at) = ["pub use ", "pub(crate) use ", "pub(super) use ", "use "]
                .iter()
                .find_map(|w| statement.rfind(&format!("\n{w}")).map(|i| (i + 1, w.len(), *w)))
            else {
                continue;
            };
            let tree = &statement[at.0 + at.1..];
            let mut spreads = Vec::new();
            spread(tree, &[], &mut spreads);
            for (path, name) in spreads {
                if let Some(from) = absolute(path, &module, &children) {
                    uses.push((from, (at.2 != "use ").then_some(name)));
                }
            }
        }
        // What a parent re-exports and names itself, it uses.
        let own = body(&text);
        let named = uses.iter().filter(|(_, n)| n.as_ref().is_some_and(|n| is_named(&own, n)));
        let named: Vec<_> = named.map(|(path, _)| (path.clone(), None)).collect();
        let inline = inline_paths(&text, &children);
        let inline = inline.into_iter().filter_map(|path| absolute(path, &module, &children));
        uses.extend(named.into_iter().chain(inline.map(|path| (path, None))));
        modules.insert(module, File { path, uses, children });
    }
    modules
}

/// The file that holds what `path` names: the longest module on it, and from there through
/// re-exports.
fn holder(modules: &Modules, path: &[String], depth: usize) -> Option<Vec<String>> {
    let known = (0..=path.len()).rev().find(|&n| modules.contains_key(&path[..n]))?;
    let module = &path[..known];
    let Some(item) = path.get(known) else { return Some(module.to_vec()) };
    let file = &modules[module];
    let through = file.uses.iter().find(|(_, name)| name.as_deref() == Some(item));
    let Some((to, _)) = through else {
        // A glob may bring it.
        let glob =
            file.uses.iter().find(|(to, n)| n.is_some() && to.last().is_some_and(|l| l == "*"));
        return Some(glob.map_or_else(|| module.to_vec(), |(to, _)| to[..to.len() - 1].to_vec()));
    };
    if depth > 8 {
        return Some(module.to_vec());
    }
    holder(modules, to, depth + 1)
}

fn edges(modules: &Modules) -> BTreeMap<Vec<String>, BTreeSet<Vec<String>>> {
    let mut all = BTreeMap::new();
    for (module, file) in modules {
        let mut to = BTreeSet::new();
        for (path, name) in &file.uses {
            // A re-export of a child is not a use of it.
            let child = path.len() > module.len()
                && path.starts_with(module)
                && file.children.contains(&path[module.len()]);
            if name.is_some() && child {
                continue;
            }
            to.extend(holder(modules, path, 0).filter(|h| h != module));
        }
        all.insert(module.clone(), to);
    }
    all
}

/// Groups of files that reach each other.
fn circles<T: Ord + Clone>(edges: &BTreeMap<T, BTreeSet<T>>) -> BTreeSet<BTreeSet<T>> {
    let reach = |from: &T| {
        let (mut seen, mut open) = (BTreeSet::new(), vec![from.clone()]);
        while let Some(at) = open.pop() {
            for next in edges.get(&at).into_iter().flatten() {
                if seen.insert(next.clone()) {
                    open.push(next.clone());
                }
            }
        }
        seen
    };
    let reached: BTreeMap<&T, BTreeSet<T>> = edges.keys().map(|k| (k, reach(k))).collect();
    let circle = |k: &T| -> BTreeSet<T> {
        let back = |o: &&T| reached.get(*o).is_some_and(|r| r.contains(k));
        reached[k].iter().filter(back).cloned().collect()
    };
    edges.keys().map(circle).filter(|c| !c.is_empty()).collect()
}

/// The same between the folders and files side by side: an import joins the two branches
/// below the folder that both ends share.
fn branches(
    edges: &BTreeMap<Vec<String>, BTreeSet<Vec<String>>>,
) -> BTreeMap<Vec<String>, BTreeSet<Vec<String>>> {
    let mut all: BTreeMap<_, BTreeSet<_>> = BTreeMap::new();
    for (from, to) in edges.iter().flat_map(|(from, all)| all.iter().map(move |to| (from, to))) {
        let shared = from.iter().zip(to).take_while(|(a, b)| a == b).count();
        // Between a folder's own file and what is in the folder: circles of files.
        if shared < from.len() && shared < to.len() {
            all.entry(from[..=shared].to_vec()).or_default().insert(to[..=shared].to_vec());
        }
    }
    all
}

fn crates() -> Vec<PathBuf> {
    let folder = testkit::workspace().join("crates");
    let mut all: Vec<PathBuf> = std::fs::read_dir(folder)
        .expect("crates")
        .flatten()
        .map(|e| e.path().join("src"))
        .collect();
    all.sort();
    all
}

#[test]
fn no_circle_of_imports_between_files() {
    let mut found = Vec::new();
    for root in crates() {
        let modules = read(&root);
        for circle in circles(&edges(&modules)) {
            let files: Vec<String> = circle
                .iter()
                .map(|m| modules[m].path.strip_prefix(testkit::workspace()).unwrap().display())
                .map(|f| f.to_string())
                .collect();
            found.push(files.join(" <-> "));
        }
    }
    assert!(found.is_empty(), "{} circles of imports:\n{}", found.len(), found.join("\n"));
}

#[test]
fn no_circle_of_imports_between_folders() {
    let mut found = Vec::new();
    for root in crates() {
        let name = root.parent().unwrap().file_name().unwrap().to_string_lossy().into_owned();
        for circle in circles(&branches(&edges(&read(&root)))) {
            let parts: Vec<String> = circle.iter().map(|m| m.join("/")).collect();
            found.push(format!("{name}: {}", parts.join(" <-> ")));
        }
    }
    assert!(found.is_empty(), "{} circles of imports:\n{}", found.len(), found.join("\n"));
}

#[test]
fn a_circle_is_seen() {
    let dir = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        let path = dir.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    write("lib.rs", "//! Root.\nmod a;\nmod b;\npub use a::A;\npub use b::{self, B};\n");
    write("a.rs", "//! A.\nuse crate::B;\npub struct A(B);\n");
    write("b/mod.rs", "//! B.\nmod c;\npub use c::B;\n");
    write("b/c.rs", "//! C.\nuse std::path::Path;\npub struct B;\n");
    assert!(circles(&edges(&read(dir.path()))).is_empty(), "re-exports do not make a circle");
    for body in [
        "use crate::{A};\npub struct B(Option<Box<A>>);",
        "pub struct B(Option<Box<crate::A>>);",
        "pub fn b() -> super::super::a::A {\n}",
    ] {
        write("b/c.rs", &format!("//! C.\n{body}\n"));
        let found = circles(&edges(&read(dir.path())));
        assert_eq!(found.len(), 1, "{body}");
        assert!(found.iter().next().unwrap().contains(&vec!["b".to_owned(), "c".to_owned()]));
    }
    // A parent that calls a child, or names what it re-exports, uses it.
    write("b/c.rs", "//! C.\nuse super::D;\npub struct B(D);\npub fn f(d: D) {}\n");
    for (body, circle) in [
        ("pub struct D;", false),
        ("pub struct D;\nfn g() {\n    c::f(D);\n}", true),
        ("pub struct D;\nfn g() {\n    self::c::f(D);\n}", true),
        ("pub struct D;\nfn g(b: &B) {}", true),
    ] {
        write("b/mod.rs", &format!("//! B.\nmod c;\npub use c::B;\n{body}\n"));
        let found = circles(&edges(&read(dir.path())));
        assert_eq!(found.len(), usize::from(circle), "{body}");
    }
    write("b/mod.rs", "//! B.\nmod c;\npub use c::B;\n");
    // Of an inline module `super` is the file itself.
    write("b/c.rs", "//! C.\nmod d {\n    pub fn a() -> super::a::A {}\n}\npub struct B;\n");
    assert!(circles(&edges(&read(dir.path()))).is_empty());
}
