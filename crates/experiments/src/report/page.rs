//! The report as pages.

use super::figure::Drawn;
use super::table::{Cell, Column, Table};
use super::{Comparison, Results};
use crate::run::RunNote;
use crate::spec::Experiment;
use pages::{Page, Script, escape};
use std::fmt::Write as _;

const STYLE: &str = include_str!("style.css");

/// The page of one experiment.
pub(super) fn experiment(e: &Experiment, r: &Results, figures: &[Drawn]) -> String {
    let mut b = format!("<main class=\"report\"><h1>{}</h1>\n", escape(&e.title));
    let _ = writeln!(b, "<p class=\"soft\">{}</p>", escape(e.about.trim()));
    for item in &e.paper {
        let [from, to] = item.lines;
        let _ =
            writeln!(b, "<p class=\"soft\">paper: {}, lines {from}-{to}</p>", escape(&item.label));
    }
    if r.run.shrink {
        b.push_str("<p class=\"note\">This is the shrink: drawn slides and tiny networks. Its numbers show that every step works, and nothing else.</p>\n");
    }
    r.tables.iter().for_each(|t| table(&mut b, t));
    for f in figures {
        let _ = write!(b, "<section class=\"card\"><h2>{}</h2>", escape(&f.title));
        match (&f.missing, f.shown().as_slice()) {
            (None, shown @ [_, ..]) => {
                b.push_str("<figure>");
                for file in shown {
                    let (file, title) = (escape(file), escape(&f.title));
                    let _ = write!(b, "<img src=\"{file}\" alt=\"{title}\">");
                }
                b.push_str("</figure>");
                let links = f.files.iter().map(|n| format!("<a href=\"{0}\">{0}</a>", escape(n)));
                b.push_str(&links.collect::<Vec<_>>().join(" "));
            }
            (why, _) => {
                let _ = write!(
                    b,
                    "<p class=\"soft\">missing: {}</p>",
                    escape(why.as_deref().unwrap_or(""))
                );
            }
        }
        b.push_str("</section>\n");
    }
    r.comparisons.iter().for_each(|c| comparison(&mut b, c));
    steps(&mut b, r);
    machine(&mut b, &r.run);
    b.push_str("</main>\n");
    Page { title: &e.title, style: STYLE, body: &b, script: Script::None }.html()
}

fn table(b: &mut String, t: &Table) {
    let _ = write!(b, "<section class=\"card\"><h2>{}</h2>", escape(&t.title));
    if let Some([from, to]) = t.lines {
        let _ = write!(
            b,
            "<p class=\"soft\">second line of a cell: the paper (lines {from}-{to}) and the difference</p>"
        );
    }
    b.push_str("<div class=\"scroll\"><table><tr>");
    for title in t.head.iter().chain(t.columns.iter().map(|c| &c.title)) {
        let _ = write!(b, "<th>{}</th>", escape(title));
    }
    b.push_str("</tr>\n");
    let mut group = None;
    for row in &t.rows {
        if row.group.is_some() && row.group != group {
            group.clone_from(&row.group);
            let width = t.head.len() + t.columns.len();
            let title = escape(group.as_deref().unwrap_or_default());
            let _ = writeln!(b, "<tr class=\"group\"><td colspan=\"{width}\">{title}</td></tr>");
        }
        b.push_str("<tr>");
        for lead in &row.lead {
            let _ = write!(b, "<td>{}</td>", escape(lead));
        }
        for (cell, column) in row.cells.iter().zip(&t.columns) {
            let _ = write!(b, "<td>{}</td>", format_cell(cell, column));
        }
        b.push_str("</tr>\n");
    }
    let id = escape(&t.id);
    let _ = writeln!(
        b,
        "</table></div><p><a href=\"{id}.csv\">{id}.csv</a> <a href=\"{id}.tex\">{id}.tex</a></p></section>"
    );
}

fn format_cell(cell: &Cell, column: &Column) -> String {
    let digits = column.digits;
    let mut out = match (&cell.ours, &cell.missing) {
        (Some(v), _) => v.text(digits),
        (None, Some(why)) => format!("<span class=\"why\">missing: {}</span>", escape(why)),
        (None, None) => "not defined".into(),
    };
    if let Some(p) = cell.paper {
        let difference = cell.difference.map_or_else(String::new, |d| format!(" ({d:+.digits$})"));
        let _ = write!(out, "<span class=\"paper\">paper {}{difference}</span>", p.text(digits));
    }
    let over = column.over.as_deref().unwrap_or("fold");
    let folds = cell.ours.and_then(|v| v.folds).map(|n| format!("{n} {over}s"));
    let items = cell.items.map(|n| format!("{n} items"));
    let measured: Vec<String> = [folds, items].into_iter().flatten().collect();
    if !measured.is_empty() {
        let _ = write!(out, "<span class=\"paper\">{}</span>", measured.join(", "));
    }
    out
}

