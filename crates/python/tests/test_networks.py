"""Classifiers and encoders."""

import csv
from pathlib import Path

import numpy as np
import pytest

import mithras

from conftest import ENGINE


@pytest.fixture(scope="module")
def crops(drawn):
    slide = mithras.Slide(drawn)
    return [slide.read_region(200 + 90 * k, 300 + 60 * k, 80, 80) for k in range(5)]


@pytest.fixture(scope="module")
def files(crops, tmp_path_factory):
    image = pytest.importorskip("PIL.Image")
    folder = tmp_path_factory.mktemp("crops")
    paths = [folder / f"{k}.png" for k in range(len(crops))]
    for path, crop in zip(paths, crops):
        image.fromarray(crop).save(path)
    return paths


def test_a_classifier_equals_the_program(crops, files, program, tmp_path):
    classifier = mithras.Classifier("atypical", engine=ENGINE)
    assert "atypical" in classifier.classes[0] + classifier.classes[1]
    found = classifier.predict(crops, batch=2)
    out = tmp_path / "out.csv"
    program("classify", *files, "--model", "atypical", "--out", out, "--engine", ENGINE)
    rows = list(csv.DictReader(out.open()))
    assert [r["class"] for r in rows] == list(found["class"])
    for name in classifier.classes:
        theirs = [float(r[f"p_{name}"]) for r in rows]
        assert np.allclose(found[f"p_{name}"], theirs, rtol=0, atol=1e-6)
    again = classifier.predict(np.stack(crops))
    assert list(again["class"]) == list(found["class"])
    assert list(classifier.predict(files)["class"]) == list(found["class"])
    assert len(classifier.predict([])["class"]) == 0


def test_arrays_that_are_no_images(crops, tmp_path):
    classifier = mithras.Classifier("atypical", engine=ENGINE)
    # Views are taken as they look, not as they are in memory.
    view = crops[0][::-1, :, :]
    p = classifier.predict([view, np.ascontiguousarray(view)])
    assert p.iloc[0].equals(p.iloc[1]) if hasattr(p, "iloc") else True
    with pytest.raises(ValueError, match="height, width, 3"):
        classifier.predict([np.zeros((8, 8, 4), np.uint8)])
    with pytest.raises(TypeError):
        classifier.predict([np.zeros((8, 8, 3), np.float32)])
    with pytest.raises(ValueError, match="less than 8 px"):
        classifier.predict([np.zeros((4, 4, 3), np.uint8)])
    with pytest.raises(mithras.Error, match="none.png"):
        classifier.predict([tmp_path / "none.png"])
    with pytest.raises(mithras.ModelError, match="nothing"):
        mithras.Classifier("nothing")


def test_an_encoder_equals_the_program(crops, files, program, tmp_path):
    onnx = Path(__file__).parents[2] / "features/tests/golden/tiny.onnx"
    package = tmp_path / "tiny"
    program(
        "encoders", "convert", "--onnx", onnx, "--out", package, "--name", "tiny", "--image", 32,
        "--mean", "0.7,0.5,0.6", "--std", "0.2,0.2,0.2", "--mpp", 0.5, "--pooling", "mean",
        "--license", "none",
    )
    # A transformer, which the other embedded engine lacks.
    encoder = mithras.Encoder(package, engine="rten")
    assert (encoder.width, encoder.side, encoder.mpp) == (6, 32, 0.5)
    vectors = encoder.embed(crops, batch=3)
    assert (vectors.shape, vectors.dtype) == ((5, 6), np.float32)
    assert np.array_equal(vectors, encoder.embed(files))
    assert encoder.embed([]).shape == (0, 6)
    parquet = pytest.importorskip("pyarrow.parquet")
    out = tmp_path / "features.parquet"
    program(
        "embed", "--crops", files[0].parent, "--encoder", package, "--out", out, "--engine", "rten"
    )
    table = parquet.read_table(out).to_pydict()
    theirs = next(np.array(c, np.float32) for c in table.values() if isinstance(c[0], list))
    assert np.array_equal(vectors, theirs)
    with pytest.raises(mithras.ModelError, match="none"):
        mithras.Encoder(tmp_path / "none")
