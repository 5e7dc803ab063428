//! The plain-buffer ports between the product and an engine.
//!
//! An engine takes 8-bit RGB and gives probabilities or features; normalisation, batching, precision and
//! device stay behind the port. `detect` sees only these traits, `infer` and `net` implement them.

/// An interleaved 8-bit RGB image, row-major, `data.len() == 3 * width * height`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RgbTile {
    /// Pixels per row.
    pub width: usize,
    /// Rows.
    pub height: usize,
    /// R, G, B, R, G, B, ...
    pub data: Vec<u8>,
}

impl RgbTile {
    /// Wraps a buffer.
    ///
    /// # Panics
    /// When the buffer's length is not `3 * width * height`.
    #[must_use]
    pub fn new(width: usize, height: usize, data: Vec<u8>) -> Self {
        assert_eq!(
            data.len(),
            3 * width * height,
            "an RGB tile of {width}x{height} needs {} bytes",
            3 * width * height
        );
        Self { width, height, data }
    }

    /// A tile of one colour.
    #[must_use]
    pub fn filled(width: usize, height: usize, rgb: [u8; 3]) -> Self {
        Self { width, height, data: rgb.repeat(width * height) }
    }

    /// The pixel at column `x`, row `y`.
    #[must_use]
    pub fn pixel(&self, x: usize, y: usize) -> [u8; 3] {
        let i = 3 * (y * self.width + x);
        [self.data[i], self.data[i + 1], self.data[i + 2]]
    }

    /// One of the eight symmetries of a square image: bit 0 flips it left to right, bit 1 upside
    /// down, bit 2 exchanges rows and columns (after the flips).
    ///
    /// # Panics
    /// When bit 2 is set and the image is not square.
    #[must_use]
    pub fn symmetric(&self, symmetry: u8) -> Self {
        if symmetry == 0 {
            return self.clone();
        }
        let (w, h) = (self.width, self.height);
        let transposed = symmetry & 4 != 0;
        assert!(!transposed || w == h, "only a square can be turned");
        let mut data = Vec::with_capacity(self.data.len());
        for y in 0..h {
            for x in 0..w {
                let (x, y) = if transposed { (y, x) } else { (x, y) };
                let sx = if symmetry & 1 != 0 { w - 1 - x } else { x };
                let sy = if symmetry & 2 != 0 { h - 1 - y } else { y };
                data.extend(self.pixel(sx, sy));
            }
        }
        Self::new(w, h, data)
    }
}

/// A probability per pixel, row-major, each in [0, 1].
#[derive(Clone, Debug, PartialEq)]
pub struct ProbMap {
    /// Pixels per row.
    pub width: usize,
    /// Rows.
    pub height: usize,
    /// Row-major, `width * height` values in [0, 1].
    pub data: Vec<f32>,
}

/// Softmax probabilities of one crop, in the order of the model card's class names.
#[derive(Clone, Debug, PartialEq)]
pub struct ClassProbs(pub Vec<f32>);

/// Index of the likeliest class; of equal ones the first.
///
/// ```
/// assert_eq!(mitosis::likeliest(&[0.2, 0.4, 0.4]), 1);
/// ```
pub fn likeliest<P: PartialOrd>(p: &[P]) -> usize {
    (1..p.len()).fold(0, |best, i| if p[i] > p[best] { i } else { best })
}

/// What an engine reports when it cannot answer.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "fields whose names state what they are")]
pub enum PortError {
    /// The engine failed; the text is its own.
    #[error("{engine}: {message}")]
    Engine {
        /// Engine name, e.g. `rten`.
        engine: String,
        message: String,
    },
    /// A tile has a size the model cannot take.
    #[error("the model takes {expected} px tiles, got {width}x{height}")]
    TileSize { expected: String, width: usize, height: usize },
    /// NaN or infinity among features: a broken model, never a result.
    #[error("{engine}: the model returned {value} among its features")]
    NotFinite { engine: String, value: f32 },
    /// NaN or out-of-range output: a broken model, never a result.
    #[error("{engine}: the model returned {value}, not a probability")]
    NotAProbability { engine: String, value: f32 },
}

