//! `at` equals R's `summary(survfit, times =)`: golden values in `golden/km_times.txt`.

use base::remedy::{Remedied, Remedy, Setting};
use outcome::{CurveAt, CurvesPlan, PatientRule, Roles, Table, kaplan_meier};
use std::path::Path;

fn golden(name: &str) -> Vec<(Vec<f64>, Vec<usize>)> {
    let text = include_str!("golden/km_times.txt");
    let mut here = "";
    let mut rows = Vec::new();
    for line in text.lines().filter(|l| !l.starts_with('#')) {
        if line.starts_with(char::is_alphabetic) {
            here = line;
        } else if here == name {
            let decimals = |w: &str| w.split_once('.').map_or(0, |(_, d)| d.len());
            let words = || line.split_whitespace();
            rows.push((
                words().map(|w| w.parse().unwrap()).collect(),
                words().map(decimals).collect(),
            ));
        }
    }
    rows
}

fn read(table: &Table, time: &str, event: &str, at: Vec<f64>) -> Vec<CurveAt> {
    let roles = Roles { time: time.into(), event: event.into(), ..Roles::default() };
    let plan = CurvesPlan { roles, at, ..CurvesPlan::default() };
    kaplan_meier(table, &plan).unwrap().groups.remove(0).at
}

#[track_caller]
fn equal(got: &[CurveAt], want: &[(Vec<f64>, Vec<usize>)]) {
    assert_eq!(got.len(), want.len());
    for (g, (w, decimals)) in got.iter().zip(want) {
        let limits = [g.se, g.lower, g.upper].map(Option::unwrap);
        let survival = g.survival.unwrap();
        let all = [g.time, g.at_risk, g.events, survival, limits[0], limits[1], limits[2]];
        for ((g, w), d) in all.iter().zip(w).zip(decimals) {
            assert!((g - w).abs() <= 0.51 * 0.1_f64.powi(*d as i32), "{all:?} against {w}");
        }
    }
}

#[test]
fn the_veterans() {
    let Some(data) = testkit::data("survival/sksurv/veteran.arff") else { return };
    let text = std::fs::read_to_string(data).unwrap();
    let rows = text.split("@data").nth(1).unwrap().lines().filter(|l| l.contains(','));
    let mut csv = "time,event\n".to_owned();
    for row in rows {
        let cells: Vec<&str> = row.split(',').collect();
        csv += &format!("{},{}\n", cells[2], u8::from(cells[3] == "dead"));
    }
    let table = Table::parse(Path::new("veteran.csv"), csv.as_bytes()).unwrap();
    let want = golden("veteran");
    assert_eq!(want.len(), 13);
    // The order of the times asked for does not matter.
    let times = want.iter().rev().map(|(w, _)| w[0]).collect();
    equal(&read(&table, "time", "event", times), &want);
}

#[test]
fn the_lung_patients_with_events_in_between_and_none_at_the_time_itself() {
    let Some(data) = testkit::data("survival/lifelines/lung.csv") else { return };
    let table = Table::read(&data, &[]).unwrap();
    equal(&read(&table, "time", "status", vec![365.25]), &golden("lung"));
}

#[test]
fn spans_are_open_at_their_start_and_after_the_last_follow_up_there_is_no_survival() {
    let text = "t,e\n0,1\n1,1\n2,0\n3,1\n3,1\n5,0\n6,1\n";
    let table = Table::parse(Path::new("t.csv"), text.as_bytes()).unwrap();
    let at = read(&table, "t", "e", vec![0.0, 1.0, 2.5, 3.0, 5.5, 100.0]);
    let left: Vec<(f64, f64)> = at.iter().map(|a| (a.events, a.censored)).collect();
    assert_eq!(left, [(1.0, 0.0), (1.0, 0.0), (0.0, 1.0), (2.0, 0.0), (0.0, 1.0), (1.0, 0.0)]);
    // R omits this time, though the last observation is an event and S stays 0.
    assert_eq!((at[5].at_risk, at[5].survival, at[5].se), (0.0, None, None));
    // The follow-up of group b ends at 4, without an event.
    let text = "t,e,g\n1,1,a\n9,1,a\n3,0,b\n4,0,b\n";
    let table = Table::parse(Path::new("t.csv"), text.as_bytes()).unwrap();
    let (time, event, groups) = ("t".into(), "e".into(), vec!["g".into()]);
    let roles = Roles { time, event, groups, ..Roles::default() };
    let plan = CurvesPlan { roles, at: vec![0.5, 4.0, 5.0, 9.0], ..CurvesPlan::default() };
    let found = kaplan_meier(&table, &plan).unwrap();
    let survival = |g: usize| found.groups[g].at.iter().map(|a| a.survival).collect::<Vec<_>>();
    assert_eq!(survival(0), [Some(1.0), Some(0.5), Some(0.5), Some(0.0)]);
    assert_eq!(survival(1), [Some(1.0), Some(1.0), None, None]);
    let note = "no survival at 5, 9, after the last follow-up (4), when nobody is at risk";
    let notes: Vec<&String> = found.notes.iter().filter(|n| n.contains("no survival")).collect();
    assert!(notes.len() == 1 && notes[0].ends_with(note), "{notes:?}");
    assert!(notes[0].starts_with(&found.groups[1].name), "{notes:?}");
    let printed = found.to_string();
    let row = printed.lines().rfind(|l| l.trim_start().starts_with('9')).unwrap();
    assert_eq!(row.matches(" -").count(), 4, "{printed}");
}

#[test]
fn sums_of_a_patients_rows_belong_to_a_study() {
    let text = "patient,months,died\na,5,1\na,5,1\nb,9,0\nc,12,1\n";
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("t.csv");
    std::fs::write(&file, text).unwrap();
    let table = Table::read(&file, &[]).unwrap();
    let plan = |patient_rule| {
        let (time, event) = ("months".into(), "died".into());
        let patient = Some("patient".into());
        CurvesPlan {
            roles: Roles { time, event, patient, patient_rule, ..Roles::default() },
            ..CurvesPlan::default()
        }
    };
    let refused = kaplan_meier(&table, &plan(PatientRule::Sum)).unwrap_err();
    assert_eq!(refused.remedy(), Some(Remedy::Change(Setting::PatientRule)), "{refused}");
    assert_eq!(kaplan_meier(&table, &plan(PatientRule::Max)).unwrap().summary.n, 3);
}
