//! Paired tests of models over the same folds and slides.
//!
//! The score of a model is its mean over folds. Slides are drawn with replacement, the same for both
//! models and all folds, and the difference of the scores is computed again, over the folds that the draw has slides
//! of: two-sided p is twice the share of draws on the rarer side of zero (at least one draw in all). Holm's correction
//! is over the rows of one comparison.

use super::StepOutputs;
use crate::error::Result;
use crate::graph::{Dims, envs};
use crate::spec::{CompareSpec, expand};
use base::table::{Format, Table, Unmatched};
use serde::Serialize;
use stats::bootstrap::draw_counts;
use stats::interval::{holm, quantile_sorted};
use stats::metrics::ConfusionMatrix;
use std::collections::BTreeMap;
use std::path::Path;

/// Draws of slides.
const REPLICATES: u64 = 2000;

/// Paired tests of a list of models against one.
#[derive(Clone, Debug, Serialize)]
pub struct Comparison {
    /// Its id in the experiment.
    pub id: String,
    /// Caption.
    pub title: String,
    /// The model that the others are compared with.
    pub reference: String,
    /// Name of the score whose differences are tested.
    pub metric: String,
    /// One per other model.
    pub pairs: Vec<Pair>,
}

/// One model against the reference.
#[derive(Clone, Debug, Serialize)]
pub struct Pair {
    /// Name of the model that is compared.
    pub row: String,
    /// Score of the reference less the model's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub difference: Option<f64>,
    /// 95 % interval over draws of slides.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interval: Option<[f64; 2]>,
    /// Two-sided p.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub p: Option<f64>,
    /// p after Holm's correction.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub holm: Option<f64>,
    /// Slides that both models were scored on.
    pub slides: usize,
    /// Why it was not tested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub missing: Option<String>,
}

/// A model's confusion matrices, by fold and slide.
#[derive(Debug)]
struct Model {
    classes: Vec<String>,
    folds: BTreeMap<String, BTreeMap<String, ConfusionMatrix>>,
}

pub(super) fn compute(
    spec: &CompareSpec,
    dims: &Dims,
    found: &StepOutputs<'_>,
) -> Result<Comparison> {
    let mut models = vec![];
    for env in envs(&[&spec.rows], dims)? {
        let step = expand(&spec.step, &env)?;
        let model = found.folder(&step).and_then(|f| Model::read(&f.join(&spec.file)));
        models.push((env[&spec.rows].clone(), model));
    }
    let reference = models.iter().find(|(id, _)| *id == spec.reference).map(|(_, m)| m);
    let mut pairs = vec![];
    for (row, model) in models.iter().filter(|(id, _)| *id != spec.reference) {
        let tested = match (reference, model) {
            (Some(Ok(r)), Ok(m)) => paired(spec, r, m),
            (Some(Err(e)), _) | (_, Err(e)) => Err(e.clone()),
            (None, _) => Err(format!("{} is not among the rows", spec.reference)),
        };
        pairs.push(match tested {
            Ok(pair) => Pair { row: row.clone(), ..pair },
            Err(missing) => Pair { row: row.clone(), ..Pair::missing(missing) },
        });
    }
    let p: Vec<f64> = pairs.iter().filter_map(|p| p.p).collect();
    let corrected = holm(&p).unwrap_or_default();
    for (pair, holm) in pairs.iter_mut().filter(|p| p.p.is_some()).zip(corrected) {
        pair.holm = Some(holm);
    }
    Ok(Comparison {
        id: spec.id.clone(),
        title: spec.title.clone(),
        reference: spec.reference.clone(),
        metric: spec.metric.clone(),
        pairs,
    })
}

impl Pair {
    fn missing(reason: String) -> Self {
        Self {
            row: String::new(),
            difference: None,
            interval: None,
            p: None,
            holm: None,
            slides: 0,
            missing: Some(reason),
        }
    }
}

