//! Classification metrics, equal to scikit-learn's with `zero_division=0`.
//!
//! Everything but ROC-AUC is read off one [`ConfusionMatrix`] matrix: rows are the truth, columns the
//! prediction. A ratio whose denominator is zero is zero, by the paper's protocol; ROC-AUC,
//! which has no sensible zero, is absent instead.

use crate::error::{StatsError, same_length};

/// Counts of (truth, prediction) pairs over `classes` classes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfusionMatrix {
    classes: usize,
    counts: Vec<u64>,
}

impl ConfusionMatrix {
    /// An empty matrix over `classes` classes.
    ///
    /// # Errors
    /// When `classes` is zero.
    pub fn new(classes: usize) -> Result<Self, StatsError> {
        if classes == 0 {
            return Err(StatsError::Empty { what: "classes" });
        }
        Ok(Self { classes, counts: vec![0; classes * classes] })
    }

    /// Counts `truth[i]` against `predicted[i]`; both in `0..classes`.
    ///
    /// # Errors
    /// When the lengths differ, nothing is given, or a label is out of range.
    pub fn from_labels(
        truth: &[usize],
        predicted: &[usize],
        classes: usize,
    ) -> Result<Self, StatsError> {
        same_length("truth and prediction", truth.len(), predicted.len())?;
        if truth.is_empty() {
            return Err(StatsError::Empty { what: "labels" });
        }
        let mut matrix = Self::new(classes)?;
        for (index, (&t, &p)) in truth.iter().zip(predicted).enumerate() {
            for label in [t, p] {
                if label >= classes {
                    return Err(StatsError::Label { index, label, classes });
                }
            }
            matrix.counts[t * classes + p] += 1;
        }
        Ok(matrix)
    }

    /// Number of classes.
    #[must_use]
    pub fn classes(&self) -> usize {
        self.classes
    }

    /// Items of class `truth` predicted as `predicted`.
    ///
    /// # Panics
    /// When a class is out of range.
    #[must_use]
    pub fn count(&self, truth: usize, predicted: usize) -> u64 {
        assert!(truth < self.classes && predicted < self.classes, "class out of range");
        self.counts[truth * self.classes + predicted]
    }

    /// The matrix, row by row (row = truth).
    pub fn rows(&self) -> impl Iterator<Item = &[u64]> {
        self.counts.chunks_exact(self.classes)
    }

    /// All items.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// Items whose truth is `class`.
    #[must_use]
    pub fn support(&self, class: usize) -> u64 {
        (0..self.classes).map(|p| self.count(class, p)).sum()
    }

    /// Items predicted as `class`.
    #[must_use]
    pub fn predicted(&self, class: usize) -> u64 {
        (0..self.classes).map(|t| self.count(t, class)).sum()
    }

    /// Adds another matrix over the same classes (folds, domains).
    ///
    /// # Errors
    /// When the numbers of classes differ.
    pub fn add(&mut self, other: &Self) -> Result<(), StatsError> {
        same_length("classes", self.classes, other.classes)?;
        for (a, b) in self.counts.iter_mut().zip(&other.counts) {
            *a += b;
        }
        Ok(())
    }

    /// Correct items over all items; zero without items.
    #[must_use]
    pub fn accuracy(&self) -> f64 {
        ratio((0..self.classes).map(|c| self.count(c, c)).sum(), self.total())
    }

    /// TP / (TP + FP) of `class`; zero when nothing was predicted as it.
    #[must_use]
    pub fn precision(&self, class: usize) -> f64 {
        ratio(self.count(class, class), self.predicted(class))
    }

    /// TP / (TP + FN) of `class` (its sensitivity); zero when it has no items.
    #[must_use]
    pub fn recall(&self, class: usize) -> f64 {
        ratio(self.count(class, class), self.support(class))
    }

    /// 2 TP / (2 TP + FP + FN) of `class`; zero when it occurs nowhere.
    #[must_use]
    pub fn f1(&self, class: usize) -> f64 {
        let tp = self.count(class, class);
        ratio(2 * tp, self.support(class) + self.predicted(class))
    }

    /// TN / (TN + FP) of `class` against all others; zero without others.
    #[must_use]
    pub fn specificity(&self, class: usize) -> f64 {
        let negatives = self.total() - self.support(class);
        let false_positives = self.predicted(class) - self.count(class, class);
        ratio(negatives - false_positives, negatives)
    }

