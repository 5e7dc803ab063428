//! Swin transformer, equal to timm's `swin_tiny_patch4_window7_224` with timm's (modern) parameter
//! names, and the same with a convolutional stem, as CTransPath and CHIEF have it.

use serde::{Deserialize, Serialize};

use crate::error::{EncoderError, Result};
use crate::layer::{Act, ConvNormShape, ConvShape};

/// timm's name of Swin-T.
pub const TINY: &str = "swin_tiny_patch4_window7_224";
/// Swin-T with the convolutional stem.
pub const TINY_CONV_STEM: &str = "swin_tiny_convstem_window7_224";
/// Epsilon of its layer norms.
pub const EPS: f64 = 1e-5;

/// How pixels become the first tokens, a quarter of the image's side.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Stem {
    /// One 4x4 convolution of stride 4.
    #[default]
    Patch,
    /// Two 3x3 convolutions of stride 2 with batch norm and ReLU, then a 1x1 convolution.
    Conv,
}

/// How to build one. The image's side is a multiple of 4.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SwinConfig {
    /// Token width of the first stage; each further stage doubles it.
    pub dim: i64,
    /// Blocks of each stage.
    pub depths: Vec<usize>,
    /// Attention heads of each stage.
    pub heads: Vec<i64>,
    /// Window side in tokens; smaller where a stage has fewer tokens.
    pub window: i64,
    /// Image side in pixels.
    pub image: i64,
    /// How pixels become tokens.
    #[serde(default)]
    pub stem: Stem,
    /// Stochastic depth at the last block, growing linearly from 0, [0, 1).
    #[serde(default)]
    pub drop_path: f64,
    /// Classes of the head; 0 leaves it out.
    pub classes: i64,
    /// Constant bias of the head.
    #[serde(default)]
    pub head_bias: f64,
}

impl SwinConfig {
    /// Swin-T at 224 px.
    #[must_use]
    pub fn tiny(stem: Stem, classes: i64) -> Self {
        Self {
            dim: 96,
            depths: vec![2, 2, 6, 2],
            heads: vec![3, 6, 12, 24],
            window: 7,
            image: 224,
            stem,
            drop_path: 0.0,
            classes,
            head_bias: 0.0,
        }
    }

    /// Its name in the table.
    #[must_use]
    pub fn architecture(&self) -> &'static str {
        match self.stem {
            Stem::Patch => TINY,
            Stem::Conv => TINY_CONV_STEM,
        }
    }

    /// Width of an image's vector.
    #[must_use]
    pub fn width(&self) -> i64 {
        self.dim << (self.depths.len() - 1)
    }

    /// How pixels become tokens: convolutions with a norm under `patch_embed.proj`, and the last one's name and
    /// shape, which pads nothing.
    #[must_use]
    pub fn patch_embed(&self) -> (Vec<ConvNormShape>, &'static str, ConvShape) {
        let dim = self.dim;
        match self.stem {
            Stem::Patch => (vec![], "patch_embed.proj", ConvShape::new(3, dim, 4).stride(4).bias()),
            Stem::Conv => {
                let conv = |names, input, output| {
                    ConvNormShape::new(names, ConvShape::new(input, output, 3).stride(2), Act::Relu)
                };
                let convs = vec![conv(("0", "1"), 3, dim / 8), conv(("3", "4"), dim / 8, dim / 4)];
                (convs, "patch_embed.proj.6", ConvShape::new(dim / 4, dim, 1).bias())
            }
        }
    }

    /// Its stages, in order.
    #[must_use]
    pub fn stages(&self) -> Vec<SwinStageShape> {
        let (mut side, mut dim) = (self.image / 4, self.dim);
        let rows = self.depths.iter().zip(&self.heads).enumerate();
        rows.map(|(i, (&depth, &heads))| {
            let merged = (i > 0).then_some((side, dim));
            if i > 0 {
                (side, dim) = ((side + 1) / 2, 2 * dim);
            }
            let blocks = (0..depth).map(|j| Windows::new(side, self.window, j % 2 == 1)).collect();
            SwinStageShape { merged, dim, heads, blocks }
        })
        .collect()
    }

    /// Checks ranges.
    ///
    /// # Errors
    /// [`EncoderError::Config`] with the key.
    pub fn check(&self) -> Result<()> {
        let bad = |key: &str, why: String| Err(EncoderError::config(key, why));
        let stages = self.depths.len();
        if stages == 0 || stages > 8 || self.depths.contains(&0) {
            return bad("depths", format!("{:?}: one to eight stages of blocks", self.depths));
        }
        if self.heads.len() != stages {
            return bad("heads", format!("{} numbers for {stages} stages", self.heads.len()));
        }
        // The convolutional stem goes through an eighth of the width.
        if self.dim < 8 || self.dim % 8 != 0 {
            return bad("dim", format!("{} is not a multiple of 8", self.dim));
        }
        if let Some((i, h)) =
            self.heads.iter().enumerate().find(|(i, h)| **h < 1 || (self.dim << i) % **h != 0)
        {
            return bad("heads", format!("{h} heads do not divide width {}", self.dim << i));
        }
        if self.window < 2 {
            return bad("window", format!("{} is below 2", self.window));
        }
        if self.image < 4 || self.image % 4 != 0 {
            return bad("image", format!("{} is not a multiple of 4", self.image));
        }
        if !(0.0..1.0).contains(&self.drop_path) {
            return bad("drop_path", format!("{} is not in [0, 1)", self.drop_path));
        }
        if self.classes < 0 {
            return bad("classes", "must not be negative".into());
        }
        Ok(())
    }
}

