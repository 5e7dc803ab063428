"""Damaged files through every reader."""

import hashlib
import json
import shutil
import sqlite3
import struct

from tool import MODEL, SLIDES

READ = [["slide", "info", "FILE", "--json"], ["slide", "thumbnail", "FILE", "--out", "OUT.png"]]
TISSUE = [["slide", "tissue", "FILE", "--mpp", "0.25", "--out", "OUT"]]


def damaged(r, data):
    """Random damage: bits, bytes, cuts, doubled and removed parts, numbers at their borders."""
    b = bytearray(data)
    for _ in range(r.choice([1, 1, 2, 4, 16])):
        if not b:
            break
        at = r.randrange(min(len(b), r.choice([64, 1024, len(b)])))
        kind = r.randrange(7)
        if kind == 0:
            b[at] ^= 1 << r.randrange(8)
        elif kind == 1:
            b[at] = r.choice([0, 1, 127, 128, 255])
        elif kind == 2:
            del b[at:]
        elif kind == 3:
            del b[at : at + r.randrange(1, 64)]
        elif kind == 4:
            b[at:at] = b[at : at + r.randrange(1, 64)]
        elif kind == 5:
            value = r.choice([0, 1, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 1 << 20])
            b[at : at + 4] = struct.pack(r.choice("<>") + "I", value)
        else:
            b[at : at + 8] = struct.pack("<Q", r.choice([0, 1, 1 << 31, 1 << 40, (1 << 64) - 1]))
    return bytes(b)


def tiff_lie(r, data):
    """One field of one directory states something else; plain damage for what is not a small TIFF."""
    if data[:4] not in (b"II*\0", b"MM\0*"):
        return damaged(r, data)
    e, b = "<" if data[:2] == b"II" else ">", bytearray(data)
    places, at = [], struct.unpack_from(e + "I", b, 4)[0]
    while at and len(places) < 400:
        n = struct.unpack_from(e + "H", b, at)[0]
        places += [at + 2 + 12 * i for i in range(n)]
        at = struct.unpack_from(e + "I", b, at + 2 + 12 * n)[0]
    for _ in range(r.choice([1, 1, 2, 3])):
        place = r.choice(places)
        value = r.choice([0, 1, 2, 5, 7, 8, 16, 65535, 1 << 20, 1 << 31, (1 << 32) - 1, len(b), at])
        field = r.randrange(3)
        if field == 0:
            struct.pack_into(e + "H", b, place + 2, r.randrange(20))
        else:
            struct.pack_into(e + "I", b, place + 4 * field, value)
    return bytes(b)


def text_lie(r, data):
    """A number or a word of a text becomes another of the same kind of file; or plain damage."""
    if r.random() < 0.5:
        return damaged(r, data)
    words = [b"-1", b"0", b"1e309", b"NaN", b"null", b"[]", b"{}", b'""', b"99999999999999999999", b"true", b"\xff\xfe"]
    at = [i for i, c in enumerate(data) if chr(c).isdigit()]
    if not at:
        return damaged(r, data)
    i = r.choice(at)
    return data[:i] + r.choice(words) + data[i + 1 :]


