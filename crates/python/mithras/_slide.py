"""Slides."""

from __future__ import annotations

from typing import NamedTuple

from . import _mithras


class Level(NamedTuple):
    """One level of a slide's pyramid."""

    dimensions: tuple[int, int]
    """Width and height, px."""
    downsample: tuple[float, float]
    """Level-0 pixels per pixel, horizontally and vertically."""
    tile: tuple[int, int]
    """Width and height of the stored tiles, px."""


class Slide(_mithras.Slide):
    """An opened slide: TIFF families and flat images by the library itself, the rest by OpenSlide 4.

    A file is known by its content. ``mpp`` (um/px) serves a file that states none; with ``force_mpp``
    it holds whatever the file states. ``openslide`` is a library to use instead of the one found.
    Threads may share a slide: reads let other Python threads run.

    Raises ``SlideError``, whose ``path`` and ``reason`` state what is wrong.
    """

    @property
    def levels(self) -> list[Level]:
        """The pyramid, finest level first."""
        return [Level(*level) for level in self._levels()]

    def __repr__(self) -> str:
        width, height = self.dimensions
        return f"<mithras.Slide {str(self.path)!r} {width} x {height} px, {self.vendor}>"

    def __reduce__(self):
        raise TypeError("a slide cannot be pickled; open it in every process by its path")
