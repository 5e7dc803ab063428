#!/usr/bin/env python3
"""Scores a trained detector on what each fold left out: per patient, per scanner, under changes that must not matter.

    scripts/measure_detector.py --run RUN --data DATA --set SET --out OUT [--binary FILE] [--jobs N] [--engine E] [--provider P]

RUN is the folder of `mithras train detector`, SET its regions dataset, DATA the folder that the dataset was imported from
(icpr2012, mitos14, ami_br, extra_he). Every part is a `mithras` command in a folder of its own below OUT; what is there is not
made again. The last step chooses scale and points (`mithras evaluate operating-point`). Standard library alone.
"""
import argparse, concurrent.futures as futures, csv, json, os, subprocess, sys
from pathlib import Path

FRAMES = {"icpr2012": ("icpr2012/frames", "0.2456"), "mitos14": ("mitos14/frames", "0.2273")}
SHORT = ["--grid", "short"]


def main():
    a = arguments()
    folds = json.loads((a.run / "folds.json").read_text())
    images = json.loads((a.set / "regions.json").read_text())["images"]
    a.out.mkdir(parents=True, exist_ok=True)
    truth(images, a.out / "truth.csv")
    models = [f"fold-{k}" for k in range(len(folds["folds"]))] + ["final"]
    models = [m for m in models if (a.run / m / "finetune/model.safetensors").exists()]
    run_all(a, [export(a, m) for m in models])
    run_all(a, sheets(a, models))
    jobs, patients, foreign = parts(a, folds, images, models)
    run_all(a, jobs)
    choose(a, patients, foreign)


def arguments():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ["run", "data", "set", "out"]:
        p.add_argument(f"--{name}", type=Path, required=True)
    p.add_argument("--binary", default="target/release/mithras")
    p.add_argument("--jobs", type=int, default=os.cpu_count())
    p.add_argument("--engine", default="auto")
    p.add_argument("--provider", default="auto")
    p.add_argument("--changes", help="names instead of the short grid of nine")
    p.add_argument("--threshold", default="0.1", help="of candidates (0.1)")
    p.add_argument("--density", default="2.8", help="figures per mm2 that points are chosen for (2.8: whole breast slides)")
    p.add_argument("--symmetries", default="2")
    p.add_argument("--min-area", default="20")
    p.add_argument("--classifiers", type=Path, help="another run, whose second stages are taken instead")
    p.add_argument("--scale", type=Path, help="points.json of another detector with the same second stage")
    return p.parse_args()


def truth(images, path):
    """Every labelled figure of the frames, as `evaluate` reads them."""
    with open(path, "w", newline="") as f:
        w = csv.writer(f)
        w.writerow(["slide", "x_px", "y_px", "label"])
        for i in images:
            if i["source"] in FRAMES:
                for l in i.get("labels", []):
                    if l["class"] == "mitotic_figure":
                        w.writerow([i["name"], l["x"], l["y"], "mitotic_figure"])


def export(a, model):
    package = a.out / "package" / model
    second = (a.classifiers or a.run) / model / "finetune/model.safetensors"
    return package / "card.toml", [
        "train", "export", "--segmenter", a.run / model / "segment/model.safetensors", "--classifier", second,
        "--threshold", a.threshold, "--opening-radius", "0", "--min-area", a.min_area, "--symmetries", a.symmetries,
        "--license", "research", "--name", model, "--out", package]


def sheets(a, models):
    """Patches of each fold's slides, side by side."""
    for k in [m[5:] for m in models if m != "final"]:
        out = a.out / "sheets" / k
        yield out / "truth.csv", [
            "corpus", "export", a.set, "--format", "sheets", "--folds", a.run / "folds.json", "--fold", k,
            "--source", "ami_br MIDOG21", "--mirror", "32", "--out", out]


def parts(a, folds, images, models):
    """Every measurement; of patients and folds' patches the folder and the model."""
    changes = ["--changes", a.changes] if a.changes else SHORT
    engine = ["--engine", a.engine, "--provider", a.provider]
    jobs, patients, foreign = [], {}, {}

    def measure(name, model, *what):
        out = a.out / "rob" / name
        head = ["evaluate", "robustness", "--model", a.out / "package" / model, "--out", out, *engine]
        jobs.append((out / "robustness.json", head + list(what)))
        return out

    place = {s: g["place"] for g in folds["groups"] for s in g["slides"]}
    tissue = ",".join(sorted(Path(i["file"]).stem for i in images if i["part"] == "calibration"))
    for model in models:
        if tissue:
            measure(f"tissue-{model}", model, "--images", a.data / "extra_he/monuseg_1000", "--no-figures", "--only", tissue,
                    "--mpp", "0.25", "--changes", "clean")
    for model in [m for m in models if m != "final"]:
        k = int(model[5:])
        held = [i for i in images if place.get(i["slide"]) == {"fold": k}]
        for slide in sorted({i["slide"] for i in held if i["source"] in FRAMES and i.get("exhaustive")}):
            source = next(i["source"] for i in held if i["slide"] == slide and i["source"] in FRAMES)
            folder, mpp = FRAMES[source]
            patients[slide] = (measure(slide, model, "--images", a.data / folder, "--truth", a.out / "truth.csv", "--only", slide,
                                       "--mpp", mpp, *changes), model)
        sheet = a.out / "sheets" / str(k)
        patients[f"patches-{k}"] = (measure(f"patches-{k}", model, "--images", sheet, "--truth", sheet / "truth.csv", "--within",
                                            sheet / "regions.csv", "--mpp", "0.25", *changes), model)
        others = ",".join(sorted(Path(i["file"]).stem for i in held if "monuseg" in i["source"]))
        if others:
            foreign[model] = measure(f"other-{k}", model, "--images", a.data / "extra_he/monuseg_1000", "--no-figures", "--only",
                                     others, "--mpp", "0.25", "--changes", "clean")
    return jobs, patients, foreign


def run_all(a, jobs):
    def one(job):
        done, command = job
        if done.exists():
            return
        done.parent.mkdir(parents=True, exist_ok=True)
        line = [str(a.binary), *map(str, command)]
        r = subprocess.run(line, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if r.returncode:
            sys.exit(f"{' '.join(line)}\n{r.stdout[-2000:]}")
        print("done", done.parent.name, flush=True)

    with futures.ThreadPoolExecutor(a.jobs) as pool:
        for f in [pool.submit(one, j) for j in jobs]:
            f.result()


def choose(a, patients, foreign):
    line = [str(a.binary), "evaluate", "operating-point", "--density", a.density, "--out", str(a.out / "points.json")]
    if a.scale:
        line += ["--scale", str(a.scale)]
    used = set()
    for name, (folder, model) in patients.items():
        line += ["--fold", f"{name}={folder}", "--tissue", f"{name}={a.out / 'rob' / f'tissue-{model}'}"]
        if model in foreign and model not in used:
            line += ["--foreign", f"{name}={foreign[model]}"]
            used.add(model)
    print(subprocess.run(line, check=True, stdout=subprocess.PIPE, text=True).stdout)


if __name__ == "__main__":
    main()
