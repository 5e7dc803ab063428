"""Draws a dataset in the layout of MIDOG++: OUT/images/001.tiff ... and OUT/MIDOG++.json.

    python3 midog_layout.py OUT [--images 4] [--side 640] [--figures 2]

The figures are drawn by `mithras demo`, which has to be on PATH: this replaces MIDOG++ and
means nothing for it. As there, boxes have 50 px and are written x1, y1, x2, y2.
"""

import argparse
import csv
import json
import subprocess
import tempfile
from pathlib import Path

parser = argparse.ArgumentParser()
parser.add_argument("out", type=Path)
parser.add_argument("--images", type=int, default=4)
parser.add_argument("--side", type=int, default=640)
parser.add_argument("--figures", type=int, default=2)
a = parser.parse_args()

images, annotations = [], []
(a.out / "images").mkdir(parents=True, exist_ok=True)
for n in range(1, a.images + 1):
    name = f"{n:03}.tiff"
    with tempfile.TemporaryDirectory(dir=a.out) as drawn:
        flags = [f"--size={a.side},{a.side}", f"--figures={a.figures}", f"--seed={n}"]
        command = ["mithras", "demo", "--draw-only", "--out", drawn, *flags]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        (Path(drawn) / "drawn.tiff").rename(a.out / "images" / name)
        with open(Path(drawn) / "truth.csv", encoding="utf-8") as table:
            for row in csv.DictReader(table):
                x, y = round(float(row["x_px"])), round(float(row["y_px"]))
                annotations.append({
                    "id": len(annotations) + 1,
                    "image_id": n,
                    "category_id": 1 if row["kind"] == "mitotic" else 2,
                    "bbox": [x - 25, y - 25, x + 25, y + 25],
                })
    images.append({"id": n, "file_name": name, "width": a.side, "height": a.side, "tumor_type": "drawn"})
categories = [{"id": 1, "name": "mitotic figure"}, {"id": 2, "name": "not mitotic figure"}]
labels = {"images": images, "categories": categories, "annotations": annotations}
(a.out / "MIDOG++.json").write_text(json.dumps(labels), encoding="utf-8")
print(f"{a.out}: {len(images)} images, {len(annotations)} labels")
