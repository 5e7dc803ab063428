//! Box plots with medians and means.

use pages::canvas::{Anchor, Axis, Canvas, GRID, INK, PALETTE, tick_labels, ticks, wrap};
use stats::interval::quantile_sorted;

/// One box.
pub struct BoxGroup {
    pub name: String,
    /// Sorted, not empty.
    pub values: Vec<f64>,
}

impl BoxGroup {
    /// The middle value.
    pub fn median(&self) -> f64 {
        quantile_sorted(&self.values, 0.5)
    }

    /// The mean.
    pub fn mean(&self) -> f64 {
        self.values.iter().sum::<f64>() / self.values.len() as f64
    }
}

/// Boxes over quartiles, whiskers to the last value within 1.5 interquartile ranges, all values as
/// dots, median and mean written over each box.
pub fn boxes(title: &str, value_label: &str, group_label: &str, groups: &[BoxGroup]) -> Canvas {
    let step = 118.0_f64;
    let left = 84.0;
    let right = left + (step * groups.len() as f64).max(240.0);
    let width = (right + 24.0).max(420.0);
    // A bold letter of the title is about nine px wide, one of the axis seven.
    let title = wrap(title, (width / 9.0) as usize);
    let group_label = wrap(group_label, ((right - left) / 7.0) as usize);
    let top = 82.0 + 19.0 * (title.len().max(1) - 1) as f64;
    let bottom = top + 318.0;
    let names: Vec<Vec<String>> = groups.iter().map(|g| wrap(&g.name, 16)).collect();
    let below = bottom + 16.0 * names.iter().map(Vec::len).max().unwrap_or(1) as f64;
    let mut c = Canvas::new(width, below + 46.0 + 16.0 * group_label.len() as f64);
    for (k, line) in title.iter().enumerate() {
        c.styled((14.0, 22.0 + 19.0 * k as f64), line, 15, Anchor::Start, INK, true, None);
    }
    let high = highest_shown(groups);
    let y = Axis { low: 0.0, high, from: bottom, to: top, log: false };
    let marks = ticks(0.0, y.high, 6);
    for (&v, label) in marks.iter().zip(tick_labels(&marks)) {
        c.line((left, y.at(v)), (right, y.at(v)), GRID, 0.8);
        c.text((left - 8.0, y.at(v) + 4.0), &label, 12, Anchor::End);
    }
    let step = (right - left) / groups.len().max(1) as f64;
    for (i, (g, colour)) in groups.iter().zip(PALETTE.iter().cycle()).enumerate() {
        let x = left + step * (i as f64 + 0.5);
        let half = 27.0;
        let q = |p: f64| quantile_sorted(&g.values, p);
        let (q1, q3) = (q(0.25), q(0.75));
        let [low, high] = whiskers(&g.values);
        for (k, &v) in g.values.iter().enumerate() {
            // Those beyond the axis are at its end, so that they are seen.
            let (radius, opacity) = if v > y.high { (3.0, 1.0) } else { (1.9, 0.35) };
            c.dot((x + scatter(k) * 1.7 * half, y.at(v)), radius, colour, opacity);
        }
        c.line((x, y.at(low)), (x, y.at(q1)), INK, 1.2);
        c.line((x, y.at(q3)), (x, y.at(high)), INK, 1.2);
        for v in [low, high] {
            c.line((x - 12.0, y.at(v)), (x + 12.0, y.at(v)), INK, 1.2);
        }
        let size = (2.0 * half, (y.at(q1) - y.at(q3)).max(0.5));
        c.rect((x - half, y.at(q3)), size, colour, 0.28);
        c.frame((x - half, y.at(q3)), size, INK, 1.2);
        c.line((x - half, y.at(g.median())), (x + half, y.at(g.median())), INK, 2.4);
        let m = y.at(g.mean());
        c.line((x - 6.0, m - 6.0), (x + 6.0, m + 6.0), "#b00020", 1.8);
        c.line((x - 6.0, m + 6.0), (x + 6.0, m - 6.0), "#b00020", 1.8);
        c.text((x, top - 24.0), &format!("median {:.1}", g.median()), 12, Anchor::Middle);
        let mean = format!("mean {:.1}", g.mean());
        c.styled((x, top - 9.0), &mean, 12, Anchor::Middle, "#b00020", false, None);
        for (k, line) in names[i].iter().enumerate() {
            c.text((x, bottom + 18.0 + 15.0 * k as f64), line, 12, Anchor::Middle);
        }
        c.text((x, below + 18.0), &format!("n = {}", g.values.len()), 11, Anchor::Middle);
    }
    c.frame((left, top), (right - left, bottom - top), INK, 1.2);
    if let Some(note) = beyond(groups, high) {
        c.text((right - 8.0, top + 16.0), &note, 11, Anchor::End);
    }
    for (k, line) in group_label.iter().enumerate() {
        let at = ((left + right) / 2.0, below + 44.0 + 16.0 * k as f64);
        c.text(at, line, 13, Anchor::Middle);
    }
    let middle = (26.0, (top + bottom) / 2.0);
    c.styled(middle, value_label, 13, Anchor::Middle, INK, false, Some(-90.0));
    c
}

