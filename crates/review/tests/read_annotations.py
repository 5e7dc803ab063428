"""Reads annotations with highdicom and compares them with the run they were made of.

    python read_annotations.py RUN WRITTEN      # WRITTEN holds NAME.dcm for folders RUN/NAME
"""

import csv
import json
import sys
from pathlib import Path

import numpy as np
from highdicom.ann import annread
from pydicom import dcmread

run, written = map(Path, sys.argv[1:3])
SCORES = {"S-SEG": "s_seg", "S-CLS": "s_cls", "P-ATYPICAL": "p_atypical", "P-METAPHASE": "p_metaphase", "P-OTHER": "p_other"}
KINDS = {"Mitotic figures": ("MITOTIC-FIGURE", "99MITHRAS"), "Rejected candidates": ("REJECTED", "99MITHRAS"), "Hotspot": ("111099", "DCM")}


def check_points(group, rows: list[dict]) -> None:
    places = np.vstack(group.get_graphic_data("2D"))
    wanted = np.array([[float(r["x_px"]), float(r["y_px"])] for r in rows])
    assert places.dtype == np.float64 and np.array_equal(places, wanted), f"{places} {wanted}"
    names, values, units = group.get_measurements()
    assert all(u.value == "1" and u.scheme_designator == "UCUM" for u in units), units
    seen = {n.value: values[:, i] for i, n in enumerate(names)}
    for code, column in SCORES.items():
        cells = [r.get(column) or "nan" for r in rows]
        if all(c == "nan" for c in cells):
            assert code not in seen, code
            continue
        assert np.array_equal(seen[code], np.array(cells, np.float32), equal_nan=True), f"{code} {seen[code]} {cells}"


for file in sorted(written.glob("*.dcm")):
    folder = run / file.stem
    rows = list(csv.DictReader((folder / "detections.csv").open()))
    counts = json.loads((folder / "counts.json").read_text())
    ann = annread(file)
    # `group_metadata` and the like refuse what lacks a field of the standard.
    groups = {g.label: g for g in ann.get_annotation_groups()}
    assert ann.AnnotationCoordinateType == "2D" and ann.PixelOriginInterpretation == "VOLUME"
    assert ann.SOPInstanceUID == ann.file_meta.MediaStorageSOPInstanceUID and ann.Modality == "ANN"
    assert len({g.uid for g in groups.values()} | {ann.SOPInstanceUID, ann.SeriesInstanceUID}) == 2 + len(groups)
    for label, group in groups.items():
        kind = group.annotated_property_type
        assert (kind.value, kind.scheme_designator) == KINDS[label], kind
        assert group.algorithm_type.value == "AUTOMATIC"
        assert group.algorithm_identification[0].AlgorithmName == counts["model"]["name"]
    for label, accepted in (("Mitotic figures", "true"), ("Rejected candidates", "false")):
        own = [r for r in rows if r["accepted"] == accepted]
        if not own:
            assert label not in groups
            continue
        check_points(groups[label], own)
        assert groups[label].number_of_annotations == len(own)
    if counts["hotspot"]:
        h, group = counts["hotspot"], groups["Hotspot"]
        assert group.graphic_type.value == "RECTANGLE"
        (corners,) = group.get_graphic_data("2D")
        most = np.array([counts["slide"]["width"], counts["slide"]["height"]], float)
        (x0, y0), (x1, y1) = np.clip([h["min_px"], h["max_px"]], 0, most)
        assert np.array_equal(corners, [[x0, y0], [x1, y0], [x1, y1], [x0, y1]]), corners
        assert group.get_measurements()[1] == counts["hotspot_count"]
    else:
        assert "Hotspot" not in groups
    again = dcmread(file)
    print(f"{file.name}: {len(groups)} groups on {again.ReferencedImageSequence[0].ReferencedSOPInstanceUID}")
print("read")