def annotations(tool):
    """Small annotation files in the formats of others, of the drawn slide: name, format, bytes."""
    r, slide = tool.random, tool.drawn().name
    boxes = [(r.randrange(60, 1500), r.randrange(60, 1300)) for _ in range(6)]
    coco = {
        "images": [{"id": 1, "file_name": slide, "width": 1600, "height": 1400}],
        "categories": [{"id": 1, "name": "mitotic figure"}, {"id": 2, "name": "hard negative"}],
        "annotations": [
            {"id": k, "image_id": 1, "category_id": 1 + k % 2, "bbox": [x, y, x + 50, y + 50]}
            for k, (x, y) in enumerate(boxes)
        ],
    }
    for a in coco["annotations"]:
        a["labels"] = []
    features = [
        {
            "type": "Feature",
            "geometry": {"type": "Point", "coordinates": [x, y]},
            "properties": {"objectType": "annotation", "classification": {"name": ["mf", "mimicker"][k % 2]}},
        }
        for k, (x, y) in enumerate(boxes)
    ]
    points = "".join(
        f'<Annotation Name="a{k}" Type="Dot" PartOfGroup="mf"><Coordinates>'
        f'<Coordinate Order="0" X="{x}" Y="{y}"/></Coordinates></Annotation>'
        for k, (x, y) in enumerate(boxes)
    )
    table = "image,x,y,label\n" + "".join(f"{slide},{x},{y},{'mf' if k % 2 else 'mimicker'}\n" for k, (x, y) in enumerate(boxes))
    group = '<AnnotationGroups><Group Name="mf" PartOfGroup="None"/></AnnotationGroups>'
    asap = f'<?xml version="1.0"?><ASAP_Annotations><Annotations>{points}</Annotations>{group}</ASAP_Annotations>'
    yield "midog.json", "midog-json", json.dumps(coco).encode()
    for a in coco["annotations"]:
        a["bbox"][2:] = [50, 50]
    yield "coco.json", "coco", json.dumps(coco).encode()
    yield f"{tool.drawn().stem}.geojson", "geojson", json.dumps({"type": "FeatureCollection", "features": features}).encode()
    yield f"{tool.drawn().stem}.xml", "asap", asap.encode()
    yield "table.csv", "csv", table.encode()
    database = tool.base / "seed.sqlite"
    if not database.exists():
        with sqlite3.connect(database) as db:
            db.executescript(
                "CREATE TABLE Slides (uid INTEGER PRIMARY KEY, filename TEXT, width INTEGER, height INTEGER, directory TEXT, uuid TEXT, exactImageID TEXT);"
                "CREATE TABLE Classes (uid INTEGER PRIMARY KEY, name TEXT, color TEXT);"
                "CREATE TABLE Annotations (uid INTEGER PRIMARY KEY, slide INTEGER, guid TEXT, lastModified REAL, deleted INTEGER, type INTEGER, description TEXT, clickable INTEGER, agreedClass INTEGER);"
                "CREATE TABLE Annotations_coordinates (uid INTEGER PRIMARY KEY, coordinateX INTEGER, coordinateY INTEGER, slide INTEGER, annoId INTEGER, orderIdx INTEGER);"
                "CREATE TABLE Annotations_label (uid INTEGER PRIMARY KEY, person INTEGER, class INTEGER, annoId INTEGER, exact_id INTEGER);"
                "CREATE TABLE Persons (uid INTEGER PRIMARY KEY, name TEXT);"
            )
            db.execute("INSERT INTO Slides VALUES (1, ?, 1600, 1400, '', 'u', '')", (slide,))
            db.executemany("INSERT INTO Classes VALUES (?, ?, '')", [(1, "mitotic figure"), (2, "mimicker")])
            for k, (x, y) in enumerate(boxes, 1):
                db.execute("INSERT INTO Annotations VALUES (?, 1, 'g', 0, 0, 1, '', 1, ?)", (k, 1 + k % 2))
                db.execute("INSERT INTO Annotations_coordinates VALUES (?, ?, ?, 1, ?, 1)", (k, x, y, k))
                db.execute("INSERT INTO Annotations_label VALUES (?, 1, ?, ?, 0)", (k, 1 + k % 2, k))
            db.execute("INSERT INTO Persons VALUES (1, 'a')")
    yield "labels.sqlite", "sliderunner", database.read_bytes()


def through(tool, campaign, name, data, commands):
    """A damaged file through readers, none of which may write to it."""
    path = tool.base / f"victim-{name}"
    path.write_bytes(data)
    for command in commands:
        out = tool.empty("out")
        words = [str(w).replace("FILE", str(path)).replace("OUT", str(out)) for w in command]
        tool.check(campaign, f"{name} {words[:2]}", *words)
        if path.read_bytes() != data:
            tool.table.add(campaign, "silent change", f"{name}: the input was written to")
    path.unlink()


def slides(tool, campaign, seeds, commands, change):
    if seeds:
        seed = tool.random.choice(seeds)
        through(tool, campaign, seed.name, change(tool.random, seed.read_bytes()), commands)


