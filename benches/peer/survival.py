"""Survival statistics next to their peers, on the same tables, in one run.

    python benches/peer/survival.py [--replicates 20] [--json FILE]

Needs lifelines, scikit-survival, R with package survival, and cargo. One thread each, processor
seconds (not wall time), best of several. The peers' bootstrap is timed on a few replicates and
scaled to 1,000; a replicate's cost does not depend on how many there are.
"""

import argparse
import json
import os
import pathlib
import subprocess
import tempfile
import time

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[name] = "1"

import numpy as np
import pandas as pd
from lifelines.utils import concordance_index
from sksurv.metrics import concordance_index_censored

root = pathlib.Path(__file__).resolve().parents[2]


def tables(folder):
    rng = np.random.default_rng(1)
    n = 10_000
    risk = rng.normal(size=n)
    t = rng.exponential(np.exp(-0.5 * risk))
    censor = rng.exponential(1.0, n)
    pd.DataFrame({
        "time": np.minimum(t, censor), "event": (t <= censor).astype(int), "risk": risk,
        "count": rng.poisson(np.exp(1.5 + 0.6 * risk)),
    }).to_csv(folder / "concordance.csv", index=False)
    n = 100_000
    x = rng.normal(size=(n, 10))
    x[:, 5:] = (x[:, 5:] > 0).astype(float)
    beta = np.linspace(-0.5, 0.5, 10)
    t = rng.exponential(np.exp(-x @ beta))
    censor = rng.exponential(1.5, n)
    table = pd.DataFrame(x, columns=[f"x{i}" for i in range(10)])
    table.insert(0, "event", (t <= censor).astype(int))
    table.insert(0, "time", np.ceil(np.minimum(t, censor) * 2000) / 2000)
    table.to_csv(folder / "cox.csv", index=False)


def replicate(function, t, e, r, count):
    rng = np.random.default_rng(0)
    n = len(t)
    start = time.process_time()
    for _ in range(count):
        i = rng.integers(0, n, n)
        function(t[i], e[i], r[i])
    return (time.process_time() - start) / count * 1000


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--replicates", type=int, default=20)
    parser.add_argument("--json", type=pathlib.Path)
    parser.add_argument("--binary", help="the built benchmark, instead of calling cargo")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        tables(folder)
        command = [args.binary, name] if args.binary else ["cargo", "bench", "-q", "-p", "mithras-stats", "--bench", "survival", "--", name]
        own = json.loads(subprocess.run(command, cwd=root, check=True, capture_output=True).stdout)
        script = pathlib.Path(__file__).with_suffix(".R")
        r = json.loads(subprocess.run(["Rscript", str(script), name], check=True,
                                      capture_output=True).stdout)
        d = pd.read_csv(folder / "concordance.csv")
        t, e = d.time.to_numpy(), d.event.to_numpy().astype(bool)
        rows = []
        for risk, column in (("continuous", "risk"), ("counts", "count")):
            v = d[column].to_numpy().astype(float)
            ours = own["concordance"][risk]
            # Near-ties: mithras (as R) merges times within 1.5e-8, scikit-survival risks within 1e-8.
            assert abs(ours["c"] - concordance_index_censored(e, t, v)[0]) < 1e-6
            life = replicate(lambda t, e, v: concordance_index(t, -v, e), t, e, v, args.replicates)
            sk = replicate(lambda t, e, v: concordance_index_censored(e, t, v), t, e, v,
                           max(3, args.replicates // 4))
            rows.append((f"1,000 bootstraps of C, n = 10,000, {risk}", ours["seconds_per_1000"],
                         {"lifelines": life, "scikit-survival": sk}))
        for ties in ("efron", "breslow"):
            ours = own["cox"][ties]
            assert abs(ours["loglik"] / r[ties]["loglik"] - 1) < 1e-9
            assert abs(ours["c"] - r[ties]["c"]) < 1e-9
            rows.append((f"Cox, n = 100,000 x 10, {ties}, with C", ours["seconds"],
                         {"R coxph": r[ties]["seconds"]}))
            rows.append((f"Cox, n = 100,000 x 10, {ties}, fit alone", ours["seconds_fit_alone"],
                         {"R coxph.fit": r[ties]["seconds_fit_alone"]}))
    print(f"{'task':<48} {'mithras s':>10}  peers (s, times slower)")
    for task, ours, peers in rows:
        shown = ", ".join(f"{k} {v:.2f} ({v / ours:.1f}x)" for k, v in peers.items())
        print(f"{task:<48} {ours:>10.3f}  {shown}")
    if args.json:
        args.json.write_text(json.dumps(rows, indent=1))


main()
