"""Corpora of crops as datasets of PyTorch."""

from __future__ import annotations

import json
import os
from typing import Any, Callable, NamedTuple

from . import _mithras


class Crop(NamedTuple):
    """One crop of a corpus."""

    image: Any
    """Pixels, ``uint8 [height, width, 3]``, or what the transform made of them."""
    label: int
    """Number of its class in ``Corpus.classes``; -1 without a label."""


class Corpus(_mithras.Corpus):
    """A corpus that ``mithras corpus`` built, as a map-style dataset of PyTorch.

    ``corpus[i]`` is a ``Crop``; ``split`` keeps the crops of one split alone; ``transform`` is called
    with the pixels of every crop. It goes into a ``torch.utils.data.DataLoader`` as it is, with any
    number of workers; torch itself is not needed. Raises ``CorpusError``.
    """

    classes = ("mimicker", "mitotic_figure")
    """Classes by their number."""

    def __new__(cls, path: str | os.PathLike[str], **_: Any) -> Corpus:
        return super().__new__(cls, path)

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        split: str | None = None,
        transform: Callable[[Any], Any] | None = None,
    ) -> None:
        self.split = split
        self.transform = transform
        splits = self._splits()
        if split is not None and split not in splits:
            raise ValueError(f"no crop of split {split!r}; there are {sorted(set(splits))}")
        self._index = [i for i, s in enumerate(splits) if split in (None, s)]
        number = {name: k for k, name in enumerate(self.classes)}
        labels = self._labels()
        self.labels = [number.get(labels[i], -1) for i in self._index]

    def __len__(self) -> int:
        return len(self._index)

    def __getitem__(self, i: int) -> Crop:
        i = range(len(self))[i]
        image = self.image(self._index[i])
        if self.transform is not None:
            image = self.transform(image)
        return Crop(image, self.labels[i])

    def meta(self, i: int) -> dict[str, Any]:
        """All that is known of a crop but its pixels: slide, centre, scores, source."""
        return json.loads(self._meta(self._index[range(len(self))[i]]))

    def __reduce__(self):
        return _again, (type(self), str(self.path), self.split, self.transform)

    def __repr__(self) -> str:
        return f"<mithras.Corpus {str(self.path)!r} {len(self)} crops>"


def _again(cls, path, split, transform):
    return cls(path, split=split, transform=transform)