def imports(tool):
    name, form, data = tool.random.choice(list(annotations(tool)))
    data = (damaged if form == "sliderunner" else text_lie)(tool.random, data)
    folder = tool.empty("labels")
    folder.mkdir()
    path = folder / name
    path.write_bytes(data)
    kind = tool.random.choice(["regions", "crops"])
    out = ["--kind", kind, "--images", tool.drawn().parent, "--cohort", "D", "--out", tool.empty("out")]
    campaign = "SQLite" if form == "sliderunner" else "JSON, XML and CSV annotations"
    tool.check(campaign, f"{form} {kind}", "corpus", "import", path, "--format", form, *out)


def package(tool):
    """A model package with a changed network and a card that fits it."""
    folder = tool.empty("model")
    shutil.copytree(MODEL, folder)
    name = tool.random.choice(["segmenter.onnx", "classifier.onnx"])
    old = hashlib.sha256((folder / name).read_bytes()).hexdigest()
    (folder / name).write_bytes(damaged(tool.random, (folder / name).read_bytes()))
    new = hashlib.sha256((folder / name).read_bytes()).hexdigest()
    card = folder / "card.toml"
    text = card.read_text().replace(old, new)
    if tool.random.random() < 0.3:
        text = text_lie(tool.random, text.encode()).decode(errors="replace")
    card.write_text(text)
    arguments = ["--stages", "2", "--engine", "rten", "--threads", "1", "--out", tool.empty("out")]
    tool.check("ONNX and card", name, "detect", SLIDES / "svs_jpeg_420.svs", "--model", folder, *arguments)


def tables(tool):
    """CSV tables through the statistics and the evaluation."""
    r = tool.random
    rows = (f"{r.randrange(1, 99)},{k % 2},{r.random():.3f},{'ab'[k % 2]}\n" for k in range(30))
    path = tool.base / "t.csv"
    path.write_bytes(text_lie(r, ("time,event,x,g\n" + "".join(rows)).encode()))
    verb = r.choice(
        [
            ["survival", "km", "--table", path, "--time", "time", "--event", "event"],
            ["survival", "cox", "--table", path, "--time", "time", "--event", "event", "--covariates", "x"],
            ["survival", "logrank", "--table", path, "--time", "time", "--event", "event", "--covariates", "g"],
            ["evaluate", "detections", "--predictions", tool.base, "--truth", path],
        ]
    )
    tool.check("CSV", verb[1], *verb)


def corpora(tool, seeds):
    """A corpus whose shard or manifest is changed and signed again."""
    source, folder = tool.random.choice([*seeds, tool.corpus()]), tool.empty("corpus")
    shutil.copytree(source, folder)
    for p in [folder, *folder.rglob("*")]:
        p.chmod(0o755 if p.is_dir() else 0o644)
    manifest = folder / "manifest.json"
    about = json.loads(manifest.read_text())
    shard = folder / about["shards"][0]["file"]
    data = damaged(tool.random, shard.read_bytes())
    shard.write_bytes(data)
    about["shards"][0].update(bytes=len(data), sha256=hashlib.sha256(data).hexdigest())
    text = json.dumps(about)
    if tool.random.random() < 0.2:
        text = text_lie(tool.random, text.encode()).decode(errors="replace")
    manifest.write_text(text)
    for verb in ("verify", "inspect"):
        tool.check("Parquet and JSON", source.name, "corpus", verb, folder)


def known(tool, hostile):
    """The files that once broke a reader."""
    for path in sorted(hostile.iterdir() if hostile.is_dir() else []):
        if path.suffix in (".tif", ".svs", ".png"):
            tool.check("hostile files", path.name, "slide", "info", path, "--json")
        elif path.name.startswith("onnx_"):
            out = ["--engine", "rten", "--out", tool.empty("out")]
            tool.check("hostile files", path.name, "detect", SLIDES / "svs_jpeg_420.svs", "--model", path, *out)
        elif path.name.startswith("corpus_"):
            tool.check("hostile files", path.name, "corpus", "verify", path)