/// Ends of the whiskers of sorted values: the last ones within one and a half times the box's height of it.
fn whiskers(values: &[f64]) -> [f64; 2] {
    let (q1, q3) = (quantile_sorted(values, 0.25), quantile_sorted(values, 0.75));
    let reach = 1.5 * (q3 - q1);
    let low = values.iter().copied().find(|v| *v >= q1 - reach).unwrap_or(q1);
    [low, values.iter().rev().copied().find(|v| *v <= q3 + reach).unwrap_or(q3)]
}

/// Where the axis ends: above all values, unless those beyond the whiskers would press all boxes into a fifth of the
/// picture.
fn highest_shown(groups: &[BoxGroup]) -> f64 {
    let most = |of: &dyn Fn(&BoxGroup) -> f64| groups.iter().map(of).fold(0.0, f64::max);
    let all = most(&|g| g.values.last().copied().unwrap_or(0.0));
    let usual = most(&|g| whiskers(&g.values)[1].max(g.mean()));
    match usual > 0.0 && all > 5.0 * usual {
        true => 1.5 * usual,
        false if all > 0.0 => 1.04 * all,
        false => 1.0,
    }
}

/// The values above the axis, whose dots are at its end.
fn beyond(groups: &[BoxGroup], high: f64) -> Option<String> {
    let values = groups.iter().flat_map(|g| &g.values).copied().filter(|v| *v > high);
    let (n, most) = values.fold((0, 0.0), |(n, most): (usize, f64), v| (n + 1, v.max(most)));
    match n {
        0 => None,
        // Short, because a plot of one group is narrow.
        1 => Some(format!("1 value above: {most:.0}")),
        n => Some(format!("{n} above, up to {most:.0}")),
    }
}

/// Place of the dot of a sorted value across its box, from -0.5 to 0.5: the same for the same data. Neighbours in the
/// order must not follow a pattern, or their dots join to stripes that mean nothing, so the bits are mixed (the
/// finaliser of SplitMix64, Steele et al., OOPSLA 2014).
fn scatter(k: usize) -> f64 {
    let mut z = (k as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    ((z ^ (z >> 31)) >> 11) as f64 / (1_u64 << 53) as f64 - 0.5
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One extreme count must not press all boxes into a line; it is named where it is not drawn to scale.
    #[test]
    fn boxes_use_the_picture_though_one_value_is_far_out() {
        let group = |values: &[f64]| BoxGroup { name: "g".into(), values: values.to_vec() };
        let usual: Vec<f64> = (0..100).map(|k| f64::from(k % 7)).collect();
        let mut sorted = usual.clone();
        sorted.sort_by(f64::total_cmp);
        let plain = [group(&sorted)];
        assert_eq!((highest_shown(&plain), beyond(&plain, highest_shown(&plain))), (6.24, None));
        sorted.push(400.0);
        let far = [group(&sorted)];
        let high = highest_shown(&far);
        assert!((6.0..20.0).contains(&high), "{high}");
        // Of few values, too, where the extreme one is itself a large part of the highest.
        let few = [group(&[sorted[60..85].to_vec(), vec![400.0]].concat())];
        assert!((6.0..40.0).contains(&highest_shown(&few)), "{}", highest_shown(&few));
        let note = beyond(&far, high).unwrap();
        assert_eq!(note, "1 value above: 400");
        assert!(boxes("t", "v", "g", &far).svg().contains(&note));
        assert_eq!(highest_shown(&[group(&[0.0, 0.0])]), 1.0);
    }

    /// Dots of a long run of different values must not form lines: no dot foretells the place of one of the next fifty.
    #[test]
    fn dots_of_a_box_draw_no_stripes() {
        const N: usize = 600;
        let at: Vec<f64> = (0..N).map(scatter).collect();
        assert!(at.iter().all(|v| (-0.5..0.5).contains(v)));
        for part in 0..10 {
            let low = f64::from(part) / 10.0 - 0.5;
            let n = at.iter().filter(|v| (low..low + 0.1).contains(*v)).count();
            assert!((30..=90).contains(&n), "{n} of {N} dots in tenth {part} of the width");
        }
        for lag in 1..=50 {
            let pairs = at.iter().zip(&at[lag..]);
            // Steps from one dot to the other: of no pattern they are all over the width, of a stripe nearly all alike.
            let mut steps: Vec<f64> = pairs.map(|(a, b)| (b - a).rem_euclid(1.0)).collect();
            steps.sort_by(f64::total_cmp);
            let middle = quantile_sorted(&steps, 0.75) - quantile_sorted(&steps, 0.25);
            assert!((0.35..0.65).contains(&middle), "dots {lag} apart are {middle} apart");
        }
    }
}
