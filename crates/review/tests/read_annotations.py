"""Reads annotations with highdicom and compares them with the run they were made of.

    python read_annotations.py RUN WRITTEN SLIDES   # WRITTEN holds NAME.dcm for folders RUN/NAME, of images in SLIDES
"""

import csv
import json
import sys
from pathlib import Path

import numpy as np
from highdicom.ann import annread
from highdicom.sr import srread
from pydicom import dcmread

run, written, slides = map(Path, sys.argv[1:4])
IMAGES = {}
for file in sorted(slides.rglob("*.dcm")):
    header = dcmread(file, stop_before_pixels=True)
    IMAGES[header.SOPInstanceUID] = header
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


def check_report(file: Path, counts: dict) -> None:
    """The structured report by TID 1500: the count of the slide, and the hotspot with its place."""
    report = srread(file)
    content = report.content
    assert report.Modality == "SR" and report.SOPInstanceUID == report.file_meta.MediaStorageSOPInstanceUID
    assert report.SOPClassUID == report.file_meta.MediaStorageSOPClassUID == "1.2.840.10008.5.1.4.1.1.88.33"
    assert (report.CompletionFlag, report.VerificationFlag) == ("COMPLETE", "UNVERIFIED")
    root = report.ContentTemplateSequence[0]
    assert (root.MappingResource, root.TemplateIdentifier) == ("DCMR", "1500"), root
    title = report.ConceptNameCodeSequence[0]
    assert (title.CodeValue, title.CodingSchemeDesignator) == ("126000", "DCM"), title
    assert [s.CodingSchemeDesignator for s in report.CodingSchemeIdentificationSequence] == ["99MITHRAS"]
    # The image that it is about is there, whole: study, series, class and instance.
    (study,) = report.CurrentRequestedProcedureEvidenceSequence
    (series,) = study.ReferencedSeriesSequence
    (evidence,) = series.ReferencedSOPSequence
    image = evidence.ReferencedSOPInstanceUID
    header = IMAGES[image]
    assert study.StudyInstanceUID == report.StudyInstanceUID == header.StudyInstanceUID
    assert series.SeriesInstanceUID == header.SeriesInstanceUID != report.SeriesInstanceUID
    assert evidence.ReferencedSOPClassUID == header.SOPClassUID
    size = (header.TotalPixelMatrixColumns, header.TotalPixelMatrixRows)
    assert size == (counts["slide"]["width"], counts["slide"]["height"]), size
    observer = content.get_observer_contexts()
    device = observer[0].observer_identifying_attributes
    assert len(observer) == 1 and device.name == counts["model"]["name"]
    assert device.manufacturer_name == "mithras" and device.model_name.startswith("mithras detect ")
    assert device.uid.startswith("2.25.")

    def values(group) -> dict:
        for m in group.get_measurements():
            assert m.name.scheme_designator == "99MITHRAS" and m.unit.scheme_designator == "UCUM", m
            stored = m[0].MeasuredValueSequence[0]
            # In full, and as text of at most 16 letters.
            assert stored.FloatingPointValue == m.value or abs(stored.FloatingPointValue - m.value) < 1e-6 * abs(m.value), m
            assert len(str(stored.NumericValue)) <= 16 and abs(float(stored.NumericValue) - stored.FloatingPointValue) <= 1e-6 * max(1, abs(m.value))
        return {m.name.value: (m[0].MeasuredValueSequence[0].FloatingPointValue, m.unit.value) for m in group.get_measurements()}

    regions = (counts.get("regions") or {"list": []})["list"]
    groups = content.get_image_measurement_groups()
    names = ["All regions" if regions else "Slide"] + [f"Region {k + 1}: {r['name']}" for k, r in enumerate(regions)]
    assert [g.tracking_identifier for g in groups] == names, names
    spots = content.get_planar_roi_measurement_groups()
    assert len({str(g.tracking_uid) for g in [*groups, *spots]}) == len(groups) + len(spots)
    boxes = [item for box in content[0].ContentSequence for item in box.get("ContentSequence", []) if item.ValueType == "CONTAINER"]
    templates = [item.ContentTemplateSequence[0].TemplateIdentifier for item in boxes]
    assert templates == ["1501"] * len(groups) + ["1410"] * len(spots), templates
    for group, of in zip(groups, [counts, *regions]):
        finding = group.finding_type
        assert (finding.value, finding.scheme_designator) == ("MITOTIC-FIGURE", "99MITHRAS"), finding
        area = of["analysed_mm2"]
        wanted = {"FIGURE-COUNT": (of["figures"], "1"), "ANALYSED-AREA": (area, "mm2"), "FIGURE-DENSITY": (round(of["figures"] / area, 6), "/mm2")}
        assert values(group) == wanted, values(group)
    assert len(spots) == (counts["hotspot"] is not None)
    for spot in spots:
        h, most = counts["hotspot"], [counts["slide"]["width"], counts["slide"]["height"]]
        (x0, y0), (x1, y1) = np.clip([h["min_px"], h["max_px"]], 0, most)
        on_slide = values(spot)["HOTSPOT-AREA"][0]
        assert abs(on_slide - (x1 - x0) * (y1 - y0) * counts["resolution"]["x"] * counts["resolution"]["y"] * 1e-6) < 1e-5, on_slide
        assert values(spot) == {"FIGURE-COUNT": (counts["hotspot_count"], "1"), "HOTSPOT-AREA": (h["on_slide_mm2"], "mm2")}
        corners = np.array([[x0, y0], [x1, y0], [x1, y1], [x0, y1], [x0, y0]], np.float32)
        assert spot.roi.graphic_type.value == "POLYLINE" and np.array_equal(spot.roi.value, corners), spot.roi.value
        selected = spot.roi.ContentSequence[0].ReferencedSOPSequence[0]
        assert (selected.ReferencedSOPInstanceUID, selected.ReferencedSOPClassUID) == (image, header.SOPClassUID)
        assert spot.tracking_identifier == "Hotspot of 2 mm2" and spot.finding_type.value == "MITOTIC-FIGURE"
    texts = [item.TextValue for box in content[0].ContentSequence for item in box.get("ContentSequence", []) if item.ValueType == "TEXT"]
    assert any("Research use only" in text for text in texts), texts
    notes = json.loads((run / file.name.removesuffix(".sr.dcm") / "notes.json").read_text())
    assert texts == ["Research use only: not for diagnosis", *notes], (notes, texts)


