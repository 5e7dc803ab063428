"""Small DICOM slides with every way of storing frames, and their pixels by other decoders.

    python make_dicom.py        # writes dicom/ and dicom.json beside this file; needs pydicom, Pillow, imagecodecs, numpy

Pixels are those that were drawn, or Pillow's (libjpeg) of every frame; CRC-32 of each level and label.
Whatever says something about a person is invented.
"""

import io
import json
import shutil
import zlib
from pathlib import Path

import imagecodecs
import numpy as np
from PIL import Image
from pydicom.dataset import Dataset, FileMetaDataset
from pydicom.encaps import encapsulate, encapsulate_extended
from pydicom.sequence import Sequence
from pydicom.uid import (
    ExplicitVRLittleEndian,
    ImplicitVRLittleEndian,
    JPEG2000,
    JPEG2000Lossless,
    JPEGBaseline8Bit,
    RLELossless,
    VLWholeSlideMicroscopyImageStorage,
)

HERE = Path(__file__).parent
OUT = HERE / "dicom"
ROOT = "1.2.826.0.1.3680043.8.498.7."
WHITE = 255


def drawn(width: int, height: int, seed: int) -> np.ndarray:
    """Something like tissue: smooth colours and dark spots."""
    rng = np.random.default_rng(seed)
    y, x = np.mgrid[:height, :width]
    base = np.stack([200 + 40 * np.sin(x / 9), 140 + 60 * np.cos(y / 7), 190 + 30 * np.sin((x + y) / 11)], -1)
    for _ in range(12):
        cx, cy, r = rng.uniform(0, width), rng.uniform(0, height), rng.uniform(2, 6)
        base[(x - cx) ** 2 + (y - cy) ** 2 < r * r] = rng.uniform(40, 110, 3)
    return np.clip(base + rng.normal(0, 4, base.shape), 0, 255).astype(np.uint8)


