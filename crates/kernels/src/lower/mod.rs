//! From a file's nodes to steps: shapes, constants and settings are settled here.

mod attributes;
mod constants;
mod node;
mod resample;

use crate::error::PlanError;
use crate::ir::{Act, Arithmetic, Conv, Depthwise, Id, Ir, Op, Shape, Sliding, Step};
use crate::isa::{Clamp, Func};
use crate::tensor::{Data, Tensor};
use attributes::Attributes;
use node::{At, Value};
use prost::Message;
use prost::bytes::Buf;
use proto::{GraphProto, ModelProto};
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

/// Values of one tensor per image that are still planned: 1 GiB of f32.
pub const MOST_VALUES: usize = 1 << 28;

/// What a caller wants of a file.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wanted<'a> {
    pub input: &'a str,
    pub shape: Shape,
    pub output: &'a str,
    /// A value to mark.
    pub from: Option<&'a str>,
}

/// Reads a file to steps.
///
/// # Errors
/// [`PlanError`].
pub(crate) fn lower(file: impl Buf, wanted: &Wanted<'_>) -> Result<Ir, PlanError> {
    let model = ModelProto::decode(file).map_err(|e| PlanError::File(e.to_string()))?;
    let graph = model.graph.ok_or_else(|| PlanError::File("it has no graph".into()))?;
    let opset = model.opset_import.iter().find(|o| o.domain.is_empty()).map_or(1, |o| o.version);
    let mut lowering = Lowering {
        ir: Ir { shapes: vec![], steps: vec![], input: 0, output: 0, marked: None },
        names: HashMap::new(),
        opset,
    };
    lowering.run(graph, wanted)?;
    Ok(lowering.ir)
}

struct Lowering {
    ir: Ir,
    names: HashMap<String, Value>,
    opset: i64,
}

impl Lowering {
    fn run(&mut self, graph: GraphProto, wanted: &Wanted<'_>) -> Result<(), PlanError> {
        for stored in graph.initializer {
            // Weights of types that no operator here takes are refused where they are used.
            if let Ok(tensor) = Tensor::read(&stored) {
                self.names.insert(stored.name, Value::Constant(Rc::new(tensor)));
            }
        }
        let input = self.value(wanted.shape)?;
        self.ir.input = input;
        self.names.insert(wanted.input.into(), Value::Computed { id: input, rank: 4 });
        for node in &graph.node {
            let at = At { node, attributes: Attributes(&node.attribute) };
            if !matches!(node.domain.as_str(), "" | "ai.onnx") {
                return at.unsupported(format!("it is of the domain {}", node.domain));
            }
            let made = self.node(&at)?;
            let Some(name) = node.output.first() else {
                return at.misfit("it has no output");
            };
            if node.output.iter().skip(1).any(|o| !o.is_empty()) {
                return at.unsupported("more than one output");
            }
            self.names.insert(name.clone(), made);
        }
        if let Some(from) = wanted.from {
            match self.names.get(from) {
                Some(Value::Computed { id, .. }) => self.ir.marked = Some(*id),
                _ => return Err(PlanError::File(format!("no value named `{from}` is made"))),
            }
        }
        match self.names.get(wanted.output) {
            Some(Value::Computed { id, .. }) => {
                self.ir.output = *id;
                Ok(())
            }
            Some(Value::Constant(_)) => Err(PlanError::File(format!(
                "output `{}` does not depend on the input",
                wanted.output
            ))),
            None => Err(PlanError::File(format!("the network has no output `{}`", wanted.output))),
        }
    }

    fn value(&mut self, shape: Shape) -> Result<Id, PlanError> {
        let count = [shape.c, shape.h, shape.w].iter().try_fold(1_usize, |n, s| n.checked_mul(*s));
        match count {
            Some(n) if n > 0 && n <= MOST_VALUES => {}
            n => return Err(PlanError::TooLarge(n.unwrap_or(usize::MAX))),
        }
        self.ir.shapes.push(shape);
        Ok(self.ir.shapes.len() - 1)
    }

