//! What detection costs on this machine, stage by stage, and how far that is from what the machine can do
//! (`mithras bench detect`).

use crate::card::ModelCard;
use crate::engine::{EngineOptions, EngineReport};
use crate::onnx::{INPUT, OUTPUT};
use crate::package::ModelPackage;
use crate::timing::{self, TimingError};
use base::panics;
use kernels::{Network, Peaks, PlanOptions};
use serde::Serialize;
use std::fmt;
use std::time::Duration;

/// How many crops a mm2 of tissue brings to the second stage.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Workload {
    /// Candidates per mm2.
    pub candidates_per_mm2: f64,
    /// Share of them that a screen passes on, or whose first copy scores high enough for further symmetric copies, 0 to
    /// 1; all of them where the card has neither.
    pub open_share: f64,
}

/// One table: operations, bytes, seconds and the share of the peak of each stage.
#[derive(Clone, Debug, Serialize)]
pub struct Budget {
    schema: &'static str,
    version: &'static str,
    model: String,
    load: Workload,
    machine: Machine,
    networks: Vec<NetworkCost>,
    engines: Vec<EngineCost>,
}

/// The most that one core reaches.
#[derive(Clone, Debug, Serialize)]
struct Machine {
    cores: usize,
    isa: String,
    /// f32 operations per second, in cache.
    peak_flops: f64,
    /// Bytes read and written per second while memory is copied.
    peak_copied_bytes: f64,
}

/// What a stage asks for, on any engine.
#[derive(Clone, Debug, Serialize)]
struct NetworkCost {
    stage: &'static str,
    /// Passes of the network per mm2 of tissue: windows, or crops and their copies.
    passes_per_mm2: f64,
    /// Operations of one pass (a multiply-accumulate is two); `None` where the network is not convolutional.
    flop: Option<f64>,
    /// Bytes of weights that a pass reads.
    weight_bytes: Option<usize>,
    /// Seconds of one core per mm2 at the peak, which nothing can be below.
    least_s_per_mm2: Option<f64>,
}

/// What an engine needs on one thread.
#[derive(Clone, Debug, Serialize)]
struct EngineCost {
    #[serde(flatten)]
    report: Option<EngineReport>,
    /// Why it did not run.
    error: Option<String>,
    stages: Vec<StageCost>,
    /// Seconds of one core per mm2 of both networks.
    s_per_mm2: Option<f64>,
}

#[derive(Clone, Debug, Serialize)]
struct StageCost {
    stage: &'static str,
    /// Median seconds of one pass on one thread, from 8-bit pixels to probabilities.
    pass_s: f64,
    flops: Option<f64>,
    /// Of the peak; above 1 where the engine computes in less than f32.
    share_of_peak: Option<f64>,
    s_per_mm2: f64,
}

impl Workload {
    /// Candidates per mm2 of `mithras-standard` on cellular frames, and the share that `symmetries_from = 0.1` leaves
    /// open (docs/notes/fast-detector.md).
    pub const COUNTED: Self = Self { candidates_per_mm2: 154.0, open_share: 0.34 };

    fn passes(self, card: &ModelCard) -> f64 {
        let Some(c) = &card.classifier else { return 0.0 };
        let (passed, open) = match card.screen {
            // What passes the screen is mostly what would be asked for further copies.
            Some(_) => (self.open_share, 1.0),
            None if c.symmetries_from.is_some() => (1.0, self.open_share),
            None => (1.0, 1.0),
        };
        self.candidates_per_mm2 * passed * (1.0 + f64::from(c.symmetries - 1) * open)
    }
}

impl Budget {
    /// Times both networks of a package on one thread of each of `engines`; `runs` passes of which the median counts.
    #[must_use]
    pub fn measure(
        package: &ModelPackage,
        engines: &[EngineOptions],
        runs: usize,
        load: Workload,
    ) -> Self {
        let peaks = Peaks::measure(Duration::from_millis(500));
        let networks = networks(package, load, peaks.flops);
        let engines = engines.iter().map(|e| engine(package, e, runs, &networks, peaks.flops));
        Self {
            schema: "mithras.budget/1",
            version: env!("CARGO_PKG_VERSION"),
            model: package.card.name.clone(),
            load,
            machine: Machine {
                cores: std::thread::available_parallelism().map_or(1, usize::from),
                isa: peaks.isa.to_string(),
                peak_flops: peaks.flops,
                peak_copied_bytes: peaks.copied_bytes,
            },
            engines: engines.collect(),
            networks,
        }
    }
}