impl Model {
    fn read(path: &Path) -> std::result::Result<Self, String> {
        let table = Table::read(path, &Format::default()).map_err(|e| e.to_string())?;
        let need = |name: &str| table.need(&[name]).map_err(|e| e.to_string());
        let (source, fold, truth, class) =
            (need("source")?, need("fold")?, need("truth")?, need("class")?);
        let classes: Vec<String> =
            table.names().iter().filter_map(|n| n.strip_prefix("p_")).map(str::to_owned).collect();
        let class_index = |word: &str| {
            let at = classes.iter().position(|c| c == word);
            at.ok_or_else(|| format!("{}: class `{word}` has no column", path.display()))
        };
        let mut folds: BTreeMap<String, BTreeMap<String, ConfusionMatrix>> = BTreeMap::new();
        for row in 0..table.len() {
            let cell = |column| table.cell(row, column).to_owned();
            let one = ConfusionMatrix::from_labels(
                &[class_index(&cell(truth))?],
                &[class_index(&cell(class))?],
                classes.len(),
            )
            .map_err(|e| e.to_string())?;
            let slides = folds.entry(cell(fold)).or_default();
            match slides.get_mut(&cell(source)) {
                Some(matrix) => matrix.add(&one).map_err(|e| e.to_string())?,
                None => drop(slides.insert(cell(source), one)),
            }
        }
        Ok(Self { classes, folds })
    }

    /// Mean over the folds that have one of these slides, each slide counted `weights` times; none without any.
    fn score(&self, spec: &CompareSpec, slides: &[&String], weights: &[u32]) -> Option<f64> {
        let positive =
            spec.positive.as_ref().and_then(|p| self.classes.iter().position(|c| c == p));
        let (mut sum, mut folds) = (0.0, 0);
        for by_slide in self.folds.values() {
            let mut all = ConfusionMatrix::new(self.classes.len()).ok()?;
            for (slide, n) in slides.iter().zip(weights) {
                if let Some(m) = by_slide.get(*slide) {
                    (0..*n).try_for_each(|_| all.add(m)).ok()?;
                }
            }
            if all.total() == 0 {
                continue;
            }
            folds += 1;
            sum += match spec.metric.as_str() {
                "macro_f1" => present_macro_f1(&all),
                _ => all.f1(positive?),
            };
        }
        (folds > 0).then(|| sum / f64::from(folds))
    }
}

/// Macro F1 over the classes that occur in truth or prediction.
fn present_macro_f1(m: &ConfusionMatrix) -> f64 {
    let present: Vec<usize> =
        (0..m.classes()).filter(|&c| m.support(c) + m.predicted(c) > 0).collect();
    present.iter().map(|&c| m.f1(c)).sum::<f64>() / present.len().max(1) as f64
}

