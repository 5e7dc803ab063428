//! C of several methods, on the slides that all of them have.

use super::model::c_result;
use super::results::{Compared, ComparedResult, Joined};
use super::{FEATURES, StudyPlan, model};
use crate::cohort::{Cohort, Slide};
use crate::error::Error;
use crate::frame::Frame;
use base::table::{file_name, without_ending};
use base::text::Many;
use std::collections::{BTreeSet, HashMap};

/// A method's slides, and the rows of those with an outcome.
pub(super) struct Method<'a> {
    pub name: &'a str,
    pub cohort: &'a Cohort,
    /// Why rows are missing, if they are.
    pub frame: Result<&'a Frame, String>,
}

impl Method<'_> {
    /// The rows by the key of their slides; none if two slides share one.
    fn rows(&self, key: Key) -> Option<HashMap<&str, usize>> {
        let frame = self.frame.as_ref().ok()?;
        let slides = frame.rows.iter().map(|&r| key(&self.cohort.slides[r]));
        let rows: HashMap<&str, usize> = slides.enumerate().map(|(k, name)| (name, k)).collect();
        (rows.len() == frame.rows.len()).then_some(rows)
    }

    fn slides(&self) -> usize {
        self.frame.as_ref().map_or(0, |f| f.rows.len())
    }
}

/// The methods of a study, the one under study first.
pub(super) fn methods<'a>(
    plan: &'a StudyPlan,
    main: &'a Joined,
    others: &'a [(Cohort, Result<Frame, Error>)],
) -> Vec<Method<'a>> {
    let first = (&main.cohort, Ok(&main.slides.counts));
    let rest = others.iter().map(|(c, f)| (c, f.as_ref().map_err(ToString::to_string)));
    let all = std::iter::once(first).chain(rest).zip(&plan.methods);
    all.map(|((cohort, frame), m)| Method { name: &m.name, cohort, frame }).collect()
}

/// What makes slides of two methods one.
type Key = fn(&Slide) -> &str;

fn file(slide: &Slide) -> &str {
    file_name(&slide.slide)
}

fn stem(slide: &Slide) -> &str {
    without_ending(file(slide))
}

/// The rows of each method that all methods have, in the order of the first; none for a method that shares no slide
/// with it.
struct Common {
    rows: Vec<Option<Vec<usize>>>,
    /// How many slides each method lacks of those in any, and the first of them.
    lacks: Vec<Lack>,
    /// Slides in any method.
    any: usize,
    unit: &'static str,
}

struct Lack {
    count: usize,
    first: Vec<String>,
}

fn common(methods: &[Method], key: Key, unit: &'static str) -> Option<Common> {
    let (first, others) = methods.split_first()?;
    let own = first.rows(key)?;
    let mut rows = vec![Some(own.clone())];
    for m in others {
        let found = m.rows(key);
        rows.push(found.filter(|rows| rows.keys().any(|k| own.contains_key(k))));
    }
    let known: Vec<&HashMap<&str, usize>> = rows.iter().flatten().collect();
    let frame = first.frame.as_ref().ok()?;
    let names = frame.rows.iter().map(|&r| key(&first.cohort.slides[r]));
    let shared: Vec<&str> = names.filter(|n| known.iter().all(|m| m.contains_key(n))).collect();
    let any: BTreeSet<&str> = known.iter().flat_map(|m| m.keys().copied()).collect();
    let lacks = |rows: &Option<HashMap<&str, usize>>| {
        let missing = any.iter().filter(|n| rows.as_ref().is_some_and(|m| !m.contains_key(**n)));
        let first = missing.clone().take(NAMED).map(|n| (*n).to_owned()).collect();
        Lack { count: missing.count(), first }
    };
    Some(Common {
        lacks: rows.iter().map(lacks).collect(),
        rows: rows
            .iter()
            .map(|m| m.as_ref().map(|m| shared.iter().map(|n| m[n]).collect()))
            .collect(),
        any: any.len(),
        unit,
    })
}

