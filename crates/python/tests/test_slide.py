"""Slides as numpy arrays."""

import pickle
import threading
import time

import numpy as np
import pytest

import mithras

from conftest import ENGINE


def test_what_a_slide_says_of_itself(drawn):
    slide = mithras.Slide(drawn)
    assert slide.path == drawn
    assert slide.dimensions == (1024, 1024)
    assert slide.mpp == pytest.approx((0.25, 0.25))
    assert slide.levels[0].dimensions == (1024, 1024)
    assert slide.levels[0].downsample == (1.0, 1.0)
    assert [level.downsample[0] for level in slide.levels] == sorted(
        level.downsample[0] for level in slide.levels
    )
    assert "1024 x 1024" in repr(slide)


def test_regions_are_arrays_that_share_memory(drawn):
    region = mithras.Slide(drawn).read_region(400, 300, 200, 100)
    assert (region.shape, region.dtype) == ((100, 200, 3), np.uint8)
    # The array is a view of the buffer that the library filled: nothing was copied.
    assert not region.flags.owndata
    assert region.flags.c_contiguous and region.flags.writeable
    assert region.std() > 1


def test_pixels_are_those_of_openslide(drawn):
    openslide = pytest.importorskip("openslide")
    try:
        other = openslide.OpenSlide(drawn)
    except openslide.OpenSlideError as e:
        pytest.skip(f"OpenSlide: {e}")
    theirs = np.asarray(other.read_region((512, 256), 0, (300, 200)).convert("RGB"))
    ours = mithras.Slide(drawn).read_region(512, 256, 300, 200)
    assert np.array_equal(ours, theirs)


def test_outside_is_white_and_other_reads_agree(drawn):
    slide = mithras.Slide(drawn)
    assert (slide.read_region(-50, -50, 50, 50) == 255).all()
    assert np.array_equal(
        slide.read_at(0.25, 100, 120, 64, 32), slide.read_region(100, 120, 64, 32)
    )
    assert max(slide.thumbnail(200).shape) == 200


def test_errors_name_file_and_reason(tmp_path, drawn):
    none = tmp_path / "none.svs"
    with pytest.raises(mithras.SlideError, match="none.svs") as caught:
        mithras.Slide(none)
    assert caught.value.path == none
    assert isinstance(caught.value, mithras.Error)
    with pytest.raises(mithras.SlideError, match="level"):
        mithras.Slide(drawn).read_region(0, 0, 8, 8, level=99)
    with pytest.raises(ValueError):
        mithras.Slide(drawn, mpp=-1)
    with pytest.raises(TypeError, match="path"):
        pickle.dumps(mithras.Slide(drawn))


def test_a_resolution_is_given_where_a_file_has_none(tmp_path, drawn):
    image = pytest.importorskip("PIL.Image")
    flat = tmp_path / "flat.png"
    image.fromarray(mithras.Slide(drawn).read_region(0, 0, 300, 300)).save(flat)
    with pytest.raises(mithras.SlideError, match="micrometres per pixel"):
        mithras.Slide(flat).mpp
    assert mithras.Slide(flat, mpp=0.5).mpp == (0.5, 0.5)


def test_threads_read_one_slide_and_python_goes_on(drawn):
    slide = mithras.Slide(drawn)
    whole = slide.read_region(0, 0, 1024, 1024)
    found, ticks, done = {}, [], threading.Event()

    def read(k):
        found[k] = [slide.read_region(100 * k, 50 * k, 300, 300) for _ in range(5)]

    threads = [threading.Thread(target=read, args=(k,)) for k in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    for k, arrays in found.items():
        part = whole[50 * k : 50 * k + 300, 100 * k : 100 * k + 300]
        assert all(np.array_equal(a, part) for a in arrays)

    # While one call works, another Python thread counts.
    def tick():
        while not done.is_set():
            ticks.append(time.monotonic())
            time.sleep(0.005)

    counter = threading.Thread(target=tick)
    counter.start()
    begin = time.monotonic()
    mithras.detect(drawn, engine=ENGINE, table="dict")
    end = time.monotonic()
    done.set()
    counter.join()
    within = [t for t in ticks if begin < t < end]
    assert len(within) > 10, "the lock of the interpreter was held"