fn paired(
    spec: &CompareSpec,
    reference: &Model,
    model: &Model,
) -> std::result::Result<Pair, String> {
    let names = |m: &Model| -> Vec<(String, Vec<String>)> {
        m.folds.iter().map(|(f, s)| (f.clone(), s.keys().cloned().collect())).collect()
    };
    if names(reference) != names(model) || reference.classes != model.classes {
        let all = |m: &Model| -> Vec<String> {
            m.folds.values().flat_map(BTreeMap::keys).cloned().collect()
        };
        let between = |sides, left: Vec<String>, right: Vec<String>| {
            let right = right.iter().map(String::as_str);
            Unmatched::between(sides, left.iter().map(String::as_str), right)
        };
        let folds = |m: &Model| m.folds.keys().cloned().collect::<Vec<_>>();
        let sides = ("the folds of the reference", "those of the row");
        let lacking = [
            between(sides, folds(reference), folds(model)),
            between(("the reference", "the row"), all(reference), all(model)),
        ];
        let lacking: String = lacking.iter().flatten().map(|join| format!(": {join}")).collect();
        return Err(format!(
            "the two were not scored on the same slides, folds and classes{lacking}"
        ));
    }
    let mut slides: Vec<&String> = reference.folds.values().flat_map(BTreeMap::keys).collect();
    slides.sort();
    slides.dedup();
    let difference = |weights: &[u32]| {
        Some(reference.score(spec, &slides, weights)? - model.score(spec, &slides, weights)?)
    };
    let estimate = difference(&vec![1; slides.len()]).ok_or("the score is not defined")?;
    let mut counts = vec![];
    let mut drawn: Vec<f64> = (0..REPLICATES)
        .filter_map(|k| {
            draw_counts(slides.len(), 1, k, &mut counts);
            difference(&counts)
        })
        .collect();
    if drawn.is_empty() {
        return Err("the score is not defined on drawn slides".into());
    }
    drawn.sort_by(f64::total_cmp);
    let below = drawn.iter().filter(|d| **d <= 0.0).count();
    let above = drawn.iter().filter(|d| **d >= 0.0).count();
    let p = (2.0 * (below.min(above).max(1)) as f64 / drawn.len() as f64).min(1.0);
    Ok(Pair {
        row: String::new(),
        difference: Some(estimate),
        interval: Some([quantile_sorted(&drawn, 0.025), quantile_sorted(&drawn, 0.975)]),
        p: Some(p),
        holm: None,
        slides: slides.len(),
        missing: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec() -> CompareSpec {
        CompareSpec {
            id: "x".into(),
            title: String::new(),
            rows: "row".into(),
            reference: "a".into(),
            step: String::new(),
            file: String::new(),
            metric: "f1".into(),
            positive: Some("yes".into()),
        }
    }

    fn model(right: impl Fn(usize) -> bool) -> Model {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("p.csv");
        let mut text = "file,source,domain,fold,truth,class,p_no,p_yes\n".to_owned();
        for i in 0..60 {
            let truth = ["no", "yes"][i % 2];
            let class = if right(i) { truth } else { ["yes", "no"][i % 2] };
            text += &format!("{i}.png,slide{},d,{},{truth},{class},0.5,0.5\n", i / 4, i % 2);
        }
        std::fs::write(&path, text).unwrap();
        Model::read(&path).unwrap()
    }

    #[test]
    fn a_clear_difference_is_distinguished_from_none() {
        let (good, same) = (model(|i| i % 10 != 0), model(|i| i % 10 != 0));
        let bad = model(|i| i % 3 == 0);
        let none = paired(&spec(), &good, &same).unwrap();
        assert_eq!((none.difference, none.p, none.slides), (Some(0.0), Some(1.0), 15));
        let clear = paired(&spec(), &good, &bad).unwrap();
        // Fold 1: precision 1 and recall a third, F1 0.5 for 1; fold 0 has no positive.
        let off = (clear.difference.unwrap() - 0.25).abs();
        assert!(off < 1e-12 && clear.p.unwrap() <= 0.01, "{clear:?}");
        // The score itself, apart: F1 of fold 0 holds no positive, of fold 1 it is recall-bound.
        let all: Vec<&String> = good.folds["1"].keys().collect();
        let f1 = good.score(&spec(), &all, &vec![1; all.len()]).unwrap();
        assert!((f1 - 0.5).abs() < 1e-12, "{f1}: fold 0 has no positive (0), fold 1 no error (1)");
    }

    #[test]
    fn a_draw_without_a_fold_is_scored_on_the_others_and_a_model_without_one_is_named() {
        let mut all = model(|_| true);
        // A fold of one slide, which draws seldom have.
        let fold = all.folds.get_mut("0").unwrap();
        let (name, _) = fold.pop_first().unwrap();
        let one = all.folds.get_mut("1").unwrap().remove(&name).unwrap();
        all.folds.insert("2".into(), BTreeMap::from([(name.clone(), one)]));
        let score = |slides: &[&String]| all.score(&spec(), slides, &vec![1; slides.len()]);
        let rest: Vec<&String> = all.folds["1"].keys().collect();
        // Of folds 0 and 1 the first has no positive.
        assert_eq!(score(&rest), Some(0.5));
        assert_eq!((score(&[&name]), score(&[])), (Some(1.0), None));
        let mut lacking = model(|_| true);
        lacking.folds.remove("1");
        let refused = paired(&spec(), &model(|_| true), &lacking).unwrap_err();
        assert!(
            refused.contains("only in the folds of the reference") && refused.contains("'1'"),
            "{refused}"
        );
    }

    #[test]
    fn models_of_other_slides_are_not_compared() {
        let mut other = model(|_| true);
        let fold = other.folds.get_mut("0").unwrap();
        fold.pop_first();
        let refused = paired(&spec(), &model(|_| true), &other);
        assert!(refused.unwrap_err().contains("same slides"));
        // Names that another program wrote in another way.
        let mut other = model(|_| true);
        for fold in other.folds.values_mut() {
            let (name, matrix) = fold.pop_first().unwrap();
            fold.insert(name.to_uppercase(), matrix);
        }
        let refused = paired(&spec(), &model(|_| true), &other).unwrap_err();
        for words in ["'slide0'", "'SLIDE0'", "would match ignoring upper and lower case"] {
            assert!(refused.contains(words), "{words}: {refused}");
        }
    }
}
