"""Detection in Python gives the program's numbers."""

import csv
import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

import mithras

from conftest import ENGINE

NUMBERS = ["x_px", "y_px", "x_um", "y_um", "s_seg", "s_cls"]


def rows_of(path):
    with open(path, newline="") as f:
        return list(csv.DictReader(f))


def same(columns, rows):
    """Whether columns hold the rows of a detections.csv, to the last bit."""
    assert len(columns["x_px"]) == len(rows) > 0
    for name in NUMBERS:
        theirs = np.array([r[name] or "nan" for r in rows], dtype=columns[name].dtype)
        assert np.array_equal(columns[name], theirs, equal_nan=True), name
    for name in ["accepted", "outside_tissue"]:
        assert columns[name].tolist() == [r[name] == "true" for r in rows], name
    assert list(columns["flaw"]) == [r["flaw"] for r in rows]


def test_detect_equals_the_program(drawn, run_folder):
    rows = rows_of(run_folder / "drawn" / "detections.csv")
    found = mithras.detect(drawn, engine=ENGINE, table="dict")
    same(found, rows)
    assert set(found["slide"]) == {"drawn"}
    assert found["accepted"].sum() >= 1
    same(mithras.detect(mithras.Slide(drawn), engine=ENGINE, table="dict"), rows)


def test_a_run_into_a_folder_is_the_programs(drawn, run_folder, tmp_path):
    out = tmp_path / "out"
    found = mithras.detect(drawn, out, engine=ENGINE, table="dict")
    theirs = run_folder / "drawn" / "detections.csv"
    same(found, rows_of(theirs))
    assert (out / "drawn" / "detections.csv").read_bytes() == theirs.read_bytes()
    assert json.loads((out / "run.json").read_text())["done"] == 1
    with pytest.raises(mithras.DetectionError, match="already holds results"):
        mithras.detect(drawn, out, engine=ENGINE)
    kept = mithras.detect(drawn, out, engine=ENGINE, resume=True, table="dict")
    assert np.array_equal(kept["s_seg"], found["s_seg"])
    read = mithras.read_detections(out, table="dict")
    same(read, rows_of(theirs))
    assert set(read["slide"]) == {"drawn"}


def test_tables(drawn, run_folder):
    pandas = pytest.importorskip("pandas")
    frame = mithras.read_detections(run_folder)
    assert isinstance(frame, pandas.DataFrame)
    kinds = {"s_seg": "float32", "s_cls": "float32", "flaw": "str"}
    theirs = pandas.read_csv(run_folder / "drawn" / "detections.csv", dtype=kinds).fillna({"flaw": ""})
    assert list(frame.columns) == ["slide", *theirs.columns]
    pandas.testing.assert_frame_equal(frame.drop(columns="slide"), theirs)
    pyarrow = pytest.importorskip("pyarrow")
    table = mithras.read_detections(run_folder, table="pyarrow")
    assert isinstance(table, pyarrow.Table) and table.num_rows == len(frame)
    with pytest.raises(ValueError, match="table"):
        mithras.read_detections(run_folder, table="polars")


def test_one_stage_and_an_operating_point(drawn):
    found = mithras.detect(drawn, engine=ENGINE, stages=1, operating_point=(0.7, 0.0), table="dict")
    assert np.isnan(found["s_cls"]).all()
    none = mithras.detect(drawn, engine=ENGINE, operating_point=(1.0, 1.0), table="dict")
    assert not none["accepted"].any()


def test_errors(drawn, tmp_path):
    bad = tmp_path / "bad.svs"
    bad.write_bytes(b"no slide")
    with pytest.raises(mithras.DetectionError, match="bad.svs") as caught:
        mithras.detect([drawn, bad], engine=ENGINE, table="dict")
    assert [path for path, _ in caught.value.failed] == [bad]
    assert caught.value.path == bad
    assert set(caught.value.table["slide"]) == {"drawn"}, "the others are done"
    with pytest.raises(mithras.ModelError, match="nothing"):
        mithras.detect(drawn, model="nothing")
    with pytest.raises(mithras.DetectionError):
        mithras.detect(tmp_path / "none.svs")
    with pytest.raises(ValueError, match="abacus"):
        mithras.detect(drawn, engine="abacus")


def test_ctrl_c_ends_a_detection(tmp_path):
    slide = mithras.draw_slide(tmp_path / "large.tiff", size=(4096, 4096), figures=20)
    code = (
        "import mithras, signal, sys\n"
        # A shell's background jobs ignore it, and hand that on.
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "print('ready', flush=True)\n"
        "try:\n"
        f"    mithras.detect(sys.argv[1], engine='{ENGINE}', threads=1)\n"
        "except KeyboardInterrupt:\n"
        "    sys.exit(7)\n"
    )
    child = subprocess.Popen([sys.executable, "-c", code, slide], stdout=subprocess.PIPE)
    assert child.stdout.readline() == b"ready\n"
    time.sleep(2)
    assert child.poll() is None, "a large slide takes longer than this"
    os.kill(child.pid, signal.SIGINT)
    assert child.wait(timeout=60) == 7
