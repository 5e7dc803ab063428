//! A small builder of ONNX graphs, which takes a network's tensors by their names.

use super::model::{Axis, NamedValue, Value, model};
use super::options::{ExportOptions, WeightKind};
use super::parts::Cutting;
use super::source::{Affine, Source, Values};
use crate::error::{EncoderError, Result};
use crate::layer::{Act, ConvNormShape, ConvShape};
use crate::weights::Outline;
use proto::{AttributeProto, ModelProto, NodeProto, TensorProto};

const FLOAT: i32 = 1;
const INT64: i32 = 7;
const FLOAT16: i32 = 10;

pub(super) struct Graph<'a> {
    source: &'a dyn Source,
    /// The tensors that were asked for.
    pub(super) outline: Outline,
    /// The first one that the source has not, or has in another shape.
    missing: Option<String>,
    nodes: Vec<NodeProto>,
    weights: Vec<TensorProto>,
    parts: Vec<Part>,
    kind: WeightKind,
    next: usize,
    /// How it becomes several files; `None` for one.
    pub(super) cutting: Option<Cutting>,
}

/// Where the graph keeps what a layer learnt: the way back from a file to a network that trains.
#[derive(Clone, Debug, PartialEq)]
pub enum Part {
    /// A tensor as it is, or with its two axes swapped.
    Plain {
        /// In the file.
        name: String,
        /// In the network.
        tensor: String,
        /// Its axes.
        swapped: bool,
    },
    /// A convolution and the batch norm folded into it.
    Folded {
        /// In the file.
        weight: String,
        /// In the file.
        bias: String,
        /// The value that comes out of both.
        output: String,
        /// The convolution's weight in the network.
        conv: String,
        /// The norm in the network.
        norm: NormPart,
    },
    /// A batch norm as a factor and a shift.
    Norm {
        /// In the file.
        scale: String,
        /// In the file.
        shift: String,
        /// The value that it is given.
        input: String,
        /// In the network.
        norm: NormPart,
    },
}

/// A batch norm of the network.
#[derive(Clone, Debug, PartialEq)]
pub struct NormPart {
    /// What `.weight`, `.bias`, `.running_mean` and `.running_var` follow.
    pub name: String,
    /// Added to the variance.
    pub eps: f64,
}

/// The four tensors of a batch norm, in f64.
struct Norm {
    weight: Vec<f64>,
    bias: Vec<f64>,
    mean: Vec<f64>,
    var: Vec<f64>,
}

impl Norm {
    /// What it multiplies by.
    fn scale(&self, eps: f64) -> Vec<f64> {
        self.var.iter().zip(&self.weight).map(|(v, w)| 1.0 / (v + eps).sqrt() * w).collect()
    }

    /// What it adds after that.
    fn shift(&self, scale: &[f64]) -> Vec<f64> {
        let rows = self.mean.iter().zip(scale).zip(&self.bias);
        rows.map(|((mean, scale), bias)| -mean * scale + bias).collect()
    }
}

/// `name` below `path`, which may be the root.
pub(super) fn under(path: &str, name: impl std::fmt::Display) -> String {
    if path.is_empty() { name.to_string() } else { format!("{path}.{name}") }
}

