//! Precision, recall and false positives over every threshold of the last score, as a table and as a
//! picture.

use artifact::table::Writer;
use mitosis::matching::Tally;
use serde::Serialize;
use std::fmt::Write as _;

/// The pooled counts at one threshold.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct CurvePoint {
    /// Threshold on the last stage's score.
    pub threshold: f32,
    /// The counts.
    #[serde(flatten)]
    pub tally: Tally,
    /// False positives per mm2 of analysed tissue; none without tissue.
    pub fp_per_mm2: Option<f64>,
}

/// The curve as CSV: one row per threshold, highest first.
#[must_use]
pub fn csv(points: &[CurvePoint]) -> Vec<u8> {
    let mut table =
        Writer::new(["threshold", "tp", "fp", "fn", "precision", "recall", "f1", "fp_per_mm2"]);
    let share = |v: Option<f64>| v.map_or_else(String::new, |v| format!("{v:.6}"));
    for p in points {
        let t = &p.tally;
        table.push([
            p.threshold.to_string(),
            t.tp.to_string(),
            t.fp.to_string(),
            t.fn_.to_string(),
            share(t.precision()),
            share(t.recall()),
            share(t.f1()),
            share(p.fp_per_mm2),
        ]);
    }
    table.into_bytes()
}

/// Both curves side by side as SVG: precision over recall, and recall over false positives per mm2
/// (FROC). The dot is the recorded operating point.
#[must_use]
pub fn svg(points: &[CurvePoint], operating: &Tally, analysed_mm2: f64) -> String {
    let (width, height, side) = (760.0, 390.0, 280.0);
    let most = points.iter().filter_map(|p| p.fp_per_mm2).fold(0.0, f64::max).max(1e-9);
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" \
         font-family=\"DejaVu Sans, Helvetica, Arial, sans-serif\" font-size=\"12\" \
         fill=\"#222222\">\n<rect width=\"{width}\" height=\"{height}\" fill=\"white\"/>\n"
    );
    let precision = |t: &Tally| t.recall().zip(t.precision());
    let per_mm2 = |t: &Tally| (analysed_mm2 > 0.0).then(|| t.fp as f64 / analysed_mm2);
    let froc = |t: &Tally| per_mm2(t).zip(t.recall()).map(|(x, y)| (x / most, y));
    type Panel<'a> = (f64, &'a str, &'a str, f64, &'a dyn Fn(&Tally) -> Option<(f64, f64)>);
    let panels: [Panel<'_>; 2] = [
        (60.0, "Recall", "Precision", 1.0, &precision),
        (430.0, "False positives per mm\u{b2}", "Recall", most, &froc),
    ];
    for (left, x_label, y_label, x_most, at) in panels {
        let (top, bottom) = (30.0, 30.0 + side);
        let place = |(x, y): (f64, f64)| (left + side * x, bottom - side * y);
        for step in 0..=4 {
            let share = f64::from(step) / 4.0;
            let (x, y) = place((share, share));
            let _ = writeln!(
                out,
                "<path d=\"M{left} {y}H{right}M{x} {top}V{bottom}\" stroke=\"#e8e8e8\" fill=\"none\"/>\
                 <text x=\"{x}\" y=\"{below}\" text-anchor=\"middle\">{x_mark}</text>\
                 <text x=\"{before}\" y=\"{middle}\" text-anchor=\"end\">{share}</text>",
                right = left + side,
                below = bottom + 18.0,
                before = left - 8.0,
                middle = y + 4.0,
                x_mark = mark(share * x_most),
            );
        }
        let mut line = String::new();
        for (x, y) in points.iter().filter_map(|p| at(&p.tally)).map(place) {
            let _ = write!(line, "{x:.2},{y:.2} ");
        }
        let _ = writeln!(
            out,
            "<polyline points=\"{}\" fill=\"none\" stroke=\"#0072b2\" stroke-width=\"2\"/>",
            line.trim_end()
        );
        if let Some((x, y)) = at(operating).map(place)
            && x <= left + side
        {
            let _ = writeln!(out, "<circle cx=\"{x:.2}\" cy=\"{y:.2}\" r=\"5\" fill=\"#d55e00\"/>");
        }
        let (middle, below) = (left + side / 2.0, bottom + 42.0);
        let (aside, height) = (left - 42.0, top + side / 2.0);
        let _ = writeln!(
            out,
            "<text x=\"{middle}\" y=\"{below}\" text-anchor=\"middle\">{x_label}</text>\
             <text transform=\"translate({aside} {height}) rotate(-90)\" \
             text-anchor=\"middle\">{y_label}</text>"
        );
    }
    out.push_str("</svg>\n");
    out
}

fn mark(v: f64) -> String {
    if v == 0.0 || v >= 10.0 { format!("{v:.0}") } else { format!("{v:.2}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_curve_is_a_table_and_a_picture() {
        let point = |threshold, tp, fp| CurvePoint {
            threshold,
            tally: Tally { tp, fp, fn_: 4 - tp },
            fp_per_mm2: Some(fp as f64 / 2.0),
        };
        let points = [point(0.9, 1, 0), point(0.5, 3, 1), point(0.1, 4, 6)];
        let text = String::from_utf8(csv(&points)).unwrap();
        assert!(text.contains("0.5,3,1,1,0.750000,0.750000,0.750000,0.500000\n"), "{text}");
        let picture = svg(&points, &points[1].tally, 2.0);
        assert_eq!(picture.matches("<polyline").count(), 2);
        assert_eq!(picture.matches("<circle").count(), 2);
        // Recall 0.75 and precision 0.75 of a side of 280 px.
        assert!(picture.contains("cx=\"270.00\" cy=\"100.00\""), "{picture}");
    }
}
