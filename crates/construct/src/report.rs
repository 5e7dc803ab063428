//! What came of a construction: `build.json`.

use super::Plan;
use super::error::SlideFailure;
use super::exclude::Origin;
use super::funnel::{Funnel, Seconds};
use super::organ::by_site;
use super::task::Work;
use base::text::Many;
use mithras::batch::{Outcome, state};
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

/// Rows of two filters.
const OF_TWO: [&str; 3] =
    ["tiles drawn for two filters", "tiles kept by both filters", "tiles kept by the second alone"];

/// How a slide ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// Its crops are in the corpus.
    Done,
    /// It could not be read.
    Failed,
    /// It was not to be read.
    Excluded,
}

/// How one slide ended, and what came through.
#[derive(Clone, Debug, Serialize)]
pub struct Line {
    /// Its name.
    pub slide: String,
    /// What its part is made of; empty without one.
    pub identity: String,
    /// How it ended.
    pub status: Status,
    /// Why it has no crops.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Its cohort.
    pub cohort: String,
    /// What came through.
    pub funnel: Funnel,
    /// Seconds per stage.
    pub seconds: Seconds,
}

impl Line {
    pub(super) fn excluded(slide: String, cohort: String, reason: String) -> Self {
        Self {
            slide,
            identity: String::new(),
            status: Status::Excluded,
            reason: Some(reason),
            cohort,
            funnel: Funnel::default(),
            seconds: Seconds::default(),
        }
    }

    pub(super) fn from_outcome<E: std::error::Error>(
        outcome: &Outcome<Work, E>,
        origin: &Origin,
    ) -> Self {
        let state: &state::State<Work> = &outcome.state;
        let done = outcome.is_done();
        Self {
            slide: outcome.input.name.clone(),
            identity: if done { state.config.clone() } else { String::new() },
            status: if done { Status::Done } else { Status::Failed },
            reason: state.reason.clone(),
            cohort: origin.cohort.clone(),
            funnel: state.work.funnel,
            seconds: state.work.stage_seconds,
        }
    }
}

/// A corpus whose parts are joined.
pub(super) struct Joined {
    pub(super) digest: String,
    /// Crops by um/px.
    pub(super) resolutions: BTreeMap<String, u64>,
}

/// `build.json`.
#[derive(Debug, Serialize)]
pub struct Report {
    /// Folder of the corpus.
    #[serde(serialize_with = "base::json::lossy")]
    pub corpus: PathBuf,
    /// Its digest; none where no slide could be read, and so no corpus was written.
    pub digest: Option<String>,
    /// Its crops.
    pub crops: u64,
    /// Slides, all in all.
    pub slides: usize,
    /// Slides that were not to be read.
    pub excluded: usize,
    /// Slides that could not be read.
    pub failed: Vec<Line>,
    /// What came through, by name.
    pub funnel: BTreeMap<&'static str, u64>,
    /// The same per cohort.
    pub cohorts: BTreeMap<String, BTreeMap<&'static str, u64>>,
    /// Crops by um/px.
    pub resolutions: BTreeMap<String, u64>,
    /// Crops by organ site; empty where no cohort is one of TCGA's.
    pub organ_sites: BTreeMap<String, u64>,
    /// Share of tiles that each tumour filter kept.
    pub kept_shares: Vec<f64>,
    /// The same per cohort.
    pub cohort_kept_shares: BTreeMap<String, Vec<f64>>,
    /// Seconds per stage.
    pub seconds: Seconds,
    /// Share of each stage in the time spent on slides.
    pub shares: BTreeMap<&'static str, f64>,
    /// Tiles on tissue per second spent on slides.
    pub tiles_per_second: f64,
    /// Crops per second spent on slides.
    pub crops_per_second: f64,
    /// Seconds from start to end.
    pub wall_seconds: f64,
    /// Slides taken over from an earlier run.
    pub resumed: usize,
    /// What came through, in the order of the stages.
    #[serde(skip)]
    pub total: Funnel,
    /// The same per cohort.
    #[serde(skip)]
    pub per_cohort: BTreeMap<String, Funnel>,
    /// Why slides failed.
    #[serde(skip)]
    pub failures: Vec<SlideFailure>,
    /// Slides without crops, failed and excluded, by name.
    #[serde(skip)]
    pub without: Vec<Line>,
}

