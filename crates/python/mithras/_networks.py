"""Packages of networks at work on images."""

from __future__ import annotations

import os
from typing import Any, Iterable

from . import _mithras
from ._frames import table


def engine_options(engine: str, provider: str, precision: str, threads: int) -> dict[str, Any]:
    return {
        "engine": engine,
        "provider": provider,
        "precision": precision,
        "threads": threads,
    }


def batches(images: Any, batch: int) -> Iterable[list[Any]]:
    """Images one after the other, whatever holds them, in lists of `batch`."""
    if isinstance(images, (str, os.PathLike)):
        images = [images]
    if batch < 1:
        raise ValueError(f"batch is 1 or more, and not {batch}")
    part: list[Any] = []
    for image in images:
        part.append(image)
        if len(part) == batch:
            yield part
            part = []
    if part:
        yield part


class Classifier(_mithras.Classifier):
    """A classifier's package: a folder, or a bundled one (``"atypical"``, ``"morphology"``, ``"standard"``).

    Raises ``ModelError``.
    """

    def __new__(
        cls,
        model: str | os.PathLike[str] = "atypical",
        *,
        engine: str = "auto",
        provider: str = "auto",
        precision: str = "auto",
        threads: int = 0,
    ) -> Classifier:
        return super().__new__(cls, model, engine_options(engine, provider, precision, threads))

    def predict(self, images: Any, *, mpp: float | None = None, batch: int = 64) -> Any:
        """One row per image: ``class`` and the probability ``p_<class>`` of every class.

        ``images``: arrays ``uint8 [height, width, 3]`` or paths of image files, in any iterable; one
        array ``[n, height, width, 3]`` will do. They are brought from ``mpp`` um/px (the model's own
        by default) to the model's resolution, and the square in the middle is looked at, as by
        ``mithras classify``.
        """
        import numpy as np

        called: list[int] = []
        parts = [np.empty((0, len(self.classes)), np.float32)]
        for part in batches(images, batch):
            best, p = self._predict(part, mpp)
            called += best
            parts.append(p)
        p = np.concatenate(parts)
        columns: dict[str, Any] = {"class": [self.classes[i] for i in called]}
        columns.update((f"p_{name}", p[:, k]) for k, name in enumerate(self.classes))
        return table(columns)

    def __repr__(self) -> str:
        return f"<mithras.Classifier {self.name}: {', '.join(self.classes)}>"


class Encoder(_mithras.Encoder):
    """An encoder's package, as ``mithras encoders convert`` writes it. Raises ``ModelError``."""

    def __new__(
        cls,
        package: str | os.PathLike[str],
        *,
        engine: str = "auto",
        provider: str = "auto",
        precision: str = "auto",
        threads: int = 0,
    ) -> Encoder:
        return super().__new__(cls, package, engine_options(engine, provider, precision, threads))

    def embed(self, images: Any, *, batch: int = 32) -> Any:
        """One vector per image, ``float32 [n, width]``.

        ``images``: arrays ``uint8 [height, width, 3]`` or paths of image files, in any iterable. They
        are taken whole and resized to the network's input, as ``mithras embed`` does with images.
        """
        import numpy as np

        parts = [np.empty((0, self.width), np.float32)]
        parts += [self._embed(part) for part in batches(images, batch)]
        return np.concatenate(parts) if len(parts) != 2 else parts[1]

    def __repr__(self) -> str:
        return f"<mithras.Encoder {self.name}: {self.width} numbers>"