fn comparison(b: &mut String, c: &Comparison) {
    let _ = writeln!(
        b,
        "<section class=\"card\"><h2>{}</h2><p class=\"soft\">{} of {} less that of each row, mean over folds; slides drawn 2,000 times with replacement; p two-sided, Holm's correction over the rows</p><table><tr><th>Row</th><th>Difference</th><th>95 % interval</th><th>p</th><th>Holm</th><th>Slides</th></tr>",
        escape(&c.title),
        escape(&c.metric),
        escape(&c.reference)
    );
    for p in &c.pairs {
        let row = escape(&p.row);
        match (p.difference, p.interval, p.p, p.holm) {
            (Some(d), Some([low, high]), Some(q), Some(holm)) => {
                let _ = writeln!(
                    b,
                    "<tr><td>{row}</td><td>{d:+.3}</td><td>{low:+.3} to {high:+.3}</td><td>{q:.4}</td><td>{holm:.4}</td><td>{}</td></tr>",
                    p.slides
                );
            }
            _ => {
                let why = escape(p.missing.as_deref().unwrap_or("not tested"));
                let _ = writeln!(
                    b,
                    "<tr><td>{row}</td><td colspan=\"5\" class=\"soft\">missing: {why}</td></tr>"
                );
            }
        }
    }
    b.push_str("</table></section>\n");
}

fn steps(b: &mut String, r: &Results) {
    let done = r.steps.iter().filter(|s| s.state == "done").count();
    let seconds: f64 = r.steps.iter().map(|s| s.seconds).sum();
    let worked: f64 = r.steps.iter().filter_map(|s| s.processor_seconds).sum();
    let _ = writeln!(
        b,
        "<section class=\"card\"><h2>Steps: {done} of {} done, {seconds:.0} s in all, {:.2} hours of one processor core</h2><table><tr><th>Step</th><th>State</th><th>Seconds</th><th>On processors, s</th><th>Memory, MiB</th><th>Digest</th></tr>",
        r.steps.len(),
        worked / 3600.0
    );
    for s in &r.steps {
        let reason = s.reason.as_ref().map_or_else(String::new, |w| format!(": {}", escape(w)));
        let memory = s.peak_mib.map_or_else(String::new, |m| m.to_string());
        let digest = s.digest.as_ref().map_or("", |d| d.get(..12).unwrap_or(d));
        let worked = s.processor_seconds.map_or_else(String::new, |s| format!("{s:.1}"));
        let _ = writeln!(
            b,
            "<tr><td>{}</td><td class=\"{}\">{}{reason}</td><td>{:.1}</td><td>{worked}</td><td>{memory}</td><td><code>{digest}</code></td></tr>",
            escape(&s.name),
            s.state,
            s.state,
            s.seconds
        );
    }
    b.push_str("</table></section>\n");
}

fn machine(b: &mut String, n: &RunNote) {
    let path = |p: &Option<std::path::PathBuf>| {
        p.as_ref().map_or_else(|| "not given".to_owned(), |p| escape(&p.display().to_string()))
    };
    let _ = writeln!(
        b,
        "<section class=\"card\"><h2>Run</h2><dl><dt>program</dt><dd>{}</dd><dt>processor</dt><dd>{}, {} threads</dd><dt>memory</dt><dd>{:.1} GiB</dd><dt>device</dt><dd>{}</dd><dt>data</dt><dd>{}</dd><dt>encoders</dt><dd>{}</dd></dl></section>",
        escape(&n.program),
        escape(&n.processor),
        n.threads,
        n.memory_gib,
        escape(&n.device),
        path(&n.data),
        path(&n.encoders)
    );
}

/// An experiment with what it gave.
pub(super) struct Reported {
    pub(super) experiment: Experiment,
    pub(super) results: Results,
}

/// The page that leads to all experiments of a run.
pub(super) fn index(all: &[Reported], note: &RunNote) -> String {
    let title = if note.shrink { "Experiments (shrink)" } else { "Experiments" };
    let mut b = format!(
        "<main class=\"report\"><h1>{title}</h1><section class=\"card\"><table><tr><th>Experiment</th><th>Steps done</th><th>Cells with a value</th></tr>\n"
    );
    for Reported { experiment: e, results: r } in all {
        let done = r.steps.iter().filter(|s| s.state == "done").count();
        let cells: Vec<&Cell> =
            r.tables.iter().flat_map(|t| &t.rows).flat_map(|row| &row.cells).collect();
        let there = cells.iter().filter(|c| c.ours.is_some()).count();
        let id = escape(&e.id);
        let _ = writeln!(
            b,
            "<tr><td><a href=\"{id}/index.html\">{id}</a>: {}</td><td>{done} of {}</td><td>{there} of {}</td></tr>",
            escape(&e.title),
            r.steps.len(),
            cells.len()
        );
    }
    b.push_str("</table></section>\n");
    machine(&mut b, note);
    b.push_str("</main>\n");
    Page { title, style: STYLE, body: &b, script: Script::None }.html()
}
