#!/usr/bin/env python3
"""Writes into the bundled cards what their networks were trained on, from the data of scripts/reproduce/detection.sh.

    scripts/training_slides.py DATA [--check]

DATA holds icpr2012/, ami_br/, extra_he/monuseg_1000/ and extra_he/consep_256/. `slides` of a card's [training] gets the
names of slides, images and patients, a prefix with * at its end; `scanners` the makers of the scanners;
`slide_digests` the SHA-256 of every image file that is a slide of its own (patches have names alone). --check only
reports whether the cards are up to date.
"""

import csv
import hashlib
import re
import sys
from pathlib import Path

# Makers of the scanners of the slides with figures: ICPR 2012 (Aperio) and MIDOG 2021 (Hamamatsu XR and S360, Aperio
# CS2).
SCANNERS = ["Aperio", "Hamamatsu"]
MODELS = Path(__file__).resolve().parent.parent / "models"


def seen(data):
    """Names and digests of all that the networks of the bundled packages have seen, calibration included."""
    frames = sorted((data / "icpr2012").glob("*/A0?_*.jpg"))
    tiles = sorted((data / "extra_he/monuseg_1000").glob("*.jpg"))
    names = {path.stem[:3] + "_*" for path in frames}
    names |= {path.stem[:12] + "*" for path in tiles}  # TCGA's patient
    # CoNSeP: crops SET_IMAGE_CROP of a whole image SET_IMAGE.
    whole = {path.stem.rsplit("_", 1)[0] for path in (data / "extra_he/consep_256/images").glob("*.jpg")}
    names |= whole | {name + "_*" for name in whole}
    with open(data / "ami_br/labels.csv", newline="", encoding="utf-8") as file:
        names |= {Path(row["slide"]).stem for row in csv.DictReader(file) if row["dataset"] == "MIDOG21"}
    names.add("MIDOG21_*")  # the patches themselves
    digests = {hashlib.sha256(path.read_bytes()).hexdigest() for path in frames + tiles}
    return sorted(names), sorted(digests)


def listed(key, values, width):
    whole = f"{key} = [" + ", ".join(f'"{value}"' for value in values) + "]"
    if len(whole) <= width:
        return whole + "\n"
    lines, line = [f"{key} = ["], "   "
    for value in values:
        word = f' "{value}",'
        if len(line) + len(word) > width:
            lines.append(line)
            line = "   "
        line += word
    return "\n".join([*lines, line, "]"]) + "\n"


def main():
    data, check = Path(sys.argv[1]), "--check" in sys.argv[2:]
    names, digests = seen(data)
    added = listed("scanners", SCANNERS, 120) + listed("slides", names, 120) + listed("slide_digests", digests, 70)
    old = 0
    for card in sorted(MODELS.glob("*/card.toml")):
        text = card.read_text(encoding="utf-8")
        bare = re.sub(r"^(scanners|slides|slide_digests) = \[.*?\]\n", "", text, flags=re.M | re.S)
        new = bare.replace("[training]\n", "[training]\n" + added, 1)
        old += new != text
        if not check:
            card.write_text(new, encoding="utf-8")
    print(f"{len(names)} names, {len(digests)} digests; {old} cards {'are out of date' if check else 'written again'}")
    return int(check and old > 0)


if __name__ == "__main__":
    sys.exit(main())