    fn step(
        &mut self,
        op: Op,
        inputs: Vec<Id>,
        shape: Shape,
        rank: usize,
    ) -> Result<Value, PlanError> {
        let output = self.value(shape)?;
        self.ir.steps.push(Step { op, inputs, output });
        Ok(Value::Computed { id: output, rank })
    }

    /// The node's input `i`; `None` where it is left out.
    fn input(&self, at: &At<'_>, i: usize) -> Result<Option<Value>, PlanError> {
        match at.node.input.get(i).filter(|n| !n.is_empty()) {
            None => Ok(None),
            Some(name) => match self.names.get(name) {
                Some(v) => Ok(Some(v.clone())),
                None => {
                    at.misfit(format!("its input `{name}` is unknown or of an unsupported type"))
                }
            },
        }
    }

    /// An input that is computed: its value, shape and rank.
    fn computed(&self, at: &At<'_>, i: usize) -> Result<(Id, Shape, usize), PlanError> {
        match self.input(at, i)? {
            Some(Value::Computed { id, rank }) => Ok((id, self.ir.shapes[id], rank)),
            Some(Value::Constant(_)) => at.unsupported(format!("input {i} is a constant")),
            None => at.misfit(format!("input {i} is missing")),
        }
    }

    fn constant(&self, at: &At<'_>, i: usize) -> Result<Option<Rc<Tensor>>, PlanError> {
        match self.input(at, i)? {
            Some(Value::Constant(t)) => Ok(Some(t)),
            Some(Value::Computed { .. }) => at.unsupported(format!("input {i} is not a constant")),
            None => Ok(None),
        }
    }

    /// A constant of f32; empty where it is left out.
    fn floats(&self, at: &At<'_>, i: usize) -> Result<Vec<f32>, PlanError> {
        match self.constant(at, i)? {
            None => Ok(vec![]),
            Some(t) => match t.as_floats() {
                Some(v) => Ok(v.to_vec()),
                None => at.misfit(format!("input {i} is not of floats")),
            },
        }
    }

    fn node(&mut self, at: &At<'_>) -> Result<Value, PlanError> {
        let inputs = (0..at.node.input.len()).map(|i| self.input(at, i));
        let inputs = inputs.collect::<Result<Vec<_>, _>>()?;
        let shape_of = |id: Id, rank: usize| (self.ir.shapes[id], rank);
        if let Some(made) = constants::fold(at, &inputs, shape_of)? {
            return Ok(Value::Constant(made));
        }
        let clamp = |low, high| Act { clamp: Clamp { low, high }, then: None };
        let then = |f| Act { clamp: Clamp::NONE, then: Some(f) };
        match at.node.op_type.as_str() {
            "Identity" | "Dropout" => match self.input(at, 0)? {
                Some(v) => Ok(v),
                None => at.misfit("it has no input"),
            },
            "Cast" => match at.attributes.int("to", 0) {
                1 => self.computed(at, 0).map(|(id, _, rank)| Value::Computed { id, rank }),
                to => at.unsupported(format!("a conversion to ONNX type {to}")),
            },
            "Conv" => self.conv(at),
            "BatchNormalization" => self.batch_norm(at),
            "Relu" => self.map(at, Act { clamp: Clamp::RELU, then: None }),
            "Clip" => {
                let limit = |i: usize, name: &str, open: f32| -> Result<f32, PlanError> {
                    match self.floats(at, i)?[..] {
                        [] => Ok(at.attributes.float(name, open)),
                        [v] => Ok(v),
                        _ => at.misfit("a limit is not one number"),
                    }
                };
                let low = limit(1, "min", f32::NEG_INFINITY)?;
                let high = limit(2, "max", f32::INFINITY)?;
                self.map(at, clamp(low, high))
            }
            "Sigmoid" => self.map(at, then(Func::Sigmoid)),
            "Tanh" => self.map(at, then(Func::Tanh)),
            "LeakyRelu" => self.map(at, then(Func::Leaky(at.attributes.float("alpha", 0.01)))),
            "HardSigmoid" => {
                let (a, b) = (at.attributes.float("alpha", 0.2), at.attributes.float("beta", 0.5));
                self.map(at, then(Func::HardSigmoid(a, b)))
            }
            "HardSwish" => self.map(at, then(Func::HardSwish)),
            "Gelu" => match at.attributes.text("approximate").unwrap_or("none") {
                "none" => self.map(at, then(Func::Gelu)),
                other => at.unsupported(format!("the approximation `{other}`")),
            },
            "Add" => self.binary(at, Arithmetic::Add),
            "Sub" => self.binary(at, Arithmetic::Sub),
            "Mul" => self.binary(at, Arithmetic::Mul),
            "Div" => self.binary(at, Arithmetic::Div),
            "Concat" => self.concat(at),
            "Resize" => self.resize(at),
            "MaxPool" | "AveragePool" => self.pool(at),
            "GlobalAveragePool" => {
                let (id, shape, rank) = self.computed(at, 0)?;
                self.step(Op::GlobalAverage, vec![id], Shape { h: 1, w: 1, ..shape }, rank)
            }
            "ReduceMean" => self.reduce_mean(at),
            "Flatten" => match at.attributes.int("axis", 1) {
                1 => self.flatten(at),
                axis => at.unsupported(format!("axis {axis}")),
            },
            "Reshape" => self.reshape(at),
            "Squeeze" | "Unsqueeze" => self.squeeze(at),
            "Gemm" => self.gemm(at),
            "MatMul" => self.matmul(at),
            "Softmax" => self.softmax(at),
            _ => at.unsupported("this engine does not have the operator"),
        }
    }

