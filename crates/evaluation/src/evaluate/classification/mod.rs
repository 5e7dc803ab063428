//! Predicted classes against true ones, with figures equal to scikit-learn's.

mod display;
mod items;
mod plan;

pub use base::remedy::Setting;
pub use plan::{ClassificationError, ClassificationPlan, LargestF1};

use items::Items;
use outcome::Table;
use plan::Result;
use serde::Serialize;
use stats::metrics::{ConfusionMatrix, macro_roc_auc, roc_auc, summarize};
use std::collections::BTreeMap;
use std::path::Path;

/// The figures.
#[derive(Clone, Debug, Serialize)]
pub struct Classification {
    /// Over all items.
    #[serde(flatten)]
    pub all: ClassFigures,
    /// Of two classes: the probability from which on the positive class has the largest F1 on these
    /// very items, so to be asked of held-out items only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub largest_f1: Option<LargestF1>,
    /// The threshold asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub threshold: Option<f64>,
    /// Mean and sample SD over folds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub over_folds: Option<OverFolds>,
    /// Per fold.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub folds: Option<BTreeMap<String, ClassFigures>>,
    /// Per domain.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub domains: Option<BTreeMap<String, ClassFigures>>,
    /// Warnings for the reader.
    pub notes: Vec<String>,
}

/// The figures of some items. Undefined ones are zero, as scikit-learn has them; a ROC-AUC is absent
/// where one class is missing.
#[derive(Clone, Debug, Serialize)]
pub struct ClassFigures {
    /// Items.
    pub n: u64,
    /// Classes, sorted.
    pub classes: Vec<String>,
    /// Share of right calls.
    pub accuracy: f64,
    /// Mean recall.
    pub balanced_accuracy: f64,
    /// Mean F1.
    pub macro_f1: f64,
    /// Mean precision.
    pub macro_precision: f64,
    /// Mean recall over all classes.
    pub macro_recall: f64,
    /// Cohen's kappa.
    pub kappa: Option<f64>,
    /// Of the positive class.
    #[serde(flatten)]
    pub positive: Option<PositiveFigures>,
    /// Mean one-against-rest ROC-AUC of more than two classes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub macro_roc_auc: Option<Option<f64>>,
    /// In the order of the classes.
    pub per_class: Vec<PerClass>,
    /// Rows: truth.
    pub confusion: Vec<Vec<u64>>,
}

/// The figures of the positive class.
#[derive(Clone, Debug, Serialize)]
pub struct PositiveFigures {
    /// The class.
    pub positive: String,
    /// TP / (TP + FP).
    pub precision: f64,
    /// TP / (TP + FN).
    pub recall: f64,
    /// 2 TP / (2 TP + FP + FN).
    pub f1: f64,
    /// Recall under its other name.
    pub sensitivity: f64,
    /// Share of the others called so.
    pub specificity: f64,
    /// ROC-AUC.
    pub roc_auc: Option<f64>,
}

/// The figures of one class.
#[derive(Clone, Debug, Serialize)]
pub struct PerClass {
    /// Name of the class.
    pub class: String,
    /// Items of the class.
    pub support: u64,
    /// Items called so.
    pub predicted: u64,
    /// TP / (TP + FP).
    pub precision: f64,
    /// TP / (TP + FN).
    pub recall: f64,
    /// 2 TP / (2 TP + FP + FN).
    pub f1: f64,
    /// TN / (TN + FP).
    pub specificity: f64,
    /// ROC-AUC.
    pub roc_auc: Option<f64>,
}

/// Mean and spread over folds of every figure that all folds have.
#[derive(Clone, Debug, Default)]
pub struct OverFolds(Vec<(&'static str, Spread)>);

/// A figure over folds.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Spread {
    /// Over the folds.
    pub mean: f64,
    /// Sample standard deviation.
    pub sd: Option<f64>,
    /// How many were averaged.
    pub folds: usize,
}

impl Serialize for OverFolds {
    fn serialize<S: serde::Serializer>(&self, out: S) -> std::result::Result<S::Ok, S::Error> {
        out.collect_map(self.0.iter().map(|(key, spread)| (key, spread)))
    }
}

impl OverFolds {
    /// The figure of this name.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&Spread> {
        self.0.iter().find(|(k, _)| *k == key).map(|(_, s)| s)
    }

    fn summarise(folds: &BTreeMap<String, ClassFigures>) -> Result<Self> {
        let mut out = Vec::new();
        for (key, _) in folds.values().next().into_iter().flat_map(ClassFigures::numbers) {
            let value = |f: &ClassFigures| f.number(key);
            let Some(values) = folds.values().map(value).collect::<Option<Vec<f64>>>() else {
                continue;
            };
            let s = summarize(&values)?;
            out.push((key, Spread { mean: s.mean, sd: s.sd, folds: s.n }));
        }
        Ok(Self(out))
    }
}

impl ClassFigures {
    /// Every share by name, in the order of the file; none where undefined.
    #[must_use]
    pub fn numbers(&self) -> Vec<(&'static str, Option<f64>)> {
        let mut all = vec![
            ("accuracy", Some(self.accuracy)),
            ("balanced_accuracy", Some(self.balanced_accuracy)),
            ("macro_f1", Some(self.macro_f1)),
            ("macro_precision", Some(self.macro_precision)),
            ("macro_recall", Some(self.macro_recall)),
            ("kappa", self.kappa),
        ];
        if let Some(p) = &self.positive {
            all.extend([
                ("precision", Some(p.precision)),
                ("recall", Some(p.recall)),
                ("f1", Some(p.f1)),
                ("sensitivity", Some(p.sensitivity)),
                ("specificity", Some(p.specificity)),
                ("roc_auc", p.roc_auc),
            ]);
        }
        all.extend(self.macro_roc_auc.map(|v| ("macro_roc_auc", v)));
        all
    }