def frames(image: np.ndarray, side: tuple[int, int]) -> list[np.ndarray]:
    """The tiles of an image, row by row, filled up with black."""
    (w, h), (height, width) = side, image.shape[:2]
    full = np.zeros((-(-height // h) * h, -(-width // w) * w, 3), np.uint8)
    full[:height, :width] = image
    return [full[y : y + h, x : x + w] for y in range(0, height, h) for x in range(0, width, w)]


def joined(tiles: list[np.ndarray], size: tuple[int, int]) -> np.ndarray:
    """The image of such tiles."""
    width, height = size
    h, w = tiles[0].shape[:2]
    columns = -(-width // w)
    rows = [np.concatenate(tiles[i : i + columns], 1) for i in range(0, len(tiles), columns)]
    return np.concatenate(rows, 0)[:height, :width]


def item(**fields: object) -> Sequence:
    d = Dataset()
    for name, value in fields.items():
        setattr(d, name, value)
    return Sequence([d])


def dataset(series: int, instance: int, size: tuple[int, int], side: tuple[int, int], count: int, flavour: str = "VOLUME", mpp: float = 0.25) -> Dataset:
    d = Dataset()
    kind = "RESAMPLED" if flavour == "VOLUME" and mpp > 0.25 else "NONE"
    d.ImageType = ["DERIVED" if kind == "RESAMPLED" else "ORIGINAL", "PRIMARY", flavour, kind]
    d.SOPClassUID = VLWholeSlideMicroscopyImageStorage
    d.SOPInstanceUID, d.SeriesInstanceUID = f"{ROOT}{series}.{instance}", f"{ROOT}{series}"
    d.StudyInstanceUID, d.FrameOfReferenceUID = ROOT + "1000", ROOT + "1001"
    d.Modality, d.Manufacturer, d.ContainerIdentifier = "SM", "nobody", "S20-17"
    d.StudyDate, d.StudyTime, d.AccessionNumber = "20200102", "030405", "A-99"
    d.PatientName, d.PatientID, d.PatientBirthDate, d.PatientSex = "Doe^Jane", "P-17", "19500607", "F"
    d.ReferringPhysicianName, d.InstitutionName = "Roe^Richard", "Nowhere General"
    d.SeriesNumber, d.InstanceNumber = 1, instance
    d.TotalPixelMatrixColumns, d.TotalPixelMatrixRows = size
    d.TotalPixelMatrixFocalPlanes, d.NumberOfOpticalPaths = 1, 1
    d.Columns, d.Rows = side
    d.NumberOfFrames = count
    d.SamplesPerPixel, d.PhotometricInterpretation, d.PlanarConfiguration = 3, "RGB", 0
    d.BitsAllocated, d.BitsStored, d.HighBit, d.PixelRepresentation = 8, 8, 7, 0
    d.DimensionOrganizationType = "TILED_FULL"
    d.ImageOrientationSlide = [0, -1, 0, -1, 0, 0]
    d.OpticalPathSequence = item(OpticalPathIdentifier="1", ObjectiveLensPower="40", ICCProfile=bytes(range(64)))
    measures = item(PixelSpacing=[round(mpp / 1000, 9)] * 2, SliceThickness="0.001")
    d.SharedFunctionalGroupsSequence = item(PixelMeasuresSequence=measures)
    return d


def save(d: Dataset, name: str, syntax: str) -> None:
    path = OUT / name
    path.parent.mkdir(parents=True, exist_ok=True)
    d.file_meta = FileMetaDataset()
    d.file_meta.MediaStorageSOPClassUID, d.file_meta.MediaStorageSOPInstanceUID = d.SOPClassUID, d.SOPInstanceUID
    d.file_meta.TransferSyntaxUID = syntax
    d.save_as(path, enforce_file_format=True)


def plain(d: Dataset, tiles: list[np.ndarray]) -> Dataset:
    d.PixelData = b"".join(t.tobytes() for t in tiles)
    return d


def coded(d: Dataset, pieces: list[bytes], photometric: str, table: str = "basic", fragments: int = 1) -> Dataset:
    d.PhotometricInterpretation = photometric
    if table == "extended":
        d.PixelData, d.ExtendedOffsetTable, d.ExtendedOffsetTableLengths = encapsulate_extended(pieces)
    else:
        d.PixelData = encapsulate(pieces, fragments_per_frame=fragments, has_bot=table == "basic")
    d["PixelData"].is_undefined_length = True
    return d


def jpeg(tile: np.ndarray, **how: object) -> bytes:
    out = io.BytesIO()
    Image.fromarray(tile).save(out, "JPEG", quality=85, **how)
    return out.getvalue()


def unmarked(stream: bytes) -> bytes:
    """Without the segments that say what the components are, which a JPEG has in front."""
    at, kept = 2, stream[:2]
    while stream[at + 1] != 0xDA:
        n = 2 + int.from_bytes(stream[at + 2 : at + 4], "big")
        if stream[at + 1] not in (0xE0, 0xEE):
            kept += stream[at : at + n]
        at += n
    return kept + stream[at:]


def pillow(pieces: list[bytes], size: tuple[int, int]) -> np.ndarray:
    return joined([np.asarray(Image.open(io.BytesIO(p)).convert("RGB")) for p in pieces], size)


def rle(tile: np.ndarray) -> bytes:
    """PS3.5 G: a table of segments, then one segment of PackBits per plane."""
    segments = []
    for plane in np.moveaxis(tile, -1, 0):
        s = b"".join(imagecodecs.packbits_encode(line.tobytes()) for line in plane)
        segments.append(s + b"\0" * (len(s) % 2))
    places = np.cumsum([64] + [len(s) for s in segments])[:3]
    head = [3, *places.tolist()] + [0] * 12
    return np.array(head, "<u4").tobytes() + b"".join(segments)


def main() -> None:
    shutil.rmtree(OUT, ignore_errors=True)
    size, side = (100, 70), (32, 32)
    image = drawn(*size, 7)
    tiles = frames(image, side)
    figures: dict[str, dict] = {}

    def expect(name: str, levels: list[np.ndarray], **more: object) -> None:
        about = [{"width": a.shape[1], "height": a.shape[0], "crc32": zlib.crc32(np.ascontiguousarray(a).tobytes())} for a in levels]
        figures[name] = {"levels": about, **more}

    # Two levels and a label, each in its file; the name of the file says nothing.
    half = image[::2, ::2]
    label = drawn(40, 30, 8)
    save(plain(dataset(1, 1, size, side, len(tiles)), tiles), "series/b.dcm", ExplicitVRLittleEndian)
    small = frames(half, (16, 24))
    save(plain(dataset(1, 2, (50, 35), (16, 24), len(small), mpp=0.5), small), "series/a.dcm", ExplicitVRLittleEndian)
    d = plain(dataset(1, 3, (40, 30), (40, 30), 1, "LABEL"), [label])
    d.OperatorsName = "Only^In The Label"
    d.private_block(0x0009, "NOBODY", create=True).add_new(1, "LO", "what it is, its maker knows")
    save(d, "series/c.dcm", ExplicitVRLittleEndian)
    others = [{"name": "label", "width": 40, "height": 30, "crc32": zlib.crc32(label.tobytes())}]
    expect("series/a.dcm", [image, half], associated=others, mpp=0.25)

    save(plain(dataset(2, 1, size, side, len(tiles)), tiles), "implicit/a.dcm", ImplicitVRLittleEndian)
    expect("implicit/a.dcm", [image], openslide=False)
    d = dataset(3, 1, size, side, len(tiles))
    d.PlanarConfiguration = 1
    save(plain(d, [np.moveaxis(t, -1, 0) for t in tiles]), "planar/a.dcm", ExplicitVRLittleEndian)
    expect("planar/a.dcm", [image], openslide=False)

    # The frame in the middle of the first row was not scanned; the rest comes in no order.
    order = [i for i in range(len(tiles)) if i != 1][::-1]
    d = dataset(4, 1, size, side, len(order))
    d.DimensionOrganizationType = "TILED_SPARSE"
    places = [item(ColumnPositionInTotalImagePixelMatrix=1 + 32 * (i % 4), RowPositionInTotalImagePixelMatrix=1 + 32 * (i // 4)) for i in order]
    d.PerFrameFunctionalGroupsSequence = Sequence([item(PlanePositionSlideSequence=p)[0] for p in places])
    save(plain(d, [tiles[i] for i in order]), "sparse/a.dcm", ExplicitVRLittleEndian)
    holed = image.copy()
    holed[:32, 32:64] = WHITE
    expect("sparse/a.dcm", [holed], left_out=[[1, 0]])

    # Half of the frames in each of two files, as a concatenation.
    for part, (low, high) in enumerate([(0, 6), (6, 12)]):
        d = dataset(5, 1 + part, size, side, high - low)
        d.ConcatenationUID, d.InConcatenationNumber, d.ConcatenationFrameOffsetNumber = ROOT + "5.9", 1 + part, low
        d.InConcatenationTotalNumber, d.SOPInstanceUIDOfConcatenationSource = 2, ROOT + "5.10"
        save(plain(d, tiles[low:high]), f"parts/{'ba'[part]}.dcm", ExplicitVRLittleEndian)
    expect("parts/a.dcm", [image])

    for name, how, photometric in [
        ("jpeg_422", {"subsampling": "4:2:2"}, "YBR_FULL_422"),
        ("jpeg_420", {"subsampling": "4:2:0"}, "YBR_FULL_422"),
        ("jpeg_rgb", {"keep_rgb": True}, "RGB"),
    ]:
        pieces = [jpeg(t, **how) for t in tiles]
        series = 10 + len(figures)
        save(coded(dataset(series, 1, size, side, len(tiles)), pieces, photometric), f"{name}/a.dcm", JPEGBaseline8Bit)
        expect(f"{name}/a.dcm", [pillow(pieces, size)])
    # Components that only the DICOM header names.
    pieces = [jpeg(t, keep_rgb=True) for t in tiles]
    bare = [unmarked(p).replace(b"R\x11\x00G\x11\x00B\x11\x00", b"\1\x11\x00\2\x11\x00\3\x11\x00") for p in pieces]
    bare = [b.replace(b"\x03R\x00G\x00B\x00", b"\x03\1\x00\2\x00\3\x00") for b in bare]
    assert all(len(b) < len(p) and b"R\x11" not in b for b, p in zip(bare, pieces))
    save(coded(dataset(30, 1, size, side, len(tiles)), bare, "RGB"), "jpeg_bare_rgb/a.dcm", JPEGBaseline8Bit)
    expect("jpeg_bare_rgb/a.dcm", [pillow(pieces, size)])
    # The header's word against the markers': the header's holds.
    pieces = [jpeg(t, subsampling="4:4:4") for t in tiles]
    raw = []
    for p in pieces:
        stored = Image.open(io.BytesIO(p))
        stored.draft("YCbCr", stored.size)
        raw.append(np.asarray(stored))
    save(coded(dataset(31, 1, size, side, len(tiles)), pieces, "RGB"), "jpeg_marked/a.dcm", JPEGBaseline8Bit)
    expect("jpeg_marked/a.dcm", [joined(raw, size)])
    # No table of frames, and several fragments a frame; the wide table.
    pieces = [jpeg(t, subsampling="4:2:2") for t in tiles]
    for k, (table, fragments) in enumerate([("none", 1), ("none", 3), ("basic", 3), ("extended", 1)]):
        name = f"frames_{table}_{fragments}/a.dcm"
        save(coded(dataset(40 + k, 1, size, side, len(tiles)), pieces, "YBR_FULL_422", table, fragments), name, JPEGBaseline8Bit)
        expect(name, [pillow(pieces, size)], **({} if fragments == 1 else {"openslide": False}))

    save(coded(dataset(50, 1, size, side, len(tiles)), [rle(t) for t in tiles], "RGB"), "rle/a.dcm", RLELossless)
    expect("rle/a.dcm", [image], openslide=False)
    pieces = [imagecodecs.jpeg2k_encode(t, level=0, codecformat="j2k", mct=True, reversible=True) for t in tiles]
    save(coded(dataset(51, 1, size, side, len(tiles)), pieces, "YBR_RCT"), "jp2k_whole/a.dcm", JPEG2000Lossless)
    expect("jp2k_whole/a.dcm", [image])
    pieces = [imagecodecs.jpeg2k_encode(t, level=0, codecformat="j2k", mct=False, reversible=True) for t in tiles]
    save(coded(dataset(53, 1, size, side, len(tiles)), pieces, "RGB"), "jp2k_rgb/a.dcm", JPEG2000Lossless)
    expect("jp2k_rgb/a.dcm", [image])
    # All frames, in no order.
    order = list(range(len(tiles)))[::-1]
    d = dataset(6, 1, size, side, len(order))
    d.DimensionOrganizationType = "TILED_SPARSE"
    places = [item(ColumnPositionInTotalImagePixelMatrix=1 + 32 * (i % 4), RowPositionInTotalImagePixelMatrix=1 + 32 * (i // 4)) for i in order]
    d.PerFrameFunctionalGroupsSequence = Sequence([item(PlanePositionSlideSequence=p)[0] for p in places])
    save(plain(d, [tiles[i] for i in order]), "shuffled/a.dcm", ExplicitVRLittleEndian)
    expect("shuffled/a.dcm", [image])

    # Luminance and chroma, which the file around the stream names as the header does: converted once.
    def stored(rgb: np.ndarray) -> np.ndarray:
        return np.asarray(Image.fromarray(rgb).convert("YCbCr"))
    pieces = [imagecodecs.jpeg2k_encode(stored(t), level=0, codecformat="jp2", colorspace="SYCC", mct=False, reversible=True) for t in tiles]
    save(coded(dataset(54, 1, size, side, len(tiles)), pieces, "YBR_FULL"), "jp2k_sycc/a.dcm", JPEG2000Lossless)
    Image.fromarray(stored(image), "YCbCr").convert("RGB").save(OUT / "jp2k_sycc.png")
    figures["jp2k_sycc/a.dcm"] = {"picture": "jp2k_sycc.png"}
    pieces = [imagecodecs.jpeg2k_encode(t, level=35, codecformat="j2k", mct=True, reversible=False) for t in tiles]
    save(coded(dataset(52, 1, size, side, len(tiles)), pieces, "YBR_ICT"), "jp2k_lossy/a.dcm", JPEG2000)
    lossy = joined([imagecodecs.jpeg2k_decode(p) for p in pieces], size)
    Image.fromarray(lossy).save(OUT / "jp2k_lossy.png")
    figures["jp2k_lossy/a.dcm"] = {"picture": "jp2k_lossy.png"}
    (HERE / "dicom.json").write_text(json.dumps(figures, indent=1) + "\n")


main()
