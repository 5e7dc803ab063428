//! What a vector is of, and by which encoder.

/// What a vector is of.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// Its own name.
    pub name: String,
    /// The slide that it is of.
    pub slide: String,
    /// `mitotic_figure`, `mimicker`, `unlabeled`.
    pub label: String,
    /// Its subtype or class, or nothing.
    pub subtype: String,
    /// Its side of an evaluation.
    pub split: String,
    /// Level-0 px: centre of a crop's object (NaN where unknown), upper left corner of a tile.
    pub x: f64,
    /// The same, down.
    pub y: f64,
}

impl Row {
    /// Of something that is unlabeled and of no place.
    #[must_use]
    pub fn plain(name: impl Into<String>, slide: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            slide: slide.into(),
            label: "unlabeled".into(),
            subtype: String::new(),
            split: "unassigned".into(),
            x: f64::NAN,
            y: f64::NAN,
        }
    }
}

/// The grid of slide tiles.
#[derive(Clone, Debug, PartialEq)]
pub struct Tiles {
    /// The slide's name.
    pub slide: String,
    /// Side, pixels at `mpp`.
    pub side: i64,
    /// Side in level-0 pixels.
    pub level0: i64,
    /// um/px.
    pub mpp: f64,
    /// um/px of level 0.
    pub level0_mpp: f64,
    /// Level-0 width and height, px.
    pub extent: (i64, i64),
}

impl Tiles {
    /// Nominal magnification of a resolution: 0.25 um/px is 40x, 0.5 is 20x. Scanners differ by a
    /// tenth either way, so that the range up to 0.3 counts as 40x.
    #[must_use]
    pub fn magnification(mpp: f64) -> i64 {
        let powers = [(0.16, 80), (0.2, 60), (0.3, 40), (0.6, 20), (1.2, 10), (2.4, 5)];
        let power = powers.iter().find(|(up_to, _)| mpp < *up_to);
        power.map_or_else(|| ((10.0 / mpp).round() as i64).max(1), |(_, power)| *power)
    }
}

/// By which encoder.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct About {
    /// Its name.
    pub encoder: String,
    /// Numbers per vector.
    pub width: usize,
    /// SHA-256 of its network or weights.
    pub sha256: String,
    /// Names of weights that no file gave, comma-separated.
    pub random: String,
    /// How an image becomes its input, as text: sides, filter, mean and deviation; of a file of weights, which may be
    /// several encoders, with the encoder's name.
    pub input: String,
    /// Computed in bf16, not in f32.
    pub bf16: bool,
}

impl About {
    /// What the encoder computed in: `f32` or `bf16`.
    #[must_use]
    pub fn precision(&self) -> &'static str {
        if self.bf16 { "bf16" } else { "f32" }
    }
}
