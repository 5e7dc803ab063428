"""Detection, evaluation, survival."""

from __future__ import annotations

import json
import os
import warnings
from pathlib import Path
from typing import Any, Iterable

from . import _mithras
from ._frames import source, table as as_table
from ._networks import engine_options


def detect(
    slides: Any,
    out: str | os.PathLike[str] | None = None,
    *,
    model: str | os.PathLike[str] | None = None,
    engine: str = "auto",
    provider: str = "auto",
    precision: str = "auto",
    threads: int = 0,
    mpp: float | None = None,
    force_mpp: bool = False,
    any_mpp: bool = False,
    operating_point: str | tuple[float, float] | None = None,
    stages: int = 2,
    subtypes: bool = False,
    openslide: str | os.PathLike[str] | None = None,
    resume: bool = False,
    overwrite: bool = False,
    table: str | None = None,
) -> Any:
    """Finds mitotic figures on slides: every candidate with both scores, as ``detections.csv`` has them.

    ``slides``: a ``Slide``, the path of a slide, of a folder of slides, a pattern such as
    ``"slides/*.svs"``, or a list of these. A ``Slide`` is read again from its path: um/px that it was
    opened with are given here once more (``mpp``, ``force_mpp``). Without ``out`` nothing is written;
    with it, this is ``mithras detect``: results are there by slide, and ``resume=True`` continues after
    an interruption.

    Columns: ``slide``; ``x_px``, ``y_px`` (level-0 pixels); ``x_um``, ``y_um`` (um from the level-0
    origin); ``s_seg``, ``s_cls`` (scores, 0 to 1; ``s_cls`` is NaN after one stage); ``accepted``;
    ``outside_tissue``; ``flaw`` (``out_of_focus``, ``pen``, ``dirt`` or empty); with ``subtypes=True`` nine probabilities more, NaN where not accepted.
    ``table`` is ``"pandas"``, ``"pyarrow"`` or ``"dict"``; by default the first that is installed.

    Raises ``ModelError`` when the package or its engine cannot be used, ``DetectionError`` when there
    is not a slide, the run may not start, or slides failed. Then all others are done: its attribute
    ``failed`` lists the slides without a result, ``(path, reason)``, and ``table`` holds the rest.
    """
    if isinstance(slides, (str, os.PathLike)) or hasattr(slides, "path"):
        slides = [slides]
    if operating_point is not None and not isinstance(operating_point, str):
        operating_point = ",".join(repr(float(v)) for v in operating_point)
    plan = {
        "inputs": [getattr(slide, "path", slide) for slide in slides],
        "model": model,
        "engine": engine_options(engine, provider, precision, threads),
        "mpp": mpp,
        "force_mpp": force_mpp,
        "any_mpp": any_mpp,
        "operating_point": operating_point,
        "stages": stages,
        "subtypes": subtypes,
        "openslide": openslide,
    }
    if out is None:
        columns, failed, notes = _mithras.detect(plan)
    else:
        columns, failed, notes = _mithras.detect_into(plan, out, resume, overwrite)
    for note in notes:
        warnings.warn(note, stacklevel=2)
    found = as_table(columns, table)
    if failed:
        path, reason = failed[0]
        n = f"{len(failed)} slides have no result, the first: " if len(failed) > 1 else ""
        error = _mithras.DetectionError(f"{n}{reason}")
        error.path, error.reason, error.failed, error.table = path, reason, failed, found
        raise error
    return found


def read_detections(path: str | os.PathLike[str], *, table: str | None = None) -> Any:
    """Reads a ``detections.csv``, or all of a folder that ``mithras detect`` wrote, as ``detect`` returns it."""
    path = Path(path)
    if path.is_dir() and not (path / "detections.csv").is_file():
        files = sorted(path.glob("*/detections.csv"))
        if not files:
            error = _mithras.DetectionError(f"{path}: holds no slide's detections.csv")
            error.path, error.reason = path, str(error)
            raise error
    else:
        files = [path / "detections.csv" if path.is_dir() else path]
    parts = [_mithras.read_detections(f, f.resolve().parent.name) for f in files]
    if len(parts) == 1:
        return as_table(parts[0], table)
    import numpy as np

    names = max(parts, key=len)

    def column(part: dict[str, Any], name: str) -> Any:
        return part[name] if name in part else np.full(len(part["x_px"]), np.nan, np.float32)

    whole = {n: np.concatenate([column(p, n) for p in parts]) for n in names if n != "slide"}
    return as_table({"slide": [s for p in parts for s in p["slide"]], **whole}, table)


