//! Fakes: a drawn slide, a colour-threshold "segmenter", a mean-colour "classifier".

#![allow(dead_code, reason = "each test file uses its part")]

use base::progress::Listener;
use detect::{
    CandidateRule, Checkpoint, Control, CropRecipe, DetectError, Detector, Grid, Job, Models,
    ReadError, Recipe, SlideResult, Store, StoreError, TileSource, WindowAt, Workers, extract,
    stitch,
};
use mitosis::{
    ClassProbs, Classifier, Mpp, PortError, ProbMap, Rect, Resolution, ResolutionSource, RgbTile,
    Score, Segmenter,
};
use std::collections::BTreeSet;

pub fn mpp(v: f64) -> Mpp {
    Mpp::new(v).unwrap()
}

pub fn score(v: f32) -> Score {
    Score::new(v).unwrap()
}

/// Thoroughly mixed bits of a few numbers.
pub fn mix(numbers: &[u64]) -> u64 {
    numbers.iter().fold(0x9e37_79b9_7f4a_7c15, |h, &n| {
        let h = (h ^ n).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        (h ^ (h >> 29)).wrapping_mul(0x94d0_49bb_1331_11eb) ^ (h >> 31)
    })
}

/// Dark blobs on a bright ground, computed for every pixel when it is read; never stored.
pub struct Drawn {
    pub size: (u64, u64),
    pub resolution: Resolution,
    pub seed: u64,
    /// One blob per square of this side, px.
    pub spacing: u64,
    /// Windows (upper left corner in working pixels, side) that cannot be decoded.
    pub broken: BTreeSet<(i64, i64, usize)>,
    /// Delays reads, so that they come back out of order.
    pub jitter: bool,
}

impl Drawn {
    pub fn new(width: u64, height: u64, seed: u64) -> Self {
        Self {
            size: (width, height),
            resolution: Resolution::user(mpp(0.25)),
            seed,
            spacing: 11,
            broken: BTreeSet::new(),
            jitter: false,
        }
    }

    pub fn anisotropic(mut self, x: f64, y: f64) -> Self {
        self.resolution = Resolution { x: mpp(x), y: mpp(y), source: ResolutionSource::User };
        self
    }

    fn darkness(&self, x: u64, y: u64) -> u8 {
        let (cell_x, cell_y) = (x / self.spacing, y / self.spacing);
        let mut dark = 0;
        for cy in cell_y.saturating_sub(1)..=cell_y + 1 {
            for cx in cell_x.saturating_sub(1)..=cell_x + 1 {
                let h = mix(&[self.seed, cx, cy]);
                if h.is_multiple_of(3) {
                    continue;
                }
                let (bx, by) = (
                    cx * self.spacing + h / 7 % self.spacing,
                    cy * self.spacing + h / 97 % self.spacing,
                );
                let r = 1 + h / 1009 % 4;
                let d2 = x.abs_diff(bx).pow(2) + y.abs_diff(by).pow(2);
                if d2 <= r * r {
                    dark = dark.max(90 + (h / 31 % 160) as u8);
                }
            }
        }
        dark.max((mix(&[self.seed, x, y, 1]) % 60) as u8)
    }
}

impl TileSource for Drawn {
    fn dimensions(&self) -> (u64, u64) {
        self.size
    }

    fn resolution(&self) -> Result<Resolution, ReadError> {
        Ok(self.resolution.clone())
    }

    fn read_at(&self, at: Mpp, rect: Rect) -> Result<RgbTile, ReadError> {
        let (x, y, w, h) = rect.parts();
        if self.broken.contains(&(x, y, w)) {
            return Err(ReadError::Damaged(format!("tile at {x}, {y} is corrupt")));
        }
        if self.jitter {
            let wait = mix(&[x as u64, y as u64, 5]) % 400;
            std::thread::sleep(std::time::Duration::from_micros(wait));
        }
        let (sx, sy) = self.working_scale(at)?;
        let mut data = Vec::with_capacity(3 * w * h);
        for j in 0..h as i64 {
            for i in 0..w as i64 {
                let lx = ((x + i) as f64 + 0.5) * sx;
                let ly = ((y + j) as f64 + 0.5) * sy;
                let inside =
                    lx >= 0.0 && ly >= 0.0 && lx < self.size.0 as f64 && ly < self.size.1 as f64;
                let dark = if inside { self.darkness(lx as u64, ly as u64) } else { 0 };
                data.extend([255 - dark; 3]);
            }
        }
        Ok(RgbTile::new(w, h, data))
    }
}

