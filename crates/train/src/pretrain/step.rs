//! The gradients of one optimiser step over micro-batches and ranks (two-pass GradCache).
//!
//! The contrastive terms are defined over the whole effective batch: the first pass embeds without
//! a graph, everything is contrasted once, and the second pass hands each micro-batch its rows of
//! the gradient. With one micro-batch on one rank the first pass keeps its graph and is the second.

use net::device::Precision;
use net::dist::Group;
use tch::{Kind, Tensor};

use super::method::{Embedding, Forward, Pretraining, WeightedTerm};
use super::micro::Micro;
use crate::error::Result;

/// A term of the objective.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TermValue {
    /// As in `terms.csv`.
    pub name: &'static str,
    /// Without its weight.
    pub value: f64,
}

/// What a step found: the objective and its terms over the whole batch of all ranks.
#[derive(Clone, Debug, PartialEq)]
pub struct StepResult {
    /// The weighted sum.
    pub total: f64,
    /// Each term's own value.
    pub terms: Vec<TermValue>,
}

fn scalar(t: &Tensor) -> f64 {
    t.double_value(&[])
}

/// Joins embeddings of micro-batches row by row, then of ranks.
fn gather(parts: &[Forward], group: &Group) -> Result<Vec<Embedding>> {
    let join = |i: usize, of: &dyn Fn(&Embedding) -> Tensor| -> Result<Tensor> {
        let all: Vec<Tensor> = parts.iter().map(|f| of(&f.embeddings[i]).detach()).collect();
        Ok(group.gather(&Tensor::cat(&all, 0))?)
    };
    (0..parts[0].embeddings.len())
        .map(|i| {
            let z = join(i, &|e| e.z.to_kind(Kind::Float))?;
            Ok(Embedding { z, labels: join(i, &|e| e.labels.shallow_clone())? })
        })
        .collect()
}

/// Accumulates this rank's gradients of the whole batch's objective; [`crate::ranks::sum_gradients`] follows.
/// Micro-batches of one rank, and the ranks, hold equally many samples.
///
/// # Errors
/// A rank that went away.
///
/// # Panics
/// Without a micro-batch.
pub fn gradients(
    method: &dyn Pretraining,
    micros: &[Micro],
    precision: Precision,
    group: &Group,
) -> Result<StepResult> {
    let device = micros[0].views.device();
    let forward =
        |m: &Micro, embed_only: bool| precision.run(device, || method.forward(m, embed_only));
    // One micro-batch: the first pass keeps its graph.
    let direct = micros.len() == 1;
    let mut kept: Vec<Forward> = vec![];
    let mut contrast = None;
    if method.contrasts() {
        kept = if direct {
            vec![forward(&micros[0], false)]
        } else {
            tch::no_grad(|| micros.iter().map(|m| forward(m, true)).collect())
        };
        contrast = Some(method.contrast(&gather(&kept, group)?));
    }
    let samples: i64 = micros.iter().map(Micro::samples).sum();
    let mut local: Vec<WeightedTerm> = vec![];
    // The next row of each embedding's gradient that belongs to this rank.
    let mut at: Vec<i64> = kept
        .first()
        .map(|f| f.embeddings.iter().map(|e| e.z.size()[0]).collect::<Vec<_>>())
        .unwrap_or_default()
        .into_iter()
        .map(|rows| rows * micros.len() as i64 * group.rank() as i64)
        .collect();
    if !direct {
        kept.clear();
    }
    for m in micros {
        let f = kept.pop().unwrap_or_else(|| forward(m, false));
        let share = m.samples() as f64 / (samples * group.world() as i64) as f64;
        let mut loss: Option<Tensor> = None;
        let mut add = |t: Tensor| {
            loss = Some(match loss.take() {
                Some(l) => l + t,
                None => t,
            });
        };
        for v in &f.local {
            let value = scalar(&v.value) * share;
            match local.iter_mut().find(|l| l.name == v.name) {
                Some(l) => l.value += value,
                None => local.push(WeightedTerm { name: v.name, weight: v.weight, value }),
            }
            add(&v.value * (v.weight * share));
        }
        for (i, e) in f.embeddings.iter().enumerate() {
            let rows = e.z.size()[0];
            if let Some(grad) = contrast.as_ref().and_then(|c| c.grads[i].as_ref()) {
                add((&e.z * grad.narrow(0, at[i], rows)).sum(Kind::Float));
            }
            at[i] += rows;
        }
        if let Some(loss) = loss {
            loss.backward();
        }
    }
    // Local terms are parts of a mean over all ranks.
    let values: Vec<f64> = local.iter().map(|l| l.value).collect();
    let values = Tensor::from_slice(&values).to_kind(Kind::Float);
    group.sum(&[values.shallow_clone()])?;
    if group.world() > 1 {
        for (i, l) in local.iter_mut().enumerate() {
            l.value = values.double_value(&[i as i64]);
        }
    }
    let contrasted = contrast.iter().flat_map(|c| &c.terms);
    local.extend(contrasted.map(|v| WeightedTerm {
        name: v.name,
        weight: v.weight,
        value: scalar(&v.value),
    }));
    let total = method.total(&local);
    Ok(StepResult {
        total,
        terms: local.into_iter().map(|t| TermValue { name: t.name, value: t.value }).collect(),
    })
}
