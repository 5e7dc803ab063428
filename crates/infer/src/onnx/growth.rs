//! How large the values of a graph become, counted from below: a value that doubles forty times is too large whatever
//! comes in. An operation that is not named here counts as giving one number, so that no network is refused that
//! could run; what grows by such operations alone is not noticed.

use std::collections::HashMap;

/// Numbers that are stated in a graph, by name: how often a loop turns, how often a value is repeated.
pub(super) type Constants = HashMap<String, Vec<f64>>;

/// What comes into a graph from outside is taken to have one number, and to have this many: the ratio of what comes
/// out is the factor by which it grows.
const MANY: u64 = 1 << 20;

/// Numbers of a value, at least.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Size {
    /// Where what comes in has one number.
    pub one: u64,
    /// Where it has [`MANY`].
    many: u64,
}

impl Size {
    /// Of a value that nothing is known of.
    pub(super) const LEAST: Self = Self { one: 1, many: 1 };
    /// Of a value that comes in.
    pub(super) const OPEN: Self = Self { one: 1, many: MANY };

    /// Of a value that is stated.
    pub(super) fn stated(numbers: usize) -> Self {
        let n = (numbers as u64).max(1);
        Self { one: n, many: n }
    }

    /// How much larger it is than what came in.
    pub(super) fn factor(self) -> u64 {
        (self.many / MANY).max(1)
    }

    fn each(self, other: Self, of: impl Fn(u64, u64) -> u64) -> Self {
        Self { one: of(self.one, other.one), many: of(self.many, other.many) }
    }
}

/// The size of what a node gives.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Growth {
    /// That of its first value.
    First,
    /// That of its largest value.
    Largest,
    /// All of its values together.
    Together,
    /// So many times its first value.
    Times(u64),
    /// So many numbers or more, whatever comes in.
    AtLeast(u64),
}

impl Growth {
    /// The size of what is made of values of these sizes.
    pub(super) fn size(self, values: impl IntoIterator<Item = Size>) -> Size {
        let mut values = values.into_iter();
        match self {
            Self::First => values.next().unwrap_or(Size::LEAST),
            Self::Largest => values.fold(Size::LEAST, |a, b| a.each(b, u64::max)),
            Self::Together => {
                values.reduce(|a, b| a.each(b, u64::saturating_add)).unwrap_or(Size::LEAST)
            }
            Self::Times(n) => {
                let n = Size { one: n, many: n };
                values.next().unwrap_or(Size::LEAST).each(n, u64::saturating_mul)
            }
            Self::AtLeast(n) => Size { one: n.max(1), many: n.max(1) },
        }
    }

    /// Of an operation of ONNX with these inputs.
    pub(super) fn new(op: &str, inputs: &[String], constants: &Constants) -> Self {
        let stated = |at: usize| inputs.get(at).and_then(|name| constants.get(name));
        match op {
            "Reshape"
            | "Squeeze"
            | "Unsqueeze"
            | "Flatten"
            | "Transpose"
            | "Identity"
            | "Cast"
            | "Dropout"
            | "Clip"
            | "Relu"
            | "LeakyRelu"
            | "Elu"
            | "Selu"
            | "Gelu"
            | "Sigmoid"
            | "HardSigmoid"
            | "HardSwish"
            | "Softplus"
            | "Tanh"
            | "Erf"
            | "Exp"
            | "Log"
            | "Sqrt"
            | "Reciprocal"
            | "Abs"
            | "Neg"
            | "Sin"
            | "Cos"
            | "Floor"
            | "Ceil"
            | "Round"
            | "Sign"
            | "Not"
            | "Softmax"
            | "LogSoftmax"
            | "BatchNormalization"
            | "InstanceNormalization"
            | "LayerNormalization"
            | "DepthToSpace"
            | "SpaceToDepth" => Self::First,
            "Add" | "Sub" | "Mul" | "Div" | "Pow" | "Max" | "Min" | "Sum" | "Mean" | "Where"
            | "PRelu" | "And" | "Or" | "Equal" | "Greater" | "Less" => Self::Largest,
            "Concat" => Self::Together,
            "Tile" => Self::Times(stated(1).map_or(1, product)),
            "Resize" => match (stated(3), stated(2)) {
                (Some(sides), _) if !sides.is_empty() => Self::AtLeast(product(sides)),
                (_, Some(scales)) => Self::Times(product(scales)),
                _ => Self::First,
            },
            "Upsample" => Self::Times(stated(1).map_or(1, product)),
            "Expand" => stated(1).map_or(Self::First, |sides| Self::AtLeast(product(sides))),
            "ConstantOfShape" => Self::AtLeast(stated(0).map_or(1, product)),
            "OneHot" => Self::Times(stated(1).and_then(|d| d.first()).map_or(1, |d| whole(*d))),
            "Range" => Self::AtLeast(match (stated(0), stated(1), stated(2)) {
                (Some(from), Some(to), Some(by)) => match (from.first(), to.first(), by.first()) {
                    (Some(from), Some(to), Some(by)) => whole((to - from) / by),
                    _ => 1,
                },
                _ => 1,
            }),
            "Pad" => Self::AtLeast(stated(1).map_or(1, |pads| {
                let (before, after) = pads.split_at(pads.len() / 2);
                product(before.iter().zip(after).map(|(b, a)| (1.0 + b + a).max(1.0)))
            })),
            _ => Self::AtLeast(1),
        }
    }
}