/// First stage: 8-bit windows at the model's um/px in, one probability map each out.
pub trait Segmenter: Send {
    /// One map per window, in order, of the window's own size. Each result depends on its window
    /// alone, never on the batch.
    ///
    /// # Errors
    /// [`PortError`] when the engine cannot answer.
    fn probabilities(&mut self, windows: &[RgbTile]) -> Result<Vec<ProbMap>, PortError>;
}

impl<C: Classifier + ?Sized> Classifier for Box<C> {
    fn class_names(&self) -> &[String] {
        (**self).class_names()
    }

    fn classes(&mut self, crops: &[RgbTile]) -> Result<Vec<ClassProbs>, PortError> {
        (**self).classes(crops)
    }
}

/// Second stage, tumour filter or subtype model: crops in, class probabilities out.
pub trait Classifier: Send {
    /// Class names, in output order.
    fn class_names(&self) -> &[String];

    /// One probability vector per crop, in order. Crops are resized to the model's input behind
    /// the port.
    ///
    /// # Errors
    /// [`PortError`] when the engine cannot answer.
    fn classes(&mut self, crops: &[RgbTile]) -> Result<Vec<ClassProbs>, PortError>;
}

/// A frozen encoder: tiles in, one vector of features each out.
pub trait Encoder: Send {
    /// What it is called in files.
    fn name(&self) -> &str;

    /// Numbers per vector.
    fn width(&self) -> usize;

    /// One vector per tile, in order: `tiles.len() * width()` finite numbers. Tiles of any size are
    /// resized to the network's input behind the port. Each vector depends on its tile alone.
    ///
    /// # Errors
    /// [`PortError`] when the engine cannot answer, or answers with NaN or infinity.
    fn features(&mut self, tiles: &[RgbTile]) -> Result<Vec<f32>, PortError>;
}

/// A classifier that answers with the mean over flips and quarter turns of a crop: a figure has no
/// upright side.
pub struct Symmetric<C> {
    inner: C,
    copies: u8,
    /// A class, and the probability of it below which a crop keeps the answer to its first copy.
    clear: Option<(usize, f32)>,
}

impl<C: Classifier> Symmetric<C> {
    /// Averages over the first `copies` of [`RgbTile::symmetric`], 1 (the crop alone) to 8.
    ///
    /// # Panics
    /// When `copies` is outside 1 to 8.
    #[must_use]
    pub fn new(inner: C, copies: u8) -> Self {
        assert!((1..=8).contains(&copies), "{copies} symmetries of a square");
        Self { inner, copies, clear: None }
    }

    /// Asks for further copies only where the first one gives the class `positive` a probability of `least` or more:
    /// what is clearly something else costs one pass. Each answer still depends on its crop alone.
    ///
    /// # Panics
    /// When `inner` has no class `positive`.
    #[must_use]
    pub fn from_probability(mut self, positive: usize, least: f32) -> Self {
        let classes = self.inner.class_names().len();
        assert!(positive < classes, "class {positive} of {classes}");
        self.clear = Some((positive, least));
        self
    }
}

impl<C: Classifier> Classifier for Symmetric<C> {
    fn class_names(&self) -> &[String] {
        self.inner.class_names()
    }

    fn classes(&mut self, crops: &[RgbTile]) -> Result<Vec<ClassProbs>, PortError> {
        let mut mean = self.inner.classes(crops)?;
        let open = |p: &ClassProbs| self.clear.is_none_or(|(class, least)| p.0[class] >= least);
        let open: Vec<usize> = (0..crops.len()).filter(|&i| open(&mean[i])).collect();
        if self.copies == 1 || open.is_empty() {
            return Ok(mean);
        }
        for symmetry in 1..self.copies {
            let turned: Vec<RgbTile> = open.iter().map(|&i| crops[i].symmetric(symmetry)).collect();
            for (&i, p) in open.iter().zip(self.inner.classes(&turned)?) {
                mean[i].0.iter_mut().zip(p.0).for_each(|(sum, p)| *sum += p);
            }
        }
        let n = f32::from(self.copies);
        for i in open {
            mean[i].0.iter_mut().for_each(|p| *p = (*p / n).min(1.0));
        }
        Ok(mean)
    }
}

