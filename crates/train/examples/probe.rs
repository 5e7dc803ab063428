//! Linear probes (K3) of frozen encoders on a labelled corpus: figure against mimicker, and atypical
//! against typical. Trained on the split `train`, measured on the split `validation`, whose slides the
//! encoders must not have seen; 95 % intervals resample those slides.
//!
//! usage: probe CORPUS ENCODER.safetensors|untrained ... [--threads N]

#![allow(clippy::print_stdout, reason = "prints scores")]

use std::collections::BTreeMap;
use std::path::Path;

use crops::{Columns, Corpus, Label, Split};
use net::loss::CrossEntropy;
use net::optim::Lars;
use net::probe::Probe;
use net::schedule::{BaseLr, WarmupCosine};
use stats::bootstrap::{Plan, bootstrap_indices};
use stats::metrics::{ConfusionMatrix, roc_auc};
use tch::nn::VarStore;
use tch::{Device, Kind, Tensor};
use train::embed::Embedder;

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

/// Features of one side of a task, and each row's slide.
#[derive(Default)]
struct Side {
    x: Vec<f32>,
    y: Vec<bool>,
    slides: Vec<String>,
}

const EPOCHS: usize = 50;
const BATCH: i64 = 256;

/// K3: affine-free batch norm and a linear layer by LARS (base rate 0.1, ten warm-up epochs, cosine,
/// no weight decay), from weights of deviation 0.01. Gives each validation row's probability of the positive class.
fn probe(train: &Side, test: &Side, dim: i64, seed: i64) -> Outcome<Vec<f64>> {
    tch::manual_seed(seed);
    let vs = VarStore::new(Device::Cpu);
    let start = Tensor::randn([2, dim], (Kind::Float, Device::Cpu)) * 0.01;
    let head = Probe::new(&vs.root(), &start, 0.0);
    let mut lars = Lars::new(&vs, 0.0);
    let rows = |s: &Side| Tensor::from_slice(&s.x).view([-1, dim]);
    let x = rows(train);
    let y: Vec<i64> = train.y.iter().map(|&v| i64::from(v)).collect();
    let y = Tensor::from_slice(&y);
    let n = x.size()[0];
    let batch = BATCH.min(n);
    let rate = WarmupCosine {
        lr: BaseLr(0.1).scaled(batch as usize),
        min_lr: 0.0,
        warmup_epochs: 10.0,
        epochs: EPOCHS as f64,
    };
    let loss = CrossEntropy::default();
    for epoch in 0..EPOCHS {
        let order = Tensor::randperm(n, (Kind::Int64, Device::Cpu));
        let steps = n / batch;
        for step in 0..steps {
            let at = order.narrow(0, step * batch, batch);
            let logits = head.forward(&x.index_select(0, &at), true);
            lars.zero_grad();
            loss.forward(&logits, &y.index_select(0, &at)).backward();
            lars.step(rate.at(epoch as f64 + step as f64 / steps as f64));
        }
    }
    let p = tch::no_grad(|| head.forward(&rows(test), false).softmax(-1, Kind::Double));
    Ok(Vec::<f64>::try_from(p.select(1, 1).contiguous())?)
}

/// `name  AUC [interval]  F1 of the positive class`, mean over three seeds.
fn report(task: &str, train: &Side, test: &Side, dim: i64) -> Outcome<()> {
    let mut mean = vec![0.0; test.y.len()];
    let (mut auc, mut f1) = (0.0, 0.0);
    for seed in 0..3 {
        let p = probe(train, test, dim, seed)?;
        for (m, v) in mean.iter_mut().zip(&p) {
            *m += v / 3.0;
        }
        auc += roc_auc(&p, &test.y)?.ok_or("one class only")? / 3.0;
        let predicted: Vec<usize> = p.iter().map(|&v| usize::from(v > 0.5)).collect();
        let truth: Vec<usize> = test.y.iter().map(|&v| usize::from(v)).collect();
        f1 += ConfusionMatrix::from_labels(&truth, &predicted, 2)?.f1(1) / 3.0;
    }
    let mut slides: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for (i, s) in test.slides.iter().enumerate() {
        slides.entry(s).or_default().push(i);
    }
    let slides: Vec<Vec<usize>> = slides.into_values().collect();
    let plan = Plan { replicates: 1000, seed: 1, level: 0.95 };
    let found = bootstrap_indices(slides.len(), plan, auc, |drawn| {
        let rows: Vec<usize> = drawn.iter().flat_map(|&s| slides[s].iter().copied()).collect();
        let p: Vec<f64> = rows.iter().map(|&i| mean[i]).collect();
        let y: Vec<bool> = rows.iter().map(|&i| test.y[i]).collect();
        roc_auc(&p, &y).ok().flatten()
    })?;
    let positive = test.y.iter().filter(|&&v| v).count();
    println!(
        "  {task}: AUC {auc:.3} [{:.3}, {:.3}], F1 {f1:.3} ({positive} of {} on {} slides; {} to train)",
        found.interval.lower,
        found.interval.upper,
        test.y.len(),
        slides.len(),
        train.y.len()
    );
    Ok(())
}

fn main() -> Outcome<()> {
    let mut args: Vec<String> = std::env::args().skip(1).collect();
    if let Some(at) = args.iter().position(|a| a == "--threads") {
        train::set_up(args.get(at + 1).ok_or("--threads N")?.parse()?);
        args.drain(at..at + 2);
    }
    let (dir, encoders) = args.split_first().ok_or("probe CORPUS ENCODER ...")?;
    let crops = Corpus::open(dir)?.crops(Columns::All)?.collect::<Result<Vec<_>, _>>()?;
    for file in encoders {
        let net = if file == "untrained" {
            Embedder::untrained("vit_tiny_patch16_224", 112, 1)?
        } else {
            Embedder::open(Path::new(file), None, 224, false, "cpu")?
        };
        // (figure or not, atypical or not) x (train, validation).
        let mut sides: [[Side; 2]; 2] = Default::default();
        for part in crops.chunks(128) {
            let tiles = part.iter().map(|c| c.decode()).collect::<Result<Vec<_>, _>>()?;
            let x = net.embed(&tiles);
            for (crop, features) in part.iter().zip(x.chunks(net.dim())) {
                let m = &crop.meta;
                let at = match m.split {
                    Split::Train => 0,
                    Split::Validation => 1,
                    _ => continue,
                };
                let mut put = |task: usize, y: bool| {
                    let side = &mut sides[task][at];
                    side.x.extend_from_slice(features);
                    side.y.push(y);
                    side.slides.push(m.slide.clone());
                };
                put(0, m.label == Label::MitoticFigure);
                if let Some(subtype) = &m.subtype {
                    put(1, subtype == "atypical");
                }
            }
        }
        println!("{file}");
        for (task, [train, test]) in
            ["figure or mimicker", "atypical or typical"].iter().zip(&sides)
        {
            report(task, train, test, net.dim() as i64)?;
        }
    }
    Ok(())
}