/// Slides named in a note.
const NAMED: usize = 3;

impl Common {
    fn of_methods(methods: &[Method]) -> Option<Self> {
        let size = |c: &Common| {
            let all = c.rows.iter().flatten().count();
            let n = c.rows.iter().flatten().next().map_or(0, Vec::len);
            (n > 0, all, c.unit == "slide", n)
        };
        let units: [(Key, &str); 4] = [
            (|s| s.slide.as_str(), "slide"),
            (file, "slide"),
            (stem, "slide"),
            // Methods with one row per patient may name their rows as they like.
            (|s| s.patient.as_str(), "patient"),
        ];
        let found = units.into_iter().filter_map(|(key, unit)| common(methods, key, unit));
        found.rev().max_by_key(size)
    }

    /// What each method lacks.
    fn note(&self, methods: &[Method]) -> Option<String> {
        let lacking = self.lacks.iter().zip(methods).filter(|(lack, _)| lack.count > 0);
        let each: Vec<String> = lacking
            .map(|(lack, m)| {
                let more = if lack.count > NAMED { ", ..." } else { "" };
                format!("{} lacks {} ({}{more})", m.name, lack.count, lack.first.join(", "))
            })
            .collect();
        let n = self.rows.iter().flatten().next().map_or(0, Vec::len);
        (!each.is_empty()).then(|| {
            format!(
                "methods are compared on the {} that all of them have; of {} in any of them, {}",
                Many(n, self.unit),
                self.any,
                each.join("; ")
            )
        })
    }
}

