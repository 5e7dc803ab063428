//! The clinical rows of one patient: they must agree in what the study uses.

use super::plan::{CutPoints, StudyPlan};
use crate::cohort::Cohort;
use crate::error::Result;
use crate::frame::Frame;
use crate::table::Table;
use std::collections::{HashMap, HashSet};

/// The slides that the counts of patients are combined over, those of the complete rows in `frame`, where a patient
/// has such; all slides of a patient get one clinical row, if possible one of `better`.
///
/// # Errors
/// [`crate::Error::Cell`] of a complete row that contradicts another of its patient: in time, event, a column of
/// `same` or that of the training subset.
pub(super) fn agreed(
    plan: &StudyPlan,
    cohort: &Cohort,
    table: &Table,
    frame: &Frame,
    same: &[String],
    better: &[usize],
) -> Result<Cohort> {
    let training = match &plan.cut {
        CutPoints::Training { column, .. } => Some(table.column(column)?),
        _ => None,
    };
    let mut columns = vec![table.column(&plan.time)?];
    columns.extend(same.iter().map(|c| table.column(c)).collect::<Result<Vec<_>>>()?);
    let event = table.column(&plan.event)?;
    let better: HashSet<usize> = better.iter().copied().collect();
    let rank = |row: usize| {
        let known = training.is_none_or(|j| table.cell(row, j).is_some());
        (known, better.contains(&row))
    };
    // Rows of the table of slides are the slides of the cohort.
    let mut of_patient: HashMap<&str, Vec<usize>> = HashMap::new();
    for (k, &row) in frame.rows.iter().enumerate() {
        of_patient.entry(&cohort.slides[row].patient).or_default().push(k);
    }
    let happened = frame.survival.event();
    let mut chosen = HashMap::new();
    for (k, &row) in frame.rows.iter().enumerate() {
        let patient = cohort.slides[row].patient.as_str();
        let all = &of_patient[patient];
        let first = frame.rows[all[0]];
        let differs =
            |column: usize, other: usize| Err(table.contradiction(row, column, other, patient, ""));
        if let Some(&column) = columns.iter().find(|&&j| !table.agree(row, first, j)) {
            return differs(column, first);
        }
        if happened[k] != happened[all[0]] {
            return differs(event, first);
        }
        let best = all.iter().map(|&k| frame.rows[k]).rev().max_by_key(|&r| rank(r));
        let best = best.unwrap_or(first);
        if let Some(j) = training
            && table.cell(row, j).is_some()
            && !table.agree(row, best, j)
        {
            return differs(j, best);
        }
        chosen.insert(patient.to_owned(), cohort.slides[best].clinical);
    }
    Ok(cohort.narrowed(&frame.rows.iter().copied().collect(), &chosen))
}

#[cfg(test)]
mod tests {
    use crate::Table;
    use crate::study::{Study, StudyPlan, study};
    use std::path::Path;

    fn table(name: &str, text: &str) -> Table {
        Table::parse(Path::new(name), text.as_bytes()).unwrap()
    }

    /// Twelve patients of two slides each, with one clinical row per slide; `edit` may change a cell by patient, slide
    /// and column.
    fn studied(
        reversed: bool,
        edit: impl Fn(usize, usize, &str) -> Option<&'static str>,
    ) -> Result<Study, String> {
        let mut clinical = String::from("id,who,months,died,age,part\n");
        let mut rows = Vec::new();
        for p in 0..12 {
            for s in 0..2 {
                let cells = [
                    ("months", (3 + (p * 17) % 61).to_string()),
                    ("died", usize::from(p % 3 != 1).to_string()),
                    ("age", (40 + (p * 7) % 31).to_string()),
                    ("part", ["train", "test"][p % 2].to_owned()),
                ];
                let cells = cells.map(|(name, v)| edit(p, s, name).map_or(v, str::to_owned));
                clinical += &format!("S{p:02}{s},P{p:02},{}\n", cells.join(","));
                rows.push(format!("S{p:02}{s},{},{}\n", (p * 5 + 4 * s) % 13, (p * 7 + s) % 19));
            }
        }
        if reversed {
            rows.reverse();
        }
        let counts = format!("slide,hotspot_count,density\n{}", rows.concat());
        let plan = StudyPlan {
            patient: Some("who".into()),
            ..StudyPlan::of_tests(table("counts.csv", &counts))
        };
        study(&table("clinical.csv", &clinical), &plan).map_err(|e| e.to_string())
    }

    #[test]
    fn rows_of_a_patient_that_contradict_each_other_are_refused() {
        for (column, other, words) in [
            ("months", "99", "'99', but '3' of the same patient 'P00' in row 1"),
            ("died", "0", "'0', but '1' of the same patient 'P00' in row 1"),
            ("age", "77", "'77', but '40' of the same patient 'P00' in row 1"),
            ("part", "test", "'test', but 'train' of the same patient 'P00' in row 1"),
        ] {
            let edit = |p: usize, s: usize, name: &str| {
                ((p, s) == (0, 1) && name == column).then_some(other)
            };
            let refused = studied(false, edit).unwrap_err();
            let place = format!("clinical.csv, column '{column}', row 2 (line 3): {words}");
            assert!(refused.contains(&place), "{refused}");
        }
        let forms = |_, s: usize, name: &str| (s == 1 && name == "died").then_some("1.0");
        let events = |p: usize, s: usize, name: &str| {
            forms(p, s, name)
                .filter(|_| p % 3 != 1)
                .or((name == "died" && p % 3 == 1).then_some("0"))
        };
        assert!(studied(false, events).is_ok(), "1 and 1.0 are one value");
    }

    /// As in a Cox model of the rows: one with a gap counts for nothing where its patient has a complete one.
    #[test]
    fn a_row_with_a_gap_gives_way_to_a_complete_one_of_its_patient() {
        let edit = |p: usize, s: usize, name: &str| match (p, s, name) {
            (0, 0, "months") | (1, 1, "age") | (2, 0, "part") => Some(""),
            _ => None,
        };
        let (forth, back) = (studied(false, edit).unwrap(), studied(true, edit).unwrap());
        assert_eq!((forth.patients, forth.slides), (12, 23));
        assert_eq!(forth.features[0].adjusted.as_ref().unwrap().full.n, 12);
        let p = |s: &Study| s.p_values.iter().map(|t| (t.p * 1e9).round()).collect::<Vec<_>>();
        assert_eq!(p(&forth), p(&back), "whatever the order of the slides");
        let rows = &forth.joined.patients.table;
        let (age, part) = (rows.column("age").unwrap(), rows.column("part").unwrap());
        assert!((0..rows.len()).all(|r| rows.cell(r, part).is_some()));
        assert!((0..rows.len()).all(|r| rows.cell(r, age).is_some()));
        // The slide without a time has no part in its patient's count.
        assert_eq!(rows.number(0, rows.column("hotspot").unwrap()).unwrap(), 4.0);
    }
}
