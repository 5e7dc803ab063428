//! Kaplan-Meier curves with a risk table, and calibration.

use base::text::Many;
use pages::canvas::{
    Anchor, Axis, Canvas, GREY, GRID, INK, PALETTE, tick_label, tick_labels, ticks, wrap,
};
use stats::survival::km::KaplanMeier;

/// One curve with its name.
pub struct PlottedCurve {
    pub name: String,
    pub km: KaplanMeier,
}

impl PlottedCurve {
    /// Its line in the legend.
    fn legend(&self, time_unit: &str) -> String {
        let median = match self.km.median().time {
            Some(m) => format!("{m:.1}\u{a0}{time_unit}"),
            None => "not reached".into(),
        };
        let (n, events) = (self.km.n, Many(self.km.events, "event"));
        format!("{} (n\u{a0}=\u{a0}{n}, {events}, median {median})", self.name)
    }
}

/// Curves with intervals and censoring marks; above them a legend with medians and a line of text
/// (the log-rank test), where no curve can cross it; below them a risk table.
pub fn kaplan_meier(
    title: &str,
    time_label: &str,
    time_unit: &str,
    curves: &[PlottedCurve],
    test: &str,
) -> Canvas {
    let (width, left, right) = (760.0, 150.0, 736.0);
    // Whole words, however long the names are: what is wrapped needs room above and below.
    let legends: Vec<Vec<String>> = curves.iter().map(|k| wrap(&k.legend(time_unit), 82)).collect();
    let test = wrap(test, 82);
    let names: Vec<Vec<String>> = curves.iter().map(|k| wrap(&k.name, 17)).collect();
    let all = |lines: &[Vec<String>]| lines.iter().map(|l| l.len().max(1)).sum::<usize>() as f64;
    let top = 62.0 + 19.0 * (all(&legends) + test.len() as f64);
    let bottom = top + 350.0;
    let height = bottom + 84.0 + 5.0 * curves.len() as f64 + 15.0 * all(&names);
    let mut c = Canvas::new(width, height);
    c.title(title);
    let last = |k: &PlottedCurve| k.km.points.last().map_or(0.0, |p| p.time);
    let end = curves.iter().map(last).fold(0.0, f64::max).max(f64::MIN_POSITIVE);
    let x = Axis { low: 0.0, high: end, from: left, to: right, log: false };
    let low = lower_end(curves);
    let y = Axis { low, high: 1.0, from: bottom, to: top, log: false };
    let times = ticks(0.0, end, 7);
    let marks = ticks(low, 1.0, 5);
    for (&v, label) in marks.iter().zip(tick_labels(&marks)) {
        c.line((left, y.at(v)), (right, y.at(v)), GRID, 0.8);
        c.line((left - 5.0, y.at(v)), (left, y.at(v)), INK, 1.0);
        c.text((left - 9.0, y.at(v) + 4.0), &label, 12, Anchor::End);
    }
    for (&t, label) in times.iter().zip(tick_labels(&times)) {
        c.line((x.at(t), bottom), (x.at(t), bottom + 5.0), INK, 1.0);
        c.text((x.at(t), bottom + 19.0), &label, 12, Anchor::Middle);
    }
    for (curve, colour) in curves.iter().zip(PALETTE.iter().cycle()) {
        draw_band(&mut c, &curve.km, &x, &y, colour);
    }
    for (curve, colour) in curves.iter().zip(PALETTE.iter().cycle()) {
        let mut line = vec![(x.at(0.0), y.at(1.0))];
        let mut s = 1.0;
        for p in &curve.km.points {
            line.push((x.at(p.time), y.at(s)));
            if p.events > 0.0 {
                s = p.survival;
                line.push((x.at(p.time), y.at(s)));
            }
        }
        c.polyline(line, colour, 2.2);
        for p in curve.km.points.iter().filter(|p| p.censored > 0.0) {
            let (px, py) = (x.at(p.time), y.at(p.survival));
            c.line((px, py - 4.0), (px, py + 4.0), colour, 1.0);
        }
    }
    c.line((left, bottom), (right, bottom), INK, 1.2);
    c.line((left, top), (left, bottom), INK, 1.2);
    c.text(((left + right) / 2.0, bottom + 38.0), time_label, 13, Anchor::Middle);
    let middle = (left - 46.0, (top + bottom) / 2.0);
    c.styled(middle, &survival_label(low), 13, Anchor::Middle, INK, false, Some(-90.0));
    let mut at = 50.0;
    for (lines, colour) in legends.iter().zip(PALETTE.iter().cycle()) {
        c.line((left, at - 4.0), (left + 26.0, at - 4.0), colour, 2.6);
        for line in lines {
            c.text((left + 33.0, at), line, 12, Anchor::Start);
            at += 19.0;
        }
    }
    for line in &test {
        c.styled((left, at), line, 12, Anchor::Start, INK, true, None);
        at += 19.0;
    }
    let mut at = bottom + 62.0;
    c.styled((14.0, at), "At risk", 12, Anchor::Start, INK, true, None);
    at += 20.0;
    for ((curve, name), colour) in curves.iter().zip(&names).zip(PALETTE.iter().cycle()) {
        for &t in &times {
            let count = tick_label(curve.km.at_risk(t));
            c.text((x.at(t), at), &count, 12, Anchor::Middle);
        }
        for line in name {
            c.styled((left - 22.0, at), line, 12, Anchor::End, colour, false, None);
            at += 15.0;
        }
        at += 5.0;
    }
    c
}

