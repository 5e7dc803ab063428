"""Shuffled reading of one corpus by Hugging Face `datasets` and `webdataset`, next to this project's own reader.

usage: python corpus_read.py CORPUS READ_SPEED_BINARY

The webdataset tar is written from the same crops. Rates are crops per second of CPU time of one process, so that a
busy machine does not decide.
"""

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pyarrow.parquet as pq


def rate(name: str, crops: int, work) -> None:
    wall, cpu = time.perf_counter(), time.process_time()
    seen = work()
    cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    assert seen == crops, (name, seen, crops)
    print(f"{name}: {crops / cpu:.0f} crops/s of CPU time, {crops / wall:.0f} crops/s of wall time", flush=True)


def main(folder: str, own: str) -> None:
    manifest = json.loads((Path(folder) / "manifest.json").read_text())
    n = manifest["counts"]["crops"]
    files = [str(Path(folder) / s["file"]) for s in manifest["shards"]]
    print("mithras", flush=True)
    subprocess.run([own, folder], check=True)

    import datasets

    def stream(decode: bool):
        data = datasets.load_dataset("parquet", data_files=files, split="train", streaming=True)
        data = data.cast_column("image", datasets.Image(decode=decode)).shuffle(seed=1, buffer_size=8192)
        return sum(1 for row in data if row["image"] is not None and (not decode or row["image"].load() is not None))

    rate("datasets (streaming, buffer 8192), not decoded", n, lambda: stream(False))
    rate("datasets (streaming, buffer 8192), decoded", n, lambda: stream(True))

    import webdataset

    with tempfile.TemporaryDirectory() as tmp:
        tar = Path(tmp) / "crops.tar"
        with webdataset.TarWriter(str(tar)) as sink:
            for file in files:
                for batch in pq.ParquetFile(file).iter_batches(1000, columns=["image", "label"]):
                    for i, row in enumerate(batch.to_pylist()):
                        key = row["image"]["path"].replace("/", "_").rsplit(".", 1)[0]
                        label = -1 if row["label"] is None else row["label"]
                        sink.write({"__key__": key, "jpg": row["image"]["bytes"], "cls": label})

        def tars(decode: bool):
            data = webdataset.WebDataset(str(tar), shardshuffle=False).shuffle(8192)
            if decode:
                data = data.decode("pil")
            return sum(1 for row in data if not decode or row["jpg"].load() is not None)

        rate("webdataset (buffer 8192), not decoded", n, lambda: tars(False))
        rate("webdataset (buffer 8192), decoded", n, lambda: tars(True))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
