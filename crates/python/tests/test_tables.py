"""Evaluation and survival equal the program's JSON."""

import json
import random

import pytest

import mithras


def test_evaluate_equals_the_program(run_folder, drawn, program):
    truth = drawn.with_name("truth.csv")
    ours = mithras.evaluate(run_folder, truth)
    theirs = program("evaluate", "detections", "--predictions", run_folder, "--truth", truth, "--json")
    assert ours == json.loads(theirs)
    assert ours["truth"] == 4
    assert len(mithras.evaluate(run_folder, truth, rule="midog")["rules"]) == 1
    with pytest.raises(mithras.EvaluationError, match="no predictions"):
        mithras.evaluate(drawn.parent, truth)


@pytest.fixture(scope="module")
def patients(tmp_path_factory):
    dice = random.Random(1)
    lines = ["patient,months,died,age,sex"]
    counts = ["slide,hotspot_count,density_per_20mm2"]
    for k in range(40):
        count = dice.randint(0, 20)
        months = round(dice.expovariate(0.02 * (1 + count / 5)), 2) + 0.1
        lines.append(f"p{k:02},{months},{int(dice.random() < 0.7)},{dice.randint(40, 80)},{'mf'[k % 2]}")
        counts.append(f"p{k:02},{count},{count * 2.5}")
    folder = tmp_path_factory.mktemp("patients")
    (folder / "clinical.csv").write_text("\n".join(lines))
    (folder / "counts.csv").write_text("\n".join(counts))
    return folder


def test_cox_equals_the_program(patients, program):
    file = patients / "clinical.csv"
    ours = mithras.cox(file, time="months", event="died", covariates=["age", "sex"])
    args = ["--time", "months", "--event", "died", "--covariates", "age,sex", "--json"]
    assert ours == json.loads(program("survival", "cox", "--table", file, *args))
    pandas = pytest.importorskip("pandas")
    frame = pandas.read_csv(file)
    from_frame = mithras.cox(frame, time="months", event="died", covariates=["age", "sex"])
    assert from_frame["coefficients"] == ours["coefficients"]
    # A code for missing holds for a data frame as for its file.
    code, kept = frame["age"].iloc[0], int((frame["age"] != frame["age"].iloc[0]).sum())
    for table in (file, frame):
        coded = mithras.cox(table, time="months", event="died", covariates=["age"], missing=[code])
        assert coded["n"] == kept, type(table)
    with pytest.raises(mithras.SurvivalError, match="weight"):
        mithras.cox(file, time="months", event="died", covariates=["weight"])


def test_study_equals_the_program(patients, program, tmp_path):
    out = tmp_path / "ours"
    plan = {"join": ("slide", "patient"), "time": "months", "event": "died", "replicates": 50}
    ours = mithras.study(
        patients / "counts.csv", patients / "clinical.csv", covariates=["age"], out=out, **plan
    )
    program(
        "survival", "study", "--counts", patients / "counts.csv", "--clinical",
        patients / "clinical.csv", "--join", "slide=patient", "--time", "months", "--event", "died",
        "--covariates", "age", "--replicates", 50, "--out", tmp_path / "theirs",
    )
    theirs = json.loads((tmp_path / "theirs" / "results.json").read_text())
    written = json.loads((out / "results.json").read_text())
    assert ours["features"] == theirs["features"] == written["features"]
    assert (out / "report.html").is_file()
    with pytest.raises(mithras.SurvivalError):
        mithras.study(patients / "counts.csv", patients / "clinical.csv", **{**plan, "time": "years"})
