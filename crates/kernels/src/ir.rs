//! A network between file and plan: steps over values.

use crate::isa::{Clamp, Func};
use std::sync::Arc;

/// A value's number.
pub(crate) type Id = usize;

/// A value per image: `c` channels of `h` x `w`. `[N,C]` is 1 x 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shape {
    pub c: usize,
    pub h: usize,
    pub w: usize,
}

impl Shape {
    pub(crate) fn len(self) -> usize {
        self.c * self.h * self.w
    }
}

/// What follows a product: a clamp, then perhaps a function.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Act {
    pub clamp: Clamp,
    pub then: Option<Func>,
}

impl Act {
    pub(crate) const NONE: Self = Self { clamp: Clamp::NONE, then: None };

    pub(crate) fn is_none(self) -> bool {
        self == Self::NONE
    }
}

/// Kernel, stride, padding (top, left, bottom, right) and dilation of a window that slides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sliding {
    pub kernel: [usize; 2],
    pub stride: [usize; 2],
    pub pads: [usize; 4],
    pub dilation: [usize; 2],
}

impl Sliding {
    pub(crate) const POINT: Self =
        Self { kernel: [1, 1], stride: [1, 1], pads: [0; 4], dilation: [1, 1] };

    /// Output sides for an input of `h` x `w`; `None` where the kernel does not fit.
    pub(crate) fn sides(&self, h: usize, w: usize) -> Option<(usize, usize)> {
        let side = |n: usize, axis: usize| {
            let padded = n + self.pads[axis] + self.pads[axis + 2];
            let reach = self.dilation[axis] * (self.kernel[axis] - 1) + 1;
            Some(padded.checked_sub(reach)? / self.stride[axis] + 1)
        };
        Some((side(h, 0)?, side(w, 1)?))
    }

    pub(crate) fn is_point(&self) -> bool {
        self.kernel == [1, 1] && self.stride == [1, 1] && self.pads == [0; 4]
    }

    /// k x k with k odd, undilated, padded by k / 2, one stride: `Some((k, stride))`.
    pub(crate) fn square(&self) -> Option<(usize, usize)> {
        let [k, kw] = self.kernel;
        let fits = k == kw
            && k % 2 == 1
            && self.dilation == [1, 1]
            && self.pads == [k / 2; 4]
            && self.stride[0] == self.stride[1];
        fits.then_some((k, self.stride[0]))
    }
}

/// A convolution whose inputs are its sources, one after the other along the channels, then the residual.
#[derive(Clone, Debug)]
pub(crate) struct Conv {
    pub slide: Sliding,
    pub groups: usize,
    /// `[cout, cin / groups, kh, kw]`.
    pub weight: Arc<Vec<f32>>,
    pub bias: Vec<f32>,
    pub act: Act,
    /// Whether the last input is added before `act`.
    pub residual: bool,
    /// Per source: whether it is enlarged twofold (each pixel repeated) before the convolution.
    pub up: Vec<bool>,
}

/// One filter per channel.
#[derive(Clone, Debug)]
pub(crate) struct Depthwise {
    pub slide: Sliding,
    /// `[c, 1, kh, kw]`.
    pub weight: Arc<Vec<f32>>,
    pub bias: Vec<f32>,
    pub act: Act,
}

/// Expand, filter each channel, project, add: one step, of which nothing wide reaches memory.
#[derive(Clone, Debug)]
pub(crate) struct Inverted {
    pub expand: Option<Conv>,
    pub filter: Depthwise,
    /// Its `residual` is set when a second input is added.
    pub project: Conv,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Arithmetic {
    Add,
    Sub,
    Mul,
    Div,
}

/// Where each output row or column takes its values from.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Resample {
    /// One source index per output index, for rows and for columns.
    Nearest(Vec<usize>, Vec<usize>),
    /// Two source indices and the weight of the second.
    Linear(Vec<Blend>, Vec<Blend>),
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Blend {
    pub first: usize,
    pub second: usize,
    pub share: f32,
}

#[derive(Clone, Debug)]
pub(crate) enum Op {
    Conv(Box<Conv>),
    Depthwise(Box<Depthwise>),
    Inverted(Box<Inverted>),
    /// Per channel `x * scale + shift`.
    Affine {
        scale: Vec<f32>,
        shift: Vec<f32>,
        act: Act,
    },
    Map(Act),
    /// Two values of one shape, or the second of 1 x 1.
    Binary(Arithmetic, Act),
    Concat,
    Resize(Resample, Act),
    MaxPool(Sliding),
    /// Whether padding counts.
    AveragePool(Sliding, bool),
    GlobalAverage,
    /// Over channels.
    Softmax,
    /// To 1 x 1 with the channels in the file's order: plane after plane.
    Flatten,
}

impl Op {
    /// How many weights are packed for it.
    pub(crate) fn weights(&self) -> usize {
        match self {
            Self::Conv(c) => c.weight.len(),
            Self::Inverted(i) => {
                i.expand.as_ref().map_or(0, |c| c.weight.len()) + i.project.weight.len()
            }
            _ => 0,
        }
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Step {
    pub op: Op,
    pub inputs: Vec<Id>,
    pub output: Id,
}

/// A network whose steps are in an order in which they can run.
#[derive(Clone, Debug)]
pub(crate) struct Ir {
    pub shapes: Vec<Shape>,
    pub steps: Vec<Step>,
    pub input: Id,
    pub output: Id,
    /// The value that the caller marked.
    pub marked: Option<Id>,
}

impl Ir {
    /// Of each value whether it is made from the marked one.
    pub(crate) fn after_mark(&self) -> Vec<bool> {
        let mut late = vec![false; self.shapes.len()];
        let Some(marked) = self.marked else { return late };
        for step in &self.steps {
            late[step.output] |= step.inputs.iter().any(|id| *id == marked || late[*id]);
        }
        late
    }

    /// Index of the step that writes each value.
    pub(crate) fn makers(&self) -> Vec<Option<usize>> {
        let mut makers = vec![None; self.shapes.len()];
        self.steps.iter().enumerate().for_each(|(i, s)| makers[s.output] = Some(i));
        makers
    }

    /// Removes steps whose values nobody reads.
    pub(crate) fn sweep(&mut self) {
        let mut needed = vec![false; self.shapes.len()];
        needed[self.output] = true;
        let mut kept: Vec<Step> = Vec::with_capacity(self.steps.len());
        for step in std::mem::take(&mut self.steps).into_iter().rev() {
            if needed[step.output] {
                step.inputs.iter().for_each(|id| needed[*id] = true);
                kept.push(step);
            }
        }
        kept.reverse();
        self.steps = kept;
    }
}