    fn softmax(&mut self, at: &At<'_>) -> Result<Value, PlanError> {
        let (id, shape, rank) = self.computed(at, 0)?;
        let last = if self.opset < 13 { 1 } else { -1 };
        let axis = at.attributes.int("axis", last);
        // Before version 13 the sum runs over all sides from the axis on.
        if self.opset < 13 && (shape.h, shape.w) != (1, 1) {
            return at.unsupported(format!(
                "axis {axis} by version {} of the operators, over more than the channels",
                self.opset
            ));
        }
        match (axis, rank) {
            (1, 4) | (1 | -1, 2) | (-3, 4) => self.step(Op::Softmax, vec![id], shape, rank),
            (axis, rank) => at.unsupported(format!("axis {axis} of {rank} dimensions")),
        }
    }

    fn map(&mut self, at: &At<'_>, act: Act) -> Result<Value, PlanError> {
        let (id, shape, rank) = self.computed(at, 0)?;
        self.step(Op::Map(act), vec![id], shape, rank)
    }

    /// The node's sliding window over an input of `h` x `w`, and the output's sides.
    fn sliding(
        &self,
        at: &At<'_>,
        kernel: [usize; 2],
        (h, w): (usize, usize),
    ) -> Result<(Sliding, usize, usize), PlanError> {
        let pair = |name: &str| -> Result<[usize; 2], PlanError> {
            match at.attributes.ints(name) {
                None => Ok([1, 1]),
                Some(&[a, b]) if a > 0 && b > 0 => Ok([a as usize, b as usize]),
                Some(other) => at.unsupported(format!("{name} of {other:?}")),
            }
        };
        let (stride, dilation) = (pair("strides")?, pair("dilations")?);
        let mut pads = [0; 4];
        match at.attributes.text("auto_pad").unwrap_or("NOTSET") {
            "NOTSET" => match at.attributes.ints("pads") {
                None => {}
                Some(list) if list.len() == 4 && list.iter().all(|p| (0..=1024).contains(p)) => {
                    pads = std::array::from_fn(|i| list[i] as usize);
                }
                Some(other) => return at.unsupported(format!("pads of {other:?}")),
            },
            "VALID" => {}
            auto @ ("SAME_UPPER" | "SAME_LOWER") => {
                for (axis, n) in [h, w].into_iter().enumerate() {
                    let out = n.div_ceil(stride[axis]);
                    let reach = dilation[axis] * (kernel[axis] - 1) + 1;
                    let all = ((out - 1) * stride[axis] + reach).saturating_sub(n);
                    let less = all / 2;
                    let (before, after) =
                        if auto == "SAME_UPPER" { (less, all - less) } else { (all - less, less) };
                    (pads[axis], pads[axis + 2]) = (before, after);
                }
            }
            other => return at.unsupported(format!("auto_pad {other}")),
        }
        let slide = Sliding { kernel, stride, pads, dilation };
        match slide.sides(h, w) {
            Some((h, w)) => Ok((slide, h, w)),
            None => at.misfit(format!("a kernel of {kernel:?} on {h} x {w}")),
        }
    }

