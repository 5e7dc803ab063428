"""Runs an ONNX file in every engine installed: run_onnx.py MODEL CASES.

CASES is a safetensors file with `image.<i>` and `expected.<i>`. Prints {engine: largest difference}
as JSON.
"""

import json
import sys

import numpy as np
from safetensors.numpy import load_file


def onnxruntime(path):
    import onnxruntime as ort

    session = ort.InferenceSession(path, providers=["CPUExecutionProvider"])
    return lambda image: session.run(None, {"image": image})[0]


def openvino(path):
    import openvino as ov

    model = ov.Core().compile_model(path, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
    return lambda image: model(image)[0]


model, cases = sys.argv[1], load_file(sys.argv[2])
out = {}
for name, engine in [("onnxruntime", onnxruntime), ("openvino", openvino)]:
    try:
        run = engine(model)
    except ImportError:
        continue
    worst = 0.0
    for key in (k for k in cases if k.startswith("image.")):
        got, want = run(cases[key]), cases[key.replace("image", "expected")]
        assert got.shape == want.shape, (got.shape, want.shape)
        worst = max(worst, float(np.abs(got - want).max()))
    out[name] = worst
if "onnxruntime" in out:
    import onnx

    onnx.checker.check_model(onnx.load(model), full_check=True)
print(json.dumps(out))
