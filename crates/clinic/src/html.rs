//! The page as HTML, which prints on one sheet of A4.

use crate::page::{Block, Page};
use crate::picture::Picture;
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use pages::{Script, escape};
use std::fmt::Write;

const STYLE: &str = "
@page { size: A4; margin: 14mm; }
main.case { max-width: 48rem; margin: 0 auto; padding: 1rem; }
.case dl { display: grid; grid-template-columns: 9rem 1fr; gap: .1rem .75rem; margin: .25rem 0; }
.case dd { margin: 0; }
.case h2 { margin: 1rem 0 .25rem; }
.case .main b { font-size: 2.2rem; margin-right: .5rem; }
.case .picture { position: relative; display: inline-block; margin: .25rem .5rem .25rem 0; }
.case .picture img { display: block; max-width: 100%; max-height: var(--height); }
.case .picture svg { position: absolute; inset: 0; width: 100%; height: 100%; background: none; }
.case .picture path { fill: none; stroke: #1d4ed8; stroke-width: 1.5px; vector-effect: non-scaling-stroke; }
.case .picture path.edge { stroke: #fff; stroke-width: 3px; }
.case .pictures { display: flex; flex-wrap: wrap; gap: 0 .75rem; break-inside: avoid; }
.case .pictures figure:not(:only-child) { flex: 0 1 calc(50% - .375rem); }
.case figure { margin: 0; } .case figcaption { font-size: .85em; max-width: 30rem; }
@media print {
  main.case { padding: 0; max-width: none; font-size: calc(7.6pt * var(--letters)); line-height: 1.25; }
  .case h1 { font-size: 1.8em; } .case h2 { font-size: 1.25em; margin: .5em 0 .1em; }
  .case .main { font-size: 1.2em; } .case .main b { font-size: 2.4em; }
  .case dl { gap: 0 .75rem; margin: .1rem 0; }
  .case table { font-size: inherit; } .case th, .case td { padding: .1em .6em .1em 0; }
  .case .note { margin: .15em 0 0; padding: 0 .4em; border-radius: 3px; }
  .case .picture img { max-height: calc(var(--height) * var(--pictures) * .9); }
  .case .picture { margin: .1rem 0 0; }
  .case footer { margin-top: .5em; font-size: 1em; }
}
";

/// The whole file; `letters` and `pictures` are how much smaller than usual they are in print, so that the page is
/// one sheet.
#[must_use]
pub fn text(page: &Page, (letters, pictures): (f32, f32)) -> String {
    let mut body = format!(
        "<main class=\"case\" style=\"--letters: {letters:.2}; --pictures: {pictures:.2}\">\n<h1>{}</h1>\n",
        escape(&page.title)
    );
    for block in &page.blocks {
        write_block(&mut body, block).expect("a string takes text");
    }
    body += &format!("<footer>{}</footer>\n</main>\n", escape(&page.foot));
    pages::Page { title: &page.title, style: STYLE, body: &body, script: Script::None }.html()
}

fn write_block(out: &mut String, block: &Block) -> std::fmt::Result {
    match block {
        Block::Heading(text) => writeln!(out, "<h2>{}</h2>", escape(text)),
        Block::Main(number, what) => {
            writeln!(out, "<p class=\"main\"><b>{}</b>{}</p>", escape(number), escape(what))
        }
        Block::Rows(rows) => {
            writeln!(out, "<dl>")?;
            for (name, value) in rows {
                writeln!(out, "<dt>{}</dt><dd>{}</dd>", escape(name), escape(value))?;
            }
            writeln!(out, "</dl>")
        }
        Block::Table(head, rows) => {
            write!(out, "<div class=\"scroll\"><table><thead><tr>")?;
            head.iter().try_for_each(|h| write!(out, "<th>{}</th>", escape(h)))?;
            writeln!(out, "</tr></thead><tbody>")?;
            for row in rows {
                write!(out, "<tr>")?;
                row.iter().try_for_each(|c| write!(out, "<td>{}</td>", escape(c)))?;
                writeln!(out, "</tr>")?;
            }
            writeln!(out, "</tbody></table></div>")
        }
        Block::Notes(notes) => {
            notes.iter().try_for_each(|n| writeln!(out, "<p class=\"note\">{}</p>", escape(n)))
        }
        Block::Pictures(pictures, height) => {
            writeln!(out, "<div class=\"pictures\">")?;
            pictures.iter().try_for_each(|p| write_picture(out, p, *height))?;
            writeln!(out, "</div>")
        }
    }
}

fn write_picture(out: &mut String, picture: &Picture, height: f64) -> std::fmt::Result {
    let data = BASE64_STANDARD.encode(&picture.jpeg);
    let mut paths = String::new();
    for ring in &picture.outlines {
        for (k, [x, y]) in ring.iter().enumerate() {
            let step = if k == 0 { 'M' } else { 'L' };
            write!(paths, "{step}{:.2} {:.2}", x * 1000.0, y * 1000.0)?;
        }
        paths.push('Z');
    }
    writeln!(
        out,
        "<figure><div class=\"picture\"><img alt=\"{0}\" style=\"--height: {height}pt\" \
         src=\"data:image/jpeg;base64,{data}\"><svg viewBox=\"0 0 1000 1000\" preserveAspectRatio=\"none\" \
         aria-hidden=\"true\"><path class=\"edge\" d=\"{paths}\"/><path d=\"{paths}\"/></svg></div>\
         <figcaption>{0}</figcaption></figure>",
        escape(&picture.caption)
    )
}
