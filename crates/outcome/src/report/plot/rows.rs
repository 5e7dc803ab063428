//! Estimates with intervals, one per row: forest plots and comparisons of C.

use pages::canvas::{
    Anchor, Axis, Canvas, GREY, GRID, INK, PALETTE, log_ticks, tick_label, tick_labels, ticks, wrap,
};

/// One row: an estimate with its limits; a heading; or a note that explains a missing estimate.
pub struct Row {
    pub name: String,
    /// Estimate, lower, upper.
    pub value: Option<(f64, f64, f64)>,
    /// What the numbers are given per; written behind them.
    pub per: &'static str,
    /// Text at the right: next to the numbers, or in their place.
    pub note: String,
    /// Which colour.
    pub colour: usize,
}

impl Row {
    /// Whether it only names the rows below.
    fn is_heading(&self) -> bool {
        self.value.is_none() && self.note.is_empty()
    }
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
#[expect(clippy::too_many_lines, reason = "one drawing from top to bottom")]
pub fn forest(
    title: &str,
    axis_label: &str,
    note_label: &str,
    scale: Scale,
    rows: &[Row],
) -> Canvas {
    // Names are wrapped, and a row is as high as its name.
    const LINE: f64 = 15.0;
    let names: Vec<Vec<String>> =
        rows.iter().map(|r| wrap(&r.name, if r.is_heading() { 100 } else { 34 })).collect();
    let notes: Vec<Vec<String>> = rows.iter().map(|r| wrap(&r.note, 40)).collect();
    let heights: Vec<f64> = names
        .iter()
        .zip(&notes)
        .map(|(name, note)| 26.0 + LINE * (name.len().max(note.len()).max(1) - 1) as f64)
        .collect();
    let (left, right, top, edge) = (262.0, 562.0, 70.0, 884.0);
    let bottom = top + heights.iter().sum::<f64>() + 6.0;
    let mut c = Canvas::new(edge + 16.0, bottom + 58.0);
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
    head(&mut c, 590.0, "Estimate (95 % CI)", Anchor::Start);
    head(&mut c, edge, note_label, Anchor::End);
    let labels = match scale {
        Scale::Ratio => marks.iter().map(|v| tick_label(*v)).collect(),
        Scale::CIndex => tick_labels(&marks),
    };
    let mut taken = f64::NEG_INFINITY;
    for (&v, label) in marks.iter().zip(&labels) {
        c.line((axis.at(v), top), (axis.at(v), bottom), GRID, 0.8);
        c.line((axis.at(v), bottom), (axis.at(v), bottom + 5.0), INK, 1.0);
        // A label that would touch the one before it is left out.
        let half = 4.0 * label.len() as f64;
        if axis.at(v) - half > taken {
            c.text((axis.at(v), bottom + 19.0), label, 12, Anchor::Middle);
            taken = axis.at(v) + half + 4.0;
        }
    }
    c.dashed((axis.at(null), top), (axis.at(null), bottom), GREY, 1.3, Some("5,4"));
    let mut below = top;
    for (i, row) in rows.iter().enumerate() {
        let y = below + heights[i] / 2.0;
        below += heights[i];
        let mut lines = |x: f64, text: &[String], bold: bool| {
            let first = y + 4.0 - LINE * (text.len().max(1) - 1) as f64 / 2.0;
            for (k, line) in text.iter().enumerate() {
                let at = (x, first + LINE * k as f64);
                c.styled(at, line, 12, Anchor::Start, INK, bold, None);
            }
        };
        lines(if row.is_heading() { 14.0 } else { 24.0 }, &names[i], row.is_heading());
        let Some((estimate, lower, upper)) = row.value else {
            lines(590.0, &notes[i], false);
            continue;
        };
        let colour = PALETTE[row.colour % PALETTE.len()];
        let ends = [(lower, axis.low, 1.0), (upper, axis.high, -1.0)];
        if lower.is_finite() && upper.is_finite() {
            c.line((axis.at(lower), y), (axis.at(upper), y), colour, 1.8);
            for (v, edge, inward) in ends {
                let x = axis.at(v);
                let cut = if inward > 0.0 { v < edge } else { v > edge };
                if cut {
                    // An arrow: the interval continues.
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
        let limits = format!("({} \u{2013} {})", number(lower), number(upper));
        let text = format!("{} {limits} {}", number(estimate), row.per);
        c.text((590.0, y + 4.0), text.trim_end(), 12, Anchor::Start);
        c.text((edge, y + 4.0), &row.note, 12, Anchor::End);
    }
    c.line((left, bottom), (right, bottom), INK, 1.2);
    c.text(((left + right) / 2.0, bottom + 42.0), axis_label, 13, Anchor::Middle);
    c
}