fn networks(package: &ModelPackage, load: Workload, peak: f64) -> Vec<NetworkCost> {
    let card = &package.card;
    let cost = |stage, passes_per_mm2, onnx: Option<&[u8]>, side: usize| {
        let options = PlanOptions::new(INPUT, [3, side, side], OUTPUT);
        let plan = || Network::plan(onnx.unwrap_or_default(), &options).map_err(|e| e.to_string());
        let planned = panics::catch_panic(plan).ok();
        let flop = planned.as_ref().map(|n| 2.0 * n.macs() as f64);
        NetworkCost {
            stage,
            passes_per_mm2,
            flop,
            weight_bytes: planned.as_ref().map(Network::weight_bytes),
            least_s_per_mm2: flop.map(|f| f * passes_per_mm2 / peak),
        }
    };
    let windows = card.segmenter.as_ref().map(|s| {
        let step = s.stride as f64 * s.mpp.get() / 1000.0;
        cost("first", 1.0 / (step * step), package.segmenter(), s.window)
    });
    let crops = card.classifier.as_ref();
    let crops = crops.map(|c| cost("second", load.passes(card), package.classifier(), c.input));
    let screen = card.screen.as_ref();
    let screen = screen.map(|s| cost("screen", load.candidates_per_mm2, package.screen(), s.input));
    windows.into_iter().chain(screen).chain(crops).collect()
}

fn engine(
    package: &ModelPackage,
    options: &EngineOptions,
    runs: usize,
    networks: &[NetworkCost],
    peak: f64,
) -> EngineCost {
    let options = EngineOptions { threads: 1, ..options.clone() };
    let timing = match timing::time(package, &options, runs) {
        Ok(timing) => timing,
        Err(e @ (TimingError::Engine(_) | TimingError::Port(_))) => {
            let error = Some(e.to_string());
            return EngineCost { report: None, error, stages: vec![], s_per_mm2: None };
        }
    };
    let stages = networks.iter().filter_map(|n| {
        let pass_s = match n.stage {
            "first" => timing.window_s,
            "screen" => timing.screen_s,
            _ => timing.crop_s,
        }?;
        let flops = n.flop.map(|f| f / pass_s);
        Some(StageCost {
            stage: n.stage,
            pass_s,
            flops,
            share_of_peak: flops.map(|f| f / peak),
            s_per_mm2: pass_s * n.passes_per_mm2,
        })
    });
    let stages: Vec<StageCost> = stages.collect();
    let s_per_mm2 = Some(stages.iter().map(|s| s.s_per_mm2).sum());
    EngineCost { report: Some(timing.report), error: None, stages, s_per_mm2 }
}

impl fmt::Display for Budget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let m = &self.machine;
        writeln!(
            f,
            "{} on one of {} cores ({}): {:.0} GFLOP/s in cache, {:.1} GB/s copied",
            self.model,
            m.cores,
            m.isa,
            m.peak_flops / 1e9,
            m.peak_copied_bytes / 1e9
        )?;
        let l = self.load;
        writeln!(
            f,
            "{} candidates per mm2, {:.0} % of them with all symmetric copies\n",
            l.candidates_per_mm2,
            100.0 * l.open_share
        )?;
        writeln!(
            f,
            "{:<9}{:>12}{:>12}{:>12}{:>14}",
            "stage", "passes/mm2", "GFLOP/pass", "weights MB", "least s/mm2"
        )?;
        let or_dash =
            |v: Option<f64>, digits| v.map_or_else(|| "-".into(), |v| format!("{v:.digits$}"));
        for n in &self.networks {
            writeln!(
                f,
                "{:<9}{:>12.1}{:>12}{:>12}{:>14}",
                n.stage,
                n.passes_per_mm2,
                or_dash(n.flop.map(|v| v / 1e9), 2),
                or_dash(n.weight_bytes.map(|b| b as f64 / 1e6), 1),
                or_dash(n.least_s_per_mm2, 2)
            )?;
        }
        writeln!(
            f,
            "\n{:<24}{:<8}{:>9}{:>10}{:>14}{:>9}",
            "engine", "stage", "ms/pass", "GFLOP/s", "share of peak", "s/mm2"
        )?;
        for e in &self.engines {
            let Some(r) = &e.report else {
                let error = e.error.as_deref().unwrap_or_default();
                writeln!(f, "{}", error.lines().next().unwrap_or_default())?;
                continue;
            };
            let name = format!("{} {}", r.engine, r.segmenter_precision);
            for s in &e.stages {
                writeln!(
                    f,
                    "{name:<24}{:<8}{:>9.1}{:>10}{:>14}{:>9.2}",
                    s.stage,
                    1e3 * s.pass_s,
                    or_dash(s.flops.map(|v| v / 1e9), 0),
                    or_dash(s.share_of_peak, 2),
                    s.s_per_mm2
                )?;
            }
            writeln!(f, "{name:<24}{:<8}{:>42}", "both", or_dash(e.s_per_mm2, 2))?;
        }
        Ok(())
    }
}
