"""A drawn slide and the program that came with the package."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import mithras

# An engine that is always there, so that numbers do not hang on what else is installed.
ENGINE = "native"


@pytest.fixture(scope="session")
def program():
    """The program next to this Python, as pip put it there."""
    path = Path(sys.executable).parent / "mithras"
    assert path.is_file(), "the wheel brings the program"

    def run(*args, code=0):
        done = subprocess.run([path, *map(str, args)], capture_output=True, text=True)
        assert done.returncode == code, done.stderr
        return done.stdout

    return run


@pytest.fixture(scope="session")
def drawn(tmp_path_factory):
    """A drawn slide of 1024 x 1024 px with four figures, and its truth next to it."""
    folder = tmp_path_factory.mktemp("drawn")
    return mithras.draw_slide(folder / "drawn.tiff", size=(1024, 1024), figures=4, seed=3)


@pytest.fixture(scope="session")
def run_folder(drawn, program, tmp_path_factory):
    """What the program finds on it."""
    out = tmp_path_factory.mktemp("run") / "out"
    program("detect", drawn, "--out", out, "--engine", ENGINE)
    return out


@pytest.fixture(scope="session")
def corpus_folder(drawn, program, tmp_path_factory):
    """A corpus of the crops around the truth."""
    folder = tmp_path_factory.mktemp("corpus")
    images = folder / "images"
    images.mkdir()
    shutil.copy(drawn, images)
    text = drawn.with_name("truth.csv").read_text().replace(",kind,", ",label,")
    truth = folder / "truth.csv"
    truth.write_text(text.replace(",mitotic,", ",mf,"))
    out = folder / "corpus"
    program(
        "corpus", "import", truth, "--format", "csv", "--kind", "crops",
        "--images", images, "--out", out,
    )
    return out