    /// The share of this name, where it is defined.
    #[must_use]
    pub fn number(&self, key: &str) -> Option<f64> {
        self.numbers().into_iter().find(|(k, _)| *k == key)?.1
    }

    fn compute(items: &Items, rows: &[usize]) -> Result<Self> {
        let k = items.classes.len();
        let pick = |v: &[usize]| rows.iter().map(|&i| v[i]).collect::<Vec<_>>();
        let (truth, predicted) = (pick(&items.truth), pick(&items.predicted));
        let m = ConfusionMatrix::from_labels(&truth, &predicted, k)?;
        let scores: Option<Vec<f64>> = items
            .scores
            .as_ref()
            .map(|s| rows.iter().flat_map(|&i| s[i * k..(i + 1) * k].to_vec()).collect());
        let auc = |class: usize| -> Result<Option<f64>> {
            let Some(s) = &scores else { return Ok(None) };
            let own: Vec<f64> = s.iter().skip(class).step_by(k).copied().collect();
            Ok(roc_auc(&own, &truth.iter().map(|&t| t == class).collect::<Vec<_>>())?)
        };
        let positive = items
            .positive
            .map(|c| {
                Ok::<_, ClassificationError>(PositiveFigures {
                    positive: items.classes[c].clone(),
                    precision: m.precision(c),
                    recall: m.recall(c),
                    f1: m.f1(c),
                    sensitivity: m.recall(c),
                    specificity: m.specificity(c),
                    roc_auc: auc(c)?,
                })
            })
            .transpose()?;
        let macro_roc_auc = match &scores {
            Some(s) if k > 2 => Some(macro_roc_auc(s, &truth, k)?),
            _ => None,
        };
        let per_class = (0..k)
            .map(|c| {
                Ok(PerClass {
                    class: items.classes[c].clone(),
                    support: m.support(c),
                    predicted: m.predicted(c),
                    precision: m.precision(c),
                    recall: m.recall(c),
                    f1: m.f1(c),
                    specificity: m.specificity(c),
                    roc_auc: auc(c)?,
                })
            })
            .collect::<Result<_>>()?;
        Ok(Self {
            n: m.total(),
            classes: items.classes.clone(),
            accuracy: m.accuracy(),
            balanced_accuracy: m.balanced_accuracy(),
            macro_f1: m.macro_f1(),
            macro_precision: m.macro_precision(),
            macro_recall: m.macro_recall(),
            kappa: m.cohen_kappa(),
            positive,
            macro_roc_auc,
            per_class,
            confusion: m.rows().map(<[u64]>::to_vec).collect(),
        })
    }
}

/// Judges a table of predictions.
///
/// # Errors
/// When a table lacks what is needed, the tables do not join, or the plan does not fit the classes.
pub fn classification(plan: &ClassificationPlan) -> Result<Classification> {
    let table = Table::read(&plan.predictions, &[])?;
    let mut notes = Vec::new();
    let mut items = items::read(plan, &table, &mut notes)?;
    items::join(plan, &table, &mut items)?;
    items::call(plan.threshold, &mut items)?;
    let rows: Vec<usize> = (0..items.truth.len()).collect();
    let split = |name: &Option<String>| -> Result<Option<BTreeMap<String, ClassFigures>>> {
        let Some(name) = name else { return Ok(None) };
        let column = table.column(name)?;
        let mut groups: BTreeMap<String, Vec<usize>> = BTreeMap::new();
        for row in 0..table.len() {
            let group = table
                .cell(row, column)
                .ok_or_else(|| items::wrong(&table, row, column, "is missing"))?;
            groups.entry(group.to_owned()).or_default().push(row);
        }
        let all = groups
            .into_iter()
            .map(|(name, rows)| Ok((name, ClassFigures::compute(&items, &rows)?)))
            .collect::<Result<_>>()?;
        Ok(Some(all))
    };
    let folds = split(&plan.fold)?;
    let domains = split(&plan.domain)?;
    notes.extend(table.misspelt().map(|unread| unread.to_string()));
    Ok(Classification {
        all: ClassFigures::compute(&items, &rows)?,
        largest_f1: items::largest_f1(&items)?,
        threshold: plan.threshold,
        over_folds: folds.as_ref().map(OverFolds::summarise).transpose()?,
        folds,
        domains,
        notes,
    })
}

/// Warnings about items that were in a model's training data. `model` is a name or a folder; without it every
/// bundled package is checked, because a table does not name its model.
///
/// # Errors
/// [`ClassificationError`] when the table cannot be read or `model` is not a package.
pub fn seen_in_training(plan: &ClassificationPlan, model: Option<&Path>) -> Result<Vec<String>> {
    let names = items::names(plan, &Table::read(&plan.predictions, &[])?)?;
    let packages = match model {
        Some(model) => vec![infer::ModelPackage::find(Some(model))?],
        None => {
            let all = infer::ModelPackage::bundled_names();
            all.filter_map(|n| infer::ModelPackage::bundled_named(n).ok()).collect()
        }
    };
    let mut models: BTreeMap<Vec<String>, Vec<String>> = BTreeMap::new();
    for package in packages {
        let listed = super::Listed::from_card(&package.card);
        let known = names.iter().filter(|n| listed.has(n)).cloned().collect();
        models.entry(known).or_default().push(package.card.name);
    }
    let each = models.into_iter().filter_map(|(known, models)| {
        let warning = super::seen::warning(&models.join(", "), "items", &known)?;
        Some(if model.is_some() {
            warning
        } else {
            format!("if they are its predictions: {warning}")
        })
    });
    Ok(each.collect())
}
