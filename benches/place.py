"""What shows the first stage where a figure is, besides the figure?

    python benches/place.py PACKAGE IMAGES [--patches AMI_BR --folds folds.json --fold K] [--count 96]

The patches of AMi-Br hold a figure in their middle, and the first stage is trained on mosaics of them; no slide has
seams. IMAGES are tissue without labelled figures (MoNuSeg). They are cut into cells at random places and laid out
as `corpus export --format sheets` lays out patches: were nothing learnt of mosaics, as much would be found in the
cells as in the images uncut, and as much in every band of a cell. The bands are frames of equal area around the middle,
the last one along the seams. With --folds, of IMAGES those alone that fold K left out. With --patches, the figures of
the fold's MIDOG21 patches are looked for three times: in a sheet of 4 x 4 patches, in a patch mirrored on all sides
(no seam), and in a patch pasted into tissue.
"""

import argparse
import json
import pathlib
import tomllib

import numpy as np
import onnxruntime
from PIL import Image
from scipy import ndimage

SIDE = 512
MEAN, STD = np.array([0.485, 0.456, 0.406]), np.array([0.229, 0.224, 0.225])


class FirstStage:
    def __init__(self, package):
        card = tomllib.loads((package / "card.toml").read_text())
        self.coarser = card["segmenter"]["mpp"] / 0.25
        # In working px; a map may be coarser than what is read.
        self.least = card["candidates"]["min_area_px"] * self.coarser**2
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        self.session = onnxruntime.InferenceSession(package / "segmenter.onnx", options, providers=["CPUExecutionProvider"])
        self.name = self.session.get_inputs()[0].name

    def regions(self, image, threshold):
        """Centres (x, y) in px at 0.25 um/px and mean probabilities of the regions of an image."""
        k = self.coarser
        if k != 1:
            size = (int(image.shape[1] / k), int(image.shape[0] / k))
            image = np.asarray(Image.fromarray(image.astype(np.uint8)).resize(size, Image.BOX), dtype=np.float64)
        part = ((image / 255.0 - MEAN) / STD).transpose(2, 0, 1)[None].astype(np.float32)
        chance = self.session.run(None, {self.name: np.ascontiguousarray(part)})[0][0, 0]
        label, n = ndimage.label(chance >= threshold)
        each = range(1, n + 1)
        sizes = ndimage.sum_labels(np.ones_like(chance), label, each) * k * k
        centres = np.array(ndimage.center_of_mass(np.ones_like(chance), label, each)).reshape(-1, 2)[:, ::-1] * k
        keep = np.asarray(sizes).reshape(-1) >= self.least
        return centres[keep], np.asarray(ndimage.mean(chance, label, each) if n else []).reshape(-1)[keep]


def held_out(a):
    """Names of the groups that fold K left out, without their folders."""
    groups = json.loads(a.folds.read_text())["groups"]
    return {g["name"].split("/")[-1] for g in groups if g["place"] == {"fold": a.fold}}


def opened(a):
    files = sorted(f for f in a.images.iterdir() if f.suffix.lower() in {".jpg", ".jpeg", ".png"})
    if a.folds:
        # A group is a patient, whose code the names of his images begin with, or one image.
        mine = tuple(name.removesuffix(".jpg") for name in held_out(a))
        files = [f for f in files if f.stem.startswith(mine)]
        print(f"{len(files)} images that fold {a.fold} left out")
    return [np.asarray(Image.open(f).convert("RGB"), dtype=np.float64) for f in files]


def sheet(cells, across):
    rows = [np.concatenate(cells[r * across : (r + 1) * across], axis=1) for r in range(across)]
    return np.concatenate(rows)


