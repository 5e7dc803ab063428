"""Crops per second of torchvision + DataLoader on the crops and augmentations of the pretraining loader.

python benches/peer/view_loader.py CORPUS [WORKERS] [STEPS]

Kinder to the peer than to ours: crops are in memory as bytes, and no box is carried along.
"""

import glob
import io
import resource
import sys
import time

import pyarrow.parquet as pq
import torch
import torchvision.transforms as T
from PIL import Image
from torch.utils.data import DataLoader, Dataset

BATCH = 64


def view(solarise):
    return T.Compose([
        T.RandomResizedCrop(224, (0.2, 1.0)), T.RandomHorizontalFlip(), T.RandomVerticalFlip(),
        T.RandomApply([T.ColorJitter(0.4, 0.4, 0.2, 0.1)], 0.8), T.RandomGrayscale(0.2),
        T.RandomApply([T.GaussianBlur(23, (0.1, 2.0))], 0.5),
        *([T.RandomSolarize(128, 0.2)] if solarise else []), T.PILToTensor()])


class Crops(Dataset):
    def __init__(self, folder):
        self.rows = []
        for file in sorted(glob.glob(f"{folder}/*.parquet")):
            table = pq.read_table(file, columns=["image", "label", "split"])
            images, labels, splits = (table[c].to_pylist() for c in ["image", "label", "split"])
            self.rows += [(i["bytes"], y) for i, y, s in zip(images, labels, splits) if s == "train"]
        self.first, self.second = view(False), view(True)

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        data, label = self.rows[i]
        image = Image.open(io.BytesIO(data)).convert("RGB")
        return self.first(image), self.second(image), label


def cpu():
    return sum(resource.getrusage(w).ru_utime + resource.getrusage(w).ru_stime
               for w in [resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN])


def main():
    torch.set_num_threads(1)
    folder = sys.argv[1]
    workers, steps = (int(v) for v in (sys.argv[2:4] + ["1", "20"][len(sys.argv) - 2:]))
    loader = DataLoader(Crops(folder), BATCH, shuffle=True, drop_last=True, num_workers=workers)
    start = cpu()
    it = iter(loader)
    next(it)
    wall, n = time.perf_counter(), 0
    for _, _ in zip(range(steps), it):
        n += BATCH
    wall = time.perf_counter() - wall
    del it
    print(f"{workers} workers: {n / wall:.1f} crops/s ({2 * n / wall:.1f} views/s); "
          f"about {n / max(cpu() - start, 1e-9):.1f} crops per second of CPU, start included")


if __name__ == "__main__":
    main()