    fn conv(&mut self, at: &At<'_>) -> Result<Value, PlanError> {
        let (id, shape, rank) = self.computed(at, 0)?;
        if rank != 4 {
            return at.unsupported(format!("an input of {rank} dimensions"));
        }
        let Some(weight) = self.constant(at, 1)? else {
            return at.misfit("it has no weights");
        };
        let (&[cout, cin, kh, kw], Data::F32(values)) = (&weight.dims[..], &weight.data) else {
            return at.unsupported(format!("weights of {:?}", weight.dims));
        };
        let groups = usize::try_from(at.attributes.int("group", 1)).unwrap_or(0);
        let fits = groups > 0 && cin * groups == shape.c && cout % groups == 0 && cout > 0;
        if !fits || kh == 0 || kw == 0 {
            return at.misfit(format!(
                "weights of {:?} in {groups} groups on {} channels",
                weight.dims, shape.c
            ));
        }
        let mut bias = self.floats(at, 2)?;
        if bias.is_empty() {
            bias = vec![0.0; cout];
        }
        if bias.len() != cout {
            return at.misfit(format!("a bias of {} values for {cout} channels", bias.len()));
        }
        let (slide, h, w) = self.sliding(at, [kh, kw], (shape.h, shape.w))?;
        let weight = values.clone();
        let out = Shape { c: cout, h, w };
        let depthwise = groups == shape.c && cout == groups && groups > 1;
        let op = match slide.square() {
            Some((k, s)) if depthwise && crate::isa::Depthwise::has(k, s) => {
                Op::Depthwise(Box::new(Depthwise { slide, weight, bias, act: Act::NONE }))
            }
            _ => Op::Conv(Box::new(Conv {
                slide,
                groups,
                weight,
                bias,
                act: Act::NONE,
                residual: false,
                up: vec![false],
            })),
        };
        self.step(op, vec![id], out, 4)
    }

    fn batch_norm(&mut self, at: &At<'_>) -> Result<Value, PlanError> {
        let (id, shape, rank) = self.computed(at, 0)?;
        let [scale, shift, mean, variance] =
            [1, 2, 3, 4].map(|i| self.floats(at, i)).map(Result::unwrap_or_default);
        if [&scale, &shift, &mean, &variance].iter().any(|v| v.len() != shape.c) {
            return at.misfit(format!("statistics that are not of {} channels", shape.c));
        }
        let epsilon = f64::from(at.attributes.float("epsilon", 1e-5));
        let factor = |i: usize| f64::from(scale[i]) / (f64::from(variance[i]) + epsilon).sqrt();
        let shifted = |i: usize| f64::from(shift[i]) - f64::from(mean[i]) * factor(i);
        let op = Op::Affine {
            scale: (0..shape.c).map(|i| factor(i) as f32).collect(),
            shift: (0..shape.c).map(|i| shifted(i) as f32).collect(),
            act: Act::NONE,
        };
        self.step(op, vec![id], shape, rank)
    }