def tissue(first, images, cell, threshold, rng):
    whole, cells, area = [], [], 0
    for image in images:
        h, w = image.shape[:2]
        for y in range(0, h - SIDE + 1, h - SIDE):
            for x in range(0, w - SIDE + 1, w - SIDE):
                whole.append(first.regions(image[y : y + SIDE, x : x + SIDE], threshold)[0])
                area += SIDE * SIDE
        for _ in range((h * w) // cell**2):
            x, y = rng.integers(w - cell), rng.integers(h - cell)
            cells.append(image[y : y + cell, x : x + cell])
    across = SIDE // cell
    order = rng.permutation(len(cells))
    groups = [order[k : k + across**2] for k in range(0, len(order) - across**2 + 1, across**2)]
    places = [first.regions(sheet([cells[i] for i in g], across), threshold)[0] for g in groups]
    per_mm2 = lambda n, px: n / (px * 0.25**2 / 1e6)
    uncut, cut = sum(map(len, whole)), sum(map(len, places))
    off = np.abs((np.concatenate(places) % cell) - cell / 2).max(axis=1) / (cell / 2)
    counts = np.histogram(off**2, bins=8, range=(0, 1))[0]
    print(f"regions per mm2 of tissue from {threshold}: uncut {per_mm2(uncut, area):.0f}, in cells {per_mm2(cut, len(groups) * SIDE * SIDE):.0f}")
    print("in cells, by band from the middle outwards, 1 being even:", *(f"{c / max(1, cut) * 8:.2f}" for c in counts))


def figures(first, a, images, rng):
    import pandas

    labels = pandas.read_csv(a.patches / "labels.csv")
    labels = labels[(labels.dataset == "MIDOG21") & labels.slide.isin(held_out(a))]
    files = [f for uid in labels.uid for f in a.patches.glob(f"*/MIDOG21_{uid}.png")]
    files = [files[i] for i in rng.permutation(len(files))[: a.count // 16 * 16]]
    patches = [np.asarray(Image.open(f).convert("RGB"), dtype=np.float64) for f in files]

    def best(found, x, y):
        centres, chances = found
        near = np.hypot(*(centres - (x, y)).T) <= 30 if len(centres) else np.zeros(0, dtype=bool)
        return chances[near].max() if near.any() else 0.0

    scores = {"sheet": [], "mirrored": [], "pasted into tissue": []}
    for k in range(0, len(patches), 16):
        found = first.regions(sheet(patches[k : k + 16], 4), 0.1)
        scores["sheet"] += [best(found, i % 4 * 128 + 64, i // 4 * 128 + 64) for i in range(16)]
    room = (SIDE - 128) // 2
    for i, patch in enumerate(patches):
        around = np.pad(patch, ((room, room), (room, room), (0, 0)), mode="symmetric")
        scores["mirrored"].append(best(first.regions(around, 0.1), SIDE // 2, SIDE // 2))
        image = images[i % len(images)]
        y, x = rng.integers(image.shape[0] - SIDE), rng.integers(image.shape[1] - SIDE)
        around = image[y : y + SIDE, x : x + SIDE].copy()
        around[room : room + 128, room : room + 128] = patch
        scores["pasted into tissue"].append(best(first.regions(around, 0.1), SIDE // 2, SIDE // 2))
    for what, of in scores.items():
        shares = ", ".join(f"{np.mean(np.array(of) >= t):.3f} from {t}" for t in [0.1, 0.3, 0.5])
        print(f"figures of {len(of)} patches found, {what}: {shares}")


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("package", type=pathlib.Path)
    p.add_argument("images", type=pathlib.Path)
    p.add_argument("--patches", type=pathlib.Path)
    p.add_argument("--folds", type=pathlib.Path)
    p.add_argument("--fold", type=int)
    p.add_argument("--cell", type=int, default=128)
    p.add_argument("--count", type=int, default=96)
    p.add_argument("--threshold", type=float, default=0.3)
    a = p.parse_args()
    first, images, rng = FirstStage(a.package), opened(a), np.random.default_rng(1)
    tissue(first, images, a.cell, a.threshold, rng)
    if a.patches:
        figures(first, a, images, rng)


if __name__ == "__main__":
    main()
