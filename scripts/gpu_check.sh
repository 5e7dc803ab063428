#!/usr/bin/env bash
# Builds, then tries and times everything that a GPU runs, next to PyTorch, and writes one report (Markdown and JSON)
# in under eight minutes: engines against each other, detection (ONNX Runtime with CUDA and TensorRT, libtorch),
# embedding, a pretraining step.
#
#   scripts/gpu_check.sh [--out DIR (target/gpu-check)] [--cpu] [--seconds N] [--binary FILE --bench FILE]
#
# Every part has a time limit, one that fails stops no other, and the report states what was not run and why. --cpu
# tries every line of it on small sizes without a GPU; its figures mean nothing. --binary and --bench: built elsewhere
# (features train; example `bench` of `net`), nothing is built. Needs the Python environment of scripts/setup.sh, with
# a CUDA build of torch and onnxruntime-gpu.
set -euo pipefail
cd "$(dirname "$0")/.."
python=${VIRTUAL_ENV:+$VIRTUAL_ENV/bin/}python3
exec "$python" scripts/gpu_check.py "$@"
