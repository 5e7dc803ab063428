#!/usr/bin/env python3
"""Draws the odd files that users and other programs' test suites report, and asks mithras about each.

    oddities.py draw OUT                    write the files and answers.json, the right answer for each
    oddities.py check --binary MITHRAS      draw, ask, compare; exit 1 with a line for each wrong answer
    oddities.py fetch [DIR]                 get other programs' test images from PyPI; `check` then asks about them, too

Needs numpy, Pillow, tifffile and imagecodecs; openslide-python, pydicom and scikit-image add cases where they
are installed, and what is left out is printed. Everything is drawn from a seed. A file that is refused has a remedy:
what the error names is done to the file, or given as a flag, and the result must be read. docs/reports.md lists
the report of each case; a new report becomes a function here. All answers must come within two minutes.
"""

import argparse
import gzip
import io
import json
import os
import shutil
import struct
import subprocess
import sys
import tarfile
import tempfile
import time
import zipfile
import zlib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import imagecodecs
import numpy as np
import PIL
import tifffile
from PIL import Image, ImageCms, PngImagePlugin, TiffImagePlugin

try:
    import pydicom
    import pydicom.data
except ImportError:
    pydicom = None

#: Of those images: what Pillow reads as noise, without a word.
DAMAGED = ("hopper_bad_exif.jpg", "tiff_wrong_bits_per_sample.tiff")
#: Where test images of other programs are kept, and how long all questions may take, s of the processor.
SUITES = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "mithras/suites"
LONGEST = 120
MPP = 0.25
SIDE = 1024
CASES = []


def tissue(side=SIDE, seed=3):
    """A block of pink ground with violet blobs on glass."""
    rng = np.random.default_rng(seed)
    y, x = np.mgrid[0:side, 0:side]
    image = np.full((side, side, 3), 243, np.uint8)
    block = (x > side * 0.15) & (x < side * 0.85) & (y > side * 0.1) & (y < side * 0.7)
    image[block] = [214, 150, 196]
    for _ in range(60):
        cx, cy, r = rng.uniform(0, side), rng.uniform(0, side), rng.uniform(4, 20)
        image[block & (np.hypot(x - cx, y - cy) < r)] = [120, 70, 150]
    return image