    /// Mean F1 over the classes that occur in truth or prediction; zero without items.
    #[must_use]
    pub fn macro_f1(&self) -> f64 {
        self.mean_over(|c| self.support(c) + self.predicted(c) > 0, |c| self.f1(c))
    }

    /// Mean precision over the classes that occur in truth or prediction.
    #[must_use]
    pub fn macro_precision(&self) -> f64 {
        self.mean_over(|c| self.support(c) + self.predicted(c) > 0, |c| self.precision(c))
    }

    /// Mean recall over the classes that occur in truth or prediction.
    #[must_use]
    pub fn macro_recall(&self) -> f64 {
        self.mean_over(|c| self.support(c) + self.predicted(c) > 0, |c| self.recall(c))
    }

    /// Mean recall over the classes that occur in truth, as scikit-learn's
    /// `balanced_accuracy_score`; zero without items.
    #[must_use]
    pub fn balanced_accuracy(&self) -> f64 {
        self.mean_over(|c| self.support(c) > 0, |c| self.recall(c))
    }

    /// Cohen's kappa between rows and columns, unweighted: (p_o - p_e) / (1 - p_e).
    ///
    /// `None` where chance agreement is already perfect (one class only) or without items.
    ///
    /// Reference: Cohen, Educ. Psychol. Meas. 20 (1960) 37-46.
    #[must_use]
    pub fn cohen_kappa(&self) -> Option<f64> {
        let n = self.total() as f64;
        let observed: u64 = (0..self.classes).map(|c| self.count(c, c)).sum();
        let expected: f64 = (0..self.classes)
            .map(|c| self.support(c) as f64 * self.predicted(c) as f64)
            .sum::<f64>()
            / n;
        (n > 0.0 && expected < n).then(|| (observed as f64 - expected) / (n - expected))
    }

    fn mean_over(&self, keep: impl Fn(usize) -> bool, score: impl Fn(usize) -> f64) -> f64 {
        let (sum, n) = (0..self.classes)
            .filter(|&c| keep(c))
            .fold((0.0, 0_u32), |(sum, n), c| (sum + score(c), n + 1));
        if n == 0 { 0.0 } else { sum / f64::from(n) }
    }
}

fn ratio(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

fn check_scores(scores: &[f64], positive: &[bool]) -> Result<(), StatsError> {
    same_length("scores and labels", scores.len(), positive.len())?;
    if scores.is_empty() {
        return Err(StatsError::Empty { what: "scores" });
    }
    match scores.iter().enumerate().find(|(_, s)| !s.is_finite()) {
        Some((index, &value)) => Err(StatsError::NotFinite { what: "scores", index, value }),
        None => Ok(()),
    }
}

/// The threshold on a score with the largest F1, halfway between two neighbouring scores; of equal
/// ones the highest. With it comes that F1. `None` without positives.
///
/// # Errors
/// As [`roc_auc`].
pub fn f1_threshold(scores: &[f64], positive: &[bool]) -> Result<Option<(f64, f64)>, StatsError> {
    check_scores(scores, positive)?;
    let positives = positive.iter().filter(|&&p| p).count();
    let mut order: Vec<usize> = (0..scores.len()).collect();
    order.sort_unstable_by(|&a, &b| scores[b].total_cmp(&scores[a]));
    let (mut called, mut tp, mut best) = (0, 0, None);
    for tied in order.chunk_by(|&a, &b| scores[a] == scores[b]) {
        called += tied.len();
        tp += tied.iter().filter(|&&i| positive[i]).count();
        let f1 = 2.0 * tp as f64 / (positives + called) as f64;
        if tp > 0 && best.is_none_or(|(_, most)| f1 > most) {
            let here = scores[tied[0]];
            let threshold = order.get(called).map_or(here, |&i| f64::midpoint(here, scores[i]));
            best = Some((threshold, f1));
        }
    }
    Ok(best)
}

/// Area under the ROC curve: the chance that a random positive scores above a random negative,
/// ties counting half (Mann-Whitney). `None` where one of the two classes is missing.
///
/// # Errors
/// When the lengths differ, nothing is given, or a score is not finite.
pub fn roc_auc(scores: &[f64], positive: &[bool]) -> Result<Option<f64>, StatsError> {
    check_scores(scores, positive)?;
    let positives = positive.iter().filter(|&&p| p).count() as u128;
    let negatives = positive.len() as u128 - positives;
    if positives == 0 || negatives == 0 {
        return Ok(None);
    }
    let mut order: Vec<usize> = (0..scores.len()).collect();
    order.sort_unstable_by(|&a, &b| scores[a].total_cmp(&scores[b]));
    let (mut below, mut twice) = (0_u128, 0_u128);
    for tied in order.chunk_by(|&a, &b| scores[a] == scores[b]) {
        let p = tied.iter().filter(|&&i| positive[i]).count() as u128;
        let n = tied.len() as u128 - p;
        twice += p * (2 * below + n);
        below += n;
    }
    Ok(Some(twice as f64 / (2 * positives * negatives) as f64))
}

/// One-against-rest mean of [`roc_auc`] over the classes for which it exists; `None` if none does.
/// `scores[i * classes + c]` is the score of item `i` for class `c`.
///
/// # Errors
/// As [`roc_auc`], and when `scores` is not `truth.len() * classes` long.
pub fn macro_roc_auc(
    scores: &[f64],
    truth: &[usize],
    classes: usize,
) -> Result<Option<f64>, StatsError> {
    same_length("scores and labels x classes", scores.len(), truth.len() * classes)?;
    let mut found = Vec::new();
    for class in 0..classes {
        let column: Vec<f64> = scores.iter().skip(class).step_by(classes).copied().collect();
        let positive: Vec<bool> = truth.iter().map(|&t| t == class).collect();
        found.extend(roc_auc(&column, &positive)?);
    }
    Ok((!found.is_empty()).then(|| found.iter().sum::<f64>() / found.len() as f64))
}

/// The figures of a two-class problem for its positive class (and the atypical-figure
/// convention of balanced accuracy, sensitivity and specificity).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BinaryReport {
    /// Correct over all.
    pub accuracy: f64,
    /// TP / (TP + FP), zero if undefined.
    pub precision: f64,
    /// TP / (TP + FN), zero if undefined; also called sensitivity.
    pub recall: f64,
    /// F1 of the positive class, zero if undefined.
    pub f1: f64,
    /// Mean recall over the classes in the truth.
    pub balanced_accuracy: f64,
    /// Recall of the positive class.
    pub sensitivity: f64,
    /// TN / (TN + FP), zero if undefined.
    pub specificity: f64,
    /// Area under the ROC curve, absent where undefined or where no scores were given.
    pub roc_auc: Option<f64>,
    /// True positives.
    pub true_positive: u64,
    /// False positives.
    pub false_positive: u64,
    /// False negatives.
    pub false_negative: u64,
    /// True negatives.
    pub true_negative: u64,
}

