//! Estimates with intervals, one per row: forest plots and comparisons of C.

use super::canvas::{
    Anchor, Axis, Canvas, GREY, INK, PALETTE, log_ticks, shorten, tick_label, tick_labels, ticks,
};

/// One row: an estimate with its limits; a heading; or, with a note, why there is no estimate.
pub struct Row {
    pub name: String,
    /// Estimate, lower, upper.
    pub value: Option<(f64, f64, f64)>,
    /// Text at the right: beside the numbers, or in their place.
    pub note: String,
    /// Which colour.
    pub colour: usize,
}

/// The axis.
#[derive(Clone, Copy)]
pub enum Scale {
    /// Hazard ratios around 1.
    Ratio,
    /// C-indices around 1/2.
    CIndex,
}

/// Draws the rows over a common axis, numbers written at the right.
pub fn forest(
    title: &str,
    axis_label: &str,
    note_label: &str,
    scale: Scale,
    rows: &[Row],
) -> Canvas {
    let (left, right, top, step) = (262.0, 562.0, 70.0, 26.0);
    let bottom = top + step * rows.len() as f64 + 6.0;
    let mut c = Canvas::new(840.0, bottom + 58.0);
    c.title(title);
    let bounds = || rows.iter().filter_map(|r| r.value);
    let fold = |start: f64, f: fn(f64, f64) -> f64, k: fn((f64, f64, f64)) -> f64| {
        bounds().map(k).filter(|v| v.is_finite()).fold(start, f)
    };
    let (axis, marks, null) = match scale {
        Scale::Ratio => {
            let low = fold(0.8, f64::min, |v| v.1 / 1.04).max(0.01);
            let high = fold(1.25, f64::max, |v| v.2 * 1.04).min(100.0);
            let axis = Axis { low, high, from: left, to: right, log: true };
            (axis, log_ticks(low, high), 1.0)
        }
        Scale::CIndex => {
            let low = (fold(0.4, f64::min, |v| v.1) * 20.0).floor() / 20.0;
            let high = ((fold(0.6, f64::max, |v| v.2) * 20.0).ceil() / 20.0).min(1.0);
            let axis = Axis { low, high, from: left, to: right, log: false };
            (axis, ticks(low, high, 6), 0.5)
        }
    };
    let head = |c: &mut Canvas, x: f64, text: &str, anchor: Anchor| {
        c.styled((x, top - 14.0), text, 12, anchor, INK, true, None);
    };
    head(&mut c, 590.0, "Estimate (95% CI)", Anchor::Start);
    head(&mut c, 824.0, note_label, Anchor::End);
    let labels = match scale {
        Scale::Ratio => marks.iter().map(|v| tick_label(*v)).collect(),
        Scale::CIndex => tick_labels(&marks),
    };
    let mut taken = f64::NEG_INFINITY;
    for (&v, label) in marks.iter().zip(&labels) {
        c.line((axis.at(v), top), (axis.at(v), bottom), "#ececec", 0.8);
        c.line((axis.at(v), bottom), (axis.at(v), bottom + 5.0), INK, 1.0);
        // A label that would touch the one before it is left out.
        let half = 4.0 * label.len() as f64;
        if axis.at(v) - half > taken {
            c.text((axis.at(v), bottom + 19.0), label, 12, Anchor::Middle);
            taken = axis.at(v) + half + 4.0;
        }
    }
    c.dashed((axis.at(null), top), (axis.at(null), bottom), GREY, 1.3, Some("5,4"));
    for (i, row) in rows.iter().enumerate() {
        let y = top + step * (i as f64 + 0.5);
        let Some((estimate, lower, upper)) = row.value else {
            if row.note.is_empty() {
                c.styled((14.0, y + 4.0), &row.name, 12, Anchor::Start, INK, true, None);
            } else {
                c.text((24.0, y + 4.0), &shorten(&row.name, 36), 12, Anchor::Start);
                c.text((590.0, y + 4.0), &shorten(&row.note, 34), 12, Anchor::Start);
            }
            continue;
        };
        c.text((24.0, y + 4.0), &shorten(&row.name, 36), 12, Anchor::Start);
        let colour = PALETTE[row.colour % PALETTE.len()];
        let ends = [(lower, axis.low, 1.0), (upper, axis.high, -1.0)];
        if lower.is_finite() && upper.is_finite() {
            c.line((axis.at(lower), y), (axis.at(upper), y), colour, 1.8);
            for (v, edge, inward) in ends {
                let x = axis.at(v);
                let cut = if inward > 0.0 { v < edge } else { v > edge };
                if cut {
                    // An arrow: the interval goes on.
                    c.polygon(
                        &[(x, y), (x + inward * 8.0, y - 4.5), (x + inward * 8.0, y + 4.5)],
                        colour,
                        1.0,
                    );
                } else {
                    c.line((x, y - 5.0), (x, y + 5.0), colour, 1.8);
                }
            }
        }
        let x = axis.at(estimate);
        c.rect((x - 4.5, y - 4.5), (9.0, 9.0), colour, 1.0);
        let digits = if matches!(scale, Scale::Ratio) { 2 } else { 3 };
        let number = |v: f64| match v {
            v if v >= 1000.0 => format!("{v:.1e}"),
            v if v.is_finite() => format!("{v:.digits$}"),
            _ => "-".into(),
        };
        let text = format!("{} ({} \u{2013} {})", number(estimate), number(lower), number(upper));
        c.text((590.0, y + 4.0), &text, 12, Anchor::Start);
        c.text((824.0, y + 4.0), &row.note, 12, Anchor::End);
    }
    c.line((left, bottom), (right, bottom), INK, 1.2);
    c.text(((left + right) / 2.0, bottom + 42.0), axis_label, 13, Anchor::Middle);
    c
}