/// A second stage behind a small network, the screen: a crop to which the screen gives the positive class less than a
/// least probability keeps that answer, and only the others are asked of the classifier. Each answer depends on its
/// crop alone.
pub struct Screened<S, C> {
    screen: S,
    classifier: C,
    positive: usize,
    passes_from: f32,
}

impl<S: Classifier, C: Classifier> Screened<S, C> {
    /// Asks `classifier` where `screen` gives class `positive` a probability of `passes_from` or more.
    ///
    /// # Panics
    /// When the two have not the same classes in the same order, or no class `positive`.
    #[must_use]
    pub fn new(screen: S, classifier: C, positive: usize, passes_from: f32) -> Self {
        assert_eq!(
            screen.class_names(),
            classifier.class_names(),
            "classes of screen and classifier"
        );
        let classes = classifier.class_names().len();
        assert!(positive < classes, "class {positive} of {classes}");
        Self { screen, classifier, positive, passes_from }
    }
}

impl<S: Classifier, C: Classifier> Classifier for Screened<S, C> {
    fn class_names(&self) -> &[String] {
        self.classifier.class_names()
    }

    fn classes(&mut self, crops: &[RgbTile]) -> Result<Vec<ClassProbs>, PortError> {
        let mut answers = self.screen.classes(crops)?;
        let passes = |p: &ClassProbs| p.0[self.positive] >= self.passes_from;
        let passed: Vec<usize> = (0..crops.len()).filter(|&i| passes(&answers[i])).collect();
        let asked: Vec<RgbTile> = passed.iter().map(|&i| crops[i].clone()).collect();
        if !asked.is_empty() {
            for (i, p) in passed.into_iter().zip(self.classifier.classes(&asked)?) {
                answers[i] = p;
            }
        }
        Ok(answers)
    }
}

/// A classifier of two classes whose probabilities are moved on the scale of odds: the logit of the
/// positive class becomes `slope * logit + offset` (Platt scaling).
pub struct Scaled<C> {
    inner: C,
    positive: usize,
    slope: f64,
    offset: f64,
}

impl<C: Classifier> Scaled<C> {
    /// Scales the probability of the class `positive`, 0 or 1; the other one is what remains of 1.
    ///
    /// # Panics
    /// When `inner` has more than two classes, or `positive` is not one of them.
    #[must_use]
    pub fn new(inner: C, positive: usize, slope: f64, offset: f64) -> Self {
        let classes = inner.class_names().len();
        assert!(classes == 2 && positive < 2, "class {positive} of {classes} cannot be scaled");
        Self { inner, positive, slope, offset }
    }
}

impl<C: Classifier> Classifier for Scaled<C> {
    fn class_names(&self) -> &[String] {
        self.inner.class_names()
    }

