//! The page of a cohort: a row per slide, sorted by any column.

use super::{Cohort, Looked};
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use pages::{Script, escape};
use std::fmt::Write;

const STYLE: &str = "
.quality img { display: block; max-width: 110px; max-height: 110px; }
.quality th button { font: inherit; color: inherit; border: 0; background: none; padding: 0; text-align: inherit; }
.quality th[aria-sort=ascending] button::after { content: ' \\25B2'; }
.quality th[aria-sort=descending] button::after { content: ' \\25BC'; }
.quality th { max-width: 8rem; }
.quality tbody th { min-width: 8rem; overflow-wrap: anywhere; }
.quality td:nth-child(3) { min-width: 16rem; }
";

/// Numbers are sorted as numbers, by the cell's `data-v`; what has none comes last.
const SCRIPT: &str = "
const table = document.querySelector('.quality table');
const body = table.tBodies[0];
const message = document.querySelector('[role=status]');
table.querySelectorAll('th button').forEach((button) => button.addEventListener('click', () => {
  const head = button.closest('th');
  const up = head.getAttribute('aria-sort') !== 'ascending';
  table.querySelectorAll('th').forEach((th) => th.removeAttribute('aria-sort'));
  head.setAttribute('aria-sort', up ? 'ascending' : 'descending');
  const value = (row) => row.cells[head.cellIndex].dataset.v ?? '';
  const rows = [...body.rows].map((row) => [value(row), row]);
  rows.sort(([a], [b]) => {
    if (a === '' || b === '') return (a === '') - (b === '');
    const order = Number.isNaN(+a) || Number.isNaN(+b) ? a.localeCompare(b) : a - b;
    return up ? order : -order;
  });
  rows.forEach(([, row]) => body.append(row));
  message.textContent = `sorted by ${button.textContent}, ${up ? 'ascending' : 'descending'}`;
}));
";

const HEAD: [&str; 14] = [
    "slide",
    "what to look at",
    "um/px",
    "scanner",
    "levels",
    "tissue, mm2",
    "out of focus, %",
    "pen, %",
    "dirt, %",
    "folds, %",
    "stain, degrees from the cohort",
    "stain, degrees from training",
    "missing tiles",
    "label",
];

/// The whole file.
pub fn html(cohort: &Cohort) -> String {
    let mut body = String::from(
        "<main class=\"report quality\" style=\"max-width:none\">\n<h1>Quality of the slides</h1>\n",
    );
    let wrong = cohort.slides.iter().filter(|s| !s.flags.is_empty()).count();
    body += &format!(
        "<p class=\"soft\">{} slides, {wrong} with something to look at, those first. Measured on an overview and on up to 16 \
         places of tissue of each; folds and dirt are rough. A column's name sorts by it.</p>\n\
         <p class=\"soft\" role=\"status\"></p>\n<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Slides\">\
         <table>\n<thead><tr><th scope=\"col\">picture</th>",
        cohort.slides.len()
    );
    for name in HEAD {
        body += &format!("<th scope=\"col\"><button type=\"button\">{name}</button></th>");
    }
    body += "</tr></thead>\n<tbody>\n";
    for slide in &cohort.slides {
        row(&mut body, slide).expect("a string takes text");
    }
    body += "</tbody></table></div>\n<footer>Research use only.</footer>\n</main>\n";
    let title = "Quality of the slides";
    pages::Page { title, style: STYLE, body: &body, script: Script::Inline(SCRIPT) }.html()
}

fn row(out: &mut String, s: &Looked) -> std::fmt::Result {
    let picture = s.measured.as_ref().filter(|m| !m.thumbnail.is_empty()).map(|m| {
        let data = BASE64_STANDARD.encode(&m.thumbnail);
        let name = escape(&s.name);
        format!("<img alt=\"{name}\" loading=\"lazy\" src=\"data:image/jpeg;base64,{data}\">")
    });
    write!(out, "<tr><td>{}</td>", picture.unwrap_or_default())?;
    let name = escape(&s.name);
    write!(out, "<th scope=\"row\" data-v=\"{name}\">{name}</th>")?;
    let flags = s.flags.iter().map(|f| escape(f)).collect::<Vec<_>>().join("<br>");
    // Sorted by how much is wrong, a slide that cannot be read above all.
    let wrong = s.flags.len() as f64 + if s.measured.is_none() { 1000.0 } else { 0.0 };
    write!(out, "<td data-v=\"{wrong}\">{flags}</td>")?;
    let Some(m) = &s.measured else {
        return writeln!(out, "{}</tr>", "<td></td>".repeat(HEAD.len() - 2));
    };
    let mut number = |value: Option<f64>, digits: usize| match value {
        Some(v) => write!(out, "<td class=\"n\" data-v=\"{v}\">{v:.digits$}</td>"),
        None => write!(out, "<td></td>"),
    };
    let percent = |v: f64| Some(100.0 * v);
    number(m.mpp.map(|m| m[0]), 4)?;
    let scanner = escape(m.scanner.unwrap_or_default());
    write!(out, "<td data-v=\"{scanner}\">{scanner}</td>")?;
    let mut number = |value: Option<f64>, digits: usize| match value {
        Some(v) => write!(out, "<td class=\"n\" data-v=\"{v}\">{v:.digits$}</td>"),
        None => write!(out, "<td></td>"),
    };
    number(Some(m.levels as f64), 0)?;
    number(m.tissue_mm2, 2)?;
    number(m.out_of_focus.and_then(percent), 1)?;
    number(percent(m.pen), 2)?;
    number(percent(m.dirt), 2)?;
    number(m.folds.and_then(percent), 1)?;
    number(s.stain_from_cohort, 1)?;
    number(s.stain_from_training, 1)?;
    number(Some(m.missing_tiles as f64), 0)?;
    let label = if m.label { "yes" } else { "no" };
    writeln!(out, "<td data-v=\"{label}\">{label}</td></tr>")
}
