"""Corpora as datasets of PyTorch."""

import pickle

import numpy as np
import pytest

import mithras


def test_crops_by_number(corpus_folder, drawn):
    corpus = mithras.Corpus(corpus_folder)
    assert len(corpus) == 10
    assert sorted(corpus.labels) == [0] * 6 + [1] * 4
    slide = mithras.Slide(drawn)
    for i in range(len(corpus)):
        image, label = corpus[i]
        assert image.dtype == np.uint8 and image.ndim == 3 and image.shape[2] == 3
        meta = corpus.meta(i)
        assert meta["slide"] == "drawn"
        assert label == {"mitotic_figure": 1, "mimicker": 0}[meta["label"]]
        # The crop is cut around the centre that it names.
        x, y = meta["centroid"]["x"], meta["centroid"]["y"]
        h, w = image.shape[:2]
        around = slide.read_region(round(x) - w // 2 - 1, round(y) - h // 2 - 1, w + 2, h + 2)
        assert abs(around.mean() - image.mean()) < 8
    assert np.array_equal(corpus[-1].image, corpus[len(corpus) - 1].image)
    with pytest.raises(IndexError):
        corpus[len(corpus)]


def test_transform_split_and_errors(corpus_folder, tmp_path):
    bright = mithras.Corpus(corpus_folder, transform=lambda image: image.mean())
    assert bright[0].image == mithras.Corpus(corpus_folder)[0].image.mean()
    split = mithras.Corpus(corpus_folder).meta(0)["split"]
    assert len(mithras.Corpus(corpus_folder, split=split)) == 10
    with pytest.raises(ValueError, match="no crop of split"):
        mithras.Corpus(corpus_folder, split="moon")
    with pytest.raises(mithras.CorpusError) as caught:
        mithras.Corpus(tmp_path)
    assert caught.value.path == tmp_path


def test_a_copy_in_another_process(corpus_folder):
    corpus = mithras.Corpus(corpus_folder)
    again = pickle.loads(pickle.dumps(corpus))
    assert np.array_equal(again[3].image, corpus[3].image)


def test_a_loader_of_torch_with_workers(corpus_folder):
    data = pytest.importorskip("torch.utils.data")
    corpus = mithras.Corpus(corpus_folder)
    loader = data.DataLoader(corpus, batch_size=4, num_workers=2)
    batches = list(loader)
    assert [len(b.label) for b in batches] == [4, 4, 2]
    images = np.concatenate([b.image.numpy() for b in batches])
    assert all(np.array_equal(images[i], corpus[i].image) for i in range(10))
    assert [int(v) for b in batches for v in b.label] == corpus.labels
