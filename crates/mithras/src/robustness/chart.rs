//! A bar per perturbation: F1, with recall and precision beside it.

use std::fmt::Write as _;

use super::Robustness;

/// Room for a name, px.
const LEFT: f64 = 150.0;
/// Length of a full bar, px.
const FULL: f64 = 360.0;
/// Height of a row, px.
const ROW: f64 = 22.0;

/// The picture as SVG.
pub(super) fn bars(r: &Robustness) -> String {
    let height = ROW * r.rows.len() as f64 + 60.0;
    let width = LEFT + FULL + 60.0;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" \
         font-family=\"sans-serif\" font-size=\"12\">\n\
         <rect width=\"{width}\" height=\"{height}\" fill=\"white\"/>\n\
         <text x=\"{LEFT}\" y=\"18\">F1 at the operating point; o precision, x recall</text>\n"
    );
    for (i, row) in r.rows.iter().enumerate() {
        let y = 30.0 + ROW * i as f64;
        let name = &row.perturbation;
        let end = LEFT - 8.0;
        let base = y + 14.0;
        let _ = writeln!(svg, "<text x=\"{end}\" y=\"{base}\" text-anchor=\"end\">{name}</text>");
        if let Some(f1) = row.f1 {
            let fill = if i == 0 { "#1f4e79" } else { "#7ba7cf" };
            let (long, after) = (FULL * f1, LEFT + FULL + 8.0);
            let _ = writeln!(
                svg,
                "<rect x=\"{LEFT}\" y=\"{y}\" width=\"{long:.1}\" height=\"16\" fill=\"{fill}\"/>\n\
                 <text x=\"{after}\" y=\"{base}\">{f1:.2}</text>"
            );
        }
        for (value, mark) in [(row.precision, "o"), (row.recall, "x")] {
            if let Some(v) = value {
                let x = LEFT + FULL * v;
                let _ = writeln!(
                    svg,
                    "<text x=\"{x:.1}\" y=\"{base}\" text-anchor=\"middle\">{mark}</text>"
                );
            }
        }
    }
    svg.push_str("</svg>\n");
    svg
}
