//! Signs that a column of times is something else than how long somebody was followed.

use crate::table::Table;
use base::table::normal;
use std::collections::BTreeMap;

/// Fewest different times that may be dates.
const FEWEST: usize = 3;
/// Names of columns that state the unit of each row's time.
const UNITS: [&str; 6] = ["unit", "units", "timeunit", "timeunits", "unitoftime", "durationunit"];

/// Names of columns that state where a row is from.
const SOURCES: [&str; 10] = [
    "center",
    "centre",
    "cohort",
    "dataset",
    "hospital",
    "institute",
    "institution",
    "project",
    "site",
    "study",
];
/// Fewest times of a source.
const FEWEST_OF_SOURCE: usize = 10;
/// How many times the median of another it has to be. Days and months are found. Weeks and months are not, because one
/// source may well follow for four times as long as another.
const LONGER: f64 = 10.0;

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

/// The first column with one of these names, which are in the form of [`normal`].
fn named(table: &Table, names: &[&str]) -> Option<usize> {
    table.names().iter().position(|name| names.contains(&normal(name).as_str()))
}

/// A note on times of several units.
pub(super) fn units(table: &Table, column: usize) -> Option<String> {
    let j = named(table, &UNITS)?;
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

/// A note on sources whose times may be of another unit than those of others.
pub(super) fn sources(table: &Table, column: usize) -> Option<String> {
    let j = named(table, &SOURCES)?;
    let mut times: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    for row in 0..table.len() {
        if let (Some(source), Ok(time)) = (table.cell(row, j), table.number(row, column)) {
            times.entry(source).or_default().push(time);
        }
    }
    let enough = times.iter().filter(|(_, times)| times.len() >= FEWEST_OF_SOURCE);
    let mut medians: Vec<(f64, &str)> = enough
        .filter_map(|(source, times)| Some((stats::interval::median(times).ok()?, *source)))
        .collect();
    medians.sort_by(|a, b| a.0.total_cmp(&b.0));
    let (shortest, longest) = (medians.first()?, medians.last()?);
    let is_longer = shortest.0 > 0.0 && longest.0 >= LONGER * shortest.0;
    is_longer.then(|| {
        format!(
            "times of '{}' have a median of {} where '{}' is '{}', and of {} where it is '{}': they may be of two units, \
             and are compared as they are",
            table.names()[column],
            longest.0,
            table.names()[j],
            longest.1,
            shortest.0,
            shortest.1
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources_with_times_of_another_unit() {
        let note = |name: &str, n: usize, factor: f64| {
            let row = |i: usize| {
                let time = (20 + i) as f64;
                format!("{},Berlin\n{},Oslo\n", time, time * factor)
            };
            let rows: String = (0..n).map(row).collect();
            let text = format!("time,{name}\n{rows}");
            sources(&Table::parse("t.csv".as_ref(), text.as_bytes()).unwrap(), 0)
        };
        assert_eq!(
            note("Site", 11, 30.4).unwrap(),
            "times of 'time' have a median of 760 where 'Site' is 'Oslo', and of 25 where it is 'Berlin': they may be of \
             two units, and are compared as they are"
        );
        for (name, n, factor) in [("Site", 11, 5.0), ("Site", 9, 30.4), ("grade", 11, 30.4)] {
            assert_eq!(note(name, n, factor), None, "{name}, {n}, {factor}");
        }
        // All of a source at time 0: no unit makes them longer.
        assert_eq!(note("Site", 11, 0.0), None);
    }

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
