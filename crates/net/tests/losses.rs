//! Losses against torch.

use crate::common::{Sample, golden, signed};
use net::loss::{CrossEntropy, SegmentLoss};
use serde::Deserialize;
use tch::{Kind, Tensor};

#[derive(Deserialize)]
struct Segment {
    bce: f64,
    dice: f64,
    grad: Sample,
}

#[derive(Deserialize)]
struct Classify {
    loss: f64,
    grad: Sample,
}

#[derive(Deserialize)]
struct Golden {
    segment: Segment,
    classify: Classify,
}

fn scalar(t: &Tensor) -> f64 {
    f64::try_from(t).expect("a scalar")
}

#[test]
fn the_segmentation_loss_equals_torch() {
    let golden = golden::<Golden>("losses").segment;
    let shape = [2, 1, 8, 8];
    let logits = signed("logits", &shape, 4.0).set_requires_grad(true);
    let target = signed("target", &shape, 1.0).gt(0.3);
    let keep = signed("keep", &shape, 1.0).gt(-0.5);
    let loss = SegmentLoss { bce: 0.7, dice: 0.3, pos_weight: 3.0, smooth: 1.0 };
    let terms = loss.forward(&logits, &target, Some(&keep));
    terms.total.backward();
    assert!((scalar(&terms.bce) - golden.bce).abs() < 1e-6);
    assert!((scalar(&terms.dice) - golden.dice).abs() < 1e-6);
    golden.grad.check("gradient", &logits.grad(), 1e-5);
    // Ignored pixels have no gradient.
    let ignored = logits.grad().masked_select(&keep.logical_not());
    assert_eq!(scalar(&ignored.abs().max()), 0.0);
}

#[test]
fn an_all_ignored_batch_has_no_loss_and_no_gradient() {
    let shape = [1, 1, 4, 4];
    let logits = signed("logits", &shape, 4.0).set_requires_grad(true);
    let zeros = Tensor::zeros(shape, (Kind::Float, tch::Device::Cpu));
    let terms = SegmentLoss::default().forward(&logits, &zeros, Some(&zeros));
    terms.total.backward();
    assert_eq!((scalar(&terms.bce), scalar(&terms.dice)), (0.0, 0.0));
    assert_eq!(scalar(&logits.grad().abs().max()), 0.0);
}

#[test]
fn the_loss_is_finite_at_extreme_logits() {
    let logits = Tensor::from_slice(&[-200f32, 200.0, -200.0, 200.0]).reshape([1, 1, 2, 2]);
    let target = Tensor::from_slice(&[1f32, 0.0, 0.0, 1.0]).reshape([1, 1, 2, 2]);
    let terms = SegmentLoss::default().forward(&logits, &target, None);
    assert!((scalar(&terms.bce) - 100.0).abs() < 1e-4, "{:?}", terms.bce);
}

#[test]
fn cross_entropy_with_smoothing_and_weights_equals_torch() {
    let golden = golden::<Golden>("losses").classify;
    let x = signed("class_logits", &[6, 4], 3.0).set_requires_grad(true);
    let y = Tensor::from_slice(&[0i64, 3, 1, 1, 2, 0]);
    let ce = CrossEntropy { smoothing: 0.1, class_weights: vec![1.0, 2.0, 0.5, 3.0] };
    let loss = ce.forward(&x, &y);
    loss.backward();
    assert!((scalar(&loss) - golden.loss).abs() < 1e-6);
    golden.grad.check("gradient", &x.grad(), 1e-5);
}

#[test]
fn soft_targets_that_are_hard_give_plain_cross_entropy() {
    let x = signed("class_logits", &[6, 4], 3.0);
    let y = Tensor::from_slice(&[0i64, 3, 1, 1, 2, 0]);
    let hard = scalar(&CrossEntropy::default().forward(&x, &y));
    let soft = scalar(&net::loss::cross_entropy(&x, &y.onehot(4)));
    assert!((hard - soft).abs() < 1e-6);
}
