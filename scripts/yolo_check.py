#!/usr/bin/env python3
"""Trains an Ultralytics YOLOv10 of seeded weights for a few steps on what `corpus export --format yolo` wrote,
exports it to ONNX in both forms, and writes what Ultralytics itself finds with them on the held-out windows.

  pip install ultralytics onnx onnxslim     (not needed by the project, and not among its requirements)
  yolo_check.py EXPORTED OUT [--epochs N] [--width W]

OUT/rows.onnx and OUT/columns.onnx go into `mithras detectors import`; OUT/rows.json and OUT/columns.json
hold, per held-out window, the boxes of Ultralytics' own prediction: [x0, y0, x1, y1, score, class].
"""
import argparse
import json
import pathlib
import shutil

import yaml
from PIL import Image


def main():
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument("exported", type=pathlib.Path)
    a.add_argument("out", type=pathlib.Path)
    a.add_argument("--epochs", type=int, default=20)
    a.add_argument("--width", type=float, default=0.125, help="of 0.25, which is YOLOv10n")
    a = a.parse_args()
    import ultralytics
    from ultralytics import YOLO

    a.out.mkdir(parents=True, exist_ok=True)
    root = a.exported.resolve()
    data = yaml.safe_load((root / "data.yaml").read_text())
    data["path"] = str(root)
    (a.out / "data.yaml").write_text(yaml.safe_dump(data))
    given = pathlib.Path(ultralytics.__file__).parent / "cfg/models/v10/yolov10n.yaml"
    model = yaml.safe_load(given.read_text())
    model["scales"]["n"][1] = a.width
    (a.out / "yolov10n-small.yaml").write_text(yaml.safe_dump(model))
    windows = sorted((root / "images/val").glob("*.png"))
    side = Image.open(windows[0]).size[0]
    yolo = YOLO(str(a.out / "yolov10n-small.yaml"), task="detect")
    yolo.train(
        data=str(a.out / "data.yaml"), epochs=a.epochs, imgsz=side, batch=16, seed=1, deterministic=True,
        device="cpu", workers=0, project=str(a.out.resolve()), name="run", exist_ok=True, pretrained=False,
        plots=False, optimizer="AdamW", lr0=2e-3, warmup_epochs=1, mosaic=0.5, verbose=False,
    )
    for name, nms in [("rows", False), ("columns", None)]:
        # False keeps YOLOv10's own head, which needs no suppression of neighbours.
        best = YOLO(str(a.out / "run/weights/best.pt"))
        file = best.export(format="onnx", imgsz=side, opset=17, simplify=False, dynamic=False, nms=nms)
        onnx = a.out / f"{name}.onnx"
        shutil.move(file, onnx)
        exported = YOLO(str(onnx), task="detect")
        found = {}
        for path in windows:
            result = exported.predict(str(path), imgsz=side, conf=0.001, device="cpu", verbose=False)[0]
            found[path.name] = [[float(v) for v in row] for row in result.boxes.data.tolist()]
        (a.out / f"{name}.json").write_text(json.dumps(found))
        print(onnx)


if __name__ == "__main__":
    main()
