//! Signs that a column of times is something else than how long somebody was followed.

use crate::table::Table;
use std::collections::BTreeMap;

/// Fewest different times that may be dates.
const FEWEST: usize = 3;
/// Names of columns that state the unit of each row's time.
const UNITS: [&str; 6] = ["unit", "units", "timeunit", "timeunits", "unitoftime", "durationunit"];

/// What times that are all whole numbers look like.
fn date(times: &[f64]) -> Option<&'static str> {
    let all = |is: &dyn Fn(f64) -> bool| times.iter().all(|t| t.fract() == 0.0 && is(*t));
    let within = |t: f64, low: f64, high: f64| (low..=high).contains(&t);
    let is_day = |t: f64| {
        let (month, day) = ((t / 100.0).floor() % 100.0, t % 100.0);
        within(t, 19_000_101.0, 21_001_231.0) && within(month, 1.0, 12.0) && within(day, 1.0, 31.0)
    };
    if all(&is_day) {
        return Some("dates");
    }
    if all(&|t| within(t, 1900.0, 2100.0)) {
        return Some("years of a calendar");
    }
    // 1954 to 2064, and as days more than 54 years.
    all(&|t| within(t, 20_000.0, 60_000.0)).then_some("dates of a spreadsheet")
}

/// A note on times that look like dates.
pub(super) fn dates(table: &Table, column: usize, times: &[f64]) -> Option<String> {
    let what = date(times)?;
    let mut sorted = times.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.dedup();
    let (low, high) = (sorted.first()?, sorted.last()?);
    (sorted.len() >= FEWEST).then(|| {
        format!(
            "times of '{}' look like {what} ({low} to {high}); a time is how long somebody was followed",
            table.names()[column]
        )
    })
}

/// A note on times of several units.
pub(super) fn units(table: &Table, column: usize) -> Option<String> {
    let is_unit = |name: &String| {
        let bare: String = name.to_lowercase().chars().filter(|c| c.is_alphanumeric()).collect();
        UNITS.contains(&bare.as_str())
    };
    let j = table.names().iter().position(is_unit)?;
    let mut units: BTreeMap<&str, usize> = BTreeMap::new();
    for cell in (0..table.len()).filter_map(|row| table.cell(row, j)) {
        *units.entry(cell).or_default() += 1;
    }
    let listed: Vec<String> =
        units.iter().take(8).map(|(unit, n)| format!("'{unit}' ({n})")).collect();
    (units.len() > 1).then(|| {
        let (unit, time) = (&table.names()[j], &table.names()[column]);
        format!(
            "column '{unit}' holds {}, and times of '{time}' are compared as they are",
            listed.join(", ")
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_that_look_like_dates() {
        for (times, what) in [
            ([20_110_501.0, 20_120_731.0, 19_991_201.0], Some("dates")),
            ([2001.0, 2011.0, 1998.0], Some("years of a calendar")),
            ([40_100.0, 42_000.0, 38_111.0], Some("dates of a spreadsheet")),
            ([20_111_301.0, 20_110_501.0, 20_120_731.0], None),
            ([2001.0, 2011.0, 15.0], None),
            ([2001.5, 2011.0, 1998.0], None),
            ([12.0, 1022.0, 44.0], None),
        ] {
            assert_eq!(date(&times), what, "{times:?}");
        }
    }
}