def evaluate(
    predictions: str | os.PathLike[str],
    truth: str | os.PathLike[str],
    *,
    radius_um: float = 7.5,
    rule: str = "both",
    label_column: str | None = None,
    figures: Iterable[str] = (),
    only: Iterable[str] = (),
) -> dict[str, Any]:
    """Compares a folder that ``detect`` wrote with a CSV of true figures.

    The result is what ``mithras evaluate detections --json`` prints: figures of every rule, pooled,
    per tumour type and per slide, with 95 % intervals. ``rule`` is ``"midog"``, ``"optimal"`` or
    ``"both"``. Raises ``EvaluationError``.
    """
    how = {
        "radius_um": radius_um,
        "rule": rule,
        "label_column": label_column,
        "figures": list(figures),
        "only": list(only),
    }
    return json.loads(_mithras.evaluate(predictions, truth, how))


def cox(
    table: Any,
    *,
    time: str,
    event: str,
    covariates: Iterable[str],
    event_value: str | None = None,
    categorical: Iterable[str] = (),
    strata: Iterable[str] = (),
    cluster: str | None = None,
    patient: str | None = None,
    patient_rule: str = "max",
    weights: str | None = None,
    ties: str = "efron",
    level: float = 0.95,
    baseline: bool = False,
    missing: Iterable[str | float] = (),
) -> dict[str, Any]:
    """Fits Cox's proportional-hazards model, equal to R's package survival.

    ``table``: a data frame, or the path of a CSV, TSV or Parquet file; all else names its columns
    (``missing``: cell texts or numbers that mean "missing"). ``patient``: its column; each patient becomes one row,
    numbers by ``patient_rule`` ("max", "mean"). The result is what ``mithras survival
    cox --json`` prints. Raises ``SurvivalError``.
    """
    columns = {
        "time": time,
        "event": event,
        "covariates": list(covariates),
        "event_value": event_value,
        "categorical": list(categorical),
        "strata": list(strata),
        "cluster": cluster,
        "patient": patient,
        "patient_rule": patient_rule,
        "weights": weights,
        "ties": ties,
        "level": level,
        "baseline": baseline,
        "missing": [str(code) for code in missing],
    }
    return json.loads(_mithras.cox(source(table), columns))


def study(
    counts: Any,
    clinical: Any,
    *,
    join: str | tuple[str, str],
    time: str,
    event: str,
    event_value: str | None = None,
    covariates: Iterable[str] = (),
    categorical: Iterable[str] = (),
    boxes: Iterable[str] = (),
    patient: str | None = None,
    train: str | None = None,
    cut: dict[str, float] | None = None,
    name: str = "MiTHras",
    replicates: int = 1000,
    seed: int = 0,
    horizon: float | None = None,
    time_unit: str = "months",
    time_scale: float = 1.0,
    missing: Iterable[str | float] = (),
    out: str | os.PathLike[str] | None = None,
) -> dict[str, Any]:
    """The whole survival analysis of a detection run: counts joined to a clinical table.

    ``counts`` is ``counts.csv`` of a run, ``clinical`` a table of patients; both may be data frames.
    ``join`` names the column of both, or one of each. ``train`` (``"COLUMN=VALUE"``) or ``cut``
    (``{"hotspot": 5}``) fix the cut-points. With ``out`` the report is written there, too. See
    ``mithras survival study``. Raises ``SurvivalError``.
    """
    columns = {
        "join": (join, join) if isinstance(join, str) else tuple(join),
        "time": time,
        "event": event,
        "event_value": event_value,
        "covariates": list(covariates),
        "categorical": list(categorical),
        "boxes": list(boxes),
        "patient": patient,
        "train": train,
        "cut": [f"{k}={v!r}" for k, v in (cut or {}).items()],
        "name": name,
        "replicates": replicates,
        "seed": seed,
        "horizon": horizon,
        "time_unit": time_unit,
        "time_scale": time_scale,
        "missing": [str(code) for code in missing],
    }
    return json.loads(_mithras.study(source(counts), source(clinical), columns, out))


def draw_slide(
    path: str | os.PathLike[str],
    *,
    size: tuple[int, int] = (4096, 3072),
    figures: int = 40,
    seed: int = 1,
) -> Path:
    """Draws an H&E-like pyramidal slide at 0.25 um/px, with ``truth.csv`` next to it, as ``mithras demo`` does."""
    _mithras.draw(path, (size[0], size[1]), figures, seed)
    return Path(path)
