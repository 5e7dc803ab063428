"""Coloured discs in two classes, four sources each, and one to test on: data of a task for what is tried here.

    python3 discs.py OUT
"""

import pathlib
import struct
import sys
import zlib


def png(path, pixel, side=40):
    rows = b"".join(b"\0" + b"".join(bytes(pixel(x, y)) for x in range(side)) for y in range(side))

    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    path.parent.mkdir(parents=True, exist_ok=True)
    head = struct.pack(">IIBBBBB", side, side, 8, 2, 0, 0, 0)
    parts = chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + parts)


def main(out):
    for part, sources in (("train", 4), ("test", 1)):
        for c, name in enumerate(("plain", "marked")):
            for s in range(sources):
                ground = (220, 190, 210 - s - (part == "test"))
                for k in range(3):
                    disc = (20 + 150 * c, 90 + 9 * s, 20 * k)
                    place = pathlib.Path(out, part, name, f"{part}{s}", f"{k}.png")
                    png(place, lambda x, y: disc if (x - 20) ** 2 + (y - 20) ** 2 < 80 else ground)


main(sys.argv[1])