/// A stage of a Swin transformer.
#[derive(Clone, Debug, PartialEq)]
pub struct SwinStageShape {
    /// Side and width before 2x2 neighbours are joined; `None` of the first stage, which joins none.
    pub merged: Option<(i64, i64)>,
    /// Token width.
    pub dim: i64,
    /// Attention heads.
    pub heads: i64,
    /// Where each block attends.
    pub blocks: Vec<Windows>,
}

/// Added to the score of two tokens that the cyclic shift alone brought together.
const APART: f32 = -100.0;

/// Where a block's windows are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Windows {
    /// Tokens per side.
    pub side: i64,
    /// Window side.
    pub window: i64,
    /// Cyclic shift up and to the left.
    pub shift: i64,
}

impl Windows {
    /// Of a stage of `side` tokens; every second block is `shifted`.
    #[must_use]
    pub fn new(side: i64, window: i64, shifted: bool) -> Self {
        let shift = if shifted && side > window { window / 2 } else { 0 };
        Self { side, window: window.min(side), shift }
    }

    /// Side after padding to whole windows.
    #[must_use]
    pub fn padded(self) -> i64 {
        (self.side + self.window - 1) / self.window * self.window
    }

    /// Windows per image.
    #[must_use]
    pub fn count(self) -> i64 {
        let n = self.padded() / self.window;
        n * n
    }

    /// Tokens of a window.
    #[must_use]
    pub fn area(self) -> i64 {
        self.window * self.window
    }

    /// `[area, area]`, flat: the row of the table of relative positions for each pair.
    #[must_use]
    pub fn index(self) -> Vec<i64> {
        let w = self.window;
        let tokens = || (0..w).flat_map(|y| (0..w).map(move |x| (y, x)));
        tokens()
            .flat_map(|(y, x)| {
                tokens().map(move |(v, u)| (y - v + w - 1) * (2 * w - 1) + x - u + w - 1)
            })
            .collect()
    }

    /// `[count, area, area]`, flat: -100 where two tokens are not neighbours before the shift. `None` where nothing
    /// is shifted.
    #[must_use]
    pub fn mask(self) -> Option<Vec<f32>> {
        if self.shift == 0 {
            return None;
        }
        let (side, window, area) = (self.padded(), self.window, self.area() as usize);
        let part = |i: i64| i64::from(i >= side - window) + i64::from(i >= side - self.shift);
        let starts = || (0..side / window).map(|i| i * window);
        let mut values = Vec::with_capacity(self.count() as usize * area * area);
        for (top, left) in starts().flat_map(|y| starts().map(move |x| (y, x))) {
            let parts: Vec<i64> = (top..top + window)
                .flat_map(|y| (left..left + window).map(move |x| 3 * part(y) + part(x)))
                .collect();
            for a in &parts {
                values.extend(parts.iter().map(|b| if a == b { 0.0 } else { APART }));
            }
        }
        Some(values)
    }
}
