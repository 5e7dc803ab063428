//! Any table gives either an error or a result whose values are finite or explained by a note.

use super::*;
use proptest::prelude::*;
use stats::survival::cox::{Options, fit};
use std::path::Path;

/// Cells as they occur, the bad ones oftener than in life.
fn cell() -> impl Strategy<Value = String> {
    prop_oneof![
        6 => (0_u32..30).prop_map(|v| v.to_string()),
        2 => (-3.0..90.0).prop_map(|v: f64| format!("{v:.2}")),
        1 => prop::sample::select(vec![
            "", "NA", "inf", "-1", "1e400", "1e-300", "TRUE", "false", "2", "1,5", "low", "high",
            "\u{b5}m", "[Unknown]", "-0", "+1", "0x1F", " 1 ", "NaN",
        ])
        .prop_map(str::to_owned),
    ]
}

fn event() -> impl Strategy<Value = String> {
    prop_oneof![
        12 => prop::sample::select(vec!["0", "1"]).prop_map(str::to_owned),
        1 => cell(),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    /// As a study has it: outcomes and a count first, the covariates of adjusted models later.
    #[test]
    fn covariates_that_are_added_give_the_frame_that_is_read_with_them(
        rows in prop::collection::vec((0_u32..40, any::<bool>(), 0_u32..9, cell(), 0_u32..6), 2..25),
        near in any::<bool>(),
    ) {
        let mut out = base::table::Writer::new(["t", "e", "n", "y", "g"]);
        for (k, (t, e, n, y, g)) in rows.iter().enumerate() {
            let near = if near { 1e-9 * k as f64 } else { 0.0 };
            let t = f64::from(*t) + near;
            out.push([t.to_string(), u8::from(*e).to_string(), n.to_string(), y.clone(), g.to_string()]);
        }
        let table = Table::parse(Path::new("f.csv"), &out.into_bytes()).unwrap();
        let roles = |covariates: &[&str]| Roles {
            time: "t".into(),
            event: "e".into(),
            covariates: covariates.iter().map(|&c| c.to_owned()).collect(),
            cluster: Some("g".into()),
            ..Roles::default()
        };
        let counts = Frame::read(&table, &roles(&["n"])).unwrap();
        let added = counts.with_covariates(&table, &roles(&["n"]), &["y".to_owned()]);
        match (added, Frame::read(&table, &roles(&["y", "n"]))) {
            (Ok(added), Ok(read)) => {
                let mut read_notes = read.notes.clone();
                read_notes.retain(|n| added.notes.contains(n) || !counts.notes.contains(n));
                prop_assert_eq!(&read_notes, &added.notes);
                let (notes, read_notes) = (Vec::new(), Vec::new());
                let (added, read) = (Frame { notes, ..added }, Frame { notes: read_notes, ..read });
                prop_assert_eq!(format!("{added:?}"), format!("{read:?}"));
            }
            (Err(added), Err(read)) => prop_assert_eq!(added.to_string(), read.to_string()),
            (added, read) => prop_assert!(false, "{added:?} {read:?}"),
        }
    }

    #[test]
    fn any_table_is_analysed_or_refused(
        rows in prop::collection::vec((cell(), event(), cell(), cell(), cell()), 1..25),
        strata in any::<bool>(), cluster in any::<bool>(),
    ) {
        let mut out = base::table::Writer::new(["t", "e", "x", "y", "g"]);
        for (t, e, x, y, g) in &rows {
            out.push([t, e, x, y, g]);
        }
        let table = Table::parse(Path::new("f.csv"), &out.into_bytes()).unwrap();
        let roles = Roles {
            time: "t".into(),
            event: "e".into(),
            covariates: vec!["x".into(), "y".into()],
            strata: if strata { vec!["g".into()] } else { Vec::new() },
            cluster: cluster.then(|| "g".into()),
            ..Roles::default()
        };
        let frame = match Frame::new(&table, &roles) {
            Ok(frame) => frame,
            Err(error) => {
                let words = error.to_string();
                prop_assert!(words.len() > 10, "{}", words);
                return Ok(());
            }
        };
        prop_assert!(frame.x.iter().all(|v| v.is_finite()));
        let columns: Vec<usize> = (0..frame.names.len()).collect();
        let mut buffer = Vec::new();
        let data = frame.cox(&columns, &mut buffer).unwrap();
        let Ok(fitted) = fit(&data, &Options::default()) else { return Ok(()) };
        prop_assert!(fitted.loglik.is_finite() && fitted.loglik_null.is_finite());
        if fitted.converged() {
            for c in (0..columns.len()).filter_map(|j| fitted.coefficient(j)) {
                prop_assert!(c.beta.is_finite() && c.se_naive.is_finite(), "{c:?}");
            }
        }
    }
}