/// Darkness, shaded by the place in the window so that windows disagree where they overlap.
#[derive(Default)]
pub struct Shade {
    /// Adds the batch's length to the answer: an engine that is not independent of its batch.
    pub batch_sensitive: bool,
    pub batches: Vec<usize>,
    /// Ends (by `how`) at this call.
    pub fail_at: Option<(usize, Failure)>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Failure {
    Error,
    Panic,
    NotANumber,
    AboveOne,
    WrongSize,
    TooFew,
}

impl Failure {
    pub const ALL: [Failure; 6] = [
        Failure::Error,
        Failure::Panic,
        Failure::NotANumber,
        Failure::AboveOne,
        Failure::WrongSize,
        Failure::TooFew,
    ];
}

fn engine_error() -> PortError {
    PortError::Engine { engine: "fake".into(), message: "out of memory".into() }
}

impl Segmenter for Shade {
    fn probabilities(&mut self, windows: &[RgbTile]) -> Result<Vec<ProbMap>, PortError> {
        let failure = self.fail_at.filter(|f| f.0 == self.batches.len()).map(|f| f.1);
        self.batches.push(windows.len());
        let extra = if self.batch_sensitive { windows.len() as f32 * 1e-3 } else { 0.0 };
        let mut maps: Vec<ProbMap> = windows
            .iter()
            .map(|t| {
                let shade = |x: usize, y: usize| {
                    let dark = 255 - t.pixel(x, y)[0];
                    let tilt = 1.0 - 0.1 * (x as f32 + 0.3 * y as f32) / (t.width as f32 * 1.3);
                    (f32::from(dark) / 255.0 * tilt + extra).min(1.0)
                };
                let data = (0..t.height).flat_map(|y| (0..t.width).map(move |x| (x, y)));
                ProbMap {
                    width: t.width,
                    height: t.height,
                    data: data.map(|(x, y)| shade(x, y)).collect(),
                }
            })
            .collect();
        match failure {
            None => {}
            Some(Failure::Error) => return Err(engine_error()),
            Some(Failure::Panic) => panic!("segmenter bug"),
            Some(Failure::NotANumber) => maps[0].data[7] = f32::NAN,
            Some(Failure::AboveOne) => maps[0].data[7] = 1.5,
            Some(Failure::WrongSize) => maps[0].width += 1,
            Some(Failure::TooFew) => drop(maps.pop()),
        }
        Ok(maps)
    }
}

/// Mean darkness of the crop as the probability of "mitotic".
pub struct Mean {
    pub names: Vec<String>,
    pub calls: usize,
    pub fail_at: Option<(usize, Failure)>,
}

impl Default for Mean {
    fn default() -> Self {
        Self { names: vec!["non_mitotic".into(), "mitotic".into()], calls: 0, fail_at: None }
    }
}

impl Classifier for Mean {
    fn class_names(&self) -> &[String] {
        &self.names
    }

