"""Reads a corpus with pyarrow and Hugging Face `datasets` and compares it with its manifest.

usage: python readers.py CORPUS
"""

import glob
import io
import json
import sys
from collections import Counter
from pathlib import Path

import pyarrow.parquet as pq
from PIL import Image


def main(folder: str) -> None:
    manifest = json.loads((Path(folder) / "manifest.json").read_text())
    counts = manifest["counts"]
    names = {None: "unlabeled", 0: "mimicker", 1: "mitotic_figure"}
    labels, cohorts, rows = Counter(), Counter(), 0
    for entry in manifest["shards"]:
        table = pq.read_table(Path(folder) / entry["file"])
        assert table.num_rows == entry["crops"]
        rows += table.num_rows
        assert str(table.schema.field("image").type) == "struct<bytes: binary, path: string>", table.schema
        labels.update(names[v] for v in table["label"].to_pylist())
        cohorts.update(table["cohort"].to_pylist())
        for row in table.slice(0, 20).to_pylist():
            picture = Image.open(io.BytesIO(row["image"]["bytes"]))
            assert picture.size == (row["width"], row["height"])
            assert row["box"] is None or row["box"]["x0"] < row["box"]["x1"]
            assert len(row["digest"]) == 32
    assert rows == counts["crops"]
    assert labels == Counter({k: v for k, v in counts["labels"].items() if v}), labels
    assert cohorts == Counter({k: sum(v.values()) for k, v in counts["cohorts"].items()})
    print(f"pyarrow: {rows} crops, {dict(labels)}")

    try:
        import datasets
    except ImportError:
        print("SKIPPED: `datasets` is not installed")
        return
    files = sorted(glob.glob(f"{folder}/shard-*.parquet"))
    data = datasets.load_dataset("parquet", data_files=files, split="train")
    assert isinstance(data.features["image"], datasets.Image)
    assert data.features["label"].names == ["mimicker", "mitotic_figure"]
    assert len(data) == rows
    first = data[0]
    assert first["image"].size == (first["width"], first["height"])
    print(f"datasets: {len(data)} crops, first {first['image']}, label {first['label']}")


if __name__ == "__main__":
    main(sys.argv[1])
