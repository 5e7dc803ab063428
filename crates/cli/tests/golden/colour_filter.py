"""Writes the package `colour_filter`: nine tissue classes told apart by the mean green value alone.

usage: python colour_filter.py

No model: it makes `corpus build --tumour-filter` testable with an answer that is known beforehand. Mean green
below 0.6 is tumour_epithelium, from 0.6 to 0.85 stroma, above background; the other six never win.
"""

import hashlib
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

CLASSES = [
    "adipose",
    "background",
    "debris",
    "lymphocytes",
    "mucus",
    "smooth_muscle",
    "normal_mucosa",
    "stroma",
    "tumour_epithelium",
]


def main() -> None:
    out = Path(__file__).parent / "colour_filter"
    out.mkdir(exist_ok=True)
    weight, bias = np.zeros((3, 9), np.float32), np.full(9, -500, np.float32)
    # Lines in the mean green g whose upper envelope changes at 0.6 and 0.85.
    for name, slope, at_zero in [("tumour_epithelium", 0, 0), ("stroma", 100, -60), ("background", 200, -145)]:
        weight[1, CLASSES.index(name)] = slope
        bias[CLASSES.index(name)] = at_zero
    graph = helper.make_graph(
        [
            helper.make_node("GlobalAveragePool", ["image"], ["pooled"]),
            helper.make_node("Flatten", ["pooled"], ["mean"], axis=1),
            helper.make_node("Gemm", ["mean", "weight", "bias"], ["logits"]),
            helper.make_node("Softmax", ["logits"], ["probability"], axis=1),
        ],
        "colour_filter",
        [helper.make_tensor_value_info("image", TensorProto.FLOAT, ["N", 3, 224, 224])],
        [helper.make_tensor_value_info("probability", TensorProto.FLOAT, ["N", 9])],
        [numpy_helper.from_array(weight, "weight"), numpy_helper.from_array(bias, "bias")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(model, full_check=True)
    data = model.SerializeToString()
    (out / "classifier.onnx").write_bytes(data)
    names = ", ".join(f'"{c}"' for c in CLASSES)
    (out / "card.toml").write_text(
        f"""schema = 1
name = "colour-filter"
license = "MIT OR Apache-2.0; no model, made for tests"

[classifier]
file = "classifier.onnx"
sha256 = "{hashlib.sha256(data).hexdigest()}"
architecture = "mean colour"
mpp = 0.25
crop = 224
input = 224
mean = [0.0, 0.0, 0.0]
std = [1.0, 1.0, 1.0]
classes = [{names}]
positive = "tumour_epithelium"
"""
    )


if __name__ == "__main__":
    main()
