//! Pictures that more than one page or table needs; those of the survival study are its own.

use crate::canvas::{Anchor, Axis, Canvas, GRID, INK, PALETTE, tick_labels, ticks};

/// A curve of a panel.
#[derive(Clone, Debug)]
pub struct Series {
    /// In the legend; none without a name.
    pub name: String,
    /// In order.
    pub points: Vec<(f64, f64)>,
}

/// Curves over common axes, both from 0.
#[derive(Clone, Debug)]
pub struct Panel {
    /// Below the axis.
    pub x_label: String,
    /// Next to the axis.
    pub y_label: String,
    /// Where the axes end.
    pub most: (f64, f64),
    /// The curves.
    pub series: Vec<Series>,
    /// A point of its own.
    pub dot: Option<(f64, f64)>,
}

/// Panels side by side, each with a plot of `width` x `height`.
#[must_use]
pub fn panels(title: &str, panels: &[Panel], (width, height): (f64, f64)) -> Canvas {
    let legend = panels.iter().map(|p| p.series.iter().filter(|s| !s.name.is_empty()).count());
    let (gap, top) = (76.0, 40.0 + 18.0 * legend.max().unwrap_or(0) as f64);
    let bottom = top + height;
    let mut c = Canvas::new((gap + width) * panels.len() as f64 + 24.0, bottom + 56.0);
    c.title(title);
    for (i, p) in panels.iter().enumerate() {
        let left = gap + (gap + width) * i as f64;
        let x = Axis { low: 0.0, high: p.most.0, from: left, to: left + width, log: false };
        let y = Axis { low: 0.0, high: p.most.1, from: bottom, to: top, log: false };
        let (across, up) = (ticks(0.0, x.high, 5), ticks(0.0, y.high, 5));
        for (&v, label) in across.iter().zip(tick_labels(&across)) {
            c.line((x.at(v), top), (x.at(v), bottom), GRID, 0.8);
            c.text((x.at(v), bottom + 18.0), &label, 12, Anchor::Middle);
        }
        for (&v, label) in up.iter().zip(tick_labels(&up)) {
            c.line((left, y.at(v)), (left + width, y.at(v)), GRID, 0.8);
            c.text((left - 8.0, y.at(v) + 4.0), &label, 12, Anchor::End);
        }
        let named = p.series.iter().filter(|s| !s.name.is_empty()).count();
        for (k, (s, colour)) in p.series.iter().zip(PALETTE.iter().cycle()).enumerate() {
            c.polyline(s.points.iter().map(|p| (x.at(p.0), y.at(p.1))).collect(), colour, 2.0);
            if !s.name.is_empty() {
                let at = top - 10.0 - 18.0 * (named - 1 - k.min(named - 1)) as f64;
                c.line((left, at - 4.0), (left + 22.0, at - 4.0), colour, 2.6);
                c.text((left + 28.0, at), &s.name, 12, Anchor::Start);
            }
        }
        if let Some((px, py)) = p.dot.filter(|d| d.0 <= p.most.0 && d.1 <= p.most.1) {
            c.dot((x.at(px), y.at(py)), 5.0, PALETTE[1], 1.0);
        }
        c.line((left, bottom), (left + width, bottom), INK, 1.2);
        c.line((left, top), (left, bottom), INK, 1.2);
        c.text((left + width / 2.0, bottom + 40.0), &p.x_label, 13, Anchor::Middle);
        let middle = (left - 52.0, top + height / 2.0);
        c.styled(middle, &p.y_label, 13, Anchor::Middle, INK, false, Some(-90.0));
    }
    c
}

/// Counts of a share, in bins of equal width over [0, 1].
#[must_use]
pub fn histogram(title: &str, bins: &[u64]) -> Canvas {
    let (left, right, top, bottom) = (56.0, 336.0, 40.0, 150.0);
    let mut c = Canvas::new(350.0, 182.0);
    c.title(title);
    let most = bins.iter().copied().max().unwrap_or(0).max(1) as f64;
    let x = Axis { low: 0.0, high: 1.0, from: left, to: right, log: false };
    let y = Axis { low: 0.0, high: most, from: bottom, to: top, log: false };
    for v in ticks(0.0, most, 3).into_iter().filter(|v| v.fract() == 0.0) {
        c.line((left, y.at(v)), (right, y.at(v)), GRID, 0.8);
        c.text((left - 8.0, y.at(v) + 4.0), &format!("{v:.0}"), 12, Anchor::End);
    }
    let width = (right - left) / bins.len().max(1) as f64;
    for (i, &n) in bins.iter().enumerate() {
        let (from, up) = (left + width * i as f64, y.at(n as f64));
        c.rect((from + 0.5, up), (width - 1.0, bottom - up), PALETTE[0], 1.0);
    }
    c.line((left, bottom), (right, bottom), INK, 1.2);
    let marks = [0.0, 0.25, 0.5, 0.75, 1.0];
    for (&v, label) in marks.iter().zip(tick_labels(&marks)) {
        c.line((x.at(v), bottom), (x.at(v), bottom + 5.0), INK, 1.0);
        c.text((x.at(v), bottom + 19.0), &label, 12, Anchor::Middle);
    }
    c
}