/// All two-class figures at once from decisions and, where there are any, scores of the positive
/// class.
///
/// # Errors
/// As [`ConfusionMatrix::from_labels`] and [`roc_auc`].
pub fn binary_report(
    truth: &[bool],
    predicted: &[bool],
    scores: Option<&[f64]>,
) -> Result<BinaryReport, StatsError> {
    let index = |labels: &[bool]| labels.iter().map(|&b| usize::from(b)).collect::<Vec<_>>();
    let matrix = ConfusionMatrix::from_labels(&index(truth), &index(predicted), 2)?;
    Ok(BinaryReport {
        accuracy: matrix.accuracy(),
        precision: matrix.precision(1),
        recall: matrix.recall(1),
        f1: matrix.f1(1),
        balanced_accuracy: matrix.balanced_accuracy(),
        sensitivity: matrix.recall(1),
        specificity: matrix.specificity(1),
        roc_auc: scores.map_or(Ok(None), |s| roc_auc(s, truth))?,
        true_positive: matrix.count(1, 1),
        false_positive: matrix.count(0, 1),
        false_negative: matrix.count(1, 0),
        true_negative: matrix.count(0, 0),
    })
}

/// Mean and sample standard deviation over folds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Summary {
    /// How many values.
    pub n: usize,
    /// Arithmetic mean.
    pub mean: f64,
    /// Standard deviation with denominator `n - 1`; absent for a single value.
    pub sd: Option<f64>,
}

/// Mean and sample standard deviation (denominator n - 1).
///
/// # Errors
/// When nothing is given or a value is not finite.
pub fn summarize(values: &[f64]) -> Result<Summary, StatsError> {
    if values.is_empty() {
        return Err(StatsError::Empty { what: "fold values" });
    }
    if let Some((index, &value)) = values.iter().enumerate().find(|(_, v)| !v.is_finite()) {
        return Err(StatsError::NotFinite { what: "fold values", index, value });
    }
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let squares: f64 = values.iter().map(|v| (v - mean).powi(2)).sum();
    let sd = (values.len() > 1).then(|| (squares / (n - 1.0)).sqrt());
    Ok(Summary { n: values.len(), mean, sd })
}
