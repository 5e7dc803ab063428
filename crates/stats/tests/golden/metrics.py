"""Golden values of classification metrics and intervals: scikit-learn, statsmodels-free.

python crates/stats/tests/golden/metrics.py > crates/stats/tests/golden/metrics.json
"""

import json
import warnings

import numpy as np
import sklearn
from scipy.stats import binomtest
from sklearn import metrics as m

warnings.filterwarnings("ignore")
rng = np.random.default_rng(20)


def multi(truth, predicted, classes):
    z = {"zero_division": 0}
    labels = list(range(classes))
    kappa = m.cohen_kappa_score(truth, predicted)
    return {
        "classes": classes,
        "truth": truth,
        "predicted": predicted,
        "confusion": m.confusion_matrix(truth, predicted, labels=labels).tolist(),
        "accuracy": m.accuracy_score(truth, predicted),
        "precision": m.precision_score(truth, predicted, labels=labels, average=None, **z).tolist(),
        "recall": m.recall_score(truth, predicted, labels=labels, average=None, **z).tolist(),
        "f1": m.f1_score(truth, predicted, labels=labels, average=None, **z).tolist(),
        "macro_precision": m.precision_score(truth, predicted, average="macro", **z),
        "macro_recall": m.recall_score(truth, predicted, average="macro", **z),
        "macro_f1": m.f1_score(truth, predicted, average="macro", **z),
        "balanced_accuracy": m.balanced_accuracy_score(truth, predicted),
        "kappa": None if np.isnan(kappa) else kappa,
    }


def binary(truth, scores):
    predicted = [int(s > 0.5) for s in scores]
    both = len(set(truth)) == 2
    return {
        "truth": truth,
        "scores": scores,
        "accuracy": m.accuracy_score(truth, predicted),
        "precision": m.precision_score(truth, predicted, zero_division=0),
        "recall": m.recall_score(truth, predicted, zero_division=0),
        "f1": m.f1_score(truth, predicted, zero_division=0),
        "specificity": m.recall_score(truth, predicted, pos_label=0, zero_division=0),
        "balanced_accuracy": m.balanced_accuracy_score(truth, predicted),
        "roc_auc": m.roc_auc_score(truth, scores) if both else None,
    }


def labels(classes, n):
    return rng.integers(0, classes, n).tolist()


cases = [multi(labels(k, n), labels(k, n), k) for k, n in [(2, 40), (3, 100), (8, 60), (8, 9)]]
cases.append(multi([0, 0, 2, 2], [0, 2, 2, 5], 6))
cases.append(multi([1, 1, 1], [1, 1, 1], 3))
cases.append(multi([0, 1], [1, 0], 2))

two = []
for n in (5, 50, 301):
    two.append(binary(labels(2, n), np.round(rng.random(n), 1).tolist()))
    two.append(binary(labels(2, n), rng.random(n).tolist()))
two.append(binary([0, 0, 0], [0.1, 0.9, 0.5]))
two.append(binary([1, 1], [0.1, 0.2]))
two.append(binary([0, 1], [0.5, 0.5]))

wilson = []
for k, n in [(8, 199), (55, 280), (0, 10), (10, 10), (1, 1), (30, 30), (399, 420), (1, 100000)]:
    for level in (0.9, 0.95, 0.99):
        i = binomtest(k, n).proportion_ci(level, method="wilson")
        wilson.append([k, n, level, i.low, i.high])

values = rng.normal(size=37).tolist()
json.dump(
    {
        "made_with": f"scikit-learn {sklearn.__version__}",
        "multi": cases,
        "binary": two,
        "wilson": wilson,
        "values": values,
        "mean": float(np.mean(values)),
        "sd": float(np.std(values, ddof=1)),
        "quantiles": [[q, float(np.quantile(values, q))] for q in (0, 0.025, 0.25, 0.5, 0.9, 0.975, 1)],
    },
    __import__("sys").stdout,
)
print()
