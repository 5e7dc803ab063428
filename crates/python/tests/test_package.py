"""What the wheel holds, and the notebook."""

import ast
import importlib.metadata
import inspect
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import mithras
from mithras import _mithras

NOTEBOOK = Path(__file__).parents[1] / "examples" / "drawn_slide.ipynb"
PACKAGE = Path(mithras.__file__).parent


def test_versions_agree(program):
    version = importlib.metadata.version("mithras")
    assert mithras.__version__ == version
    assert program("--version").split()[-1] == version


def test_a_program_without_its_weights_says_so(drawn, tmp_path):
    copy = tmp_path / "bin" / "mithras"
    copy.parent.mkdir()
    shutil.copy(Path(sys.executable).parent / "mithras", copy)
    args = [copy, "detect", drawn, "--out", tmp_path / "out", "--engine", "rten"]
    done = subprocess.run(args, capture_output=True, text=True)
    assert done.returncode != 0
    assert "weights" in done.stderr and "install it again" in done.stderr
    # In addition to it, they are found.
    shutil.copytree(Path(sys.prefix) / "share", tmp_path / "share")
    subprocess.run(args, capture_output=True, check=True)


def test_nothing_heavy_is_imported():
    code = "import sys, mithras; print([m for m in ('torch', 'pandas', 'pyarrow') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_everything_public_is_documented():
    for name in mithras.__all__:
        what = getattr(mithras, name)
        if name != "__version__":
            assert inspect.getdoc(what), name
        if inspect.isclass(what) and not issubclass(what, Exception):
            for member, value in inspect.getmembers(what):
                if not member.startswith("_") and (callable(value) or inspect.isdatadescriptor(value)):
                    assert inspect.getdoc(value), f"{name}.{member}"


def test_the_package_is_typed():
    """The stubs of the compiled part name what it has, and nothing else."""
    assert (PACKAGE / "py.typed").is_file()
    stub = ast.parse((PACKAGE / "_mithras.pyi").read_text())
    printed = {n.name: n for n in stub.body if isinstance(n, (ast.ClassDef, ast.FunctionDef))}
    there = {n for n in vars(_mithras) if not n.startswith("__")}
    assert set(printed) == there
    for name, node in printed.items():
        if not isinstance(node, ast.ClassDef):
            continue
        members = {n.name for n in node.body if isinstance(n, ast.FunctionDef)}
        own = {
            m for m in vars(getattr(_mithras, name)) if not m.startswith("__") or m == "__len__"
        }
        assert members - {"__new__"} == own, name


def test_the_notebook(tmp_path):
    """Runs the notebook's cells one after the other, as Jupyter does."""
    pytest.importorskip("pandas")
    pytest.importorskip("matplotlib")
    cells = json.loads(NOTEBOOK.read_text())["cells"]
    code = "\n\n".join("".join(c["source"]) for c in cells if c["cell_type"] == "code")
    assert "mithras.detect" in code
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env={**os.environ, "MPLBACKEND": "agg"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert "figures in the hotspot" in done.stdout