for file in sorted(written.glob("*.dcm")):
    if file.name.endswith(".sr.dcm"):
        continue
    folder = run / file.stem
    rows = list(csv.DictReader((folder / "detections.csv").open()))
    counts = json.loads((folder / "counts.json").read_text())
    ann = annread(file)
    # `group_metadata` and the like refuse what lacks a field of the standard.
    groups = {g.label: g for g in ann.get_annotation_groups()}
    assert ann.AnnotationCoordinateType == "2D" and ann.PixelOriginInterpretation == "VOLUME"
    assert ann.SOPInstanceUID == ann.file_meta.MediaStorageSOPInstanceUID and ann.Modality == "ANN"
    uids = [g.uid for g in ann.get_annotation_groups()]
    assert len({*uids, ann.SOPInstanceUID, ann.SeriesInstanceUID}) == 2 + len(uids)
    regions = (counts.get("regions") or {"list": []})["list"]
    searched = [g for g in ann.get_annotation_groups() if g.label not in KINDS]
    assert [g.label for g in searched] == [r["name"] for r in regions], searched
    if regions:
        outlines = json.loads((folder / "regions.geojson").read_text())["features"]
        for group, outline in zip(searched, outlines):
            assert group.graphic_type.value == "POLYGON" and group.annotated_property_type.value == "111099"
            for drawn, rings in zip(group.get_graphic_data("2D"), outline["geometry"]["coordinates"], strict=True):
                assert {tuple(p) for p in drawn} == {tuple(p) for p in rings[0]}, (drawn, rings)
    groups = {label: g for label, g in groups.items() if label in KINDS}
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
    check_report(written / f"{file.stem}.sr.dcm", counts)
    again = dcmread(file)
    (referenced,) = again.ReferencedImageSequence
    own = IMAGES[referenced.ReferencedSOPInstanceUID]
    assert (referenced.ReferencedSOPClassUID, again.StudyInstanceUID) == (own.SOPClassUID, own.StudyInstanceUID)
    assert again.FrameOfReferenceUID == own.FrameOfReferenceUID
    print(f"{file.name}: {len(groups)} groups on {again.ReferencedImageSequence[0].ReferencedSOPInstanceUID}")
print("read")
