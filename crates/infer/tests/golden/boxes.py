"""boxes.onnx: a detector of boxes without weights, in the shape in which YOLOv10 is exported, and
boxes_columns.onnx, the same in that of YOLOv8.

    python boxes.py          writes them next to this file

`images` [1,3,64,64], RGB in 0 to 1, to `output0` [1,16,6]: x0 y0 x1 y1 score class. The score of a cell of
4x4 px is the darkness of its red, 1 - mean; the sixteen darkest cells are given, each as a box of 8 px; class
0 where its green is below its blue, else 1. Names of the classes stand in the metadata, as Ultralytics
writes them. The other gives all 256 cells to `output0` [1,6,256]: x y width height, a score per class.

boxes_yolov5.onnx has the sides of the first and YOLOv5's rows of one class: x y width height, whether there is an
object, its class' probability. boxes_shares.onnx and boxes_columns_shares.onnx have their places as shares of the
window, as RT-DETR.
"""

from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

SIDE, CELL, ROWS = 64, 4, 16
N = SIDE // CELL


def main():
    const = lambda name, value: numpy_helper.from_array(np.asarray(value), name)
    grid = np.indices((N, N)).reshape(2, -1).astype(np.float32)
    centres = (grid[::-1] + 0.5) * CELL  # x, y
    weights = [
        const("one", np.float32(1.0)),
        const("flat", np.array([1, 3, N * N], np.int64)),
        const("k", np.array([ROWS], np.int64)),
        const("red", np.array([0], np.int64)),
        const("green", np.array([1], np.int64)),
        const("blue", np.array([2], np.int64)),
        const("x", centres[0][None]),
        const("y", centres[1][None]),
        const("half", np.float32(4.0)),
        const("last", np.array([2], np.int64)),
        const("side", np.full((1, N * N), 8, np.float32)),
    ]
    op = helper.make_node
    nodes = [
        op("AveragePool", ["images"], ["cells"], kernel_shape=[CELL, CELL], strides=[CELL, CELL]),
        op("Reshape", ["cells", "flat"], ["values"]),
        op("Gather", ["values", "red"], ["r3"], axis=1),
        op("Gather", ["values", "green"], ["g3"], axis=1),
        op("Gather", ["values", "blue"], ["b3"], axis=1),
        op("Squeeze", ["r3", "green"], ["r"]),
        op("Squeeze", ["g3", "green"], ["g"]),
        op("Squeeze", ["b3", "green"], ["b"]),
        op("Sub", ["one", "r"], ["dark"]),
        op("TopK", ["dark", "k"], ["score", "index"], axis=1),
        op("GreaterOrEqual", ["g", "b"], ["other"]),
        op("Cast", ["other"], ["class_all"], to=TensorProto.FLOAT),
    ]
    columns = [node for node in nodes if node.op_type != "TopK"] + [
        op("Mul", ["dark", "class_all"], ["second"]),
        op("Sub", ["dark", "second"], ["first"]),
    ]
    for name in ["x", "y", "side", "first", "second"]:
        columns.append(op("Unsqueeze", [name, "green"], [name + "_3"]))
    both = [name + "_3" for name in ["x", "y", "side", "side", "first", "second"]]
    columns.append(op("Concat", both, ["output0"], axis=1))
    save("boxes_columns", columns, weights, [1, 6, N * N])
    save("boxes_columns_shares", columns, shares(weights), [1, 6, N * N])
    nodes += [
        op("GatherElements", ["class_all", "index"], ["class"], axis=1),
        op("GatherElements", ["x", "index"], ["cx"], axis=1),
        op("GatherElements", ["y", "index"], ["cy"], axis=1),
    ]
    parts = []
    for name, kind, a in [("x0", "Sub", "cx"), ("y0", "Sub", "cy"), ("x1", "Add", "cx"), ("y1", "Add", "cy")]:
        nodes.append(op(kind, [a, "half"], [name]))
        parts.append(name)
    for name in [*parts, "score", "class"]:
        nodes.append(op("Unsqueeze", [name, "last"], [name + "_3"]))
    nodes.append(op("Concat", [p + "_3" for p in [*parts, "score", "class"]], ["output0"], axis=2))
    save("boxes", nodes, weights, [1, ROWS, 6])
    save("boxes_shares", nodes, shares(weights), [1, ROWS, 6])
    nodes.pop()
    for name, a in [("w", "half"), ("h", "half")]:
        nodes.append(op("Add", ["score", a], [name]))
    for name in ["cx", "cy", "w", "h"]:
        nodes.append(op("Unsqueeze", [name, "last"], [name + "_3"]))
    row = ["cx", "cy", "w", "h", "score", "score"]
    nodes.append(op("Concat", [p + "_3" for p in row], ["output0"], axis=2))
    save("boxes_yolov5", nodes, weights, [1, ROWS, 6])


def shares(weights):
    """The weights with places as shares of the window."""
    places = {"x", "y", "half", "side"}
    share = lambda w: numpy_helper.from_array(numpy_helper.to_array(w) / np.float32(SIDE), w.name)
    return [share(w) if w.name in places else w for w in weights]


def save(name, nodes, weights, shape):
    used = {i for node in nodes for i in node.input}
    graph = helper.make_graph(
        nodes, "boxes",
        [helper.make_tensor_value_info("images", TensorProto.FLOAT, [1, 3, SIDE, SIDE])],
        [helper.make_tensor_value_info("output0", TensorProto.FLOAT, shape)],
        [w for w in weights if w.name in used],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    helper.set_model_props(model, {"names": "{0: 'mitotic figure', 1: 'look-alike'}", "task": "detect"})
    onnx.checker.check_model(model, full_check=True)
    onnx.save(model, Path(__file__).parent / f"{name}.onnx")


main()
