//! Steps joined so that less goes through memory. Each pass keeps the values the same up to rounding.

use crate::ir::{Act, Arithmetic, Conv, Depthwise, Id, Inverted, Ir, Op, Resample, Sliding, Step};
use crate::isa::{Clamp, Func};
use std::sync::Arc;

/// All passes.
pub(crate) fn fuse(ir: &mut Ir) {
    ir.sweep();
    fold_scales(ir);
    join_gates(ir);
    join_activations(ir);
    join_residuals(ir);
    // A scale may have become foldable behind what was joined, and an activation behind a sum.
    join_activations(ir);
    spread_enlarged(ir);
    join_inverted(ir);
    ir.sweep();
}

/// Scale and shift per channel into the convolution before them.
fn fold_scales(ir: &mut Ir) {
    let mut i = 0;
    while i < ir.steps.len() {
        let made = maker(ir, i, 0);
        let Op::Affine { scale, shift, act } = &ir.steps[i].op else {
            i += 1;
            continue;
        };
        let (scale, shift, act) = (scale.clone(), shift.clone(), *act);
        let fold = |weight: &mut Arc<Vec<f32>>, bias: &mut [f32]| {
            let weight = Arc::make_mut(weight);
            let each = weight.len() / bias.len();
            for (w, s) in weight.chunks_exact_mut(each).zip(&scale) {
                w.iter_mut().for_each(|w| *w *= s);
            }
            for ((b, s), t) in bias.iter_mut().zip(&scale).zip(&shift) {
                *b = (f64::from(*b) * f64::from(*s) + f64::from(*t)) as f32;
            }
        };
        let folded = match made.map(|m| &mut ir.steps[m].op) {
            Some(Op::Conv(c)) if c.act.is_none() && !c.residual => {
                fold(&mut c.weight, &mut c.bias);
                c.act = act;
                true
            }
            Some(Op::Depthwise(d)) if d.act.is_none() => {
                fold(&mut d.weight, &mut d.bias);
                d.act = act;
                true
            }
            // Two scales in a row.
            Some(Op::Affine { scale: s, shift: t, act: a }) if a.is_none() => {
                for i in 0..s.len() {
                    s[i] *= scale[i];
                    t[i] = t[i] * scale[i] + shift[i];
                }
                *a = act;
                true
            }
            _ => false,
        };
        match (folded, made) {
            (true, Some(m)) => take_over(ir, m, i),
            _ => i += 1,
        }
    }
}

/// `x * sigmoid(x)` and `x * hard_sigmoid(x)` as one function.
fn join_gates(ir: &mut Ir) {
    let makers = ir.makers();
    for i in 0..ir.steps.len() {
        let Op::Binary(Arithmetic::Mul, act) = ir.steps[i].op else { continue };
        let [a, b] = ir.steps[i].inputs[..] else { continue };
        let gate = |x: Id, gated: Id| {
            let step = &ir.steps[makers[gated]?];
            match step.op {
                Op::Map(Act { clamp: Clamp::NONE, then: Some(f) }) if step.inputs == [x] => match f
                {
                    Func::Sigmoid => Some(Func::Silu),
                    Func::HardSigmoid(a, b) if (a - 1.0 / 6.0).abs() < 1e-6 && b == 0.5 => {
                        Some(Func::HardSwish)
                    }
                    _ => None,
                },
                _ => None,
            }
        };
        let found = gate(a, b).map(|f| (f, a)).or_else(|| gate(b, a).map(|f| (f, b)));
        if let Some((f, x)) = found
            && act.is_none()
        {
            ir.steps[i].op = Op::Map(Act { clamp: Clamp::NONE, then: Some(f) });
            ir.steps[i].inputs = vec![x];
        }
    }
    ir.sweep();
}

/// Activations into the step before them.
fn join_activations(ir: &mut Ir) {
    let mut i = 0;
    while i < ir.steps.len() {
        let made = maker(ir, i, 0);
        let Op::Map(act) = ir.steps[i].op else {
            i += 1;
            continue;
        };
        let before = match made.map(|m| &mut ir.steps[m].op) {
            Some(Op::Conv(c)) => Some(&mut c.act),
            Some(Op::Depthwise(d)) => Some(&mut d.act),
            Some(Op::Affine { act, .. } | Op::Binary(_, act) | Op::Resize(_, act)) => Some(act),
            _ => None,
        };
        match (before, made) {
            (Some(before), Some(m)) if before.is_none() => {
                *before = act;
                take_over(ir, m, i);
            }
            _ => i += 1,
        }
    }
}

/// Sums into the convolution that makes one of the terms.
fn join_residuals(ir: &mut Ir) {
    let mut i = 0;
    while i < ir.steps.len() {
        let Op::Binary(Arithmetic::Add, act) = ir.steps[i].op else {
            i += 1;
            continue;
        };
        let [a, b] = ir.steps[i].inputs[..] else {
            i += 1;
            continue;
        };
        let same = ir.shapes[a] == ir.shapes[b] && a != b;
        let takes = |m: Option<usize>| {
            m.filter(|m| match &ir.steps[*m].op {
                Op::Conv(c) => c.act.is_none() && !c.residual && c.groups == 1,
                _ => false,
            })
        };
        // The later of two, whose other term is there already.
        let found = [(takes(maker(ir, i, 0)), b), (takes(maker(ir, i, 1)), a)];
        let found = found.into_iter().filter_map(|(m, other)| Some((m?, other))).max();
        match found {
            Some((m, other)) if same => {
                let Op::Conv(conv) = &mut ir.steps[m].op else { unreachable!("found as one") };
                (conv.residual, conv.act) = (true, act);
                let mut step = ir.steps.remove(m);
                // Its place is where the sum was: the other term is made before.
                let sum = &mut ir.steps[i - 1];
                step.inputs.push(other);
                step.output = sum.output;
                *sum = step;
            }
            _ => i += 1,
        }
    }
}