/// A row of [`bars`].
#[derive(Clone, Debug)]
pub struct Bar {
    /// At the left.
    pub name: String,
    /// Length, in [0, 1], written at the right; a row without one is empty.
    pub value: Option<f64>,
    /// Two further shares: a ring and a cross.
    pub marks: [Option<f64>; 2],
}

/// A bar per row, the first one marked, over [0, 1].
#[must_use]
pub fn bars(title: &str, axis_label: &str, rows: &[Bar]) -> Canvas {
    let (left, right, top, step) = (190.0, 590.0, 40.0, 24.0);
    let bottom = top + step * rows.len() as f64;
    let mut c = Canvas::new(650.0, bottom + 56.0);
    c.title(title);
    let x = Axis { low: 0.0, high: 1.0, from: left, to: right, log: false };
    let marks = ticks(0.0, 1.0, 5);
    for (&v, label) in marks.iter().zip(tick_labels(&marks)) {
        c.line((x.at(v), top), (x.at(v), bottom), GRID, 0.8);
        c.text((x.at(v), bottom + 18.0), &label, 12, Anchor::Middle);
    }
    for (i, row) in rows.iter().enumerate() {
        let (y, colour) = (top + step * (i as f64 + 0.5), PALETTE[if i == 0 { 0 } else { 5 }]);
        c.text((left - 8.0, y + 4.0), &row.name, 12, Anchor::End);
        if let Some(v) = row.value {
            c.rect((left, y - 8.0), (x.at(v) - left, 16.0), colour, 1.0);
            c.text((right + 8.0, y + 4.0), &format!("{v:.2}"), 12, Anchor::Start);
        }
        let [ring, cross] = row.marks.map(|v| v.map(|v| x.at(v)));
        if let Some(at) = ring {
            c.dot((at, y), 5.0, INK, 1.0);
            c.dot((at, y), 3.2, "#ffffff", 1.0);
        }
        if let Some(at) = cross {
            c.line((at - 4.0, y - 4.0), (at + 4.0, y + 4.0), INK, 1.8);
            c.line((at - 4.0, y + 4.0), (at + 4.0, y - 4.0), INK, 1.8);
        }
    }
    c.line((left, bottom), (right, bottom), INK, 1.2);
    c.text(((left + right) / 2.0, bottom + 40.0), axis_label, 13, Anchor::Middle);
    c
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn curves_are_where_their_values_are() {
        let series = vec![Series { name: String::new(), points: vec![(0.0, 0.0), (1.0, 1.0)] }];
        let (x_label, y_label) = ("Recall".into(), "Precision".into());
        let p = Panel { x_label, y_label, most: (1.0, 1.0), series, dot: Some((0.75, 0.75)) };
        let svg = panels("Curves", &[p.clone(), p], (280.0, 280.0)).svg();
        assert_eq!((svg.matches("<path d=").count(), svg.matches("<circle").count()), (2, 2));
        // Three quarters of 280 px right of 76 and above 320.
        assert!(svg.contains("cx=\"286\"") && svg.contains("cy=\"110\""), "{svg}");
    }

    #[test]
    fn a_bar_is_as_long_as_its_share() {
        let svg = histogram("s", &[0, 4, 2, 0]).svg();
        assert!(svg.contains("height=\"110\"") && svg.contains("height=\"55\""), "{svg}");
        let row = Bar { name: "none".into(), value: Some(0.5), marks: [Some(0.4), None] };
        let svg = bars("t", "F1", &[row]).svg();
        assert!(svg.contains("width=\"200\"") && svg.matches("<circle").count() == 2, "{svg}");
    }
}
