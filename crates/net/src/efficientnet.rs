//! EfficientNet, equal to timm's: V1 (b0 ... b7), Lite0, Lite2 and V2-S, TensorFlow's ports (`tf_`)
//! and torchvision's V2-S, all with timm's parameter names.

use encoders::efficientnet::{GateShape, ResidualShape};
use tch::Tensor;
use tch::nn::{Init, Path};

use crate::error::Result;
use crate::layer::{Activation, BatchNorm, Conv2d, ConvNormShape, Linear, drop_path};

pub use crate::layer::Act;
pub use encoders::efficientnet::{EfficientNetConfig, Variant};

/// Convolution and its batch norm, activation by the caller.
#[derive(Debug)]
pub(crate) struct ConvNorm {
    pub conv: Conv2d,
    pub norm: BatchNorm,
    /// Activation after the norm.
    pub act: Option<Act>,
    /// Zeros are put around the input as TensorFlow's `SAME` does, which depends on its size; the
    /// convolution itself pads nothing then.
    pub same: bool,
}

impl ConvNorm {
    pub(crate) fn new(p: &Path, c: &ConvNormShape) -> Self {
        let mut conv = Conv2d::new(&(p / c.conv), c.shape);
        if c.same {
            conv.padding = 0;
        }
        let norm = BatchNorm { eps: c.eps, ..BatchNorm::new(&(p / c.norm), c.shape.output) };
        Self { conv, norm, act: c.act, same: c.same }
    }

    pub(crate) fn forward(&self, x: &Tensor, train: bool) -> Tensor {
        let x = if self.same { &pad_same(x, &self.conv) } else { x };
        let y = self.norm.forward(&self.conv.forward(x), train);
        self.act.map_or_else(|| y.shallow_clone(), |a| a.forward(&y))
    }
}

/// Zeros (before, after) one axis of `size` so that `ceil(size / stride)` comes out, as
/// TensorFlow's `SAME`: the odd one is at the end.
fn same_padding(size: i64, kernel: i64, stride: i64) -> (i64, i64) {
    let total = ((size + stride - 1) / stride - 1) * stride + kernel - size;
    let total = total.max(0);
    (total / 2, total - total / 2)
}

fn pad_same(x: &Tensor, conv: &Conv2d) -> Tensor {
    let (size, kernel) = (x.size(), conv.weight.size()[2]);
    let (top, bottom) = same_padding(size[2], kernel, conv.stride);
    let (left, right) = same_padding(size[3], kernel, conv.stride);
    x.constant_pad_nd([left, right, top, bottom])
}

/// Squeeze and excitation.
#[derive(Debug)]
pub(crate) struct SqueezeExcite {
    pub reduce: Conv2d,
    pub expand: Conv2d,
    pub act: Act,
}

impl SqueezeExcite {
    fn new(p: &Path, gate: &GateShape) -> Self {
        let [reduce, expand] = gate.shapes();
        Self {
            reduce: Conv2d::new(&(p / "conv_reduce"), reduce),
            expand: Conv2d::new(&(p / "conv_expand"), expand),
            act: gate.act,
        }
    }

    fn forward(&self, x: &Tensor) -> Tensor {
        let pooled = x.mean_dim([2i64, 3].as_slice(), true, None);
        let gate = self.expand.forward(&self.act.forward(&self.reduce.forward(&pooled)));
        x * gate.sigmoid()
    }
}

/// One residual block: convolutions in order, squeeze-and-excitation before the last.
#[derive(Debug)]
pub(crate) struct Residual {
    pub convs: Vec<ConvNorm>,
    pub se: Option<SqueezeExcite>,
    pub skip: bool,
    pub drop_path: f64,
}

impl Residual {
    fn new(p: &Path, shape: &ResidualShape, drop_path: f64) -> Self {
        let convs = shape.convs.iter().map(|c| ConvNorm::new(p, c)).collect();
        let se = shape.gate.map(|gate| SqueezeExcite::new(&(p / "se"), &gate));
        Self { convs, se, skip: shape.skip, drop_path }
    }

    fn forward(&self, x: &Tensor, train: bool) -> Tensor {
        let mut y = x.shallow_clone();
        for (i, conv) in self.convs.iter().enumerate() {
            if i + 1 == self.convs.len()
                && let Some(se) = &self.se
            {
                y = se.forward(&y);
            }
            y = conv.forward(&y, train);
        }
        if self.skip { drop_path(y, self.drop_path, train) + x } else { y }
    }
}

/// The trunk: stem and stages, features at strides 2, 4, 8, 16 and, unless it ends before, 32.
#[derive(Debug)]
pub struct Trunk {
    pub(crate) stem: ConvNorm,
    pub(crate) blocks: Vec<Vec<Residual>>,
    pub(crate) taps: [usize; 5],
}

