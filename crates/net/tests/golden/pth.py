"""Small files as torch.save writes them: python crates/net/tests/golden/pth.py"""

import pathlib

import torch

from fill import values

HERE = pathlib.Path(__file__).parent


def state(prefix=""):
    base = values("shared", (4, 6))
    return {
        prefix + "w.weight": values("w.weight", (3, 5)),
        prefix + "half.weight": values("half.weight", (2, 3)).half(),
        prefix + "count": torch.tensor([1, 2, 3]),
        # Views of one storage, one of them transposed.
        prefix + "view.rows": base[1:3],
        prefix + "view.turned": base.t(),
        prefix + "param": torch.nn.Parameter(values("param", (4,))),
    }


torch.save(state(), HERE / "zip.pth")
torch.save({"epoch": 3, "model": state("module."), "args": {"lr": 0.1}}, HERE / "legacy.pth",
           _use_new_zipfile_serialization=False)
