//! Construction of crop corpora from slides: tissue tiles, tumour filter, detector, pseudo-labels,
//! crops; or patches at several resolutions. Resumable at any point.
//!
//! Every slide gets a folder under `OUT/.build` with its crops and its state. When all are done the
//! parts are joined in the order of slide names, so the corpus is the same whatever the number of
//! workers and however often the construction was killed. [`inspect`] shows what a corpus holds.

#![forbid(unsafe_code)]

mod error;
mod exclude;
mod funnel;
pub mod inspect;
mod join;
mod organ;
mod part;
mod plan;
mod preset;
mod report;
mod slide;
mod task;
mod tiles;

pub use error::{ConstructError, SlideFailure};
pub use exclude::{Exclusions, Origin, Origins};
pub use funnel::{Funnel, Seconds};
pub use plan::Plan;
pub use preset::{Candidates, Crops, Kind, Patches, Preset, Sample, Tiles};
pub use report::{Line, Report};
pub use task::Work;
pub use tiles::FilterPlan;

use base::file::Lock;
use infer::ModelPackage;
use mithras::batch::{self, Checked, Existing};
use mithras::detector::{Detector, DetectorError};
use mithras::input::Input;
use mithras::progress::Listener;
use std::collections::BTreeMap;
use std::panic::resume_unwind;
use std::path::Path;
use std::time::Instant;
use task::Construction;

/// Builds the corpus of `plan`, or continues it. `open` opens the detector, once per worker.
///
/// # Errors
/// [`ConstructError`], before any slide is read or when the parts are joined. A slide that fails is
/// listed in the report instead.
pub fn construct(
    plan: &Plan,
    open: &dyn Fn() -> Result<Detector, DetectorError>,
    listener: &mut dyn Listener,
) -> Result<Report, ConstructError> {
    let start = Instant::now();
    plan.notes()?;
    let mut inputs = plan.slides.clone();
    inputs.sort_by(|x, y| x.name.cmp(&y.name));
    let parts = plan.out.join(".build");
    std::fs::create_dir_all(&plan.out).map_err(|e| ConstructError::io(&plan.out, e))?;
    let lock = Lock::take(&parts)?;
    lock.clear(&plan.out);
    plan.keeps_every_slide()?;

    let mut workers = vec![plan.worker(open)?];
    let packages = plan.filters.iter().map(|f| ModelPackage::find(Some(&f.package)));
    let packages = packages.collect::<Result<Vec<_>, _>>()?;
    let config = serde_json::to_value(plan.config(&workers[0], &packages))?;
    let config_digest = base::renamed::json_digest(&config);
    let mut lines = BTreeMap::new();
    let (mut origins, mut todo) = (BTreeMap::new(), Vec::new());
    for input in inputs {
        let (name, file) = (input.name.clone(), input.file_name());
        let origin = plan.origins.origin(&name, &file, plan.cohort.as_deref())?;
        plan.exclusions.check(&name, &origin)?;
        if let Some(reason) = plan.exclusions.reason(&name, &origin) {
            lines.insert(name.clone(), Line::excluded(name, origin.cohort, reason));
            continue;
        }
        origins.insert(name, origin);
        todo.push(Checked { input, check: Ok(()) });
    }
    let shares = plan.preset.sample.as_ref().and_then(|s| s.per_cohort);
    let shares = match (shares, &plan.preset.tiles) {
        (Some(n), Some(tiles)) => shared(&origins, &counted(&todo, tiles, plan.workers, &parts), n),
        _ => BTreeMap::new(),
    };
    while workers.len() < plan.workers.clamp(1, todo.len().max(1)) {
        workers.push(plan.worker(open)?);
    }
    let construction = |worker| Construction {
        worker,
        preset: &plan.preset,
        config: &config_digest,
        origins: &origins,
        shares: &shares,
    };
    let mut workers: Vec<_> = workers.into_iter().map(construction).collect();
    let outcomes = batch::run(todo, &mut workers, &parts, Existing::Resume, listener);
    let resumed = outcomes.iter().filter(|o| o.kept).count();
    for outcome in &outcomes {
        let origin = &origins[&outcome.input.name];
        lines.insert(outcome.input.name.clone(), Line::from_outcome(outcome, origin));
    }
    let lines: Vec<Line> = lines.into_values().collect();
    // Of slides that could not be read no corpus is made, not even an empty one.
    let is_lost = !outcomes.is_empty() && outcomes.iter().all(|o| !o.is_done());
    let joined = (!is_lost).then(|| join::join(plan, config, &lines, &parts)).transpose()?;
    let failures = outcomes.into_iter().filter_map(|o| o.failure).collect();
    let report = Report::new(plan, lines, joined, resumed, failures, start.elapsed());
    if !is_lost {
        base::json::write(&plan.out.join("build.json"), &report)?;
    }
    Ok(report)
}

