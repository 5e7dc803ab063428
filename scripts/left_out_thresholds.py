#!/usr/bin/env python3
"""Each slide at the threshold pair of the two others, and AUCs on the candidates.

usage: left_out_thresholds.py CALIBRATION_FOLDER DATA STAGE
"""
import csv
import math
import sys
from collections import defaultdict
from pathlib import Path

MPP, RADIUS = 0.2456, 7.5
folder, data, stage = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]
truth = defaultdict(list)
for r in csv.DictReader(open(data / "icpr2012/mitoses.csv")):
    truth[Path(r["file"]).stem].append((float(r["cx"]), float(r["cy"])))
found = []
for r in csv.DictReader(open(folder / "candidates.csv")):
    if r["stage"] == stage:
        x, y, f = float(r["x_px"]), float(r["y_px"]), r["frame"]
        hit = next((i for i, p in enumerate(truth[f]) if math.dist(p, (x, y)) * MPP < RADIUS), None)
        found.append((f[:3], float(r["s_seg"]), float(r["s_cls"]), None if hit is None else (f, hit)))


def tally(kept, slides):
    tp = len({s[3] for s in kept if s[3]})
    fp = sum(s[3] is None for s in kept)
    return tp, fp, sum(len(v) for k, v in truth.items() if k[:3] in slides) - tp


def f1(t):
    return 2 * t[0] / max(2 * t[0] + t[1] + t[2], 1)


def at(rows, pair):
    return [s for s in rows if s[1] >= pair[0] and s[2] >= pair[1]]


slides, total = sorted({s[0] for s in found}), [0, 0, 0]
for out in slides:
    others = [s for s in found if s[0] != out]
    pairs = [(a, b) for a in {s[1] for s in others} for b in {s[2] for s in others}]
    pair = max(pairs, key=lambda p: (f1(tally(at(others, p), set(slides) - {out})), p))
    own = [s for s in found if s[0] == out]
    t = tally(at(own, pair), {out})
    total = [a + b for a, b in zip(total, t)]
    pos, neg = ([s[2] for s in own if (s[3] is None) == n] for n in (False, True))
    auc = sum((p > n) + (p == n) / 2 for p in pos for n in neg) / (len(pos) * len(neg))
    print(f"{out}: seg {pair[0]:.3f} cls {pair[1]:.3f} TP {t[0]} FP {t[1]} FN {t[2]}; AUC of s_cls on its candidates {auc:.3f}")
tp, fp, fn = total
print(f"pooled: F1 {f1(total):.3f} precision {tp / (tp + fp):.3f} recall {tp / (tp + fn):.3f}")
