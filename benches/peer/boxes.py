"""A YOLO over the tissue of a slide with OpenVINO, the way one writes it in Python: what a user would pick for speed.

    python boxes.py SLIDE --onnx FILE --out FOLDER [--mpp 0.5] [--threads N]

Otsu tissue as in detect.py, windows of 640 px at stride 600, boxes above 0.25 whose centre is not within 7.5 um of a
higher one's. FILE: `YOLO("yolo11n.yaml").export(format="onnx", imgsz=640)` of Ultralytics; time does not depend on
weights, so the boxes mean nothing. Prints one JSON line.
"""

import argparse
import csv
import json
import math
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import openslide
import openvino
from PIL import Image
from scipy.spatial import cKDTree

from detect import tissue

SIDE, STRIDE, LEAST, APART_UM = 640, 600, 0.25, 7.5


def main():
    p = argparse.ArgumentParser()
    p.add_argument("slide")
    p.add_argument("--onnx", required=True)
    p.add_argument("--out", required=True)
    p.add_argument("--mpp", type=float, default=0.5)
    p.add_argument("--threads", type=int, default=0)
    a = p.parse_args()
    begin = time.perf_counter()
    core = openvino.Core()
    config = {"PERFORMANCE_HINT": "THROUGHPUT", "INFERENCE_PRECISION_HINT": "f32"}
    if a.threads:
        config["INFERENCE_NUM_THREADS"] = a.threads
    network = core.compile_model(core.read_model(a.onnx), "CPU", config)
    slide = openslide.OpenSlide(a.slide)
    scale = a.mpp / float(slide.properties[openslide.PROPERTY_NAME_MPP_X])
    mask, step = tissue(slide, a.mpp / scale)
    side = round(SIDE * scale)
    corners = [(x, y) for y in range(0, slide.dimensions[1], round(STRIDE * scale))
               for x in range(0, slide.dimensions[0], round(STRIDE * scale))
               if mask[int(y / step):math.ceil((y + side) / step), int(x / step):math.ceil((x + side) / step)].any()]

    def window(corner):
        patch = slide.read_region(corner, 0, (side, side)).convert("RGB").resize((SIDE, SIDE), Image.BILINEAR)
        return np.ascontiguousarray(np.asarray(patch, np.float32).transpose(2, 0, 1)[None] / 255)

    boxes = []

    def done(request, corner):
        rows = request.get_output_tensor(0).data[0]
        score = rows[4:].max(axis=0)
        for k in np.flatnonzero(score >= LEAST):
            boxes.append((float(score[k]), corner[0] + rows[0, k] * scale, corner[1] + rows[1, k] * scale))

    queue = openvino.AsyncInferQueue(network)
    queue.set_callback(done)
    with ThreadPoolExecutor(1) as reader:
        for corner, pixels in zip(corners, reader.map(window, corners)):
            queue.start_async({0: pixels}, corner)
    queue.wait_all()
    boxes.sort(reverse=True)
    kept, left = [], set(range(len(boxes)))
    if boxes:
        tree = cKDTree([b[1:] for b in boxes])
        for k in range(len(boxes)):
            if k in left:
                left -= set(tree.query_ball_point(boxes[k][1:], APART_UM / a.mpp * scale))
                kept.append(boxes[k])
    out = Path(a.out)
    out.mkdir(parents=True, exist_ok=True)
    with open(out / "detections.csv", "w", newline="") as f:
        rows = csv.writer(f)
        rows.writerow(["x_px", "y_px", "s_seg", "s_cls", "accepted"])
        rows.writerows([x, y, s, "", True] for s, x, y in kept)
    print(json.dumps({"windows": len(corners), "boxes": len(kept), "total_s": round(time.perf_counter() - begin, 3)}))


if __name__ == "__main__":
    main()