/// Concatenations and twofold enlargements read by convolutions alone are read in place.
fn spread_enlarged(ir: &mut Ir) {
    loop {
        let makers = ir.makers();
        let mut readers: Vec<Vec<usize>> = vec![Vec::new(); ir.shapes.len()];
        for (i, s) in ir.steps.iter().enumerate() {
            s.inputs.iter().for_each(|id| readers[*id].push(i));
        }
        let dense = |i: usize, id: Id| match &ir.steps[i].op {
            Op::Conv(c) => {
                let sources = ir.steps[i].inputs.len() - usize::from(c.residual);
                c.groups == 1 && !ir.steps[i].inputs[sources..].contains(&id)
            }
            _ => false,
        };
        let three = |i: usize, id: Id| match &ir.steps[i].op {
            // A source that is enlarged already would be enlarged fourfold.
            Op::Conv(c) => {
                let twice = c.up.iter().zip(&ir.steps[i].inputs).any(|(up, x)| *up && *x == id);
                c.slide.square() == Some((3, 1)) && !twice
            }
            _ => false,
        };
        let found = ir.steps.iter().enumerate().find_map(|(i, step)| {
            let (id, by) = (step.output, &readers[step.output]);
            if id == ir.output || by.is_empty() || !by.iter().all(|r| dense(*r, id)) {
                return None;
            }
            match &step.op {
                Op::Concat => Some((i, false)),
                Op::Resize(r, act)
                    if act.is_none() && doubles(r) && by.iter().all(|r| three(*r, id)) =>
                {
                    Some((i, true))
                }
                _ => None,
            }
        });
        let Some((i, up)) = found else { return };
        let Step { inputs, output, .. } = ir.steps[i].clone();
        debug_assert!(makers[output] == Some(i));
        for step in &mut ir.steps {
            let Op::Conv(conv) = &mut step.op else { continue };
            while let Some(at) = step.inputs.iter().take(conv.up.len()).position(|x| *x == output) {
                step.inputs.splice(at..=at, inputs.iter().copied());
                let was = conv.up[at];
                conv.up.splice(at..=at, inputs.iter().map(|_| up || was));
            }
        }
        ir.steps.remove(i);
    }
}

/// Whether each source row and column is there twice, in order.
fn doubles(resample: &Resample) -> bool {
    let twice =
        |v: &[usize]| v.len().is_multiple_of(2) && v.iter().enumerate().all(|(i, s)| *s == i / 2);
    matches!(resample, Resample::Nearest(y, x) if twice(y) && twice(x))
}

/// Expand, filter, project.
fn join_inverted(ir: &mut Ir) {
    let mut i = 0;
    while i < ir.steps.len() {
        let Some((filter, project)) = projected(ir, i) else {
            i += 1;
            continue;
        };
        let at = maker(ir, i, 0).expect("a projection has an input");
        let expand = maker(ir, at, 0).filter(|e| match &ir.steps[*e].op {
            Op::Conv(c) => c.slide.is_point() && c.groups == 1 && !c.residual && c.up == [false],
            _ => false,
        });
        let mut inputs = ir.steps[at].inputs.clone();
        let expanded = expand.map(|e| {
            inputs.clone_from(&ir.steps[e].inputs);
            match &ir.steps[e].op {
                Op::Conv(c) => (**c).clone(),
                _ => unreachable!("an expansion is a convolution"),
            }
        });
        inputs.extend_from_slice(&ir.steps[i].inputs[1..]);
        ir.steps[i].op = Op::Inverted(Box::new(Inverted { expand: expanded, filter, project }));
        ir.steps[i].inputs = inputs;
        let mut gone: Vec<usize> = [Some(at), expand].into_iter().flatten().collect();
        gone.sort_unstable();
        gone.iter().rev().for_each(|g| drop(ir.steps.remove(*g)));
        i = i + 1 - gone.len();
    }
}

/// A projection behind a filter that nobody else reads.
fn projected(ir: &Ir, i: usize) -> Option<(Depthwise, Conv)> {
    let Op::Conv(project) = &ir.steps[i].op else { return None };
    let point = project.slide == Sliding::POINT && project.groups == 1 && project.up == [false];
    if !point {
        return None;
    }
    match &ir.steps[maker(ir, i, 0)?].op {
        Op::Depthwise(filter) => Some(((**filter).clone(), (**project).clone())),
        _ => None,
    }
}

/// The step that makes input `k` of step `i`, where `i` alone reads it.
fn maker(ir: &Ir, i: usize, k: usize) -> Option<usize> {
    let id = *ir.steps[i].inputs.get(k)?;
    let reads = ir.steps.iter().flat_map(|s| &s.inputs).filter(|x| **x == id).count();
    if reads != 1 || id == ir.output {
        return None;
    }
    ir.steps[..i].iter().position(|s| s.output == id)
}

/// Step `m` writes what step `i` wrote, which goes.
fn take_over(ir: &mut Ir, m: usize, i: usize) {
    ir.steps[m].output = ir.steps[i].output;
    ir.steps.remove(i);
}