/// Where the axis of survival begins: at 0, unless the curves with their intervals would fill the upper half of the
/// picture alone, as those of a cohort with few events do.
fn lower_end(curves: &[PlottedCurve]) -> f64 {
    let points = curves.iter().flat_map(|c| &c.km.points);
    let lowest = points.map(|p| p.lower.unwrap_or(p.survival)).fold(1.0, f64::min);
    [0.95, 0.9, 0.8, 0.5].into_iter().find(|low| *low <= lowest).unwrap_or(0.0)
}

/// The label of the axis. It states where the axis begins if that is not 0, so that two pictures are not compared as
/// if they had the same one.
fn survival_label(low: f64) -> String {
    match low > 0.0 {
        true => format!("Survival probability (axis from {low})"),
        false => "Survival probability".into(),
    }
}

fn draw_band(c: &mut Canvas, km: &KaplanMeier, x: &Axis, y: &Axis, colour: &str) {
    let (mut upper, mut lower) = (Vec::new(), Vec::new());
    let mut at = (1.0, 1.0);
    upper.push((x.at(0.0), y.at(1.0)));
    lower.push((x.at(0.0), y.at(1.0)));
    for p in &km.points {
        upper.push((x.at(p.time), y.at(at.1)));
        lower.push((x.at(p.time), y.at(at.0)));
        if let (Some(l), Some(u)) = (p.lower, p.upper) {
            at = (l, u);
        }
        upper.push((x.at(p.time), y.at(at.1)));
        lower.push((x.at(p.time), y.at(at.0)));
    }
    upper.extend(lower.into_iter().rev());
    c.polygon(&upper, colour, 0.13);
}

/// Predicted against observed survival of one risk group.
pub struct CalibrationGroup {
    pub n: usize,
    pub events: usize,
    pub predicted: f64,
    pub observed: f64,
    pub lower: Option<f64>,
    pub upper: Option<f64>,
}