    fn classes(&mut self, crops: &[RgbTile]) -> Result<Vec<ClassProbs>, PortError> {
        let failure = self.fail_at.filter(|f| f.0 == self.calls).map(|f| f.1);
        self.calls += 1;
        let mut answers: Vec<ClassProbs> = crops
            .iter()
            .map(|c| {
                let sum: u64 = c.data.iter().map(|&v| u64::from(255 - v)).sum();
                let p = sum as f32 / (255 * c.data.len()) as f32;
                ClassProbs(vec![1.0 - p, p])
            })
            .collect();
        match failure {
            None => {}
            Some(Failure::Error) => return Err(engine_error()),
            Some(Failure::Panic) => panic!("classifier bug"),
            Some(Failure::NotANumber) => answers[0].0[1] = f32::NAN,
            Some(Failure::AboveOne) => answers[0].0[1] = 1.5,
            Some(Failure::WrongSize) => answers[0].0.push(0.0),
            Some(Failure::TooFew) => drop(answers.pop()),
        }
        Ok(answers)
    }
}

pub fn recipe(window: u32, stride: u32, radius: u32) -> Recipe {
    Recipe {
        overlap: detect::Overlap::Mean,
        mpp: mpp(0.25),
        grid: Grid::new(window, stride).unwrap(),
        candidates: CandidateRule::Regions {
            threshold: score(0.3),
            opening_radius: radius,
            min_area_px: 2,
        },
        min_separation_um: None,
        crops: Some(CropRecipe { mpp: mpp(0.25), side: 8, positive: "mitotic".into() }),
        max_unread_share: 1.0,
    }
}

pub fn workers() -> Workers {
    Workers {
        readers: 2,
        in_flight: 4,
        segment_batch: 3,
        classify_batch: 4,
        unit_windows: 7,
        ..Workers::default()
    }
}

/// (x, y, s_seg, s_cls) as bits.
pub type Bits = (u64, u64, u32, Option<u32>);

pub fn bits(result: &SlideResult) -> Vec<Bits> {
    result
        .detections()
        .map(|d| {
            (
                d.candidate.centroid.x.to_bits(),
                d.candidate.centroid.y.to_bits(),
                d.candidate.s_seg.get().to_bits(),
                d.s_cls.map(|s| s.get().to_bits()),
            )
        })
        .collect()
}

/// The same job with everything in memory: all windows one by one, the whole map, all crops one by
/// one. Windows that cannot be read are left out.
pub fn in_memory(source: &dyn TileSource, job: &Job<'_>, recipe: &Recipe) -> Vec<Bits> {
    let side = recipe.grid.window() as usize;
    let stride = i64::from(recipe.grid.stride());
    let windows: BTreeSet<WindowAt> = job.windows.iter().copied().collect();
    let maps = windows.into_iter().filter_map(|w| {
        let (x, y) = (i64::from(w.col) * stride, i64::from(w.row) * stride);
        let tile = source.read_at(recipe.mpp, Rect::new(x, y, side, side)).ok()?;
        Some((w, Shade::default().probabilities(&[tile]).unwrap().remove(0)))
    });
    let map = stitch(recipe.grid, recipe.overlap, recipe.frame(source).unwrap(), maps);
    let scale = source.working_scale(recipe.mpp).unwrap();
    let found = extract(&map, &recipe.candidates).into_iter().map(|c| {
        let s_cls = recipe.crops.as_ref().map(|crop| {
            let own = source.working_scale(crop.mpp).unwrap();
            let corner = |v: f64| (v - f64::from(crop.side) / 2.0 + 0.5).floor() as i64;
            let (x, y) = (corner(c.at.x * (scale.0 / own.0)), corner(c.at.y * (scale.1 / own.1)));
            let side = crop.side as usize;
            let tile = source.read_at(crop.mpp, Rect::new(x, y, side, side)).unwrap();
            Mean::default().classes(&[tile]).unwrap()[0].0[1].to_bits()
        });
        let at = c.at.scaled::<mitosis::Level0>(scale.0, scale.1);
        (at.x.to_bits(), at.y.to_bits(), c.s_seg.get().to_bits(), s_cls)
    });
    found.collect()
}

/// A run with fakes.
pub fn run<'a>(
    source: &dyn TileSource,
    job: &Job<'_>,
    (segmenter, classifier): (&'a mut dyn Segmenter, Option<&'a mut dyn Classifier>),
    recipe: &'a Recipe,
    workers: Workers,
    control: Control<'_>,
) -> Result<SlideResult, DetectError> {
    let models = Models { segmenter, classifier };
    Detector { models, recipe, workers }.run(source, job, control)
}

/// Keeps every state in its stored form, and starts from a given one.
#[derive(Default)]
pub struct Keep {
    pub from: Option<Checkpoint>,
    pub states: Vec<String>,
    /// Reports that nothing can be written.
    pub full: bool,
}

impl Store for Keep {
    fn load(&mut self) -> Result<Option<Checkpoint>, DetectError> {
        Ok(self.from.clone())
    }
    fn save(&mut self, state: &Checkpoint) -> Result<(), StoreError> {
        if self.full {
            let source = std::io::Error::other("no space left");
            return Err(StoreError { path: "slide.state".into(), source });
        }
        self.states.push(serde_json::to_string(state).unwrap());
        Ok(())
    }
    fn discard(&mut self) {
        self.from = None;
    }
}

/// Why a stored state was not used.
#[derive(Default)]
pub struct Restarts(pub Vec<String>);

impl Listener for Restarts {
    fn begin(&mut self, _: &str, _: &'static str) {}
    fn update(&mut self, _: u64, _: u64) {}
    fn finish(&mut self) {}
    fn report(&mut self, _: &str) {}
    fn note(&mut self, text: &str) {
        self.0.push(text.to_owned());
    }
}
