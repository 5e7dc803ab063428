"""Writes an invented cohort: counts.csv as `mithras detect` writes it, and clinical.csv.

    python3 cohort.py OUT [--cases 120]

In it, death comes the earlier the more figures there are and the older a person is; nothing else is true.
"""

import argparse
import math
import random
from pathlib import Path

parser = argparse.ArgumentParser()
parser.add_argument("out", type=Path)
parser.add_argument("--cases", type=int, default=120)
a = parser.parse_args()

draw = random.Random(1)
counts = ["slide,status,figures,hotspot_count,density_per_20_mm2,analysed_mm2"]
clinical = ["case,months,dead,age,grade,part"]
for n in range(1, a.cases + 1):
    age = 40 + int(45 * draw.random())
    hotspot = int(2 ** (5 * draw.random())) - 1
    area = 20 + 80 * draw.random()
    figures = round(hotspot * (1 + draw.random()) * area / 20)
    rate = 0.01 * math.exp(0.06 * hotspot + 0.03 * (age - 60))
    death, end = -math.log(1 - draw.random()) / rate, 24 + 96 * draw.random()
    counts.append(f"CASE-{n:03}-01,finished,{figures},{hotspot},{20 * figures / area:.3f},{area:.3f}")
    part = "train" if n % 2 else "test"
    grade = 1 + (hotspot > 3) + (hotspot > 10)
    clinical.append(f"CASE-{n:03},{min(death, end):.1f},{int(death < end)},{age},G{grade},{part}")
a.out.mkdir(parents=True, exist_ok=True)
(a.out / "counts.csv").write_text("\n".join(counts) + "\n", encoding="utf-8")
(a.out / "clinical.csv").write_text("\n".join(clinical) + "\n", encoding="utf-8")
print(f"{a.out}: {a.cases} cases, invented")
