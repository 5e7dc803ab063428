"""Outputs of ONNX Runtime for every bundled network, as the own executor has to give them.

    python crates/kernels/src/tests/golden/bundled.py        (from the root of the repository)

Writes `NAME.f32` beside itself: little-endian f32, of segmenters every 61st value. The images are made of whole numbers,
so that the test draws the same ones.
"""

from pathlib import Path

import numpy as np
import onnxruntime

HERE = Path(__file__).parent
MODELS = HERE.parents[4] / "models"
# Name of the golden file, network, side, images, each so-many-th value.
NETWORKS = [
    ("standard-segmenter", "mithras-standard/segmenter.onnx", 512, 2, 61),
    ("fast-segmenter", "mithras-fast/segmenter.onnx", 512, 2, 61),
    ("fast-screen", "mithras-fast/screen.onnx", None, 6, 1),
    ("standard-classifier", "mithras-standard/classifier.onnx", None, 6, 1),
    ("morphology-classifier", "mithras-morphology/classifier.onnx", None, 6, 1),
]


def mixed(v: np.ndarray) -> np.ndarray:
    """A number below 256 from each u32."""
    v = v.astype(np.uint64)
    v = (v * 2654435761) & 0xFFFFFFFF
    v = ((v ^ (v >> 15)) * 2246822519) & 0xFFFFFFFF
    return (v >> 24) & 0xFF


def image(index: int, side: int) -> np.ndarray:
    """`[3, side, side]`: blocks of 2^(2 + index % 4) pixels and grain, about normalised."""
    c, y, x = np.meshgrid(*map(np.arange, (3, side, side)), indexing="ij")
    block = 2 + index % 4
    coarse = mixed(((y >> block) * 1024 + (x >> block)) * 3 + c + 7919 * index)
    fine = mixed((y * 1024 + x) * 3 + c + 104729 * index)
    return ((3 * coarse + fine).astype(np.float32) - np.float32(512)) / np.float32(256)


def main() -> None:
    for name, file, side, images, every in NETWORKS:
        session = onnxruntime.InferenceSession(MODELS / file, providers=["CPUExecutionProvider"])
        side = side or session.get_inputs()[0].shape[2]
        out = [session.run(None, {session.get_inputs()[0].name: image(i, side)[None]})[0] for i in range(images)]
        values = np.concatenate([o.ravel() for o in out])[::every].astype("<f4")
        values.tofile(HERE / f"{name}.f32")
        print(f"{name}: side {side}, {values.size} values, {values.min():.4f} to {values.max():.4f}")


if __name__ == "__main__":
    main()
