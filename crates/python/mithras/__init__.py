"""Mitotic figures on H&E slides: finding, counting, survival.

The functions here are those of the program ``mithras``, which comes with this package: the same
library, the same weights, the same numbers. Work on pixels lets other Python threads run, and arrays
take over the library's memory without a copy.

>>> import mithras
>>> slide = mithras.Slide("case.svs")                       # doctest: +SKIP
>>> region = slide.read_region(10_000, 8_000, 512, 512)     # doctest: +SKIP
>>> figures = mithras.detect("case.svs")                    # doctest: +SKIP
"""

from . import _weights
from ._mithras import (
    CorpusError,
    DetectionError,
    Error,
    EvaluationError,
    ModelError,
    SlideError,
    SurvivalError,
    __version__,
)
from ._networks import Classifier, Encoder
from ._corpus import Corpus, Crop
from ._slide import Level, Slide
from ._tables import cox, detect, draw_slide, evaluate, read_detections, study

_weights.find()

__all__ = [
    "Classifier",
    "Corpus",
    "CorpusError",
    "Crop",
    "DetectionError",
    "Encoder",
    "Error",
    "EvaluationError",
    "Level",
    "ModelError",
    "Slide",
    "SlideError",
    "SurvivalError",
    "__version__",
    "cox",
    "detect",
    "draw_slide",
    "evaluate",
    "read_detections",
    "study",
]
