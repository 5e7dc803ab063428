//! The HTML page of `corpus inspect`: one file, no script, nothing from outside.

use super::inspect::Report;
use corpus::inspect::BINS;
use std::fmt::Write;

/// The page; `png` is the montage.
pub fn corpus_page(r: &Report<'_>, png: &[u8]) -> String {
    let (m, c) = (r.manifest, &r.manifest.counts);
    let mut h = String::from(
        "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>Corpus</title><style>\
         body{font:15px/1.5 system-ui,sans-serif;max-width:70rem;margin:2rem auto;padding:0 1rem;color:#222}\
         table{border-collapse:collapse;margin:1rem 0}td,th{padding:.25rem .8rem;border-bottom:1px solid #ddd;text-align:right}\
         td:first-child,th:first-child{text-align:left}code{font-size:.85em;overflow-wrap:anywhere}img{max-width:100%}\
         .h{display:inline-block;margin:0 2rem 1rem 0}rect{fill:#7a3b8f}</style>",
    );
    let _ = write!(
        h,
        "<h1>{}</h1><p>{} crops of {} slides and {} patients, built by {}.<br>Digest <code>{}</code></p>",
        text(&m.header.name),
        c.crops,
        c.slides,
        c.patients,
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
            let _ = write!(h, "<div class=h><div>{score}, {label}</div>{}</div>", bars(bins));
        }
    }
    if !r.repeated_images.is_empty() {
        let _ = write!(
            h,
            "<h2>Repeated images</h2><p>{} images occur more than once, {} with different labels.</p><ul>",
            r.repeated_images.len(),
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
        let _ = write!(
            h,
            "<h2>Sample</h2><p>One row per label, in the order of the table.</p>\
             <img alt=\"sample crops\" src=\"data:image/png;base64,{}\">",
            base64(png)
        );
    }
    h.push_str("</html>\n");
    h
}

fn bars(bins: &[u64; BINS]) -> String {
    let top = bins.iter().copied().max().unwrap_or(0).max(1);
    let mut s = String::from("<svg width=\"220\" height=\"84\" role=\"img\">");
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
pub fn text(s: &str) -> String {
    s.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// Standard base64 with padding.
pub fn base64(bytes: &[u8]) -> String {
    const ABC: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for c in bytes.chunks(3) {
        let n = (u32::from(c[0]) << 16)
            | (u32::from(*c.get(1).unwrap_or(&0)) << 8)
            | u32::from(*c.get(2).unwrap_or(&0));
        for k in 0..4 {
            if k <= c.len() {
                out.push(char::from(ABC[(n >> (18 - 6 * k)) as usize & 63]));
            } else {
                out.push('=');
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    #[test]
    fn base64_as_everyone_writes_it() {
        for (plain, coded) in
            [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foob", "Zm9vYg==")]
        {
            assert_eq!(super::base64(plain.as_bytes()), coded);
        }
    }
}