/// Tiles on tissue by slide, counted by so many threads or as `parts` have them; without slides that cannot be read now
/// and were not counted before.
fn counted<E: Sync>(
    slides: &[Checked<E>],
    tiles: &Tiles,
    workers: usize,
    parts: &Path,
) -> BTreeMap<String, usize> {
    let count_all = |part: &[Checked<E>]| -> Vec<(String, usize)> {
        let count = |i: &Input| tiles::count(i, tiles, &parts.join(&i.name));
        let named_count = |s: &Checked<E>| Some((s.input.name.clone(), count(&s.input)?));
        part.iter().filter_map(named_count).collect()
    };
    let each = slides.len().div_ceil(workers.max(1)).max(1);
    std::thread::scope(|scope| {
        let threads: Vec<_> =
            slides.chunks(each).map(|part| scope.spawn(move || count_all(part))).collect();
        threads.into_iter().flat_map(|t| t.join().unwrap_or_else(|p| resume_unwind(p))).collect()
    })
}

/// How many of a cohort's tiles each of its slides gives, by slide: all of a slide that has few, and of the others
/// equal numbers, so that the cohort reaches its number where it has so many; the first slides in the order of their
/// names one more where it does not come out even. A slide that was not counted is one of the others: it fails where it
/// is worked on, or gives its part.
fn shared(
    origins: &BTreeMap<String, Origin>,
    tiles: &BTreeMap<String, usize>,
    per_cohort: usize,
) -> BTreeMap<String, usize> {
    let mut cohorts: BTreeMap<&str, Vec<(usize, &String)>> = BTreeMap::new();
    for (name, origin) in origins {
        let has = tiles.get(name).copied().unwrap_or(usize::MAX);
        cohorts.entry(&origin.cohort).or_default().push((has, name));
    }
    let mut shares = BTreeMap::new();
    for mut slides in cohorts.into_values() {
        slides.sort_unstable();
        let mut wanted = per_cohort;
        for (k, (has, name)) in slides.iter().enumerate() {
            let left = slides.len() - k;
            if *has > wanted / left {
                // All that follow have as many.
                let mut names: Vec<&String> = slides[k..].iter().map(|(_, name)| *name).collect();
                names.sort_unstable();
                let (even, more) = (wanted / left, wanted % left);
                let share = |(i, n): (usize, &String)| (n.clone(), even + usize::from(i < more));
                shares.extend(names.into_iter().enumerate().map(share));
                break;
            }
            wanted -= has;
            shares.insert((*name).clone(), *has);
        }
    }
    shares
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cohort_gives_its_tiles_whatever_its_slides_have() {
        let origin = |c: &str| Origin { cohort: c.into(), patient: None };
        let all = [("a", "BRCA"), ("b", "OV"), ("c", "BRCA"), ("d", "BRCA")];
        let origins = all.map(|(s, c)| (s.to_owned(), origin(c))).into();
        let given = |tiles: [usize; 4], per_cohort: usize| {
            let names = all.iter().map(|(s, _)| (*s).to_owned());
            let shares = shared(&origins, &names.zip(tiles).collect(), per_cohort);
            shares.into_values().collect::<Vec<_>>()
        };
        assert_eq!(given([500; 4], 100), [34, 100, 33, 33]);
        // What a slide lacks, the others give, whatever the order of their names.
        assert_eq!(given([500, 500, 10, 500], 100), [45, 100, 10, 45]);
        assert_eq!(given([10, 500, 34, 500], 100), [10, 100, 34, 56]);
        assert_eq!(given([0, 7, 500, 500], 101), [0, 7, 51, 50]);
        // A cohort without enough gives all.
        assert_eq!(given([1, 2, 3, 4], 100), [1, 2, 3, 4]);
        // One that could not be read while tiles were counted has its part.
        let but_one = [("a".to_owned(), 500), ("c".into(), 10)].into();
        let shares = shared(&origins, &but_one, 100);
        assert_eq!(shares.into_values().collect::<Vec<_>>(), [45, 100, 10, 45]);
        // More slides than tiles.
        assert_eq!(given([5; 4], 2), [1, 2, 1, 0]);
    }
}
