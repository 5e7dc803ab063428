"""Runs ONNX files in every engine installed: for each line `MODEL<tab>CASES` of the input a line of JSON.

CASES is a safetensors file with `image.<i>` and `expected.<i>`. The answer is {engine: largest difference}, or
{"error": why}. The first line is `ready`: the packages are here.
"""

import json
import sys
import traceback

import numpy as np
import onnx
import onnxruntime
from safetensors.numpy import load_file


def with_onnxruntime(path):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    return lambda image: session.run(None, {"image": image})[0]


def with_openvino(path):
    import openvino

    how = {"INFERENCE_PRECISION_HINT": "f32", "INFERENCE_NUM_THREADS": 1}
    model = openvino.Core().compile_model(path, "CPU", how)
    return lambda image: model(image)[0]


def differences(model, cases):
    out = {}
    for name, engine in [("onnxruntime", with_onnxruntime), ("openvino", with_openvino)]:
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
    onnx.checker.check_model(onnx.load(model), full_check=True)
    return out


print("ready", flush=True)
for line in sys.stdin:
    model, cases = line.rstrip("\n").split("\t")
    try:
        answer = differences(model, load_file(cases))
    except Exception:
        answer = {"error": traceback.format_exc()}
    print(json.dumps(answer), flush=True)