    /// Add, Sub, Mul or Div of two values, or of a value and a constant per channel.
    fn binary(&mut self, at: &At<'_>, kind: Arithmetic) -> Result<Value, PlanError> {
        let (first, second) = (self.input(at, 0)?, self.input(at, 1)?);
        let (Some(first), Some(second)) = (first, second) else {
            return at.misfit("it needs two inputs");
        };
        match (first, second) {
            (Value::Computed { id: a, rank }, Value::Computed { id: b, rank: other }) => {
                let (sa, sb) = (self.ir.shapes[a], self.ir.shapes[b]);
                let point = |s: Shape, of: Shape| s.c == of.c && (s.h, s.w) == (1, 1);
                let commutes = matches!(kind, Arithmetic::Add | Arithmetic::Mul);
                if rank != other {
                    return at.unsupported(format!("values of {rank} and {other} dimensions"));
                }
                let op = Op::Binary(kind, Act::NONE);
                if sa == sb || point(sb, sa) {
                    self.step(op, vec![a, b], sa, rank)
                } else if commutes && point(sa, sb) {
                    self.step(op, vec![b, a], sb, rank)
                } else {
                    at.unsupported(format!("shapes {sa:?} and {sb:?}"))
                }
            }
            (Value::Computed { id, rank }, Value::Constant(t)) => {
                let v = self.per_channel(at, &t, id, rank)?;
                let (scale, shift) = match kind {
                    Arithmetic::Add => (vec![1.0; v.len()], v),
                    Arithmetic::Sub => (vec![1.0; v.len()], v.iter().map(|v| -v).collect()),
                    Arithmetic::Mul => (v.clone(), vec![0.0; v.len()]),
                    Arithmetic::Div => (v.iter().map(|v| 1.0 / v).collect(), vec![0.0; v.len()]),
                };
                let op = Op::Affine { scale, shift, act: Act::NONE };
                self.step(op, vec![id], self.ir.shapes[id], rank)
            }
            (Value::Constant(t), Value::Computed { id, rank }) => {
                let v = self.per_channel(at, &t, id, rank)?;
                let (scale, shift) = match kind {
                    Arithmetic::Add => (vec![1.0; v.len()], v),
                    Arithmetic::Sub => (vec![-1.0; v.len()], v),
                    Arithmetic::Mul => (v.clone(), vec![0.0; v.len()]),
                    Arithmetic::Div => return at.unsupported("a constant divided by a value"),
                };
                let op = Op::Affine { scale, shift, act: Act::NONE };
                self.step(op, vec![id], self.ir.shapes[id], rank)
            }
            (Value::Constant(_), Value::Constant(_)) => at.unsupported("two constants of floats"),
        }
    }

    /// A constant as one number per channel of a value.
    fn per_channel(
        &self,
        at: &At<'_>,
        t: &Tensor,
        id: Id,
        rank: usize,
    ) -> Result<Vec<f32>, PlanError> {
        let c = self.ir.shapes[id].c;
        let Some(values) = t.as_floats() else {
            return at.misfit("a constant that is not of floats");
        };
        if let [one] = values
            && t.dims.len() <= rank
        {
            return Ok(vec![*one; c]);
        }
        let fits = match (rank, &t.dims[..]) {
            (4, [n, 1, 1] | [1, n, 1, 1]) | (2, [n] | [1, n]) => *n == c,
            _ => false,
        };
        match fits {
            true => Ok(values.to_vec()),
            false => at.unsupported(format!("a constant of {:?} with {c} channels", t.dims)),
        }
    }

    fn concat(&mut self, at: &At<'_>) -> Result<Value, PlanError> {
        let mut inputs = Vec::new();
        let (_, first, rank) = self.computed(at, 0)?;
        let axis = at.attributes.int("axis", 1);
        if axis != 1 && axis != 1 - rank as i64 {
            return at.unsupported(format!("axis {axis}"));
        }
        let mut c = 0;
        for i in 0..at.node.input.len() {
            let (id, shape, other) = self.computed(at, i)?;
            if (shape.h, shape.w, other) != (first.h, first.w, rank) {
                return at.misfit(format!(
                    "{} x {} next to {} x {}",
                    shape.h, shape.w, first.h, first.w
                ));
            }
            c += shape.c;
            inputs.push(id);
        }
        self.step(Op::Concat, inputs, Shape { c, ..first }, rank)
    }