/// The product of sides or scales, a negative or unknown one counting as one.
fn product(sides: impl IntoIterator<Item = impl std::borrow::Borrow<f64>>) -> u64 {
    whole(sides.into_iter().map(|n| *n.borrow()).map(|n| if n > 0.0 { n } else { 1.0 }).product())
}

/// What is smaller than one, or no number, counts as one.
fn whole(n: f64) -> u64 {
    // A cast of a float saturates.
    if n > 1.0 { n as u64 } else { 1 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_state_what_they_give() {
        let constants: Constants = [
            ("repeats", vec![1.0, 2.0, 3.0]),
            ("scales", vec![1.0, 1.0, 2.0, 2.0]),
            ("none", vec![]),
            ("sides", vec![1.0, -1.0, 1e18, 1e18]),
            ("pads", vec![0.0, 3.0, 0.0, 4.0]),
            ("0", vec![0.0]),
            ("9", vec![9.0]),
            ("2", vec![2.0]),
        ]
        .map(|(k, v)| (k.to_owned(), v))
        .into();
        let of = |line: &str| {
            let mut words = line.split(' ').map(String::from);
            let op = words.next().unwrap();
            Growth::new(&op, &words.collect::<Vec<_>>(), &constants)
        };
        for (line, growth) in [
            ("Relu x", Growth::First),
            ("Add x y", Growth::Largest),
            ("Concat x x", Growth::Together),
            ("Tile x repeats", Growth::Times(6)),
            ("Tile x computed", Growth::Times(1)),
            ("Resize x  scales", Growth::Times(4)),
            ("Resize x   sides", Growth::AtLeast(u64::MAX)),
            ("Resize x  scales none", Growth::Times(4)),
            ("Expand x sides", Growth::AtLeast(u64::MAX)),
            ("ConstantOfShape 9", Growth::AtLeast(9)),
            ("Range 0 9 2", Growth::AtLeast(4)),
            ("OneHot x 9", Growth::Times(9)),
            ("Pad x pads", Growth::AtLeast(8)),
            ("Conv x w", Growth::AtLeast(1)),
        ] {
            assert_eq!(of(line), growth, "{line}");
        }
        let both = |g: Growth| {
            let size = g.size([Size::OPEN, Size::OPEN, Size::stated(5)]);
            (size.one, size.factor())
        };
        assert_eq!(both(Growth::First), (1, 1));
        assert_eq!(both(Growth::Largest), (5, 1));
        assert_eq!(both(Growth::Together), (7, 2));
        assert_eq!(both(Growth::Times(3)), (3, 3));
        assert_eq!(both(Growth::AtLeast(0)), (1, 1));
    }
}
