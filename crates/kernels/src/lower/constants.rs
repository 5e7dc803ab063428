//! Nodes whose value is known before any image: constants, conversions, and the arithmetic of shapes that exporters
//! write for a batch of any size. An image's batch dimension is 1 here.

use super::node::{At, Value};
use crate::error::PlanError;
use crate::ir::{Id, Shape};
use crate::tensor::{Data, Tensor};
use std::rc::Rc;
use std::sync::Arc;

/// The node's constant value; `None` where it depends on the image.
///
/// # Errors
/// [`PlanError`] for a constant of an unsupported type.
pub(super) fn fold(
    at: &At<'_>,
    inputs: &[Option<Value>],
    shape_of: impl Fn(Id, usize) -> (Shape, usize),
) -> Result<Option<Rc<Tensor>>, PlanError> {
    // A conversion to what it is already: nothing is copied.
    if let ("Cast", [Some(Value::Constant(t))]) = (at.node.op_type.as_str(), inputs)
        && t.has_type(at.attributes.int("to", 0))
    {
        return Ok(Some(t.clone()));
    }
    Ok(compute(at, inputs, shape_of)?.map(Rc::new))
}

#[expect(clippy::too_many_lines, reason = "one arm for each operator")]
fn compute(
    at: &At<'_>,
    inputs: &[Option<Value>],
    shape_of: impl Fn(Id, usize) -> (Shape, usize),
) -> Result<Option<Tensor>, PlanError> {
    let known: Option<Vec<Option<&Rc<Tensor>>>> = inputs
        .iter()
        .map(|v| match v {
            None => Some(None),
            Some(Value::Constant(t)) => Some(Some(t)),
            Some(Value::Computed { .. }) => None,
        })
        .collect();
    if at.node.op_type == "Shape"
        && let Some(Some(Value::Computed { id, rank })) = inputs.first()
    {
        let (s, rank) = shape_of(*id, *rank);
        let all = [1, s.c as i64, s.h as i64, s.w as i64];
        return Ok(Some(sides(at, &all[..rank.min(4)])));
    }
    let Some(known) = known else { return Ok(None) };
    let ints = |i: usize| known.get(i).copied().flatten().and_then(|t| t.as_ints());
    let list = |v: Vec<i64>| Ok(Some(Tensor::ints(vec![v.len()], v)));
    match at.node.op_type.as_str() {
        "Constant" => constant(at).map(Some),
        "Shape" => match known.first().copied().flatten() {
            Some(t) => {
                let all: Vec<i64> = t.dims.iter().map(|d| *d as i64).collect();
                Ok(Some(sides(at, &all)))
            }
            None => Ok(None),
        },
        "Cast" => {
            Ok(known.first().copied().flatten().and_then(|t| cast(t, at.attributes.int("to", 0))))
        }
        "Gather" => match (ints(0), ints(1), at.attributes.int("axis", 0)) {
            (Some(data), Some(at_), 0) => {
                let pick = |i: &i64| {
                    let i = if *i < 0 { *i + data.len() as i64 } else { *i };
                    data.get(usize::try_from(i).ok()?).copied()
                };
                let picked: Option<Vec<i64>> = at_.iter().map(pick).collect();
                let dims = known[1].map(|t| t.dims.clone()).unwrap_or_default();
                Ok(picked.map(|v| Tensor::ints(dims, v)))
            }
            _ => Ok(None),
        },
        "Unsqueeze" | "Squeeze" => match ints(0) {
            Some(v) if v.len() == 1 && at.node.op_type == "Squeeze" => {
                Ok(Some(Tensor::ints(vec![], v.to_vec())))
            }
            Some(v) => list(v.to_vec()),
            None => Ok(None),
        },
        "Concat" => {
            let all: Option<Vec<&[i64]>> = (0..known.len()).map(ints).collect();
            match all {
                Some(all) if !all.is_empty() => list(all.concat()),
                _ => Ok(None),
            }
        }
        "Slice" => match (ints(0), ints(1), ints(2), ints(4).unwrap_or(&[1])) {
            (Some(data), Some(&[from]), Some(&[to]), [1]) => list(part(data, from, to).to_vec()),
            _ => Ok(None),
        },
        "Add" | "Sub" | "Mul" | "Div" => match (ints(0), ints(1)) {
            (Some(a), Some(b)) if a.len() == b.len() || a.len() == 1 || b.len() == 1 => {
                let n = a.len().max(b.len());
                let combined = |i: usize| {
                    let (a, b) = (a[i % a.len()], b[i % b.len()]);
                    match at.node.op_type.as_str() {
                        "Add" => a.checked_add(b),
                        "Sub" => a.checked_sub(b),
                        "Mul" => a.checked_mul(b),
                        _ => a.checked_div(b),
                    }
                };
                let dims = if a.len() >= b.len() { &known[0] } else { &known[1] };
                let dims = dims.map(|t| t.dims.clone()).unwrap_or_default();
                let values: Option<Vec<i64>> = (0..n).map(combined).collect();
                Ok(values.map(|v| Tensor::ints(dims, v)))
            }
            _ => Ok(None),
        },
        _ => Ok(None),
    }
}

/// What `Shape` gives: the sides from `start` to before `end`.
fn sides(at: &At<'_>, all: &[i64]) -> Tensor {
    let (start, end) = (at.attributes.int("start", 0), at.attributes.int("end", i64::MAX));
    let chosen = part(all, start, end);
    Tensor::ints(vec![chosen.len()], chosen.to_vec())
}

/// The values from `from` to before `to`; negative positions count from the end.
fn part(data: &[i64], from: i64, to: i64) -> &[i64] {
    let n = data.len() as i64;
    let index = |i: i64| (if i < 0 { i + n } else { i }).clamp(0, n) as usize;
    let (from, to) = (index(from), index(to));
    &data[from..to.max(from)]
}

fn constant(at: &At<'_>) -> Result<Tensor, PlanError> {
    let a = &at.attributes;
    if let Some(stored) = a.get("value").and_then(|a| a.t.as_ref()) {
        return Tensor::read(stored);
    }
    if let Some(one) = a.get("value_float") {
        return Ok(Tensor::floats(vec![], vec![one.f]));
    }
    if let Some(one) = a.get("value_int") {
        return Ok(Tensor::ints(vec![], vec![one.i]));
    }
    if let Some(many) = a.get("value_floats") {
        return Ok(Tensor::floats(vec![many.floats.len()], many.floats.clone()));
    }
    if let Some(many) = a.ints("value_ints") {
        return Ok(Tensor::ints(vec![many.len()], many.to_vec()));
    }
    at.unsupported("a constant of this kind")
}

fn cast(t: &Tensor, to: i64) -> Option<Tensor> {
    let data = match (&t.data, to) {
        (Data::I64(v), 1) => Data::F32(Arc::new(v.iter().map(|v| *v as f32).collect())),
        (Data::F32(v), 6 | 7) => Data::I64(v.iter().map(|v| *v as i64).collect()),
        _ => return None,
    };
    Some(Tensor { dims: t.dims.clone(), data })
}
