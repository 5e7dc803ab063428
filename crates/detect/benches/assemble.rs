//! What stitching and extraction cost per window, next to a network's tens of milliseconds.
//!
//! Run: `cargo bench -p mithras-detect`. Windows of 512 px at stride 400 over a frame of 40 x 12 windows;
//! reading and the "models" only copy, so the stage report gives the time of the stage itself.

#![expect(clippy::print_stdout, reason = "prints times")]

use detect::{
    CandidateRule, Control, Detector, Grid, Job, Models, ReadError, Recipe, TileSource, Workers,
};
use mitosis::{Mpp, PortError, ProbMap, Rect, Resolution, RgbTile, Score, Segmenter};

const SIDE: usize = 512;

/// White everywhere.
struct White;

impl TileSource for White {
    fn dimensions(&self) -> (u64, u64) {
        (400 * 39 + 512, 400 * 11 + 512)
    }
    fn resolution(&self) -> Result<Resolution, ReadError> {
        Ok(Resolution::user(Mpp::PAPER))
    }
    fn read_at(&self, _: Mpp, rect: Rect) -> Result<RgbTile, ReadError> {
        let (_, _, w, h) = rect.parts();
        Ok(RgbTile::filled(w, h, [255; 3]))
    }
}

/// Always the same map.
struct Fixed(ProbMap);

impl Segmenter for Fixed {
    fn probabilities(&mut self, windows: &[RgbTile]) -> Result<Vec<ProbMap>, PortError> {
        Ok(windows.iter().map(|_| self.0.clone()).collect())
    }
}

fn map(value: impl Fn(usize, usize) -> f32) -> ProbMap {
    let data = (0..SIDE).flat_map(|y| (0..SIDE).map(move |x| (x, y)));
    ProbMap { width: SIDE, height: SIDE, data: data.map(|(x, y)| value(x, y)).collect() }
}

/// `n` discs of radius 12 per window, as a good segmenter gives, over a faint ground.
fn discs(n: usize) -> ProbMap {
    map(|x, y| {
        let inside = (0..n).any(|i| {
            let (cx, cy) = (40 + i * 197 % 430, 40 + i * 331 % 430);
            x.abs_diff(cx).pow(2) + y.abs_diff(cy).pow(2) <= 144
        });
        if inside { 0.9 } else { 0.02 }
    })
}

fn main() {
    let noise =
        |x: usize, y: usize| ((((x * 7919 + y * 104_729) * 2_654_435_761) >> 7) & 1023) as f32;
    let maps = [
        ("nothing found", map(|_, _| 0.02)),
        ("3 discs per window", discs(3)),
        ("30 discs per window", discs(30)),
        ("noise, half foreground", map(|x, y| noise(x, y) / 1023.0)),
        ("all foreground", map(|_, _| 0.9)),
    ];
    let regions = |t| CandidateRule::Regions { threshold: t, opening_radius: 1, min_area_px: 20 };
    let peaks = |t| CandidateRule::Peaks { threshold: t, min_distance_px: 30 };
    println!("{:<24} {:>18} {:>18}", "probability maps", "regions, ms/window", "peaks, ms/window");
    for (name, map) in maps {
        let mut line = format!("{name:<24}");
        for rule in [regions(Score::literal(0.5)), peaks(Score::literal(0.5))] {
            let recipe = Recipe {
                overlap: detect::Overlap::Mean,
                mpp: Mpp::PAPER,
                grid: Grid::new(512, 400).expect("a valid grid"),
                candidates: rule,
                min_separation_um: None,
                crops: None,
                max_unread_share: Recipe::MAX_UNREAD_SHARE,
            };
            let job = Job::whole(&White, &recipe).expect("a valid slide");
            let mut best = f64::INFINITY;
            for _ in 0..5 {
                let mut model = Fixed(map.clone());
                let models = Models { segmenter: &mut model, classifier: None };
                let mut detector =
                    Detector { models, recipe: &recipe, workers: Workers::default() };
                let result =
                    detector.run(&White, &job, Control::default()).expect("nothing fails here");
                let stage = result.stages[2];
                best = best.min(stage.busy.as_secs_f64() * 1e3 / stage.items as f64);
            }
            line += &format!(" {best:>18.3}");
        }
        println!("{line}");
    }
}
