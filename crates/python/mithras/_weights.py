"""Where pip put the weights of the bundled packages, which the program next to uses, too."""

from importlib import metadata
from pathlib import Path

from . import _mithras


def find() -> None:
    """Reports the library."""
    try:
        files = metadata.files("mithras") or []
    except metadata.PackageNotFoundError:
        files = []
    models = [f.locate() for f in files if f.name == "segmenter.onnx"]
    # `pip install --target` does not write down where it put them.
    models.append(Path(__file__).parents[1] / "share/mithras/models/mithras-standard/segmenter.onnx")
    for model in models:
        if Path(model).is_file():
            _mithras.set_weights_folder(Path(model).resolve().parents[1])
            return