pub(super) fn ints(name: &str, values: &[i64]) -> AttributeProto {
    AttributeProto { name: name.into(), ints: values.to_vec(), r#type: 7, ..Default::default() }
}

pub(super) fn int(name: &str, value: i64) -> AttributeProto {
    AttributeProto { name: name.into(), i: value, r#type: 2, ..Default::default() }
}

fn float(name: &str, value: f32) -> AttributeProto {
    AttributeProto { name: name.into(), f: value, r#type: 1, ..Default::default() }
}

fn string(name: &str, value: &str) -> AttributeProto {
    AttributeProto { name: name.into(), s: value.into(), r#type: 3, ..Default::default() }
}

fn single(values: &[f64]) -> Vec<f32> {
    values.iter().map(|v| *v as f32).collect()
}

fn pads(shape: ConvShape) -> AttributeProto {
    ints("pads", &[shape.kernel / 2; 4])
}

impl<'a> Graph<'a> {
    pub(super) fn new(source: &'a dyn Source, options: &ExportOptions) -> Self {
        Self {
            source,
            outline: Outline::new(),
            missing: None,
            nodes: Vec::new(),
            weights: Vec::new(),
            parts: Vec::new(),
            kind: options.weights,
            next: 0,
            cutting: None,
        }
    }

    /// A tensor of the network.
    pub(super) fn tensor(&mut self, name: &str, dims: &[i64]) -> Values {
        self.outline.insert(name.to_owned(), dims.to_vec());
        match self.source.values(name, dims) {
            Some(data) => Values { dims: dims.to_vec(), data },
            None => {
                self.missing.get_or_insert_with(|| name.to_owned());
                Values { dims: dims.to_vec(), data: vec![] }
            }
        }
    }

    fn norm_tensors(&mut self, name: &str, channels: i64) -> Norm {
        let mut part = |leaf: &str| {
            let values = self.tensor(&under(name, leaf), &[channels]);
            values.data.iter().map(|v| f64::from(*v)).collect()
        };
        let (weight, bias) = (part("weight"), part("bias"));
        Norm { weight, bias, mean: part("running_mean"), var: part("running_var") }
    }

    fn fresh(&mut self, what: &str) -> String {
        self.next += 1;
        format!("{}_{}", what.to_lowercase(), self.next)
    }

    pub(super) fn op(&mut self, op: &str, input: &[&str], attribute: Vec<AttributeProto>) -> Value {
        let output = self.fresh(op);
        self.named_op(op, input, attribute, output)
    }

    pub(super) fn named_op(
        &mut self,
        op: &str,
        input: &[&str],
        attribute: Vec<AttributeProto>,
        output: Value,
    ) -> Value {
        self.nodes.push(NodeProto {
            input: input.iter().map(|s| (*s).to_string()).collect(),
            output: vec![output.clone()],
            name: format!("{op}:{output}"),
            op_type: op.into(),
            attribute,
            ..Default::default()
        });
        output
    }

    /// `axis` cut into parts of these sizes.
    pub(super) fn split(&mut self, x: &str, axis: i64, sizes: &[i64]) -> Vec<Value> {
        let parts = sizes.len();
        let sizes = self.shape(sizes);
        let outputs: Vec<Value> = (0..parts).map(|_| self.fresh("split")).collect();
        self.nodes.push(NodeProto {
            input: vec![x.into(), sizes],
            output: outputs.clone(),
            name: format!("Split:{}", outputs[0]),
            op_type: "Split".into(),
            attribute: vec![int("axis", axis)],
            ..Default::default()
        });
        outputs
    }

    /// A one-dimensional integer constant.
    pub(super) fn shape(&mut self, values: &[i64]) -> Value {
        let name = self.fresh("shape");
        self.weights.push(TensorProto {
            dims: vec![values.len() as i64],
            data_type: INT64,
            name: name.clone(),
            raw_data: values.iter().flat_map(|v| v.to_le_bytes()).collect::<Vec<_>>().into(),
            ..Default::default()
        });
        name
    }

    /// A weight; stored as f16 and cast where that was asked for and the tensor is large.
    pub(super) fn weight(&mut self, Values { dims, data }: &Values) -> Value {
        let name = self.fresh("weight");
        // Small tensors (biases, scales) stay exact: they cost nothing.
        let large = self.halves() && data.len() >= 1024;
        // Beyond f16's range a value would become infinite.
        if large && data.iter().all(|v| self.kind.stored(*v).is_finite()) {
            let stored = format!("{name}_f16");
            self.weights.push(TensorProto {
                dims: dims.clone(),
                data_type: FLOAT16,
                name: stored.clone(),
                raw_data: data
                    .iter()
                    .flat_map(|v| self.kind.stored(*v).to_le_bytes())
                    .collect::<Vec<_>>()
                    .into(),
                ..Default::default()
            });
            return self.named_op("Cast", &[&stored], vec![int("to", FLOAT.into())], name);
        }
        self.exact(dims.clone(), data, name)
    }

    /// Whether large weights are stored as f16.
    pub(super) fn halves(&self) -> bool {
        self.kind != WeightKind::F32
    }

    /// A weight that is stored as f32 whatever was asked for.
    pub(super) fn weight_exact(&mut self, Values { dims, data }: &Values) -> Value {
        let name = self.fresh("weight");
        self.exact(dims.clone(), data, name)
    }

    pub(super) fn scalar(&mut self, value: f32) -> Value {
        let name = self.fresh("scalar");
        self.exact(vec![], &[value], name)
    }

    fn exact(&mut self, dims: Vec<i64>, values: &[f32], name: String) -> Value {
        self.weights.push(TensorProto {
            dims,
            data_type: FLOAT,
            name: name.clone(),
            raw_data: values.iter().flat_map(|v| v.to_le_bytes()).collect::<Vec<_>>().into(),
            ..Default::default()
        });
        name
    }

    /// The names of its weight, bias and output.
    fn conv_raw(
        &mut self,
        x: &str,
        shape: ConvShape,
        weight: &Values,
        bias: Option<&Values>,
        pads: AttributeProto,
    ) -> (Value, Option<Value>, Value) {
        let w = self.weight(weight);
        let ConvShape { kernel, stride, groups, .. } = shape;
        let attributes = vec![
            ints("kernel_shape", &[kernel, kernel]),
            ints("strides", &[stride, stride]),
            pads,
            int("group", groups),
        ];
        match bias {
            Some(b) => {
                let b = self.weight(b);
                let y = self.op("Conv", &[x, &w, &b], attributes);
                (w, Some(b), y)
            }
            None => {
                let y = self.op("Conv", &[x, &w], attributes);
                (w, None, y)
            }
        }
    }

    fn plain(&mut self, name: &str, tensor: String, swapped: bool) {
        self.parts.push(Part::Plain { name: name.into(), tensor, swapped });
    }

    pub(super) fn conv(&mut self, x: &str, name: &str, shape: ConvShape) -> Value {
        self.conv_padded(x, name, shape, pads(shape))
    }

    /// Without zeros around the image.
    pub(super) fn conv_valid(&mut self, x: &str, name: &str, shape: ConvShape) -> Value {
        self.conv_padded(x, name, shape, ints("pads", &[0; 4]))
    }

    fn conv_padded(
        &mut self,
        x: &str,
        name: &str,
        shape: ConvShape,
        pads: AttributeProto,
    ) -> Value {
        let weight = self.tensor(&under(name, "weight"), &shape.dims());
        let bias = shape.bias.then(|| self.tensor(&under(name, "bias"), &[shape.output]));
        let (w, b, y) = self.conv_raw(x, shape, &weight, bias.as_ref(), pads);
        self.plain(&w, under(name, "weight"), false);
        if let Some(b) = b {
            self.plain(&b, under(name, "bias"), false);
        }
        y
    }

    /// A convolution with the batch norm after it folded in, in f64; no activation.
    pub(super) fn conv_norm(&mut self, x: &str, path: &str, c: &ConvNormShape) -> Value {
        let (conv, norm, shape) = (under(path, c.conv), under(path, c.norm), c.shape);
        let conv = under(&conv, "weight");
        let weight = self.tensor(&conv, &shape.dims());
        let tensors = self.norm_tensors(&norm, shape.output);
        let scale = tensors.scale(c.eps);
        let rows = weight.data.chunks(weight.row_len()).zip(&scale);
        let folded =
            rows.flat_map(|(row, s)| row.iter().map(move |v| (f64::from(*v) * s) as f32)).collect();
        let weight = Values { dims: weight.dims, data: folded };
        let bias = Values { dims: vec![shape.output], data: single(&tensors.shift(&scale)) };
        let pads = if c.same { string("auto_pad", "SAME_UPPER") } else { pads(shape) };
        let (weight, bias, output) = self.conv_raw(x, shape, &weight, Some(&bias), pads);
        if let Some(bias) = bias {
            let (output, norm) = (output.clone(), NormPart { name: norm, eps: c.eps });
            self.parts.push(Part::Folded { weight, bias, output, conv, norm });
        }
        output
    }

    /// The same and its activation.
    pub(super) fn conv_norm_act(&mut self, x: &str, path: &str, c: &ConvNormShape) -> Value {
        let y = self.conv_norm(x, path, c);
        match c.act {
            Some(act) => self.act(&y, act),
            None => y,
        }
    }

    /// A batch norm that no convolution is before.
    pub(super) fn norm(&mut self, x: &str, name: &str, channels: i64) -> Value {
        const EPS: f64 = 1e-5;
        let tensors = self.norm_tensors(name, channels);
        let scale = tensors.scale(EPS);
        let shift = tensors.shift(&scale);
        let mut weight =
            |v: &[f64]| self.weight(&Values { dims: vec![channels, 1, 1], data: single(v) });
        let (scale, shift) = (weight(&scale), weight(&shift));
        self.parts.push(Part::Norm {
            scale: scale.clone(),
            shift: shift.clone(),
            input: x.to_owned(),
            norm: NormPart { name: name.to_owned(), eps: EPS },
        });
        let scaled = self.op("Mul", &[x, &scale], vec![]);
        self.op("Add", &[&scaled, &shift], vec![])
    }

    pub(super) fn act(&mut self, x: &str, act: Act) -> Value {
        match act {
            Act::Silu => {
                let gate = self.op("Sigmoid", &[x], vec![]);
                self.op("Mul", &[x, &gate], vec![])
            }
            Act::Relu => self.op("Relu", &[x], vec![]),
            Act::Relu6 => {
                let (low, high) = (self.scalar(0.0), self.scalar(6.0));
                self.op("Clip", &[x, &low, &high], vec![])
            }
        }
    }

    /// Exact GELU as the pattern that runtimes fuse: `x (1 + erf(x / sqrt 2)) 0.5`.
    pub(super) fn gelu(&mut self, x: &str) -> Value {
        let (root, one, half) =
            (self.scalar(std::f32::consts::SQRT_2), self.scalar(1.0), self.scalar(0.5));
        let scaled = self.op("Div", &[x, &root], vec![]);
        let erf = self.op("Erf", &[&scaled], vec![]);
        let sum = self.op("Add", &[&erf, &one], vec![]);
        let product = self.op("Mul", &[x, &sum], vec![]);
        self.op("Mul", &[&product, &half], vec![])
    }

    pub(super) fn layer_norm(&mut self, x: &str, name: &str, dim: i64, eps: f64) -> Value {
        let weight = self.tensor(&under(name, "weight"), &[dim]);
        let bias = self.tensor(&under(name, "bias"), &[dim]);
        let (w, b) = (self.weight(&weight), self.weight(&bias));
        let attributes = vec![int("axis", -1), float("epsilon", eps as f32)];
        self.op("LayerNormalization", &[x, &w, &b], attributes)
    }

    /// The names of its weight, bias and output.
    fn affine(
        &mut self,
        x: &str,
        Affine { weight, bias }: &Affine,
    ) -> (Value, Option<Value>, Value) {
        let w = self.weight(&weight.transposed());
        let y = self.op("MatMul", &[x, &w], vec![]);
        match bias {
            Some(b) => {
                let b = self.weight(b);
                let y = self.op("Add", &[&y, &b], vec![]);
                (w, Some(b), y)
            }
            None => (w, None, y),
        }
    }

    /// `[..., in]` to `[..., out]` by weights that another factor went into.
    pub(super) fn linear_raw(&mut self, x: &str, affine: &Affine) -> Value {
        self.affine(x, affine).2
    }

    pub(super) fn linear(&mut self, x: &str, name: &str, shape: LinearShape) -> Value {
        let tensors = self.linear_tensors(name, shape);
        let (w, b, y) = self.affine(x, &tensors);
        self.plain(&w, under(name, "weight"), true);
        if let Some(b) = b {
            self.plain(&b, under(name, "bias"), false);
        }
        y
    }

    pub(super) fn linear_tensors(
        &mut self,
        name: &str,
        LinearShape { input, output, bias }: LinearShape,
    ) -> Affine {
        let weight = self.tensor(&under(name, "weight"), &[output, input]);
        Affine { weight, bias: bias.then(|| self.tensor(&under(name, "bias"), &[output])) }
    }

    pub(super) fn reshape(&mut self, x: &str, shape: &[i64]) -> Value {
        let shape = self.shape(shape);
        self.op("Reshape", &[x, &shape], vec![])
    }

    pub(super) fn transpose(&mut self, x: &str, perm: &[i64]) -> Value {
        self.op("Transpose", &[x], vec![ints("perm", perm)])
    }

    /// Twice the size, nearest.
    pub(super) fn upsample(&mut self, x: &str) -> Value {
        let name = self.fresh("scales");
        let scales = self.exact(vec![4], &[1.0, 1.0, 2.0, 2.0], name);
        let attributes = vec![
            string("mode", "nearest"),
            string("coordinate_transformation_mode", "asymmetric"),
            string("nearest_mode", "floor"),
        ];
        self.op("Resize", &[x, "", &scales], attributes)
    }

    /// Bilinear interpolation to `factor` times the size, pixel centres at .5.
    pub(super) fn enlarge(&mut self, x: &str, factor: f32) -> Value {
        let name = self.fresh("scales");
        let scales = self.exact(vec![4], &[1.0, 1.0, factor, factor], name);
        let attributes =
            vec![string("mode", "linear"), string("coordinate_transformation_mode", "half_pixel")];
        self.op("Resize", &[x, "", &scales], attributes)
    }

    /// Reports that from here on nothing is read but `value`, so that a file may end. Nothing happens in
    /// a graph that is one file.
    pub(super) fn seam(&mut self, value: &str, axes: &[Axis]) {
        if let Some(cutting) = &mut self.cutting {
            cutting.where_full(&mut self.nodes, &mut self.weights);
            cutting.seam(&self.nodes, value, axes);
        }
    }

    /// The last of several files, and those before it with what the last one takes; `None` for a
    /// graph that is one file.
    pub(super) fn cut(&mut self) -> Option<Cutting> {
        let mut cutting = self.cutting.take()?;
        cutting.where_full(&mut self.nodes, &mut self.weights);
        Some(cutting)
    }

    /// The finished file, with its input and output, and where it keeps what.
    ///
    /// # Errors
    /// [`EncoderError::Config`] naming a tensor that the source has not.
    pub(super) fn finish(
        self,
        name: &str,
        ends: [&NamedValue; 2],
        metadata: &[(&str, &str)],
    ) -> Result<(ModelProto, Vec<Part>)> {
        if let Some(missing) = self.missing {
            return Err(EncoderError::config(missing, "no such tensor of this shape"));
        }
        let model = model(self.nodes, self.weights, name, ends, metadata);
        Ok((model, self.parts))
    }
}

/// Shape of a linear layer.
#[derive(Clone, Copy, Debug)]
pub(super) struct LinearShape {
    pub input: i64,
    pub output: i64,
    pub bias: bool,
}

/// With a bias.
pub(super) fn dense(input: i64, output: i64) -> LinearShape {
    LinearShape { input, output, bias: true }
}

/// Without one.
pub(super) fn matrix(input: i64, output: i64) -> LinearShape {
    LinearShape { input, output, bias: false }
}
