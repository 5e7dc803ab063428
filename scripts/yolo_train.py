#!/usr/bin/env python3
"""Trains YOLOv10n from seeded random weights on one fold that `corpus export --format yolo` wrote, on one thread, and
exports it to ONNX without suppression, for `mithras detectors import`.

  pip install ultralytics onnx onnxslim     (AGPL; not needed by the project, and not among its requirements)
  yolo_train.py EXPORTED OUT [--epochs N] [--batch N] [--seed N]

Only windows with at least one box (a figure or a look-alike) are used: the others are most of the work and have no
nucleus that was judged. The last epoch is kept; the held-out side is not looked at. A stopped training continues from
its last epoch.
"""
import argparse
import os
import pathlib
import shutil
import time

os.environ["OMP_NUM_THREADS"] = "1"


def main():
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument("exported", type=pathlib.Path)
    a.add_argument("out", type=pathlib.Path)
    a.add_argument("--epochs", type=int, default=24)
    a.add_argument("--batch", type=int, default=16)
    a.add_argument("--seed", type=int, default=0)
    a = a.parse_args()
    import torch
    import yaml
    from PIL import Image
    from ultralytics import YOLO

    torch.set_num_threads(1)
    root, out = a.exported.resolve(), a.out.resolve()
    out.mkdir(parents=True, exist_ok=True)
    data = yaml.safe_load((root / "data.yaml").read_text())
    windows = [w for w in sorted((root / "images/train").glob("*.png"))
               if (root / "labels/train" / (w.stem + ".txt")).read_text().strip()]
    (out / "windows.txt").write_text("".join(f"{w}\n" for w in windows))
    data.update(path=str(root), train=str(out / "windows.txt"))
    (out / "data.yaml").write_text(yaml.safe_dump(data))
    size = Image.open(windows[0]).size[0]
    print(f"{len(windows)} windows of {size} px", flush=True)
    start = time.time()
    last = out / "run/weights/last.pt"
    model = YOLO(last if last.exists() else "yolov10n.yaml")
    model.train(
        resume=last.exists(),
        data=str(out / "data.yaml"), imgsz=size, epochs=a.epochs, batch=a.batch, seed=a.seed, deterministic=True,
        device="cpu", workers=0, amp=False, val=False, plots=False, project=str(out), name="run", exist_ok=True,
        optimizer="AdamW", lr0=2e-3, cos_lr=True, warmup_epochs=1, nbs=a.batch, mosaic=0.0, erasing=0.0, scale=0.2,
        flipud=0.5, fliplr=0.5, hsv_h=0.05, hsv_s=0.5, hsv_v=0.3)
    print(f"trained in {time.time() - start:.0f} s", flush=True)
    written = YOLO(out / "run/weights/last.pt").export(format="onnx", imgsz=640, nms=False)
    shutil.move(written, out / "best.onnx")


if __name__ == "__main__":
    main()