/// Observed (Kaplan-Meier, with intervals) over predicted (Cox) survival at one time.
pub fn calibration(title: &str, horizon: &str, groups: &[CalibrationGroup]) -> Canvas {
    let (left, right, top, bottom) = (84.0, 504.0, 44.0, 464.0);
    let mut c = Canvas::new(530.0, 530.0);
    c.title(title);
    let lowest = groups
        .iter()
        .flat_map(|g| [g.predicted, g.observed, g.lower.unwrap_or(1.0)])
        .fold(1.0, f64::min);
    // A value that is itself a tick.
    let step = if lowest < 0.6 { 0.2 } else { 0.1 };
    let low = ((lowest / step).floor() * step).clamp(0.0, 0.8);
    let x = Axis { low, high: 1.0, from: left, to: right, log: false };
    let y = Axis { low, high: 1.0, from: bottom, to: top, log: false };
    let marks = ticks(low, 1.0, 5);
    for (&v, label) in marks.iter().zip(tick_labels(&marks)) {
        c.line((left, y.at(v)), (right, y.at(v)), GRID, 0.8);
        c.line((x.at(v), top), (x.at(v), bottom), GRID, 0.8);
        c.text((left - 8.0, y.at(v) + 4.0), &label, 12, Anchor::End);
        c.text((x.at(v), bottom + 18.0), &label, 12, Anchor::Middle);
    }
    c.dashed((x.at(low), y.at(low)), (x.at(1.0), y.at(1.0)), GREY, 1.2, Some("5,4"));
    for g in groups {
        let px = x.at(g.predicted);
        if let (Some(l), Some(u)) = (g.lower, g.upper) {
            c.line((px, y.at(l)), (px, y.at(u)), PALETTE[0], 1.4);
            for v in [l, u] {
                c.line((px - 5.0, y.at(v)), (px + 5.0, y.at(v)), PALETTE[0], 1.4);
            }
        }
        c.dot((px, y.at(g.observed)), 5.0, PALETTE[0], 1.0);
    }
    c.frame((left, top), (right - left, bottom - top), INK, 1.2);
    let text = format!("Predicted survival at {horizon} (mean of group)");
    c.text(((left + right) / 2.0, bottom + 42.0), &text, 13, Anchor::Middle);
    let text = format!("Observed survival at {horizon} (Kaplan-Meier)");
    let middle = (24.0, (top + bottom) / 2.0);
    c.styled(middle, &text, 13, Anchor::Middle, INK, false, Some(-90.0));
    c
}

#[cfg(test)]
mod tests {
    use super::*;
    use stats::survival::Survival;
    use stats::survival::km::{IntervalType, KaplanMeierOptions, kaplan_meier as fit};

    /// `events` deaths, one a month, among `n` patients who were followed for 100 months.
    fn cohort(n: usize, events: usize) -> PlottedCurve {
        let time = |i| if i < events { i as f64 + 1.0 } else { 100.0 };
        let time: Vec<f64> = (0..n).map(time).collect();
        let died: Vec<bool> = (0..n).map(|i| i < events).collect();
        let options =
            KaplanMeierOptions { interval: IntervalType::LogLog, ..KaplanMeierOptions::default() };
        let km = fit(&Survival::new(&time, &died).unwrap(), &options).unwrap();
        PlottedCurve { name: "all".into(), km }
    }

    #[test]
    fn curves_of_few_events_fill_the_picture_and_state_it() {
        for (n, events, low) in [(1000, 10, 0.95), (500, 25, 0.9), (400, 60, 0.8), (60, 20, 0.5)] {
            let curves = [cohort(n, events)];
            assert_eq!(lower_end(&curves), low, "{events} of {n}");
            let last = curves[0].km.points.last().unwrap().lower.unwrap();
            assert!(last >= low, "an interval must not be cut");
            let svg = kaplan_meier("t", "time", "months", &curves, "").svg();
            assert!(svg.contains(&format!("Survival probability (axis from {low})")), "{svg}");
        }
        // One such curve and another one that goes down: the whole axis, as usual.
        let both = [cohort(1000, 10), cohort(60, 40)];
        assert_eq!(lower_end(&both), 0.0);
        let svg = kaplan_meier("t", "time", "months", &both, "").svg();
        assert!(svg.contains("Survival probability") && !svg.contains("axis from"));
    }
}