impl Trunk {
    /// Builds it under `p` with timm's names.
    #[must_use]
    pub fn new(p: &Path, variant: Variant, drop_rate: f64) -> Self {
        Self::with_levels(p, variant, drop_rate, 5)
    }

    /// The trunk with its first `levels` features alone, 1 to 5: 4 end at stride 16.
    pub(crate) fn with_levels(p: &Path, variant: Variant, drop_rate: f64, levels: usize) -> Self {
        let plan = variant.plan();
        let stem = ConvNorm::new(p, &plan.stem);
        let total: usize = plan.blocks.iter().map(Vec::len).sum();
        let mut index = 0_usize;
        let mut blocks = Vec::new();
        for (i, stage) in plan.blocks.iter().enumerate().take(plan.taps[levels - 1] + 1) {
            let mut row = Vec::new();
            for (j, shape) in stage.iter().enumerate() {
                let rate = drop_rate * index as f64 / total as f64;
                row.push(Residual::new(&(p / "blocks" / i / j), shape, rate));
                index += 1;
            }
            blocks.push(row);
        }
        Self { stem, blocks, taps: plan.taps }
    }

    /// `[N, 3, H, W]` to one map per feature, at strides 2, 4, 8, 16, 32.
    #[must_use]
    pub fn features(&self, x: &Tensor, train: bool) -> Vec<Tensor> {
        let mut y = self.stem.forward(x, train);
        let mut out = Vec::with_capacity(5);
        for (i, stage) in self.blocks.iter().enumerate() {
            for block in stage {
                y = block.forward(&y, train);
            }
            if self.taps.contains(&i) {
                out.push(y.shallow_clone());
            }
        }
        out
    }

    /// Opens the squeeze-and-excitation gates: weights shrink to a tenth, the gate's bias becomes
    /// `bias` (3 lets 95 % through). Use it after loading weights that were trained without gates
    /// (EfficientNet-Lite), so that the convolutions see the scale they were trained for.
    pub fn open_gates(&self, bias: f64) {
        tch::no_grad(|| {
            for se in self.blocks.iter().flatten().filter_map(|b| b.se.as_ref()) {
                let mut weight = se.expand.weight.shallow_clone();
                let _ = weight.g_mul_scalar_(0.1);
                if let Some(b) = &se.expand.bias {
                    let _ = b.shallow_clone().fill_(bias);
                }
            }
        });
    }
}

/// EfficientNet classifier.
#[derive(Debug)]
pub struct EfficientNet {
    /// Stem and stages.
    pub trunk: Trunk,
    pub(crate) head: ConvNorm,
    /// Absent when built for no classes.
    pub(crate) classifier: Option<Linear>,
    config: EfficientNetConfig,
}

impl EfficientNet {
    /// Builds it under `p` with timm's names; the classifier starts at zero weights.
    ///
    /// # Errors
    /// [`NetError::Encoder`](crate::NetError::Encoder) for a setting out of range.
    pub fn new(p: &Path, config: &EfficientNetConfig) -> Result<Self> {
        config.check()?;
        let plan = config.variant.plan();
        let trunk = Trunk::new(p, config.variant, config.drop_path);
        Ok(Self {
            head: ConvNorm::new(p, &plan.last),
            classifier: (config.classes > 0).then(|| {
                Linear::head(&(p / "classifier"), plan.head, config.classes, config.head_bias)
            }),
            trunk,
            config: config.clone(),
        })
    }

    /// Settings that it was built from.
    #[must_use]
    pub fn config(&self) -> &EfficientNetConfig {
        &self.config
    }

    /// `[N, 3, H, W]` to `[N, dim, H/32, W/32]`, before pooling.
    pub fn forward_features(&self, x: &Tensor, train: bool) -> Tensor {
        let maps = self.trunk.features(x, train);
        self.head.forward(maps.last().expect("five maps"), train)
    }

    /// `[N, 3, H, W]` to the pooled `[N, dim]`.
    pub fn embed(&self, x: &Tensor, train: bool) -> Tensor {
        self.forward_features(x, train).mean_dim([2i64, 3].as_slice(), false, None)
    }

    /// `[N, 3, H, W]` to logits `[N, classes]`, or to [`Self::embed`] without a head.
    pub fn forward(&self, x: &Tensor, train: bool) -> Tensor {
        let y = self.embed(x, train);
        let Some(classifier) = &self.classifier else { return y };
        let y = if self.config.dropout > 0.0 { y.dropout(self.config.dropout, train) } else { y };
        classifier.forward(&y)
    }
}

/// timm's uniform start for a head that is not zeroed.
#[must_use]
pub fn timm_head_init(classes: i64) -> Init {
    let r = 1.0 / (classes as f64).sqrt();
    Init::Uniform { lo: -r, up: r }
}
