//! Precision, recall and false positives over every threshold of the last score, as a table and as a
//! picture.

use base::table::Writer;
use mitosis::matching::Tally;
use pages::charts::{self, Panel, Series};
use serde::Serialize;

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
    let most = points.iter().filter_map(|p| p.fp_per_mm2).fold(0.0, f64::max).max(1e-9);
    let precision = |t: &Tally| t.recall().zip(t.precision());
    let per_mm2 = |t: &Tally| (analysed_mm2 > 0.0).then(|| t.fp as f64 / analysed_mm2);
    let froc = |t: &Tally| per_mm2(t).zip(t.recall());
    let panel = |x: &str, y: &str, most, at: &dyn Fn(&Tally) -> Option<(f64, f64)>| Panel {
        x_label: x.to_owned(),
        y_label: y.to_owned(),
        most: (most, 1.0),
        series: vec![Series {
            name: String::new(),
            points: points.iter().filter_map(|p| at(&p.tally)).collect(),
        }],
        dot: at(operating),
    };
    let both = [
        panel("Recall", "Precision", 1.0, &precision),
        panel("False positives per mm\u{b2}", "Recall", most, &froc),
    ];
    charts::panels("", &both, (280.0, 280.0)).svg()
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
        assert_eq!(picture.matches("<path d=").count(), 2);
        assert_eq!(picture.matches("<circle").count(), 2);
        // Recall 0.75 and precision 0.75 of a side of 280 px, from 76 and 320 px.
        assert!(picture.contains("cx=\"286\" cy=\"110\""), "{picture}");
    }
}
