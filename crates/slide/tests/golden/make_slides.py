"""Draws the small slides in `slides/` and writes their figures to `slides.json`.

Run with Python 3.11, tifffile, imagecodecs, numpy, Pillow:  python make_slides.py
Every file is drawn from a seed; no real picture is in them.
"""

import json
import sys
import zlib
from pathlib import Path

import imagecodecs
import numpy as np
import tifffile
from PIL import Image, PngImagePlugin

OUT = Path(__file__).parent / "slides"
W, H = 178, 130
MPP = 0.25


def tissue(w=W, h=H, seed=5):
    """Pink ground, violet blobs, a little grain: what JPEG finds hard and easy."""
    rng = np.random.default_rng(seed)
    y, x = np.mgrid[0:h, 0:w]
    image = np.empty((h, w, 3))
    image[:] = [231, 196, 218]
    for _ in range(25):
        cx, cy, r = rng.uniform(0, w), rng.uniform(0, h), rng.uniform(3, 14)
        inside = np.hypot(x - cx, y - cy) < r
        image[inside] = [rng.uniform(80, 130), rng.uniform(50, 100), rng.uniform(120, 170)]
    image[: h // 6] = [244, 243, 245]
    image += rng.normal(0, 2, image.shape)
    return np.clip(image, 0, 255).astype(np.uint8)


def halves(image, n):
    """`n` further levels, each a 2 x 2 mean."""
    levels = [image]
    for _ in range(n):
        a = levels[-1].astype(np.uint16)
        a = a[: a.shape[0] // 2 * 2, : a.shape[1] // 2 * 2]
        a = (a[0::2, 0::2] + a[1::2, 0::2] + a[0::2, 1::2] + a[1::2, 1::2] + 2) // 4
        levels.append(a.astype(np.uint8))
    return levels


def aperio(w, h, extra=""):
    return (
        f"Aperio Image Library v11.2.1\r\n{w}x{h} [0,0 {w}x{h}] (64x64) JPEG/RGB Q=70"
        f"|AppMag = 40|ScanScope ID = DRAWN|MPP = {MPP}{extra}"
    )


def pyramid(path, levels, bigtiff=False, sub=False, describe=None, **kw):
    kw.setdefault("photometric", "rgb")
    resolution = dict(resolution=(1e4 / MPP, 1e4 / MPP), resolutionunit="CENTIMETER")
    if describe:
        resolution = {}
    with tifffile.TiffWriter(path, bigtiff=bigtiff) as t:
        for i, level in enumerate(levels):
            own = dict(kw)
            if sub and i == 0:
                own["subifds"] = len(levels) - 1
            t.write(
                level,
                tile=(64, 64),
                subfiletype=0 if i == 0 else 1,
                description=describe(level, i) if describe else None,
                metadata=None,
                software=False,
                **resolution,
                **own,
            )


def jp2k(path, levels, code):
    """Aperio's JPEG 2000: raw codestreams, 33003 with YCbCr samples, 33005 with RGB."""

    def tiles(image):
        h, w = image.shape[:2]
        for y in range(0, h, 64):
            for x in range(0, w, 64):
                tile = np.zeros((64, 64, 3), np.uint8)
                part = image[y : y + 64, x : x + 64]
                tile[: part.shape[0], : part.shape[1]] = part
                if code == 33003:
                    tile = np.asarray(Image.fromarray(tile).convert("YCbCr"))
                yield imagecodecs.jpeg2k_encode(
                    tile, level=42, codecformat="j2k", mct=code == 33005, reversible=False
                )

    with tifffile.TiffWriter(path) as t:
        for i, level in enumerate(levels):
            t.write(
                tiles(level),
                shape=level.shape,
                dtype=np.uint8,
                tile=(64, 64),
                compression=code,
                photometric="rgb",
                description=aperio(level.shape[1], level.shape[0]),
                subfiletype=0 if i == 0 else 1,
                metadata=None,
                software=False,
            )


def with_label(path, levels, **kw):
    """An SVS with thumbnail, label and macro in strips."""
    h, w = levels[0].shape[:2]
    with tifffile.TiffWriter(path) as t:
        common = dict(metadata=None, software=False)
        t.write(levels[0], tile=(64, 64), description=aperio(w, h), **common, **kw)
        small = levels[-1]
        t.write(
            small, description=aperio(w, h) + f" -> {small.shape[1]}x{small.shape[0]}",
            rowsperstrip=16, photometric="rgb", **common,
        )
        for level in levels[1:]:
            t.write(level, tile=(64, 64), description=aperio(w, h), **common, **kw)
        for name, n in (("label", 40), ("macro", 80)):
            t.write(
                tissue(n, 30, seed=n), description=f"Aperio Image Library v11.2.1 \r\n{name} {n}x30",
                rowsperstrip=7, compression="lzw", predictor=False, photometric="rgb",
                subfiletype=1 if name == "label" else 9, **common,
            )


def main():
    OUT.mkdir(exist_ok=True)
    for old in OUT.iterdir():
        old.unlink()
    levels = halves(tissue(), 2)
    jpeg = dict(compression="jpeg")
    args = lambda q, s: dict(compressionargs=dict(level=q, subsampling=s), photometric="ycbcr", subsampling=s)
    describe = lambda level, i: aperio(level.shape[1], level.shape[0])
    with_label(OUT / "svs_jpeg_420.svs", levels, **jpeg, **args(80, (2, 2)))
    pyramid(
        OUT / "svs_jpeg_rgb.svs", levels, describe=describe, **jpeg,
        compressionargs=dict(level=85, outcolorspace="rgb"),
    )
    jp2k(OUT / "svs_jp2k_33003.svs", levels[:2], 33003)
    jp2k(OUT / "svs_jp2k_33005.svs", levels[:2], 33005)
    pyramid(OUT / "jpeg_422.tif", levels, **jpeg, **args(75, (2, 1)))
    pyramid(OUT / "jpeg_420_big.tif", levels, bigtiff=True, **jpeg, **args(60, (2, 2)))
    pyramid(OUT / "jpeg_444.tif", levels, **jpeg, **args(90, (1, 1)))
    pyramid(OUT / "deflate_predict.tif", levels[1:], compression="zlib", predictor=True)
    pyramid(OUT / "lzw.tif", levels[1:], compression="lzw", predictor=True)
    with tifffile.TiffWriter(OUT / "none_big_endian.tif", byteorder=">") as t:
        t.write(
            levels[2], tile=(32, 32), photometric="rgb", metadata=None, software=False,
            resolution=(1e4, 1e4), resolutionunit="CENTIMETER",
        )
    pyramid(OUT / "packbits.tif", levels[2:], compression="packbits")
    with tifffile.TiffWriter(OUT / "grey.tif") as t:
        t.write(levels[1][..., 1], tile=(64, 64), compression="zlib", metadata=None, software=False)
    with tifffile.TiffWriter(OUT / "planar.tif") as t:
        t.write(
            np.moveaxis(levels[2], 2, 0).copy(), tile=(32, 32), planarconfig="separate",
            photometric="rgb", compression="zlib", metadata=None, software=False,
        )
    ome = {"axes": "YXS", "PhysicalSizeX": MPP, "PhysicalSizeXUnit": "µm",
           "PhysicalSizeY": MPP, "PhysicalSizeYUnit": "µm"}
    with tifffile.TiffWriter(OUT / "pyramid.ome.tif", bigtiff=True, ome=True) as t:
        opts = dict(tile=(64, 64), photometric="rgb", compression="zlib", predictor=True)
        t.write(levels[0][:, :120], subifds=1, metadata=ome, **opts)
        t.write(levels[1][:, :60], subfiletype=1, **opts)
    flat = levels[1]
    tifffile.imwrite(
        OUT / "strips.tif", flat, rowsperstrip=7, compression="lzw", photometric="rgb",
        resolution=(1e4 / 0.5, 1e4 / 0.5), resolutionunit="CENTIMETER", metadata=None, software=False,
    )
    # Pillow writes through libtiff: shared JPEG tables.
    Image.fromarray(flat).save(OUT / "strips_jpeg_tables.tif", compression="jpeg", quality=70)
    Image.fromarray(flat).save(OUT / "flat.png", dpi=(25400 / 0.5, 25400 / 0.5))
    Image.fromarray(flat).save(OUT / "flat_72dpi.png", dpi=(72, 72))
    Image.fromarray(np.dstack([flat, np.full(flat.shape[:2], 128, np.uint8)])).save(OUT / "flat_alpha.png")
    for name, sub in (("444", 0), ("422", 1), ("420", 2)):
        Image.fromarray(flat[:61, :83]).save(OUT / f"flat_{name}.jpg", quality=75, subsampling=sub)
    Image.fromarray(flat[..., 0]).save(OUT / "flat_grey.jpg", quality=75)
    Image.fromarray(flat).save(OUT / "flat_restart.jpg", quality=60, restart_marker_rows=2)
    Image.fromarray(flat).save(OUT / "flat_progressive.jpg", quality=60, progressive=True)
    for name, more in (("444", dict(subsampling=0)), ("422_restart", dict(subsampling=1, restart_marker_blocks=3))):
        odd = Image.fromarray(flat[:61, :83])
        odd.save(OUT / f"flat_progressive_{name}.jpg", quality=90, progressive=True, **more)
    Image.fromarray(flat[:61, :83, 0]).save(OUT / "flat_progressive_grey.jpg", quality=95, progressive=True)

    # What other decoders make of each file: CRC-32 of the RGB bytes per level, where exactly one
    # answer is right (lossless schemes by tifffile, JPEG by libjpeg-turbo).
    figures = {}
    for path in sorted(OUT.iterdir()):
        own = {"bytes": path.stat().st_size}
        if path.suffix in (".png", ".jpg"):
            image = Image.open(path)
            if image.mode == "RGBA":
                # Onto white, rounded.
                a = np.asarray(image).astype(int)
                over = (a[..., :3] * a[..., 3:] + 255 * (255 - a[..., 3:]) + 127) // 255
                own["levels"] = [figure(over.astype(np.uint8))]
            else:
                own["levels"] = [figure(np.asarray(image.convert("RGB")))]
        elif "jp2k" not in path.name:
            with tifffile.TiffFile(path) as t:
                if path.name.endswith("ome.tif"):
                    pages = [t.pages[0], *t.pages[0].pages]
                else:
                    pages = [p for p in t.pages if p.is_tiled or path.name.startswith("strips")]
                own["levels"] = [figure(rgb(p)) for p in pages]
        figures[path.name] = own
    (OUT.parent / "slides.json").write_text(json.dumps(figures, indent=1) + "\n")
    print("total", sum(p.stat().st_size for p in OUT.iterdir()), "bytes", file=sys.stderr)


def rgb(page):
    a = page.asarray()
    if page.planarconfig == 2:
        a = np.moveaxis(a, 0, 2)
    if a.ndim == 2:
        a = np.repeat(a[..., None], 3, 2)
    return a


def figure(a):
    a = np.ascontiguousarray(a)
    return {"width": a.shape[1], "height": a.shape[0], "crc32": zlib.crc32(a.tobytes())}


if __name__ == "__main__":
    main()