impl Report {
    pub(super) fn new(
        plan: &Plan,
        lines: Vec<Line>,
        joined: Option<Joined>,
        resumed: usize,
        failures: Vec<SlideFailure>,
        wall: Duration,
    ) -> Self {
        let (mut total, mut seconds) = (Funnel::default(), Seconds::default());
        let mut per_cohort: BTreeMap<String, Funnel> = BTreeMap::new();
        for s in &lines {
            total.add(&s.funnel);
            seconds.add(&s.seconds);
            if s.status == Status::Done {
                per_cohort.entry(s.cohort.clone()).or_default().add(&s.funnel);
            }
        }
        let spent = seconds.sum();
        let share = |s: f64| if spent > 0.0 { s / spent } else { 0.0 };
        let rate = |n: u64| if spent > 0.0 { n as f64 / spent } else { 0.0 };
        let filters = plan.filters.len();
        let (digest, resolutions) = joined.map(|j| (j.digest, j.resolutions)).unzip();
        let rows = |f: &Funnel| f.rows().into_iter().collect();
        let with_status = |status| lines.iter().filter(move |s| s.status == status).cloned();
        Self {
            corpus: plan.out.clone(),
            digest,
            crops: total.crops(),
            slides: lines.len(),
            excluded: with_status(Status::Excluded).count(),
            failed: with_status(Status::Failed).collect(),
            funnel: rows(&total),
            cohorts: per_cohort.iter().map(|(c, f)| (c.clone(), rows(f))).collect(),
            resolutions: resolutions.unwrap_or_default(),
            organ_sites: by_site(per_cohort.iter().map(|(c, f)| (c, f.crops()))),
            kept_shares: total.kept_shares(filters),
            cohort_kept_shares: per_cohort
                .iter()
                .map(|(c, f)| (c.clone(), f.kept_shares(filters)))
                .filter(|(_, shares)| !shares.is_empty())
                .collect(),
            seconds,
            shares: BTreeMap::from([
                ("tissue", share(seconds.tissue)),
                ("filter", share(seconds.filter)),
                ("detect", share(seconds.detect)),
                ("crops", share(seconds.crops)),
            ]),
            tiles_per_second: rate(total.tissue_tiles),
            crops_per_second: rate(total.crops()),
            wall_seconds: wall.as_secs_f64(),
            resumed,
            failures,
            without: lines.iter().filter(|s| s.status != Status::Done).cloned().collect(),
            total,
            per_cohort,
        }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:<34}", "")?;
        for cohort in self.per_cohort.keys() {
            write!(f, "{cohort:>14}")?;
        }
        writeln!(f, "{:>14}", "all")?;
        for (k, (name, n)) in self.total.rows().into_iter().enumerate() {
            // Most builds have one filter.
            if n == 0 && OF_TWO.contains(&name) {
                continue;
            }
            write!(f, "{name:<34}")?;
            for funnel in self.per_cohort.values() {
                write!(f, "{:>14}", funnel.rows()[k].1)?;
            }
            writeln!(f, "{n:>14}")?;
        }
        for (name, counts) in
            [("crops by um/px", &self.resolutions), ("by site", &self.organ_sites)]
        {
            if counts.len() > 1 {
                let counts: Vec<String> = counts.iter().map(|(k, n)| format!("{k} {n}")).collect();
                writeln!(f, "{name}: {}", counts.join(", "))?;
            }
        }
        if !self.kept_shares.is_empty() {
            let shares: Vec<String> =
                self.kept_shares.iter().map(|s| format!("{:.1} %", 100.0 * s)).collect();
            writeln!(f, "share of tiles that each filter kept: {}", shares.join(", "))?;
        }
        let share = |(n, s): (&&str, &f64)| format!("{n} {:.0} %", 100.0 * s);
        let shares: Vec<String> = self.shares.iter().map(share).collect();
        let (tiles, crops) = (self.tiles_per_second, self.crops_per_second);
        writeln!(f, "{tiles:.1} tiles/s, {crops:.1} crops/s ({})", shares.join(", "))?;
        writeln!(
            f,
            "{}: {} excluded, {} failed, {} taken over from before",
            Many(self.slides, "slide"),
            self.excluded,
            self.failed.len(),
            self.resumed
        )?;
        for s in &self.without {
            writeln!(f, "  {}: {}", s.slide, s.reason.as_deref().unwrap_or(""))?;
        }
        match &self.digest {
            Some(digest) => writeln!(f, "digest {digest}"),
            None => writeln!(f, "no corpus was written: no slide could be read"),
        }
    }
}
