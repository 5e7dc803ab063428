//! The two plain-buffer ports between the product and an engine.
//!
//! An engine takes 8-bit RGB and gives probabilities; normalisation, batching, precision and
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
}

/// A probability per pixel, row-major, each in [0, 1].
#[derive(Clone, Debug, PartialEq)]
pub struct ProbMap {
    /// Pixels per row.
    pub width: usize,
    /// Rows.
    pub height: usize,
    /// Probabilities.
    pub data: Vec<f32>,
}

/// Softmax probabilities of one crop, in the order of the model card's class names.
#[derive(Clone, Debug, PartialEq)]
pub struct ClassProbs(pub Vec<f32>);

/// What an engine reports when it cannot answer.
#[derive(Debug, thiserror::Error)]
pub enum PortError {
    /// The engine failed; the text is its own.
    #[error("{engine}: {message}")]
    Engine {
        /// Engine name, e.g. `rten`.
        engine: String,
        /// Its message.
        message: String,
    },
    /// A tile has a size the model cannot take.
    #[error("the model takes {expected} px tiles, got {width}x{height}")]
    TileSize {
        /// What it takes.
        expected: String,
        /// Got.
        width: usize,
        /// Got.
        height: usize,
    },
    /// NaN or out-of-range output: a broken model, never a result.
    #[error("{engine}: the model returned {value}, which is no probability")]
    NotAProbability {
        /// Engine name.
        engine: String,
        /// The value.
        value: f32,
    },
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