    fn pool(&mut self, at: &At<'_>) -> Result<Value, PlanError> {
        let (id, shape, rank) = self.computed(at, 0)?;
        let Some(&[kh, kw]) = at.attributes.ints("kernel_shape") else {
            return at.unsupported("a kernel that is not of two sides");
        };
        if at.attributes.int("ceil_mode", 0) != 0 {
            return at.unsupported("ceil_mode");
        }
        let side = |n: i64| usize::try_from(n).ok().filter(|n| (1..=1024).contains(n));
        let (Some(kh), Some(kw)) = (side(kh), side(kw)) else {
            return at.misfit(format!("a kernel of {kh} x {kw}"));
        };
        let (slide, h, w) = self.sliding(at, [kh, kw], (shape.h, shape.w))?;
        // Every window must hold at least one value.
        if slide.pads[0].max(slide.pads[2]) >= kh || slide.pads[1].max(slide.pads[3]) >= kw {
            return at.unsupported("padding as large as the kernel");
        }
        if slide.dilation != [1, 1] {
            return at.unsupported("dilation");
        }
        let op = match at.node.op_type.as_str() {
            "MaxPool" => Op::MaxPool(slide),
            _ => Op::AveragePool(slide, at.attributes.int("count_include_pad", 0) != 0),
        };
        self.step(op, vec![id], Shape { h, w, ..shape }, rank)
    }

    fn reduce_mean(&mut self, at: &At<'_>) -> Result<Value, PlanError> {
        let (id, shape, rank) = self.computed(at, 0)?;
        let listed = self.constant(at, 1)?.and_then(|t| t.as_ints().map(<[i64]>::to_vec));
        let axes = listed.or_else(|| at.attributes.ints("axes").map(<[i64]>::to_vec));
        let mut axes = axes.unwrap_or_default();
        axes.iter_mut().filter(|a| **a < 0).for_each(|a| *a += rank as i64);
        axes.sort_unstable();
        if rank != 4 || axes != [2, 3] {
            return at.unsupported(format!("axes {axes:?} of {rank} dimensions"));
        }
        let rank = if at.attributes.int("keepdims", 1) == 0 { 2 } else { 4 };
        self.step(Op::GlobalAverage, vec![id], Shape { h: 1, w: 1, ..shape }, rank)
    }

    fn flatten(&mut self, at: &At<'_>) -> Result<Value, PlanError> {
        let (id, shape, _) = self.computed(at, 0)?;
        if (shape.h, shape.w) == (1, 1) {
            return Ok(Value::Computed { id, rank: 2 });
        }
        self.step(Op::Flatten, vec![id], Shape { c: shape.len(), h: 1, w: 1 }, 2)
    }

    fn reshape(&mut self, at: &At<'_>) -> Result<Value, PlanError> {
        let (id, shape, rank) = self.computed(at, 0)?;
        let target = self.constant(at, 1)?.and_then(|t| t.as_ints().map(<[i64]>::to_vec));
        let Some(target) = target else { return at.unsupported("a shape that is computed") };
        let c = shape.c as i64;
        let point = (shape.h, shape.w) == (1, 1);
        match target[..] {
            [-1..=1, n] if n == -1 || n == shape.len() as i64 => self.flatten(at),
            [-1..=1, n, 1, 1] if point && (n == c || n == -1) => {
                Ok(Value::Computed { id, rank: 4 })
            }
            [_, n, h, w] if rank == 4 && (n, h, w) == (c, shape.h as i64, shape.w as i64) => {
                Ok(Value::Computed { id, rank })
            }
            _ => at.unsupported(format!("from {shape:?} to {target:?}")),
        }
    }

