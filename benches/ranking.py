"""How runs of `evaluate robustness` on the same images rank their candidates, under every change.

    python benches/ranking.py ROBUSTNESS...

Prints the average precision of `s_cls` times the share of figures that have a candidate, and the AUC, of every folder,
and of the mean logit of all of them at the candidates of the first. The runs need one first stage: a candidate has the
score of another run's nearest within 12 um, and where that has none its own.
"""

import collections
import csv
import json
import pathlib
import sys

import numpy as np
from sklearn.metrics import average_precision_score, roc_auc_score

# Candidates nearer to each other are one (`min_separation_um` of a card).
APART = 12.0


def read(folder):
    """Figures in all, and by change what is a figure, the logit and the place of each candidate."""
    folder = pathlib.Path(folder)
    figures = json.loads((folder / "robustness.json").read_text())["figures"]
    by = collections.defaultdict(list)
    with open(folder / "candidates.csv") as table:
        for r in csv.DictReader(table):
            p = np.clip(float(r["s_cls"]), 1e-5, 1 - 1e-5)
            by[r["perturbation"]].append((r["image"], float(r["x_um"]), float(r["y_um"]), r["figure"] == "true", np.log(p / (1 - p))))
    return figures, by


def show(name, figures, by):
    ap, auc = {}, []
    for change, rows in by.items():
        y, s = np.array([r[3] for r in rows]), np.array([r[4] for r in rows])
        ap[change] = average_precision_score(y, s) * y.sum() / figures
        auc.append(roc_auc_score(y, s))
    print(f"{name}: AP {np.mean(list(ap.values())):.3f}, AUC {np.mean(auc):.3f} in the mean; AP " + ", ".join(f"{c} {v:.3f}" for c, v in ap.items()))


def nearest(rows, row):
    """The logit of the candidate of `rows` that is the same as this one."""
    image, x, y, _, own = row
    near = [(np.hypot(r[1] - x, r[2] - y), r[4]) for r in rows if r[0] == image]
    distance, logit = min(near, default=(np.inf, own))
    return logit if distance <= APART else own


def mean(runs):
    """The first run's candidates with the mean logit, by change."""
    return {
        change: [(*row[:4], np.mean([nearest(run[change], row) for run in runs])) for row in rows]
        for change, rows in runs[0].items()
        if all(change in run for run in runs)
    }


def main():
    runs = {name: read(name) for name in sys.argv[1:]}
    if not runs:
        sys.exit(__doc__)
    for name, (figures, by) in runs.items():
        show(name, figures, by)
    if len(runs) > 1:
        show("mean logit of all", figures, mean([by for _, by in runs.values()]))


main()