    fn classes(&mut self, crops: &[RgbTile]) -> Result<Vec<ClassProbs>, PortError> {
        let mut all = self.inner.classes(crops)?;
        for p in &mut all {
            let found = f64::from(p.0[self.positive]);
            let logit = (found / (1.0 - found)).ln();
            // A probability of 0 or 1 stays what it is: its logit is infinite.
            let scaled = 1.0 / (1.0 + (-self.slope * logit - self.offset).exp());
            p.0[self.positive] = scaled as f32;
            p.0[1 - self.positive] = (1.0 - scaled) as f32;
        }
        Ok(all)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scale_moves_the_odds() {
        let names = || vec!["other".to_owned(), "figure".to_owned()];
        let crops: Vec<RgbTile> = [0, 51, 204, 255].map(|v| RgbTile::filled(1, 1, [v; 3])).into();
        let ask = |slope, offset| {
            let mut c = Scaled::new(Corner(names()), 1, slope, offset);
            c.classes(&crops).unwrap().iter().map(|p| p.0[1]).collect::<Vec<f32>>()
        };
        let close = |a: &[f32], b: [f32; 4]| a.iter().zip(b).all(|(a, b)| (a - b).abs() < 1e-6);
        assert!(close(&ask(1.0, 0.0), [0.0, 0.2, 0.8, 1.0]));
        // Odds of 1:4 and 4:1, squared and doubled: 2:16 and 32:1.
        assert!(close(&ask(2.0, 2.0_f64.ln()), [0.0, 2.0 / 18.0, 32.0 / 33.0, 1.0]));
        let mut other = Scaled::new(Corner(names()), 1, 0.5, 1.0);
        let sums = other.classes(&crops).unwrap();
        assert!(sums.iter().all(|p| (p.0[0] + p.0[1] - 1.0).abs() < 1e-6));
    }

    /// The upper left pixel's red as a probability.
    struct Corner(Vec<String>);

    impl Classifier for Corner {
        fn class_names(&self) -> &[String] {
            &self.0
        }

        fn classes(&mut self, crops: &[RgbTile]) -> Result<Vec<ClassProbs>, PortError> {
            let p = |c: &RgbTile| f32::from(c.pixel(0, 0)[0]) / 255.0;
            Ok(crops.iter().map(|c| ClassProbs(vec![1.0 - p(c), p(c)])).collect())
        }
    }

    #[test]
    fn the_eight_symmetries_differ_and_half_of_them_undo_themselves() {
        let t = RgbTile::new(2, 2, vec![1, 1, 1, 2, 2, 2, 3, 3, 3, 4, 4, 4]);
        let all: std::collections::BTreeSet<_> = (0..8).map(|s| t.symmetric(s).data).collect();
        assert_eq!(all.len(), 8);
        assert!((0..5).all(|s| t.symmetric(s).symmetric(s) == t));
        assert_eq!(t.symmetric(1).pixel(0, 0), [2; 3]);
        assert_eq!(t.symmetric(2).pixel(0, 0), [3; 3]);
        assert_eq!(t.symmetric(4).pixel(1, 0), [3; 3]);
    }

    #[test]
    fn symmetric_copies_are_averaged() {
        let data = [0_u8, 51, 102, 255].iter().flat_map(|v| [*v; 3]).collect();
        let crop = [RgbTile::new(2, 2, data)];
        let ask = |n| Symmetric::new(Corner(vec![]), n).classes(&crop).unwrap()[0].0[1];
        assert_eq!(ask(1), 0.0);
        assert!((ask(2) - 0.1).abs() < 1e-6);
        // Every corner comes up twice among the eight.
        assert!((ask(4) - 0.4).abs() < 1e-6 && (ask(8) - 0.4).abs() < 1e-6);
    }

    #[test]
    fn what_is_clear_keeps_the_answer_to_its_first_copy() {
        let crop = |v: [u8; 4]| RgbTile::new(2, 2, v.iter().flat_map(|v| [*v; 3]).collect());
        // First copies 0.04 (clear), 0.2, 0.1 (the bound itself); their mirrored copies 1.0, 0.4, 0.3.
        let crops = [[10, 255, 0, 0], [51, 102, 0, 0], [26, 77, 0, 0]].map(crop);
        let names = || vec!["other".to_owned(), "figure".to_owned()];
        let ask = |least| {
            let mut c = Symmetric::new(Corner(names()), 2).from_probability(1, least);
            c.classes(&crops).unwrap().iter().map(|p| p.0[1]).collect::<Vec<f32>>()
        };
        let close =
            |a: Vec<f32>, b: [f32; 3]| a.iter().zip(b).all(|(a, b)| (a - b / 255.0).abs() < 1e-6);
        assert!(close(ask(0.1), [10.0, 76.5, 51.5]));
        assert!(close(ask(0.0), [132.5, 76.5, 51.5]));
        assert!(close(ask(1.0), [10.0, 51.0, 26.0]));
    }
}