    /// `[N,C,1,1]` to `[N,C]` and back.
    fn squeeze(&mut self, at: &At<'_>) -> Result<Value, PlanError> {
        let (id, shape, rank) = self.computed(at, 0)?;
        let listed = self.constant(at, 1)?.and_then(|t| t.as_ints().map(<[i64]>::to_vec));
        let axes = listed.or_else(|| at.attributes.ints("axes").map(<[i64]>::to_vec));
        let mut axes = axes.unwrap_or_default();
        axes.iter_mut().filter(|a| **a < 0).for_each(|a| *a += 4);
        axes.sort_unstable();
        let narrows = at.node.op_type == "Squeeze";
        match (narrows, rank, &axes[..]) {
            (true, 4, [2, 3]) if (shape.h, shape.w) == (1, 1) => {
                Ok(Value::Computed { id, rank: 2 })
            }
            (false, 2, [2, 3]) => Ok(Value::Computed { id, rank: 4 }),
            _ => at.unsupported(format!("axes {axes:?} of {rank} dimensions")),
        }
    }

    /// A product of channels with a matrix `[cin, cout]`.
    fn product(
        &mut self,
        at: &At<'_>,
        matrix: impl Fn(usize, usize) -> f32,
        cout: usize,
        bias: Vec<f32>,
    ) -> Result<Value, PlanError> {
        let (id, shape, rank) = self.computed(at, 0)?;
        if rank != 2 {
            return at.unsupported(format!("an input of {rank} dimensions"));
        }
        let weight = (0..cout).flat_map(|n| (0..shape.c).map(move |k| (k, n)));
        let conv = Conv {
            slide: Sliding::POINT,
            groups: 1,
            weight: Arc::new(weight.map(|(k, n)| matrix(k, n)).collect()),
            bias,
            act: Act::NONE,
            residual: false,
            up: vec![false],
        };
        self.step(Op::Conv(Box::new(conv)), vec![id], Shape { c: cout, h: 1, w: 1 }, 2)
    }

    fn matmul(&mut self, at: &At<'_>) -> Result<Value, PlanError> {
        let Some(b) = self.constant(at, 1)? else { return at.misfit("it needs two inputs") };
        let (_, shape, _) = self.computed(at, 0)?;
        match (&b.dims[..], b.as_floats()) {
            (&[k, n], Some(v)) if k == shape.c => {
                self.product(at, |i, j| v[i * n + j], n, vec![0.0; n])
            }
            (dims, _) => at.misfit(format!("a matrix of {dims:?} on {} values", shape.c)),
        }
    }

    fn gemm(&mut self, at: &At<'_>) -> Result<Value, PlanError> {
        let Some(b) = self.constant(at, 1)? else { return at.misfit("it needs two inputs") };
        let (alpha, beta) = (at.attributes.float("alpha", 1.0), at.attributes.float("beta", 1.0));
        if at.attributes.int("transA", 0) != 0 {
            return at.unsupported("transA");
        }
        let turned = at.attributes.int("transB", 0) != 0;
        let (_, shape, _) = self.computed(at, 0)?;
        let (&[rows, columns], Some(v)) = (&b.dims[..], b.as_floats()) else {
            return at.misfit(format!("a matrix of {:?}", b.dims));
        };
        let (k, n) = if turned { (columns, rows) } else { (rows, columns) };
        if k != shape.c {
            return at.misfit(format!("a matrix of {:?} on {} values", b.dims, shape.c));
        }
        let bias = match self.floats(at, 2)? {
            c if c.is_empty() => vec![0.0; n],
            c if c.len() == 1 => vec![beta * c[0]; n],
            c if c.len() == n => c.iter().map(|v| beta * v).collect(),
            c => return at.unsupported(format!("a bias of {} values for {n}", c.len())),
        };
        let weight =
            |i: usize, j: usize| if turned { v[j * columns + i] } else { v[i * columns + j] };
        self.product(at, |i, j| alpha * weight(i, j), n, bias)
    }
}
