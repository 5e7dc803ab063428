//! The HTML page of a dataset: one file, no script, nothing from outside.

use super::report::CropsReport;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use corpus::Label;
use corpus::inspect::BINS;
use mitosis::text::Many;
use serde_json::{Map, Value};
use std::fmt::Write;

/// The page of a dataset of crops; `png` is a montage of some of them, or empty.
#[must_use]
pub fn page(r: &CropsReport, png: &[u8]) -> String {
    let (m, c) = (&r.manifest, &r.manifest.counts);
    let mut h = String::from(
        "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>Corpus</title><style>\
         body{font:15px/1.5 system-ui,sans-serif;max-width:70rem;margin:2rem auto;padding:0 1rem;color:#222}\
         table{border-collapse:collapse;margin:1rem 0}td,th{padding:.25rem .8rem;border-bottom:1px solid #ddd;text-align:right}\
         td:first-child,th:first-child{text-align:left}code{font-size:.85em;overflow-wrap:anywhere}img{max-width:100%}\
         .h{display:inline-block;margin:0 2rem 1rem 0}rect{fill:#7a3b8f}line{stroke:#999}svg text{font-size:11px;fill:#555}\
         .m{display:grid;grid-template-columns:max-content 1fr;gap:0 1rem}.m div{display:grid}.m span{align-self:center}</style>",
    );
    let _ = write!(
        h,
        "<h1>{}</h1><p>{} of {}{}, built by {}.<br>Digest <code>{}</code></p>",
        text(&m.header.name),
        Many(c.crops, "crop"),
        Many(c.slides, "slide"),
        match c.patients {
            0 => " (patients are not named)".into(),
            n => format!(" and {}", Many(n, "patient")),
        },
        text(&m.header.builder),
        text(&m.digest)
    );
    h.push_str("<table><tr><th>Cohort<th>Mitotic figures<th>Mimickers<th>Unlabelled<th>All</tr>");
    for (cohort, row) in &c.cohorts {
        let n = |l: &str| row.get(l).copied().unwrap_or(0);
        let _ = write!(
            h,
            "<tr><td>{}<td>{}<td>{}<td>{}<td>{}</tr>",
            text(cohort),
            n("mitotic_figure"),
            n("mimicker"),
            n("unlabeled"),
            row.values().sum::<u64>()
        );
    }
    h.push_str("</table>");
    for (title, table) in [("Subtypes", &c.subtypes), ("Splits", &c.splits)] {
        if !table.is_empty() {
            let row: Vec<String> = table.iter().map(|(k, n)| format!("{} {n}", text(k))).collect();
            let _ = write!(h, "<p>{title}: {}</p>", row.join(", "));
        }
    }
    for (score, table) in [("s_seg", &r.histograms.s_seg), ("s_cls", &r.histograms.s_cls)] {
        for (label, bins) in table {
            let label = words(label);
            let _ = write!(h, "<div class=h><div>{score}, {label}</div>{}</div>", bars(bins));
        }
    }
    h.push_str(&origin(&m.header.notes));
    if !r.repeated_images.is_empty() {
        let _ = write!(
            h,
            "<h2>Repeated images</h2><p>More than once: {}, {} with different labels.</p><ul>",
            Many(r.repeated_images.len(), "image"),
            r.contradicting_images
        );
        for image in r.repeated_images.iter().filter(|i| i.contradicts) {
            let rows: Vec<String> = image
                .crops
                .iter()
                .map(|(p, l, s)| format!("{} {l} {}", text(p), text(s.as_deref().unwrap_or(""))))
                .collect();
            let _ = write!(h, "<li>{}</li>", rows.join(" | "));
        }
        h.push_str("</ul>");
    }
    if !png.is_empty() {
        let rows: String = Label::ALL
            .iter()
            .filter(|l| c.labels.get(l.name()).is_some_and(|&n| n > 0))
            .fold(String::new(), |s, l| s + "<span>" + &words(l.name()) + "</span>");
        let _ = write!(
            h,
            "<h2>Sample</h2><div class=m><div>{rows}</div>\
             <img alt=\"sample crops\" src=\"data:image/png;base64,{}\"></div>",
            STANDARD.encode(png)
        );
    }
    h.push_str("</html>\n");
    h
}

fn words(name: &str) -> String {
    text(&name.replace('_', " "))
}

/// The funnel and the tumour filter of a built corpus; what was kept out and what failed.
fn origin(notes: &Map<String, Value>) -> String {
    let mut h = String::new();
    if let Some(funnel) = notes.get("funnel").and_then(Value::as_object) {
        h.push_str("<h2>Funnel</h2><table>");
        for (stage, n) in funnel {
            let _ = write!(h, "<tr><td>{}<td>{n}</tr>", words(stage));
        }
        h.push_str("</table>");
    }
    match notes.get("build").and_then(|b| b.get("tumour_filter")) {
        Some(Value::String(none)) => {
            let _ = write!(h, "<p>Tumour filter: {}</p>", text(none));
        }
        Some(filter) => {
            let of = |k: &str| text(filter[k].as_str().unwrap_or_default());
            let (name, class, hash) = (of("name"), of("tumour_class"), of("sha256"));
            let _ = write!(
                h,
                "<p>Tumour filter: {name}, class {class}, SHA-256 <code>{hash}</code></p>"
            );
        }
        None => {}
    }
    for (key, title) in [("excluded", "Kept out"), ("failed", "Failed")] {
        let list = notes.get(key).and_then(Value::as_array).filter(|l| !l.is_empty());
        let Some(list) = list else { continue };
        let _ = write!(h, "<details><summary>{title}: {}</summary><ul>", Many(list.len(), "slide"));
        for item in list {
            let of = |k: &str| text(item[k].as_str().unwrap_or_default());
            let _ = write!(h, "<li>{}: {}</li>", of("slide"), of("reason"));
        }
        h.push_str("</ul></details>");
    }
    h
}

/// A histogram over [0, 1] with its axis and the count of its highest bar.
fn bars(bins: &[u64; BINS]) -> String {
    let top = bins.iter().copied().max().unwrap_or(0).max(1);
    let mut s = format!(
        "<svg width=\"232\" height=\"100\" viewBox=\"-6 -14 232 114\" role=\"img\">\
         <line x1=\"0\" y1=\"82.5\" x2=\"219\" y2=\"82.5\"/><text y=\"-3\">{top}</text>"
    );
    for (x, tick) in [(0, "0"), (110, "0.5"), (219, "1")] {
        let _ = write!(s, "<text x=\"{x}\" y=\"96\" text-anchor=\"middle\">{tick}</text>");
    }
    for (i, &n) in bins.iter().enumerate() {
        let height = 80 * n / top;
        let _ = write!(
            s,
            "<rect x=\"{}\" y=\"{}\" width=\"10\" height=\"{height}\"><title>{n}</title></rect>",
            i * 11,
            82 - height
        );
    }
    s + "</svg>"
}

/// Escapes text for HTML.
fn text(s: &str) -> String {
    s.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