def half(image):
    a = image[: image.shape[0] // 2 * 2, : image.shape[1] // 2 * 2].astype(np.uint16)
    return ((a[0::2, 0::2] + a[1::2, 0::2] + a[0::2, 1::2] + a[1::2, 1::2] + 2) // 4).astype(np.uint8)


BASE = tissue()
LEVELS = [BASE, half(BASE), half(half(BASE))]
LABEL = np.asarray(Image.new("RGB", (140, 120), (250, 250, 240)))
MACRO = np.asarray(Image.new("RGB", (300, 110), (230, 220, 225)))
HEAD = f"Aperio Image Library v11.2.1\r\n{SIDE}x{SIDE} [0,0 {SIDE}x{SIDE}] (256x256) JPEG/RGB Q=70"
SVS = f"{HEAD}|AppMag = 40|MPP = {MPP}"
TILED = dict(tile=(256, 256), compression="zlib", photometric="rgb", metadata=None, software=False)
STRIPS = dict(photometric="rgb", metadata=None, software=False)
RESOLVED = dict(resolution=(1e4 / MPP, 1e4 / MPP), resolutionunit="CENTIMETER")


class Skipped(Exception):
    """A file that this environment cannot draw."""


def case(source, kind):
    """A function that draws one file into a folder and gives its right answer."""

    def add(f):
        CASES.append((f.__name__, source, kind, f))
        return f

    return add


def pages(path, *all_pages, **kw):
    with tifffile.TiffWriter(path, **kw) as t:
        for image, options in all_pages:
            t.write(image, **options)


def field(path, tag, page=0):
    """Where the entry of a tag is in a little-endian file, where its values are, and how many bytes each has."""
    with tifffile.TiffFile(path) as t:
        found = t.pages[page].tags[tag]
        return found.offset, found.valueoffset, {1: 1, 2: 1, 3: 2, 4: 4, 7: 1, 16: 8}[found.dtype.value]


def overwritten(path, at, data):
    with open(path, "r+b") as f:
        f.seek(at)
        f.write(data)


def with_value(path, tag, value, page=0):
    """Sets the first value of a tag."""
    _, at, size = field(path, tag, page)
    overwritten(path, at, value.to_bytes(size, "little"))


def renamed(path, tag, new, page=0):
    """Writes a tag that tifffile does not write itself: as another one, which becomes the wanted one."""
    overwritten(path, field(path, tag, page)[0], struct.pack("<H", new))


def reads(path, **more):
    return dict(file=path.name, exit=0, **more)


def refuses(path, *words, remedy=None, flags=()):
    return dict(file=path.name, exit=1, words=list(words), remedy=remedy, flags=list(flags))


def whole(**more):
    return dict(width=SIDE, height=SIDE, **more)


def detect(path, out):
    """A run of the first stage alone, which takes a second for these sizes."""
    return ["detect", path, "--out", out, "--stages", 1, "--operating-point", "0.7,0", "--threads", 1, "-q"]


def exported(path):
    """What "export it as RGB", "save it upright" and "copy it again" come to: a plain pyramid."""
    pages(path, *[(l, dict(TILED, **RESOLVED, subfiletype=int(i > 0))) for i, l in enumerate(LEVELS)])


# Which image is the slide, and what the others are.


@case("openslide, QuPath forum", "associated images of GT 450")
def gt450(d):
    p = d / "gt450.svs"
    pages(
        p,
        (BASE, dict(TILED, description=SVS)),
        (LEVELS[2], dict(STRIPS, description=f"{HEAD} -> 256x256")),
        (LEVELS[1], dict(TILED, description=SVS)),
        (LABEL, dict(STRIPS, subfiletype=1)),
        (MACRO, dict(STRIPS, subfiletype=9)),
    )
    return reads(p, info=whole(images=["thumbnail", "label", "macro"], levels=2), names=["image label", "image macro"])


@case("openslide-users", "label in the second directory")
def second_label(d):
    p = d / "second_label.svs"
    label = dict(STRIPS, description="Aperio Image Library\nlabel 140x120")
    pages(p, (BASE, dict(TILED, description=SVS)), (LABEL, label))
    return reads(p, info=whole(images=["label"]), names=["image label"])


@case("openslide-users", "a label in the second directory, without a word")
def bare_second(d):
    p = d / "bare_second.svs"
    pages(p, (BASE, dict(TILED, description=SVS)), (LABEL, STRIPS))
    return reads(p, info=whole(images=["image-1"]), names=["image image-1"])


@case("Bio-Formats, OME-TIFF of Leica", "macro before the slide")
def ome_macro_first(d):
    p = d / "macro_first.ome.tif"
    px = lambda w, h, um: f'<Pixels SizeX="{w}" SizeY="{h}" SizeC="3" SizeZ="1" SizeT="1" PhysicalSizeX="{um}">'
    xml = "<OME>" + "".join(
        f'<Image Name="{n}">{px(w, h, um)}</Pixels></Image>'
        for n, w, h, um in [("macro image", 300, 110, 8), ("scan", SIDE, SIDE, MPP)]
    ) + "</OME>"
    pages(p, (MACRO, dict(STRIPS, description=xml)), (BASE, TILED))
    return reads(p, info=whole(images=["macro"], mpp=MPP), pixels=True)


@case("tools that write all pages alike", "a slide that is flagged as a reduced copy")
def flagged(d):
    p = d / "flagged.tif"
    small = dict(TILED, resolution=(1e4 / (4 * MPP),) * 2, resolutionunit="CENTIMETER")
    pages(p, (LEVELS[2], small), (BASE, dict(TILED, **RESOLVED, subfiletype=1)))
    return reads(p, info=whole(levels=2, mpp=MPP))


@case("Bio-Formats, OME-TIFF in several files", "an image of another file in the OME-XML")
def ome_of_two_files(d):
    p = d / "two_files.ome.tif"
    size = f'SizeX="{SIDE}" SizeY="{SIDE}" SizeC="3" SizeZ="1" SizeT="1"'
    data = lambda uuid: f'<TiffData IFD="0"><UUID FileName="{uuid}.ome.tif">urn:uuid:{uuid}</UUID></TiffData>'
    image = lambda uuid, um: f'<Image><Pixels {size} PhysicalSizeX="{um}">{data(uuid)}</Pixels></Image>'
    xml = f'<OME UUID="urn:uuid:two">{image("one", 4 * MPP)}{image("two", MPP)}</OME>'
    pages(p, (BASE, dict(TILED, description=xml)))
    return reads(p, info=whole(mpp=MPP))


@case("names of cases and blocks", "a slide called after a label")
def named_slide(d):
    p = d / "named.tif"
    first = dict(TILED, **RESOLVED, description="macro metastasis")
    pages(p, (BASE, first), *[(l, dict(TILED, **RESOLVED, subfiletype=1)) for l in LEVELS[1:]])
    return reads(p, info=whole(images=[], levels=3, mpp=MPP), pixels=True)


@case("XML kept by hand", "a comment in OME-XML")
def ome_comment(d):
    p = d / "comment.ome.tif"
    image = '<Image><Pixels SizeX="{0}" SizeY="{0}" SizeC="3" SizeZ="1" SizeT="1" PhysicalSizeX="{1}"/></Image>'
    xml = f"<OME><!-- {image.format(SIDE, 8)} -->{image.format(SIDE, MPP)}</OME>"
    pages(p, (BASE, dict(TILED, description=xml)))
    return reads(p, info=whole(mpp=MPP), pixels=True)


@case("libvips, large_image", "thumbnail before the slide")
def thumbnail_first(d):
    p = d / "thumbnail_first.tif"
    pages(p, (LEVELS[2], STRIPS), (BASE, dict(TILED, **RESOLVED)))
    return reads(p, info=whole(images=["thumbnail"], mpp=MPP))


@case("Bio-Formats, Olympus exports", "two scenes")
def scenes(d):
    p = d / "scenes.tif"
    pages(p, (BASE, dict(TILED, **RESOLVED)), (BASE[:700, :900], dict(TILED, **RESOLVED)))
    return refuses(p, "several scenes", "1024 x 1024", "900 x 700", remedy=exported)


def density(um):
    return dict(resolution=(1e4 / um, 1e4 / um), resolutionunit="CENTIMETER")


@case("Bio-Formats, Olympus exports", "a smaller scene of the same shape")
def scene_of_one_shape(d):
    p = d / "scene_of_one_shape.tif"
    pages(p, (BASE, dict(TILED, **density(MPP))), (tissue(SIDE // 2, 5), dict(TILED, **density(MPP))))
    return refuses(p, "several scenes", "1024 x 1024", "512 x 512", remedy=exported)


@case("rescans at another magnification", "a scene at 20x next to one at 40x")
def scene_20x(d):
    p = d / "scene_20x.tif"
    pages(p, (BASE, dict(TILED, **density(MPP))), (tissue(SIDE // 4, 5), dict(TILED, **density(2 * MPP))))
    return reads(p, info=whole(images=["image-1"], levels=1), words=["may be another scene"])


@case("tools that write all pages alike", "two flagged scenes")
def flagged_scenes(d):
    p = d / "flagged_scenes.tif"
    flagged = dict(TILED, **RESOLVED, subfiletype=1)
    pages(p, (BASE, flagged), (BASE[:700, :900], flagged))
    return refuses(p, "several scenes", "1024 x 1024", "900 x 700", remedy=exported)


@case("tools that write all pages alike", "two flagged scenes of one shape")
def flagged_alike(d):
    p = d / "flagged_alike.tif"
    flagged = dict(TILED, **RESOLVED, subfiletype=1)
    pages(p, (BASE, flagged), (tissue(SIDE // 2, 5), flagged))
    return refuses(p, "several scenes", "1024 x 1024", "512 x 512", remedy=exported)


@case("exports without a resolution", "a small second page without um/px")
def small_second_page(d):
    p = d / "small_second_page.tif"
    pages(p, (BASE, TILED), (tissue(500, 5)[:400], TILED))
    named = "image-1 (500 x 400 px) may be another scene"
    return reads(p, info=whole(images=["image-1"], levels=1), pixels=True, words=[named])


@case("openslide", "focal planes in SVS")
def focal_svs(d):
    p = d / "focal.svs"
    pages(p, *[(BASE, dict(TILED, description=f"{SVS}|OffsetZ = {z}")) for z in (0, 0.5, 1)])
    return refuses(p, "3 images", "focal planes", "OffsetZ", remedy=exported)


@case("QuPath forum", "focal planes in OME-TIFF")
def focal_ome(d):
    p = d / "focal.ome.tif"
    tifffile.imwrite(
        p, np.stack([BASE] * 3), ome=True, tile=(256, 256), photometric="rgb", compression="zlib",
        metadata={"axes": "ZYXS", "PhysicalSizeX": MPP, "PhysicalSizeXUnit": "µm"},
    )
    return refuses(p, "3 focal planes", "SizeZ", remedy=exported)


@case("ImageJ, QuPath forum", "a composite of three grey pages")
def composite(d):
    p = d / "composite.tif"
    grey = dict(photometric="minisblack", metadata=None, software=False)
    pages(p, *[(BASE[..., k], grey) for k in range(3)])
    return refuses(p, "3 grey images", "channels", remedy=exported)


@case("ImageJ", "a stack behind one directory")
def imagej(d):
    p = d / "imagej.tif"
    tifffile.imwrite(p, np.stack([BASE[..., 0]] * 3), imagej=True)
    return dict(file=p.name, exit=1, words=["3 "], remedy=exported, flags=[])


@case("libtiff, GDAL", "mask directories")
def masks(d):
    p = d / "masks.tif"
    mask = np.ones((SIDE, SIDE), bool)
    mask_tags = dict(photometric=4, metadata=None, software=False, subfiletype=4)
    pages(p, (BASE, dict(TILED, **RESOLVED)), (mask, mask_tags), (LEVELS[1], dict(TILED, subfiletype=1)))
    return reads(p, info=whole(images=["mask"], levels=2))


@case("openslide", "a macro of 16 bits")
def macro16(d):
    p = d / "macro16.svs"
    wide = dict(STRIPS, subfiletype=9, description="Aperio Image Library\nmacro 300x110")
    pages(p, (BASE, dict(TILED, description=SVS)), (MACRO.astype(np.uint16) * 257, wide))
    return reads(p, info=whole(images=["macro"]), words=["16 bits"])


# Levels.


def without_tiles(path, level, left_out):
    """Sets the byte counts of tiles of a level to 0, as an aborted converter leaves them."""
    with tifffile.TiffFile(path) as t:
        tag = t.pages[level].tags[325]
        counts = list(tag.value)
        at, size = tag.valueoffset, {3: 2, 4: 4, 16: 8}[tag.dtype.value]
        order = "little" if t.byteorder == "<" else "big"
    with open(path, "r+b") as f:
        for i in left_out(counts):
            f.seek(at + i * size)
            f.write((0).to_bytes(size, order))


@case("Aperio, openslide's missing tiles", "holes in a coarse level")
def holes(d):
    p = d / "holes.svs"
    pages(p, (BASE, dict(TILED, description=SVS)), (LEVELS[1], dict(TILED, description=SVS)))
    without_tiles(p, 1, lambda counts: range(0, len(counts), 2))
    return reads(p, info=whole(levels=2), tissue=True, words=["read from the next finer level"])


@case("libvips, aborted exports", "a coarse level without any tile")
def empty_level(d):
    p = d / "empty_level.svs"
    pages(p, (BASE, dict(TILED, description=SVS)), (LEVELS[1], dict(TILED, description=SVS)))
    without_tiles(p, 1, lambda counts: range(len(counts)))
    return reads(p, info=whole(levels=2), tissue=True)


def without_strips(path, page, left_out):
    """Sets place and size of strips to 0, as GDAL leaves them out with SPARSE_OK."""
    for tag in (273, 279):
        _, at, size = field(path, tag, page)
        for i in left_out:
            overwritten(path, at + i * size, bytes(size))


def sparse(path, base=(), level=(), **more):
    """A slide and a level of 1024 and 512 rows in strips of 64 rows, of which some are left out."""
    strips = dict(STRIPS, rowsperstrip=64, compression="zlib")
    pages(path, (BASE, dict(strips, **RESOLVED)), (LEVELS[1], dict(strips, subfiletype=1)))
    without_strips(path, 0, base)
    without_strips(path, 1, level)
    return reads(path, info=whole(levels=2), **more)


@case("GDAL, SPARSE_OK", "strips left out in a coarse level")
def sparse_level(d):
    note = "level 1: 4 tiles left out, read from the next finer level"
    return sparse(d / "sparse_level.tif", level=range(1, 8, 2), tissue=True, words=[note], thumbnail=LEVELS[2])


@case("GDAL, SPARSE_OK", "a coarse level without any strip")
def sparse_whole_level(d):
    return sparse(d / "sparse_whole_level.tif", level=range(8), tissue=True, thumbnail=LEVELS[2])


@case("GDAL, SPARSE_OK", "strips left out of the slide itself")
def sparse_base(d):
    holed = BASE.copy()
    holed[:256] = 255
    note = "level 0: 4 tiles left out, read as white"
    return sparse(d / "sparse_base.tif", base=range(4), values=holed, words=[note])


@case("converters that stop early", "a coarse level that is blank")
def blank_level(d):
    p = d / "blank_level.tif"
    pages(
        p, (BASE, dict(TILED, **RESOLVED)), (LEVELS[1], dict(TILED, subfiletype=1)),
        (np.full_like(LEVELS[2], 244), dict(TILED, subfiletype=1)),
    )
    return reads(p, info=whole(levels=3), tissue=True, words=["shows something else"])


def damaged_tile(path):
    """A slide with a level in JPEG, of which one tile is overwritten behind its first two bytes."""
    jpeg = dict(TILED, compression="jpeg")
    pages(path, (BASE, dict(jpeg, **RESOLVED)), (LEVELS[1], dict(jpeg, subfiletype=1)))
    with tifffile.TiffFile(path) as t:
        page = t.pages[1]
        overwritten(path, page.dataoffsets[0] + 2, b"\7" * (page.databytecounts[0] - 2))


@case("cut transfers, failing disks", "a damaged JPEG tile in a coarse level")
def damaged_coarse_tile(d):
    p = d / "damaged_coarse_tile.tif"
    damaged_tile(p)
    return reads(p, info=whole(levels=2), tissue=True, thumbnail=LEVELS[2])


@case("cut transfers, failing disks", "the note about a damaged tile in a run")
def damaged_coarse_tile_counted(d):
    p = d / "damaged_coarse_tile_counted.tif"
    damaged_tile(p)
    return dict(reads(p, words=["1 tile of level 1 cannot be decoded", "a finer level was read"]), line=detect)


@case("damaged directories", "a macro of 2^30 rows")
def huge_macro(d):
    p = d / "huge_macro.svs"
    macro = dict(STRIPS, subfiletype=9, description="Aperio Image Library\nmacro 300x110", compression="zlib")
    pages(p, (BASE, dict(TILED, description=SVS)), (MACRO, macro))
    for at, size in [field(p, tag, page=1)[1:] for tag in (257, 278)]:
        overwritten(p, at, (1 << 30).to_bytes(size, "little"))
    named = ["macro 300 x 1073741824 px, cannot be read", "limit `expansion`"]
    return reads(p, info=whole(images=["macro"], levels=1), words=named, names=["image macro"], values=BASE)


@case("damaged directories", "a label whose SubIFDs are beyond the end")
def lost_label(d):
    p = d / "lost_label.svs"
    label = dict(STRIPS, description="Aperio Image Library\nlabel 140x120", extratags=[(329, 4, 1, 1 << 30, True)])
    pages(p, (BASE, dict(TILED, description=SVS)), (LABEL, label))
    renamed(p, 329, 330, page=1)
    lost = "beyond the end of the file"
    return reads(p, info=whole(levels=1), words=["label: SubIFDs: ", lost], values=BASE, unsearched=lost)


# What a file states.


@case("Aperio on German Windows", "a decimal comma in MPP")
def comma(d):
    p = d / "comma.svs"
    pages(p, (BASE, dict(TILED, description=SVS.replace("MPP = 0.25", "MPP = 0,2500"))))
    return reads(p, info=whole(mpp=MPP))


@case("scanners without a licence", "a word in MPP")
def mpp_word(d):
    p = d / "mpp_word.svs"
    pages(p, (BASE, dict(TILED, description=SVS.replace("MPP = 0.25", "MPP = not set"))))
    return dict(
        file=p.name, command=["slide", "tissue"], exit=1, words=["`not set`", "--mpp"], remedy=None,
        flags=["--mpp", "0.25"],
    )


@case("every flat image", "no um/px")
def no_mpp(d):
    p = d / "no_mpp.png"
    Image.fromarray(BASE).save(p)
    return dict(file=p.name, command=["slide", "tissue"], exit=1, words=["--mpp"], remedy=None, flags=["--mpp", "0.25"])


@case("Aperio rescans", "MPP against the density tag")
def contradiction(d):
    p = d / "contradiction.svs"
    pages(p, (BASE, dict(TILED, description=SVS, resolution=(2e4, 2e4), resolutionunit="CENTIMETER")))
    return dict(
        file=p.name, command=["slide", "tissue"], exit=1, words=["contradict", "0.25", "0.5", "--mpp"], remedy=None,
        flags=["--mpp", "0.25", "--force-mpp"],
    )


def two_mpp(path, words):
    return dict(
        file=path.name, command=["slide", "tissue"], exit=1, words=["contradict", "--mpp", *words], remedy=None,
        flags=["--mpp", "0.25", "--force-mpp"],
    )


@case("descriptions put together by scripts", "two MPP in one description")
def mpp_twice(d):
    p = d / "mpp_twice.svs"
    pages(p, (BASE, dict(TILED, description=f"{SVS}|MPP = 0.5")))
    return two_mpp(p, ["0.25", "0.5"])


@case("levels taken over from another slide", "another MPP in a level's description")
def mpp_level(d):
    p = d / "mpp_level.svs"
    level = SVS.replace(f"MPP = {MPP}", "MPP = 0.7")
    pages(p, (BASE, dict(TILED, description=SVS)), (LEVELS[1], dict(TILED, description=level)))
    return two_mpp(p, ["0.25", "0.7", "image 1"])


@case("cropped OME-TIFF", "SizeX against the image")
def ome_size(d):
    p = d / "ome_size.ome.tif"
    xml = f'<OME><Image><Pixels SizeX="900" SizeY="{SIDE}" SizeC="3" SizeZ="1" SizeT="1"></Pixels></Image></OME>'
    pages(p, (BASE, dict(TILED, description=xml)))
    return refuses(p, "900 x 1024", "1024 x 1024", remedy=exported)


@case("SVS cropped by a script", "the description's size against the image")
def svs_size(d):
    p = d / "svs_size.svs"
    pages(p, (BASE, dict(TILED, description=SVS.replace(f"{SIDE}x{SIDE}", "46000x32914"))))
    return refuses(p, "46000 x 32914", "1024 x 1024", remedy=exported)


@case("Aperio ImageScope", "a region that was cut out of a slide")
def svs_region(d):
    p = d / "svs_region.svs"
    head = f"Aperio Image Library v11.2.1\r\n46000x32914 [42673,5576 {SIDE}x{SIDE}] (256x256) JPEG/RGB Q=30"
    older = "Aperio Image Library v10.0.51\r\n46920x33014 [0,100 46000x32914] (256x256) JPEG/RGB Q=30"
    pages(p, (BASE, dict(TILED, description=f"{head};{older}|AppMag = 40|MPP = {MPP}")))
    return reads(p, info=whole(mpp=MPP))


@case("converters", "a level's density against its size")
def level_density(d):
    p = d / "level_density.tif"
    level = dict(TILED, subfiletype=1, **density(8 * MPP))
    pages(p, (BASE, dict(TILED, **density(MPP))), (LEVELS[1], level))
    return refuses(p, "2.0000 um/px", "0.5000 um/px", remedy=exported)


@case("libtiff", "orientation 0")
def orientation0(d):
    p = d / "orientation0.tif"
    pages(p, (BASE, dict(TILED, extratags=[(274, 3, 1, 0, True)], **RESOLVED)))
    return reads(p, info=whole(), pixels=True)


def turned(d, name, save):
    exif = Image.Exif()
    exif[274] = 6
    p = d / name
    save(Image.fromarray(BASE), p, exif)

    def upright(out):
        from PIL import ImageOps

        out = out.with_suffix(p.suffix)
        ImageOps.exif_transpose(Image.open(p)).save(out)
        return out

    return refuses(p, "orientation 6", "upright", remedy=upright)


@case("photographs of microscopes", "EXIF orientation of a JPEG")
def turned_jpeg(d):
    return turned(d, "turned.jpg", lambda i, p, e: i.save(p, exif=e, quality=95))


@case("photographs of microscopes", "EXIF orientation of a PNG")
def turned_png(d):
    return turned(d, "turned.png", lambda i, p, e: i.save(p, exif=e))


@case("CVAT, photographs", "orientation of a TIFF")
def turned_tiff(d):
    p = d / "turned.tif"
    pages(p, (BASE, dict(TILED, extratags=[(274, 3, 1, 6, True)])))
    return refuses(p, "orientation 6", remedy=exported)


@case("GIMP, GDAL", "RGBA without declared opacity")
def rgba(d):
    p = d / "rgba.tif"
    image = np.dstack([BASE, np.full(BASE.shape[:2], 255, np.uint8)])
    image[: SIDE // 8] = 0
    pages(p, (image, dict(TILED, extrasamples=["unspecified"], **RESOLVED)))
    return reads(p, info=whole(), white_rows=SIDE // 8)


# Files that are something else.


@case("prepress", "CMYK JPEG")
def cmyk(d):
    p = d / "cmyk.jpg"
    Image.fromarray(BASE).convert("CMYK").save(p)

    def rgb(out):
        out = out.with_suffix(".jpg")
        Image.open(p).convert("RGB").save(out)
        return out

    return refuses(p, "four components", "RGB", remedy=rgb)


@case("git clones without LFS", "a pointer instead of the slide")
def lfs(d):
    p = d / "lfs.svs"
    p.write_text("version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n")
    return refuses(p, "Git-LFS", "git lfs pull", remedy=exported)


@case("portals behind a login", "a web page instead of the slide")
def html(d):
    p = d / "page.svs"
    p.write_text("<!DOCTYPE html><html><body>Sign in</body></html>")
    return refuses(p, "HTML", "download", remedy=exported)


@case("e-mail, portals", "a zipped slide")
def zipped(d):
    p = d / "zipped.svs"
    exported(d / "inner.tif")
    with zipfile.ZipFile(p, "w") as z:
        z.write(d / "inner.tif", "inner.tif")

    def unpacked(out):
        out.write_bytes(zipfile.ZipFile(p).read("inner.tif"))

    return refuses(p, "ZIP", "unpack", remedy=unpacked)


@case("e-mail, portals", "a gzipped slide")
def gzipped(d):
    p = d / "gzipped.tif"
    exported(d / "inner.tif")
    p.write_bytes(gzip.compress((d / "inner.tif").read_bytes(), 1))
    return refuses(p, "gzip", "unpack", remedy=lambda out: out.write_bytes(gzip.decompress(p.read_bytes())) and None)


@case("fluorescence exports", "16 bits per sample")
def bits16(d):
    p = d / "bits16.tif"
    pages(p, (BASE.astype(np.uint16) * 257, TILED))
    return refuses(p, "16 bits", "8-bit RGB", remedy=exported)


# Layouts of the suites of tifffile, libtiff and Pillow.


def has_codec(name):
    if name and not getattr(imagecodecs, name).available:
        raise Skipped(f"imagecodecs has no {name} here")


def layout(name, **kw):
    def draw(d):
        p = d / f"layout_{name}.tif"
        image = kw.pop("image", LEVELS[1])
        off = kw.pop("off", 0)
        has_codec(kw.pop("codec", None))
        options = dict(dict(metadata=None, software=False, **RESOLVED), **kw)
        writer = {k: options.pop(k) for k in ("bigtiff", "byteorder") if k in options}
        with tifffile.TiffWriter(p, **writer) as t:
            t.write(image, **options)
        return reads(p, pixels=True, off=off)

    draw.__name__ = f"layout_{name}"
    case("tifffile, libtiff and Pillow suites", f"layout {name}")(draw)


RGB = dict(photometric="rgb")
layout("strip_one", rowsperstrip=512, **RGB)
layout("strip_7", rowsperstrip=7, **RGB)
layout("big_endian", byteorder=">", **RGB)
layout("bigtiff", bigtiff=True, tile=(128, 128), **RGB)
layout("bigtiff_big_endian", bigtiff=True, byteorder=">", **RGB)
layout("lzw_predictor", compression="lzw", predictor=True, **RGB)
layout("deflate_tiles_odd", image=LEVELS[1][:301, :203], tile=(64, 96), compression="zlib", **RGB)
layout("packbits", compression="packbits", **RGB)
layout("planar_strips", image=np.moveaxis(LEVELS[1], 2, 0).copy(), planarconfig="separate", **RGB)
layout("planar_tiles", image=np.moveaxis(LEVELS[1], 2, 0).copy(), planarconfig="separate", tile=(64, 64), **RGB)
layout("grey", image=LEVELS[1][..., 1], photometric="minisblack")
layout("grey_inverted", image=LEVELS[1][..., 1], photometric="miniswhite")
JPEG = dict(compression="jpeg", tile=(256, 256), off=4)
layout("grey_inverted_jpeg", image=LEVELS[1][..., 1], photometric="miniswhite", **JPEG)
YCBCR = dict(photometric="ycbcr", **JPEG)
layout("ycbcr_jpeg_11", subsampling=(1, 1), **YCBCR)
layout("ycbcr_jpeg_21", subsampling=(2, 1), **YCBCR)
layout("ycbcr_jpeg_22", subsampling=(2, 2), **YCBCR)
layout("one_pixel", image=LEVELS[1][:1, :1], **RGB)


layout("jpeg_rgb", **JPEG, **RGB)
layout("deflate_32946", compression=32946, tile=(256, 256), **RGB)
layout("deflate_32946_predictor", compression=32946, predictor=2, tile=(256, 256), **RGB)
PLANES = np.moveaxis(LEVELS[1], 2, 0).copy()
layout("planar_lzw_predictor", image=PLANES, planarconfig="separate", compression="lzw", predictor=True, **RGB)
layout("jpeg2000_33005", compression=33005, tile=(256, 256), codec="JPEG2K", **RGB)
layout("jpeg2000_34712", compression=34712, tile=(256, 256), codec="JPEG2K", **RGB)


@case("Aperio", "JPEG 2000 of YCbCr")
def jpeg2000_ycbcr(d):
    has_codec("JPEG2K")
    p = d / "jpeg2000_ycbcr.tif"
    # The stream holds YCbCr as it is, without a transform of its own.
    coded = dict(compression=33003, compressionargs=dict(mct=False), photometric="ycbcr", metadata=None, software=False)
    stored = Image.fromarray(LEVELS[1]).convert("YCbCr")
    tifffile.imwrite(p, np.asarray(stored), tile=(256, 256), **coded, **RESOLVED)
    return reads(p, values=np.asarray(stored.convert("RGB")), off=1)


def opacity(path, is_associated=False, **options):
    """A quarter is clear, a quarter is half opaque: white shows through."""
    alpha = np.full(LEVELS[1].shape[:2], 255, np.uint8)
    alpha[:128], alpha[128:256] = 0, 128
    share = alpha[..., None] / 255
    image = np.dstack([(LEVELS[1] * share).round().astype(np.uint8) if is_associated else LEVELS[1], alpha])
    if options:
        image = np.moveaxis(image, 2, 0).copy()
    extra = "assocalpha" if is_associated else "unassalpha"
    pages(path, (image, dict(TILED, extrasamples=[extra], **options, **RESOLVED)))
    return reads(path, values=(LEVELS[1] * share + 255 * (1 - share)).round().astype(np.uint8), off=1)


@case("tifffile and Pillow suites", "unassociated opacity")
def alpha_unassociated(d):
    return opacity(d / "alpha_unassociated.tif")


@case("tifffile and Pillow suites", "associated opacity")
def alpha_associated(d):
    return opacity(d / "alpha_associated.tif", is_associated=True)


@case("tifffile and Pillow suites", "unassociated opacity in a plane of its own")
def alpha_planar(d):
    return opacity(d / "alpha_planar.tif", planarconfig="separate")


@case("tifffile", "a predictor under PackBits")
def packbits_predictor(d):
    p = d / "packbits_predictor.tif"
    options = dict(metadata=None, software=False, compression="packbits", predictor=2, tile=(256, 256), **RESOLVED)
    tifffile.imwrite(p, LEVELS[1], photometric="rgb", **options)
    return refuses(p, "predictor 2", "deflate", remedy=exported)


@case("video frames", "YCbCr of the range of video")
def ycbcr_studio(d):
    p = d / "ycbcr_studio.tif"
    levels = (16, 1, 235, 1, 128, 1, 240, 1, 128, 1, 240, 1)
    extra = [(530, 3, 2, (1, 1), True), (532, 5, 6, levels, True)]
    tifffile.imwrite(p, LEVELS[1], photometric="rgb", metadata=None, software=False, extratags=extra, **RESOLVED)
    with_value(p, 262, 6)
    return refuses(p, "ReferenceBlackWhite", "RGB", remedy=exported)


@case("Pillow suite", "libtiff's writer through Pillow")
def pillow_lzw(d):
    p = d / "pillow_lzw.tif"
    Image.fromarray(LEVELS[1]).save(p, compression="tiff_lzw", dpi=(25400 / MPP, 25400 / MPP))
    return reads(p, pixels=True)


@case("Pillow suite", "palette")
def pillow_palette(d):
    p = d / "palette.tif"
    Image.fromarray(LEVELS[1]).quantize(64).save(p)
    return reads(p, pixels=True)


def png(path, image, bits=8, interlaced=False):
    """An RGB PNG, which Pillow writes neither interlaced nor with 16 bits."""
    h, w = image.shape[:2]
    deep = (image.astype(np.uint16) * 257).astype(">u2") if bits == 16 else image
    passes = [(0, 0, 1, 1)]
    if interlaced:  # Adam7: first column and row, and the steps
        passes = [(0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2)]
    rows = b"".join(
        b"\0" + np.ascontiguousarray(row).tobytes() for x, y, dx, dy in passes for row in deep[y::dy, x::dx]
    )

    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = struct.pack(">IIBBBBB", w, h, bits, 2, 0, 0, int(interlaced))
    parts = [chunk(b"IHDR", head), chunk(b"IDAT", zlib.compress(rows)), chunk(b"IEND", b"")]
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + b"".join(parts))


@case("Pillow suite", "palette PNG")
def png_palette(d):
    p = d / "palette.png"
    Image.fromarray(LEVELS[1]).quantize(64).save(p)
    return reads(p, pixels=True)


@case("Pillow suite", "interlaced PNG")
def png_interlaced(d):
    p = d / "interlaced.png"
    png(p, LEVELS[1][:333, :217], interlaced=True)
    return reads(p, pixels=True)


@case("Pillow suite", "PNG of 16 bits")
def png_16(d):
    p = d / "deep.png"
    png(p, LEVELS[1], bits=16)
    return reads(p, pixels=True)


def with_directory(out, fields, pointer):
    """Appends a directory to a little-endian TIFF, and its place to where `pointer` is; the place of its own pointer
    to a next one. `fields` are tag, type (2: text, 3: 16 bits, 4: 32 bits), values."""
    out += b"\0" * (len(out) % 2)
    entries = []
    for tag, kind, values in sorted(fields):
        packed = struct.pack(f"<{len(values)}{dict(zip((2, 3, 4), 'BHI'))[kind]}", *values)
        if len(packed) > 4:
            place = struct.pack("<I", len(out))
            out += packed + b"\0" * (len(packed) % 2)
            packed = place
        entries.append(struct.pack("<HHI", tag, kind, len(values)) + packed.ljust(4, b"\0"))
    struct.pack_into("<I", out, pointer, len(out))
    out += struct.pack("<H", len(entries)) + b"".join(entries) + bytes(4)
    return len(out) - 4


def raw_tiff(path, size, fields, data):
    """A little-endian TIFF of one strip, of any kind."""
    out = bytearray(b"II*\0\0\0\0\0" + data)
    fields = [(256, 4, [size[0]]), (257, 4, [size[1]]), *fields]
    fields += [(273, 4, [8]), (278, 4, [size[1]]), (279, 4, [len(data)])]
    with_directory(out, fields, 4)
    path.write_bytes(out)


def refused_layout(name, source, *words):
    """A layout that no camera or scanner of slides writes: refused with what it is; exported, it is read."""

    def add(f):
        def draw(d):
            p = d / f"layout_{name}.tif"
            f(p)
            return refuses(p, *words, remedy=exported)

        draw.__name__ = f"layout_{name}"
        case(source, f"layout {name}")(draw)
        return f

    return add


def few_bits(bits):
    grey = (LEVELS[1][..., 1].astype(int) * ((1 << bits) - 1) // 255).astype(np.uint16)
    each = (grey[..., None] >> np.arange(bits - 1, -1, -1)) & 1
    packed = np.packbits(each.reshape(grey.shape[0], -1).astype(np.uint8), axis=1).tobytes()
    fields = [(258, 3, [bits]), (259, 3, [1]), (262, 3, [1]), (277, 3, [1])]
    return lambda p: raw_tiff(p, grey.shape[::-1], fields, packed)


refused_layout("bits_1", "libtiff, image-tiff and Pillow suites", "1 bits per sample")(few_bits(1))
refused_layout("bits_2", "libtiff, image-tiff and Pillow suites", "2 bits per sample")(few_bits(2))
refused_layout("bits_4", "libtiff, image-tiff and Pillow suites", "4 bits per sample")(few_bits(4))
refused_layout("bits_12", "libtiff, image-tiff and Pillow suites", "12 bits per sample")(few_bits(12))


def plain_strip(bits, compression, photometric, *more):
    """One strip of any bytes: the directory is enough for an answer."""
    fields = [(258, 3, bits), (259, 3, [compression]), (262, 3, [photometric]), (277, 3, [len(bits)]), *more]
    return lambda p: raw_tiff(p, (512, 512), fields, LEVELS[1].tobytes())


refused_layout("grey_two_channels", "tifffile's default for two channels", "two channels of grey")(plain_strip([8] * 2, 1, 1, (338, 3, [0])))
colours = (320, 3, [k * 4096 for k in range(16)] * 3)
refused_layout("palette_4", "libtiff and Pillow suites", "4 bits per sample")(plain_strip([4], 1, 3, colours))
refused_layout("thunderscan", "libtiff suite", "4 bits per sample")(plain_strip([4], 32809, 1))
refused_layout("next", "NeXT computers", "2 bits per sample")(plain_strip([2], 32766, 1))
refused_layout("log_luv", "libtiff suite", "16 bits per sample")(plain_strip([16] * 3, 34676, 32845))
refused_layout("icc_lab", "prepress", "photometric interpretation 9")(plain_strip([8] * 3, 1, 9))
halved = plain_strip([8] * 3, 1, 6, (530, 3, [2, 2]))
refused_layout("ycbcr_raw", "libtiff and Pillow suites", "uncompressed YCbCr")(halved)


@refused_layout("ccitt", "libtiff and Pillow suites", "1 bits per sample")
def ccitt(p):
    Image.fromarray(LEVELS[1][..., 1] > 200).save(p, compression="group4")


@refused_layout("old_jpeg", "libtiff suite, early scanners", "compression 6")
def old_jpeg(p):
    out = io.BytesIO()
    Image.fromarray(LEVELS[1]).save(out, "JPEG")
    fields = [(258, 3, [8, 8, 8]), (259, 3, [6]), (262, 3, [6]), (277, 3, [3]), (512, 3, [1])]
    fields += [(513, 4, [8]), (514, 4, [len(out.getvalue())])]
    raw_tiff(p, LEVELS[1].shape[1::-1], fields, out.getvalue())


@refused_layout("cmyk", "libtiff, image-tiff and Pillow suites", "photometric interpretation 5")
def cmyk_tiff(p):
    Image.fromarray(LEVELS[1]).convert("CMYK").save(p)


@refused_layout("float", "tifffile and image-tiff suites", "32 bits per sample")
def floating(p):
    tifffile.imwrite(p, LEVELS[1].astype(np.float32) / 255, photometric="rgb", metadata=None)


@refused_layout("lab", "libtiff and Pillow suites", "photometric interpretation 8")
def lab(p):
    profiles = [ImageCms.createProfile("sRGB"), ImageCms.createProfile("LAB")]
    ImageCms.profileToProfile(Image.fromarray(LEVELS[1]), *profiles, outputMode="LAB").save(p)


def coded(codec=None, image=LEVELS[1], **options):
    def write(p):
        has_codec(codec)
        tifffile.imwrite(p, image, **dict(TILED, **options))

    return write


CODECS, FLOATS = "codecs of libtiff, tifffile", LEVELS[1].astype(np.float32) / 255
refused_layout("lzma", CODECS, "compression 34925")(coded("LZMA", compression="lzma"))
refused_layout("zstd", CODECS, "compression 50000")(coded("ZSTD", compression="zstd"))
refused_layout("webp", CODECS, "compression 50001")(coded("WEBP", compression="webp"))
refused_layout("jpeg_xl", CODECS, "compression 50002")(coded("JPEGXL", compression="jpegxl"))
refused_layout("jpeg_xr", "tifffile, CZI", "compression 34934")(coded("JPEGXR", compression="jpegxr"))
refused_layout("lerc", CODECS, "compression 34887")(coded("LERC", compression="lerc"))
planes = coded(image=PLANES, planarconfig="separate", compression="jpeg")
refused_layout("planar_jpeg", CODECS, "JPEG in separate planes")(planes)
signed = (LEVELS[1].astype(int) - 128).astype(np.int8)
refused_layout("signed", "image-tiff suite", "not unsigned")(coded(image=signed))
refused_layout("bits_32", "image-tiff suite", "32 bits per sample")(coded(image=LEVELS[1].astype(np.uint32)))
refused_layout("half_float", "image-tiff suite", "16 bits per sample")(coded(image=FLOATS.astype(np.float16)))
refused_layout("float_predictor", CODECS, "32 bits per sample")(coded(image=FLOATS, predictor=3))


def oriented(value):
    return lambda p: pages(p, (BASE, dict(TILED, extratags=[(274, 3, 1, value, True)])))


refused_layout("orientation_2", "large_image suite", "orientation 2", "upright")(oriented(2))
refused_layout("orientation_3", "large_image suite", "orientation 3", "upright")(oriented(3))
refused_layout("orientation_4", "large_image suite", "orientation 4", "upright")(oriented(4))
refused_layout("orientation_5", "large_image suite", "orientation 5", "upright")(oriented(5))
refused_layout("orientation_7", "large_image suite", "orientation 7", "upright")(oriented(7))
refused_layout("orientation_8", "large_image suite", "orientation 8", "upright")(oriented(8))


@refused_layout("predictor_3", CODECS, "predictor 3")
def predictor_3(p):
    pages(p, (LEVELS[1], dict(TILED, predictor=2)))
    with_value(p, 317, 3)


@refused_layout("fill_order", "fax machines", "FillOrder 2")
def fill_order(p):
    pages(p, (LEVELS[1], dict(TILED, compression="lzw", extratags=[(269, 3, 1, 2, True)])))
    renamed(p, 269, 266)
    with tifffile.TiffFile(p) as t:
        places = list(zip(t.pages[0].dataoffsets, t.pages[0].databytecounts))
    data = p.read_bytes()
    for at, size in places:
        overwritten(p, at, imagecodecs.bitorder_encode(data[at : at + size]))


# Regions and tables: `line` is the command about them.


def within(*flags):
    """A run on a drawn slide within the regions of a file."""

    def line(path, out):
        slide = path.parent / f"{path.stem}.slide.tif"
        pages(slide, (LEVELS[1], dict(TILED, **RESOLVED)))
        return [*detect(slide, out), "--regions", path, *flags]

    return line


def regions_of(mm2):
    def result(out):
        [counts] = out.glob("*/counts.json")
        got = json.loads(counts.read_text())["regions"]["area_mm2"]
        need(abs(got / mm2 - 1) < 1e-6, f"regions of {got} mm2, {mm2} mm2 are right")

    return result


@case("photographs, image editors", "EXIF orientation of a mask of regions")
def turned_mask(d):
    p = d / "turned_mask.png"
    mask = np.zeros((64, 64), np.uint8)
    mask[:32, :16] = 1
    exif = Image.Exif()
    exif[274] = 3
    Image.fromarray(mask).save(p, exif=exif)

    def upright(out):
        out = out.with_suffix(".png")
        Image.fromarray(mask[::-1, ::-1]).save(out)
        return out

    answer = refuses(p, "turned_mask.png: orientation 3", "upright", remedy=upright)
    return dict(answer, line=within("--regions-mpp", 8 * MPP), result=regions_of(32 * 16 * (8 * MPP / 1000) ** 2))


def qupath(path, outline):
    """Regions of QuPath with one annotation of 256 px below the object of the whole image."""

    def polygon(side):
        return dict(type="Polygon", coordinates=[[[0, 0], [side, 0], [side, side], [0, side], [0, 0]]])

    about = dict(objectType="annotation", classification=dict(name="Tumor"))
    child = dict(type="Feature", geometry=polygon(256), properties=about)
    above = dict(type="Feature", geometry=outline and polygon(outline))
    path.write_text(json.dumps([dict(above, properties=dict(objectType="root", childObjects=[child]))]))
    return dict(reads(path), line=within(), result=regions_of((256 * MPP / 1000) ** 2))


@case("QuPath", "an annotation below a root object")
def below_root(d):
    return qupath(d / "below_root.geojson", None)


@case("QuPath", "an annotation below a root object with an outline")
def below_outlined_root(d):
    return qupath(d / "below_outlined_root.geojson", 512)


def km(path, out):
    return ["survival", "km", "--table", path, "--time", "months", "--event", "died"]


def open_marks(path, text):
    path.write_text(text)

    def closed(out):
        out = out.with_suffix(".csv")
        out.write_text(text.replace('"', ""))
        return out

    words = f"{path.name}: line 2: a cell in quotation marks takes the next line"
    return dict(refuses(path, words, "close the mark", remedy=closed), line=km)


@case("notes typed by hand", "open quotation marks in rows of two columns")
def open_marks_of_two(d):
    return open_marks(d / "open_marks.csv", 'months,died\n12,"1\n5,0"\n3,1\n9,0\n')


@case("notes typed by hand", "open marks, a blank behind each comma")
def open_marks_blank(d):
    text = 'months, died, note\n12, 1, "near the edge\n5, 0, out of focus"\n3, 1, sound\n'
    return open_marks(d / "open_marks_blank.csv", text)


# Personal data in files.


def profile(text):
    """A colour profile of a description alone."""
    data = b"text\0\0\0\0" + text.encode() + b"\0"
    head = struct.pack(">I4xI4s4s4s12x4s", 144 + len(data), 0x02400000, b"mntr", b"RGB ", b"XYZ ", b"acsp")
    return head.ljust(128, b"\0") + struct.pack(">I4sII", 1, b"desc", 144, len(data)) + data


def personal(name, tags, found):
    def draw(d):
        p = d / f"text_in_{name}.tif"
        pages(p, (BASE, dict(TILED, extratags=tags, **RESOLVED)))
        return reads(p, names=[found])

    draw.__name__ = f"text_in_{name}"
    case("de-identification", f"text in {name}")(draw)


personal("page_name", [(285, 2, 0, "S21-1234", True)], "tiff.PageName")
personal("owner", [(42032, 2, 0, "Dr. Doe", True)], "tiff.CameraOwnerName")
personal("private", [(65000, 2, 0, "Jane Doe", True)], "tiff.(65000)")
personal("iptc", [(33723, 7, 13, b"\x1c\x02P\0\x08Jane Doe", True)], "tiff.IPTC")
personal("xmp", [(700, 1, 12, b"<x>Jane</x>\n", True)], "tiff.XMP")
IVANOV = "Иванов Иван".encode()
personal("private_bytes", [(65001, 1, len(IVANOV), IVANOV, True)], "tiff.(65001)")
personal("icc", [(34675, 7, 0, profile("sRGB, Jane Doe"), True)], "tiff.ICCProfile.desc")


@case("de-identification", "a date in a number of Aperio's description")
def says_rack(d):
    p = d / "rack.svs"
    pages(p, (BASE, dict(TILED, description=f"{SVS}|Rack = 2021-03-04")))
    return reads(p, info=whole(mpp=MPP), values=BASE, names=["tiff.ImageDescription: Rack"])


@case("de-identification", "text in a directory behind one of SubIFDs")
def says_chained(d):
    p = d / "chained.tif"
    pages(p, (BASE, dict(TILED, extratags=[(329, 4, 1, 0, True)], **RESOLVED)))
    renamed(p, 329, 330)
    at = field(p, 330)[1]
    out = bytearray(p.read_bytes())
    sized = [(256, 3, [64]), (257, 3, [8])]
    following = with_directory(out, sized, at)
    with_directory(out, [*sized, (285, 2, b"Jane Doe\0")], following)
    p.write_bytes(out)
    return reads(p, info=whole(mpp=MPP), values=BASE, names=["tiff.sub[0].next.PageName"])


@case("de-identification", "a second description in a directory")
def says_twice(d):
    p = d / "described_twice.svs"
    pages(p, (BASE, dict(TILED, description=SVS, extratags=[(271, 2, 0, "Jane Doe", True)])))
    renamed(p, 271, 270)
    return reads(p, info=whole(mpp=MPP), values=BASE, names=["tiff.ImageDescription"])


def bare_label(path, options, found):
    """A label of the slide's shape, which nothing names, in front of its level."""
    y, x = np.mgrid[0:256, 0:256]
    label = np.where(((x // 24 + y // 24) % 4 == 0)[..., None], 30, 250).astype(np.uint8).repeat(3, 2)
    level = dict(TILED, description=SVS)
    pages(path, (BASE, level), (label, options), (LEVELS[1], level))
    return reads(path, values=BASE, names=[found])


@case("de-identification", "an unnamed label of the slide's shape")
def bare_square_label(d):
    return bare_label(d / "bare_label.svs", STRIPS, "image image-1")


@case("de-identification", "an unnamed label of the slide's shape in tiles")
def bare_tiled_label(d):
    return bare_label(d / "bare_tiled_label.svs", TILED, "level 2")


@case("de-identification", "comment of a JPEG")
def says_comment(d):
    p = d / "comment.jpg"
    Image.fromarray(BASE).save(p, comment=b"Jane Doe")
    return reads(p, names=["jpeg.Comment"])


@case("de-identification", "EXIF of a JPEG")
def says_exif(d):
    p = d / "exif.jpg"
    exif = Image.Exif()
    exif[315], exif[306] = "Dr. Doe", "2021:03:04 10:11:12"
    Image.fromarray(BASE).save(p, exif=exif)
    return reads(p, names=["jpeg.exif.Artist", "jpeg.exif.DateTime"])


@case("de-identification", "text of a PNG")
def says_png(d):
    p = d / "text.png"
    info = PngImagePlugin.PngInfo()
    info.add_text("Author", "Jane Doe")
    info.add_itxt("Description", "Jane Doe", zip=True)
    Image.fromarray(BASE).save(p, pnginfo=info)
    return reads(p, names=["png.Author", "png.Description"])


@case("de-identification", "description in an ICC profile of a TIFF")
def says_icc(d):
    p = d / "icc.tif"
    profile = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()
    name = "sRGB built-in"
    for coding in ("utf-16-be", "ascii"):
        profile = profile.replace(name.encode(coding), "Jane Doe 1234".encode(coding))
    pages(p, (BASE, dict(TILED, iccprofile=profile, **RESOLVED)))
    return reads(p, names=["tiff.ICCProfile.desc"])


@case("de-identification", "EXIF and GPS in a TIFF")
def says_tiff_exif(d):
    p = d / "gps.tif"
    info = TiffImagePlugin.ImageFileDirectory_v2()
    info[315] = "Dr. Doe"
    for tag, below in ((34665, {42032: "Jane Doe"}), (34853, {1: "N", 2: (52.0, 31.0, 0.0)})):
        info.tagtype[tag], info[tag] = 4, below
    Image.fromarray(BASE).save(p, tiffinfo=info, dpi=(25400 / MPP, 25400 / MPP))
    return reads(p, names=["tiff.Artist", "tiff.exif.CameraOwnerName", "tiff.gps.(2)"])


@case("de-identification", "GPS in a JPEG")
def says_jpeg_gps(d):
    p = d / "gps.jpg"
    exif = Image.Exif()
    exif.get_ifd(0x8825).update({1: "N", 2: (52.0, 31.0, 0.0), 3: "E", 4: (13.0, 24.0, 0.0)})
    Image.fromarray(BASE).save(p, exif=exif)
    return reads(p, names=["jpeg.exif.gps.(2)"])


@case("de-identification", "a person in OME-XML")
def says_ome(d):
    p = d / "person.ome.tif"
    pixels = f'<Pixels SizeX="{SIDE}" SizeY="{SIDE}" SizeC="3" SizeZ="1" SizeT="1" PhysicalSizeX="{MPP}"></Pixels>'
    who = '<Experimenter ID="Experimenter:0" FirstName="Jane" LastName="Doe" Email="jane@example.org"/>'
    taken = "<AcquisitionDate>2021-03-04T10:11:12</AcquisitionDate><Description>Jane Doe, S21-1234</Description>"
    xml = f'<?xml version="1.0"?><OME>{who}<Image ID="Image:0" Name="S21-1234">{taken}{pixels}</Image></OME>'
    pages(p, (BASE, dict(TILED, description=xml)))
    return reads(p, info=whole(mpp=MPP), names=["tiff.ImageDescription"])


@case("de-identification", "compressed text of a PNG")
def says_png_ztxt(d):
    p = d / "ztxt.png"
    info = PngImagePlugin.PngInfo()
    info.add_text("Comment", "Jane Doe, S21-1234", zip=True)
    Image.fromarray(BASE).save(p, pnginfo=info)
    return reads(p, names=["png.Comment"])


@case("de-identification", "a keyword of a PNG that nobody lists")
def says_png_keyword(d):
    p = d / "keyword.png"
    info = PngImagePlugin.PngInfo()
    info.add_text("Jane Doe", "x")
    Image.fromarray(BASE).save(p, pnginfo=info)
    return reads(p, names=["png.Jane Doe"])


@case("de-identification", "a segment of a JPEG that is reserved")
def says_reserved(d):
    p = d / "reserved.jpg"
    Image.fromarray(BASE).save(p)
    data = p.read_bytes()
    p.write_bytes(data[:2] + b"\xff\xf0\0\x0aJane Doe" + data[2:])
    return reads(p, names=["jpeg.segment F0"])


@case("de-identification", "an SVS with everything")
def says_svs(d):
    p = d / "everything.svs"
    text = f"{SVS}|User = Jane|Date = 01/02/03|Filename = S21-1234"
    pages(
        p,
        (BASE, dict(TILED, description=text, extratags=[(315, 2, 0, "Dr. Doe", True)])),
        (LEVELS[2], dict(STRIPS, description=f"{HEAD} -> 256x256")),
        (LEVELS[1], dict(TILED, description=text)),
        (LABEL, dict(STRIPS, description="Aperio Image Library\nlabel 140x120")),
        (MACRO, dict(STRIPS, description="Aperio Image Library\nmacro 300x110")),
    )
    return reads(p, names=["aperio.User", "image label", "tiff.Artist"], openslide="aperio")


# DICOM, each slide in a folder of its own.


def dicom(path, image=None, side=256, uid="1", mpp=MPP, left_out=(), **fields):
    """A whole-slide instance of frames that are not compressed; some frames may be left out."""
    image = LEVELS[1] if image is None else image
    from pydicom.dataset import Dataset, FileMetaDataset
    from pydicom.uid import ExplicitVRLittleEndian, VLWholeSlideMicroscopyImageStorage

    def item(**values):
        d = Dataset()
        for name, value in values.items():
            setattr(d, name, value)
        return pydicom.Sequence([d])

    (h, w), root = image.shape[:2], "1.2.826.0.1.3680043.8.498.9."
    padded = np.zeros((-(-h // side) * side, -(-w // side) * side, 3), np.uint8)
    padded[:h, :w] = image
    places = [(x, y) for y in range(0, h, side) for x in range(0, w, side) if (x // side, y // side) not in left_out]
    d = Dataset()
    d.ImageType = ["ORIGINAL" if uid == "1" else "DERIVED", "PRIMARY", "VOLUME", "NONE" if uid == "1" else "RESAMPLED"]
    d.SOPClassUID, d.SOPInstanceUID = VLWholeSlideMicroscopyImageStorage, f"{root}{uid}"
    d.SeriesInstanceUID, d.StudyInstanceUID, d.FrameOfReferenceUID = root + "100", root + "101", root + "102"
    d.Modality, d.ContainerIdentifier, d.PatientName, d.PatientID = "SM", "S21-1234", "Doe^Jane", "S21-1234"
    d.TotalPixelMatrixColumns, d.TotalPixelMatrixRows, d.Columns, d.Rows = w, h, side, side
    d.TotalPixelMatrixFocalPlanes, d.NumberOfOpticalPaths, d.NumberOfFrames = 1, 1, len(places)
    d.SamplesPerPixel, d.PhotometricInterpretation, d.PlanarConfiguration = 3, "RGB", 0
    d.BitsAllocated, d.BitsStored, d.HighBit, d.PixelRepresentation = 8, 8, 7, 0
    d.DimensionOrganizationType = "TILED_SPARSE" if left_out else "TILED_FULL"
    d.OpticalPathSequence = item(OpticalPathIdentifier="1")
    measures = item(PixelSpacing=[mpp / 1000] * 2, SliceThickness="0.001")
    d.SharedFunctionalGroupsSequence = item(PixelMeasuresSequence=measures)
    if left_out:
        at = [
            item(ColumnPositionInTotalImagePixelMatrix=x + 1, RowPositionInTotalImagePixelMatrix=y + 1)
            for x, y in places
        ]
        d.PerFrameFunctionalGroupsSequence = pydicom.Sequence([item(PlanePositionSlideSequence=a)[0] for a in at])
    d.PixelData = b"".join(padded[y : y + side, x : x + side].tobytes() for x, y in places)
    for name, value in fields.items():
        if name == "private":
            d.private_block(0x0009, "NOBODY", create=True).add_new(1, "LO", value)
        else:
            setattr(d, name, value)
    d.file_meta = FileMetaDataset()
    d.file_meta.MediaStorageSOPClassUID, d.file_meta.MediaStorageSOPInstanceUID = d.SOPClassUID, d.SOPInstanceUID
    d.file_meta.TransferSyntaxUID = ExplicitVRLittleEndian
    path.parent.mkdir(parents=True, exist_ok=True)
    d.save_as(path, enforce_file_format=True)


def alone(path, **more):
    """What the remedy of a DICOM slide comes to: one plain picture in a folder of its own."""

    def save(out):
        out = out.parent / out.stem / "alone.dcm"
        dicom(out, **more)
        return out

    return save


def dicom_case(source, kind):
    def add(f):
        return case(source, kind)(f) if pydicom else f

    return add


def in_folder(path, answer):
    return dict(answer, file=f"{path.parent.name}/{path.name}")


@dicom_case("highdicom, IDC", "two levels of a DICOM series")
def dicom_levels(d):
    p = d / "dicom_levels/fine.dcm"
    dicom(p)
    dicom(p.with_name("coarse.dcm"), half(LEVELS[1]), uid="2", mpp=2 * MPP)
    return in_folder(p, reads(p, info=dict(width=512, height=512, levels=2, mpp=MPP), values=LEVELS[1]))


@dicom_case("Bio-Formats, IDC", "two scenes in a DICOM series")
def dicom_scenes(d):
    p = d / "dicom_scenes/first.dcm"
    dicom(p)
    dicom(p.with_name("second.dcm"), LEVELS[1][:300, :400], uid="2")
    return in_folder(p, refuses(p, "several scenes", "400 x 300", remedy=alone(p)))


@dicom_case("rescans in one series", "two scenes of one spacing in DICOM")
def dicom_one_spacing(d):
    p = d / "dicom_one_spacing/first.dcm"
    dicom(p)
    kind = ["ORIGINAL", "PRIMARY", "VOLUME", "NONE"]
    dicom(p.with_name("second.dcm"), tissue(256, 5), uid="2", ImageType=kind)
    return in_folder(p, refuses(p, "several scenes", "512 x 512 px", "256 x 256 px", remedy=alone(p)))


@dicom_case("files that were sorted by hand", "two patients in a DICOM series")
def dicom_patients(d):
    p = d / "dicom_patients/fine.dcm"
    dicom(p)
    dicom(p.with_name("coarse.dcm"), half(LEVELS[1]), uid="2", mpp=2 * MPP, PatientID="S21-1235")
    return in_folder(p, refuses(p, "coarse.dcm are of one series", "PatientID", remedy=alone(p)))


@dicom_case("Bio-Formats, 3DHISTECH's DICOM", "focal planes in DICOM")
def dicom_planes(d):
    p = d / "dicom_planes/planes.dcm"
    dicom(p, TotalPixelMatrixFocalPlanes=3)
    return in_folder(p, refuses(p, "3 focal planes", remedy=alone(p)))


@dicom_case("fluorescence in DICOM", "grey frames of 16 bits in DICOM")
def dicom_grey(d):
    p = d / "dicom_grey/grey.dcm"
    grey = dict(SamplesPerPixel=1, PhotometricInterpretation="MONOCHROME2", BitsAllocated=16, BitsStored=16, HighBit=15)
    dicom(p, **grey, PixelData=bytes(2 * 512 * 512))
    return in_folder(p, refuses(p, "16 bits", "8-bit RGB", remedy=alone(p)))


@dicom_case("cut transfers", "a DICOM file with fewer frames than places")
def dicom_cut(d):
    p = d / "dicom_cut/cut.dcm"
    dicom(p, NumberOfFrames=3, PixelData=bytes(3 * 3 * 256 * 256))
    return in_folder(p, refuses(p, "3 frames of 4", remedy=alone(p)))


@dicom_case("DICOM, TILED_SPARSE", "frames that were not scanned")
def dicom_holes(d):
    p = d / "dicom_holes/holes.dcm"
    dicom(p, left_out=[(1, 0)])
    holed = LEVELS[1].copy()
    holed[:256, 256:] = 255
    return in_folder(p, reads(p, values=holed))


@dicom_case("cut transfers", "a missing file of a sparse DICOM image")
def dicom_part(d):
    p = d / "dicom_part/part.dcm"
    part = dict(ConcatenationUID="1.2.3.4", ConcatenationFrameOffsetNumber=0, InConcatenationNumber=1)
    dicom(p, left_out=[(1, 0)], **part, InConcatenationTotalNumber=2)
    return in_folder(p, refuses(p, "in 2 files", "a file is missing", remedy=alone(p)))


@dicom_case("converters", "a size in millimetres against the spacing in DICOM")
def dicom_volume(d):
    p = d / "dicom_volume/volume.dcm"
    mm = dict(ImagedVolumeWidth=2 * 512 * MPP / 1000, ImagedVolumeHeight=2 * 512 * MPP / 1000)
    dicom(p, **mm)
    return dict(
        file="dicom_volume/volume.dcm", command=["slide", "tissue"], exit=1,
        words=["contradict", "0.25", "0.5", "--mpp"], remedy=None, flags=["--mpp", "0.25", "--force-mpp"],
    )


@dicom_case("levels of another scan", "a level's spacing against its size in DICOM")
def dicom_spacing(d):
    p = d / "dicom_spacing/fine.dcm"
    dicom(p)
    dicom(p.with_name("coarse.dcm"), half(LEVELS[1]), uid="2", mpp=3 * MPP)
    return in_folder(p, refuses(p, "coarse.dcm", "0.7500 um/px", "0.5000 um/px", remedy=alone(p)))


@dicom_case("cut transfers", "a damaged label in a DICOM series")
def dicom_label(d):
    p = d / "dicom_label/slide.dcm"
    label = p.with_name("label.dcm")
    dicom(p)
    dicom(label, LEVELS[1][:120, :140], uid="2", ImageType=["ORIGINAL", "PRIMARY", "LABEL", "NONE"])
    label.write_bytes(label.read_bytes()[:-2000])
    return in_folder(p, reads(p, info=dict(width=512, height=512, levels=1, mpp=MPP), values=LEVELS[1]))


@dicom_case("de-identification", "free text in technical attributes of DICOM")
def says_more_dicom(d):
    p = d / "dicom_words/words.dcm"
    words = dict(ProtocolName="of Jane Doe", Manufacturer="Jane Doe", EncapsulatedDocument=b"for Jane Doe")
    dicom(p, Occupation="Judge", **words)
    names = ["Occupation", "ProtocolName", "Manufacturer", "EncapsulatedDocument"]
    return in_folder(p, reads(p, names=[f"dicom.{name}" for name in names]))


@dicom_case("de-identification", "codes of a hospital's own list in DICOM")
def says_codes(d):
    p = d / "dicom_codes/codes.dcm"
    code = pydicom.Dataset()
    code.CodeValue, code.CodingSchemeDesignator, code.CodeMeaning = "4711", "99HOSP", "Jane Doe"
    dicom(p, ContainerTypeCodeSequence=pydicom.Sequence([code]), PositionReferenceIndicator="Jane Doe")
    names = ["ContainerTypeCodeSequence[0].CodingSchemeDesignator", "PositionReferenceIndicator"]
    return in_folder(p, reads(p, names=[f"dicom.{name}" for name in names]))


@dicom_case("de-identification", "private groups of DICOM")
def says_dicom(d):
    p = d / "dicom_private/private.dcm"
    dicom(p, private="Jane Doe", OperatorsName="Doe^Jane", StudyDate="20210304")
    return in_folder(p, reads(p, names=["dicom.(0009,1001)", "dicom.PatientName", "dicom.StudyDate"]))


def suites():
    """Test images of other programs, where `fetch` has put them."""
    if not SUITES.is_dir():
        print(f"SKIPPED: no test images of other programs in {SUITES}; `oddities.py fetch` gets them from PyPI")
        return []
    wanted = (".tif", ".tiff", ".png", ".jpg", ".jpeg")
    # Animated pictures and pages that Pillow draws itself add no layout.
    others = ("apng", "imagedraw", "html")
    found = (p for p in sorted(SUITES.rglob("*")) if not any(str(p.relative_to(SUITES)).count(o) for o in others))
    return [p for p in found if p.suffix.lower() in wanted and p.stat().st_size < 4_000_000]


def fetch(folder):
    """Pillow's source package holds its test images, once for each version of it; those of other packages are in
    docs/reports.md."""
    whole = folder / f"pillow/.complete-{PIL.__version__}"
    if whole.exists():
        return 0
    with tempfile.TemporaryDirectory() as work:
        words = ["pip", "download", "-q", "--disable-pip-version-check", "--no-deps", "--no-binary", "pillow", "-d", work, "--retries", "1"]
        done = subprocess.run([sys.executable, "-m", *words, f"pillow=={PIL.__version__}"], capture_output=True, text=True)
        if done.returncode != 0:
            print(f"no test images of Pillow {PIL.__version__}: {done.stderr.strip()[-300:]}", file=sys.stderr)
            return 1
        shutil.rmtree(folder / "pillow", ignore_errors=True)
        [source] = Path(work).glob("[pP]illow-*.tar.gz")
        with tarfile.open(source) as t:
            for member in t:
                parts = Path(member.name).parts
                if member.isfile() and parts[1:3] == ("Tests", "images") and ".." not in parts:
                    place = folder / "pillow" / Path(*parts[3:])
                    place.parent.mkdir(parents=True, exist_ok=True)
                    place.write_bytes(t.extractfile(member).read())
    whole.touch()
    print(f"{sum(1 for p in folder.rglob('*') if p.is_file())} files in {folder}")
    return 0


def installed():
    """Images that come with packages of the environment: each is read as Pillow reads it, or refused."""
    try:
        import skimage
    except ImportError:
        print("SKIPPED: scikit-image is not installed")
        return []
    folder = Path(skimage.__file__).parent / "data"
    found = [p for p in sorted(folder.iterdir()) if p.suffix.lower() in (".tif", ".png", ".jpg")]
    if pydicom:
        found += sorted((Path(pydicom.data.__file__).parent / "test_files").glob("*.dcm"))[:40]
    else:
        print("SKIPPED: pydicom is not installed")
    return [p for p in found if p.stat().st_size < 4_000_000]


# Asking.


class Wrong(Exception):
    pass


def need(condition, what):
    if not condition:
        raise Wrong(what)


class Asker:
    def __init__(self, binary, folder):
        self.binary, self.folder = str(binary), folder
        # Two threads ask, and both compare tissue with this one's.
        whole = folder / "whole.tif"
        exported(whole)
        self.whole_mm2 = self.area("whole", whole)

    def run(self, *args):
        done = subprocess.run(
            [self.binary, *map(str, args)], capture_output=True, text=True, errors="replace", timeout=120
        )
        need(done.returncode in (0, 1), f"exit {done.returncode}: {' '.join(map(str, args))}\n{done.stderr[-600:]}")
        return done.returncode, done.stdout, done.stderr

    def read(self, path, size=16384):
        # Files of one name in several folders are asked about at once.
        out = self.folder / f"{'_'.join(path.parts[-3:])}.out.png"
        code, _, err = self.run("slide", "thumbnail", path, "--out", out, "--size", size)
        need(code == 0, f"not read: {err.strip()}")
        return np.asarray(Image.open(out).convert("RGB"))

    def ask(self, name, answer):
        path = self.folder / answer["file"]
        line = self.line(name, path, answer)
        code, out, err = self.run(*line)
        need(code == answer["exit"], f"exit {code}, {answer['exit']} is right: {(err or out).strip()[:400]}")
        for word in answer.get("words", []):
            need(word in out + err, f"`{word}` is not printed: {(err or out).strip()[:400]}")
        if answer["exit"] != 0:
            return self.remedy(name, answer, line)
        if result := answer.get("result"):
            result(self.folder / f"{name}.run")
        if answer.get("line"):
            return None
        if info := answer.get("info"):
            self.info(path, info)
        if answer.get("tissue"):
            self.tissue(name, path)
        if (small := answer.get("thumbnail")) is not None:
            got = self.read(path, len(small)).astype(int)
            need(got.shape == small.shape, f"a thumbnail of {got.shape}, {small.shape} is right")
            need(abs(got - small).mean() < 3, f"the thumbnail differs by {abs(got - small).mean():.1f} in the mean")
        if answer.get("pixels"):
            self.pixels(path, answer.get("off", 0))
        if (values := answer.get("values")) is not None:
            got, off = self.read(path), answer.get("off", 0)
            need(got.shape == values.shape, f"{got.shape} instead of {values.shape}")
            differ = abs(got.astype(int) - values).max()
            need(differ <= off, f"the pixels differ by {differ} from those drawn")
        if rows := answer.get("white_rows"):
            need((self.read(path)[:rows] == 255).all(), "the transparent ground is not white")
        self.people(name, path, answer)

    def line(self, name, path, answer):
        """The command about a file: of the answer itself, or `slide info` or `slide tissue`."""
        if line := answer.get("line"):
            return line(path, self.folder / f"{name}.run")
        command = answer.get("command", ["slide", "info"])
        return [*command, path, *(["--out", self.folder / f"{name}.tissue"] if command[-1] == "tissue" else [])]

    def remedy(self, name, answer, line):
        """Does what the error names, and sees that it helps."""
        if answer["flags"]:
            code, _, err = self.run(*line, *answer["flags"])
            need(code == 0, f"the remedy {answer['flags']} does not help: {err.strip()[:400]}")
        if answer["remedy"]:
            fixed = self.folder / f"{name}.fixed.tif"
            fixed = answer["remedy"](fixed) or fixed
            again = answer if "line" in answer else {}
            code, _, err = self.run(*self.line(f"{name}.fixed", fixed, again))
            need(code == 0, f"the remedy does not help: {err.strip()[:400]}")
            if result := answer.get("result"):
                result(self.folder / f"{name}.fixed.run")

    def info(self, path, want):
        _, out, _ = self.run("slide", "info", path, "--json")
        got = json.loads(out)
        found = dict(
            width=got["width"], height=got["height"], levels=len(got["levels"]),
            images=[i["name"] for i in got["associated_images"]], mpp=got["resolution"].get("x_um"),
        )
        for key, value in want.items():
            need(found[key] == value, f"{key} is {found[key]}, {value} is right")

    def area(self, name, path):
        code, out, err = self.run(
            "slide", "tissue", path, "--out", self.folder / f"{name}.tissue", "--json", "--mpp", MPP
        )
        need(code == 0, f"no tissue: {err.strip()}")
        return json.loads(out)["area_mm2"]

    def tissue(self, name, path):
        want, got = self.whole_mm2, self.area(name, path)
        need(abs(got / want - 1) < 0.02, f"tissue of {got:.4f} mm2, {want:.4f} is right")

    def pixels(self, path, off):
        """Equal to tifffile's or Pillow's pixels; those of JPEG may be `off` by rounding."""
        if path.suffix == ".tif" and "palette" not in path.name:
            with tifffile.TiffFile(path) as t:
                page = max(t.pages, key=lambda p: p.imagewidth * p.imagelength)
                want = page.asarray()
                if page.planarconfig == 2:
                    want = np.moveaxis(want, 0, 2)
                if page.photometric == 0:
                    want = 255 - want
        else:
            want = np.asarray(Image.open(path).convert("RGB"))
        want = np.repeat(want[..., None], 3, 2) if want.ndim == 2 else want[..., :3]
        got = self.read(path)
        need(got.shape == want.shape, f"{got.shape} instead of {want.shape}")
        differ = np.abs(got.astype(int) - want.astype(int)).max()
        need(differ <= off, f"the pixels differ by {differ}")

    def people(self, name, path, answer):
        """The check names what is there; the copy lacks it and passes; its pixels are the slide's. What cannot be
        searched is refused by both."""
        code, out, err = self.run("slide", "info", path, "--deidentified-check", "--json")
        if reason := answer.get("unsearched"):
            need(code == 1 and reason in err, f"not refused, though it cannot be searched: {(out or err)[:400]}")
            code, _, err = self.run("slide", "deidentify", path, self.folder / f"{name}.copy{path.suffix}")
            return need(code == 1 and reason in err, f"a copy of what cannot be searched: {err.strip()[:400]}")
        found = [f["name"] for f in json.loads(out)["findings"]]
        for wanted in answer.get("names", []):
            need(code == 1 and wanted in found, f"{wanted} is not found, exit {code}: {found}")
        copy = self.folder / f"{name}.copy{path.suffix}"
        code, out, err = self.run("slide", "deidentify", path, copy, "--json")
        need(code == 0, f"no copy: {err.strip()[:400]}")
        # Of a DICOM series the copy is a folder.
        files = sorted(copy.iterdir(), key=lambda f: -f.stat().st_size) if copy.is_dir() else [copy]
        copy = files[0]
        code, out, err = self.run("slide", "info", copy, "--deidentified-check")
        need(code == 0, f"the copy does not pass the check: {(out or err)[:400]}")
        need((self.read(path) == self.read(copy)).all(), "the pixels of the copy differ")
        for word in (b"Jane", b"Dr. Doe", b"S21-1234", "Иванов".encode()):
            need(all(word not in f.read_bytes() for f in files), f"{word} is in the copy")
        if vendor := answer.get("openslide"):
            try:
                import openslide
            except ImportError:
                return
            with openslide.OpenSlide(str(copy)) as s:
                need(s.properties["openslide.vendor"] == vendor, "OpenSlide takes the copy for another format")
                need(set(s.associated_images) == {"thumbnail"}, f"OpenSlide finds {set(s.associated_images)}")
                got = np.asarray(s.read_region((0, 0), 0, s.dimensions).convert("RGB"))
            need((got == BASE).all(), "OpenSlide reads other pixels from the copy")

    def package(self, path):
        """An image that comes with a package: right pixels, or a refusal with its reason."""
        code, _, err = self.run("slide", "info", path)
        if code == 1:
            return need(str(path.name) in err and ": " in err, f"refused without a reason: {err.strip()[:300]}")
        if path.suffix == ".dcm":
            return None
        try:
            with Image.open(path) as image:
                if getattr(image, "n_frames", 1) > 1 or image.mode not in ("RGB", "L", "P", "RGBA", "LA", "1"):
                    return None
                lossy = path.suffix.lower() in (".jpg", ".jpeg") or image.info.get("compression") == "jpeg"
                rgba = np.asarray(image.convert("RGBA")).astype(int)
        except (OSError, ValueError, SyntaxError, Image.DecompressionBombError):
            # Pillow does not read it either; the program must end by itself.
            self.run("slide", "thumbnail", path, "--out", self.folder / f"{path.name}.maybe.png")
            return None
        if path.name in DAMAGED:
            out = self.folder / f"{path.name}.damaged.png"
            code, _, err = self.run("slide", "thumbnail", path, "--out", out)
            return need(code == 1 and path.name in err, f"damaged, and not refused: {err.strip()[:300]}")
        over = (rgba[..., :3] * rgba[..., 3:] + 255 * (255 - rgba[..., 3:]) + 127) // 255
        got = self.read(path).astype(int)
        need(got.shape == over.shape, f"{got.shape} instead of {over.shape}")
        most = 4 if lossy else 1
        need(abs(got - over).max() <= most, f"the pixels differ by {abs(got - over).max()}")


def draw(folder):
    folder.mkdir(parents=True, exist_ok=True)
    answers = {}
    for name, source, kind, f in CASES:
        assert name not in answers, f"two cases are called {name}"
        try:
            answers[name] = dict(source=source, kind=kind, **f(folder))
        except Skipped as e:
            print(f"SKIPPED: {name}: {e}")
    drawn = ("remedy", "values", "thumbnail", "line", "result")
    plain = {n: {k: v for k, v in a.items() if k not in drawn} for n, a in answers.items()}
    (folder / "answers.json").write_text(json.dumps(plain, indent=1, default=str) + "\n")
    return answers


def check(binary, folder):
    start = time.time()
    answers = draw(folder)
    asker = Asker(binary, folder)
    jobs = [(name, lambda n=name, a=answer: asker.ask(n, a)) for name, answer in answers.items()]
    jobs += [(f"package {p.name}", lambda p=p: asker.package(p)) for p in [*installed(), *suites()]]

    def one(job):
        try:
            job[1]()
        except Wrong as e:
            return f"{job[0]}: {e}"
        return None

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        wrong = [w for w in pool.map(one, jobs) if w]
    # Of the processor, with the programs that were asked: other work of the machine does not count.
    took = sum(os.times()[:4])
    answered = f"{len(jobs) - len(wrong)} of {len(jobs)} odd files are answered as they should be"
    print(f"{answered}, {time.time() - start:.0f} s, {took:.0f} s of the processor")
    if took >= LONGEST:
        wrong.append(f"all questions took {took:.0f} s of the processor; {LONGEST} s is the most")
    for line in wrong:
        print(line)
    return 1 if wrong else 0


def main():
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    sub = a.add_subparsers(dest="verb", required=True)
    d = sub.add_parser("draw")
    d.add_argument("out", type=Path)
    c = sub.add_parser("check")
    c.add_argument("--binary", type=Path, required=True)
    c.add_argument("--out", type=Path, help="keep the files here")
    f = sub.add_parser("fetch")
    f.add_argument("dir", type=Path, nargs="?", default=SUITES)
    a = a.parse_args()
    if a.verb == "draw":
        draw(a.out)
        return 0
    if a.verb == "fetch":
        return fetch(a.dir)
    if a.out:
        return check(a.binary.resolve(), a.out)
    with tempfile.TemporaryDirectory() as folder:
        return check(a.binary.resolve(), Path(folder))


if __name__ == "__main__":
    sys.exit(main())