/// The rows of the comparison; adds what methods lack to the notes, and a comparison that fails to the warnings.
pub(super) fn compare(
    plan: &StudyPlan,
    methods: &[Method],
    notes: &mut Vec<String>,
    warnings: &mut Vec<String>,
) -> Vec<Compared> {
    for m in &methods[1..] {
        let own = m.cohort.notes.iter().filter(|n| !methods[0].cohort.notes.contains(n));
        notes.extend(own.map(|n| format!("{}: {n}", m.name)));
        warnings.extend(m.cohort.incomplete().map(|w| format!("{}: {w}", m.name)));
    }
    let common = Common::of_methods(methods);
    notes.extend(common.as_ref().and_then(|c| c.note(methods)));
    let selected = |i: usize, m: &Method| -> Result<Frame, String> {
        let frame = m.frame.clone()?;
        let rows = common.as_ref().and_then(|c| c.rows[i].as_ref());
        let Some(rows) = rows else {
            return Err(format!("it has no slide of {}", methods[0].name));
        };
        if rows.is_empty() {
            return Err("no slide is in every method".to_owned());
        }
        frame.select(rows).map_err(|e| e.to_string())
    };
    let frames: Vec<Result<Frame, String>> =
        methods.iter().enumerate().map(|(i, m)| selected(i, m)).collect();
    let mut comparison = Vec::new();
    for (feature, label) in FEATURES {
        for (i, (m, frame)) in methods.iter().zip(&frames).enumerate() {
            let counts = frame.as_ref().ok();
            let raw = counts.and_then(|f| {
                let count = f.values(f.column(feature).ok()?);
                c_result(plan, f, &count, true).ok()
            });
            let fitted = frame.as_ref().map_err(Clone::clone).and_then(|f| {
                let risk = |f: &Frame| {
                    let fitted = model(plan, f, &[f.column(feature)?])?;
                    c_result(plan, f, &fitted.fit.linear_predictor, true)
                };
                risk(f).map_err(|e: Error| e.to_string())
            });
            let result = match fitted {
                Ok(c_index) => ComparedResult::Found { label, c_index },
                Err(failed) => {
                    // The first method's own model has its warning already.
                    if i > 0 || methods.len() > 1 && frame.is_err() {
                        warnings.push(format!("{label}, {}: not compared: {failed}", m.name));
                    }
                    ComparedResult::Failed { failed }
                }
            };
            comparison.push(Compared {
                method: m.name.to_owned(),
                feature,
                n: counts.map_or(0, |f| f.survival.len()),
                events: counts.map_or(0, |f| f.survival.events()),
                slides: m.slides(),
                result,
                c_index_count_as_risk: raw,
            });
        }
    }
    comparison
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::study::{Counts, Study, study};
    use crate::table::Table;
    use std::path::Path;

    fn table(name: &str, text: &str) -> Table {
        Table::parse(Path::new(name), text.as_bytes()).unwrap()
    }

    fn studied(other: &str) -> Study {
        let (mut clinical, mut counts) =
            ("id,t,e\n".to_owned(), "slide,hotspot_count,density\n".to_owned());
        for i in 0..20 {
            clinical += &format!("P{i:02},{},{}\n", 3 + i * 7 % 31, i % 2);
            counts += &format!("P{i:02}-1.svs,{},{}\n", i * 5 % 17, i * 3 % 11);
        }
        let other = format!("slide,hotspot_count,density\n{other}");
        let methods = [("main", &counts), ("other", &other)];
        let plan = StudyPlan {
            methods: methods.map(|(n, text)| Counts::new(n, table(n, text))).to_vec(),
            join: ("slide".into(), "id".into()),
            time: "t".into(),
            event: "e".into(),
            replicates: 20,
            ..StudyPlan::default()
        };
        study(&table("clinical.csv", &clinical), &plan).unwrap()
    }

    /// The same counts on some of the slides: C is the same for both, of the slides that both have.
    #[test]
    fn methods_are_compared_on_the_slides_that_all_have() {
        let row = |name: String, i: usize| format!("{name},{},{}\n", i * 5 % 17, i * 3 % 11);
        let named = |i: usize| row(format!("P{i:02}-1"), i);
        let half = (0..12).rev().map(named).collect::<String>();
        // A slide without a clinical row, and one without a count.
        let s = studied(&format!("{half}Q-1,3,4\nP19-1,,\n"));
        let note = s.notes.iter().find(|n| n.contains("are compared on")).unwrap();
        let words = "the 12 slides that all of them have; of 20 in any of them, other lacks 8 (P12-1, P13-1, P14-1, ...)";
        assert!(note.contains(words), "{note}");
        for words in ["other: left out without a clinical row: 1 slide (Q-1)", "1 slide (P19-1)"] {
            assert!(s.notes.iter().any(|n| n.contains(words)), "{words}: {:?}", s.notes);
        }
        let c = |c: &Compared| match &c.result {
            ComparedResult::Found { c_index, .. } => c_index.clone(),
            ComparedResult::Failed { failed } => panic!("{failed}"),
        };
        for pair in s.comparison.chunks(2) {
            assert_eq!((pair[0].n, pair[1].n, pair[0].slides, pair[1].slides), (12, 12, 20, 12));
            assert_eq!(pair[0].events, 6);
            assert_eq!(c(&pair[0]), c(&pair[1]), "the same rows in the same order");
        }
        // One row per patient under a name of its own.
        let s = studied(&(0..20).map(|i| row(format!("P{i:02}"), i)).collect::<String>());
        assert!(s.comparison.iter().all(|c| c.n == 20), "{:?}", s.comparison);
        assert!(!s.notes.iter().any(|n| n.contains("are compared on")), "{:?}", s.notes);
        // Nothing in common.
        let s =
            studied(&(0..20).map(|i| row(format!("P{:02}-x{i}", i % 2), i)).collect::<String>());
        assert!(
            s.warnings.iter().any(|w| w.contains("other: not compared: it has no slide of main"))
        );
        assert_eq!((s.comparison[0].n, s.comparison[1].n), (20, 0));
    }
}
