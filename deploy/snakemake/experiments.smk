"""Experiments: presets over folds, a job per fold, and one table of figures. Needs the training build.

    snakemake --snakefile deploy/snakemake/Snakefile --profile deploy/snakemake/profile \
        experiments --config experiments=experiments.csv out=results

`experiments.csv` has a row per experiment:

    name        its folder, OUT/experiments/NAME
    kind        finetune, probe or detector
    preset      the preset (TOML)
    data        the data of the task, or of a detector the regions dataset
    folds       how many folds the preset makes
    init        starting weights (--init), or empty
    test        `yes`: of a task, the test part is scored, once, when all folds are done
    flags       further flags, such as "--set train.epochs=2"

Paths are from the table's folder. A fold that was killed goes on from its last state. `device` and `threads` of the
configuration are those of each job; `OUT/experiments.csv` has a row per experiment, items and metric.
"""

import json

REQUIRED = ["name", "kind", "preset", "data", "folds"]
METRICS = ["f1", "macro_f1", "balanced_accuracy", "accuracy", "roc_auc"]


def experiments_of(path):
    """The rows of the table by name, paths made whole."""
    with open(path, newline="", encoding="utf-8-sig") as f:
        rows = list(csv.DictReader(f))
    found = {}
    for k, row in enumerate(rows, 2):
        row = {key: (value or "").strip() for key, value in row.items() if key}
        for key in REQUIRED:
            if not row.get(key):
                raise ValueError(f"{path}:{k}: no {key}")
        name, kind = row["name"], row["kind"]
        if kind not in ("finetune", "probe", "detector"):
            raise ValueError(f"{path}:{k}: kind `{kind}` is none of finetune, probe, detector")
        if name in found or not name.replace("-", "").replace("_", "").isalnum():
            raise ValueError(f"{path}:{k}: name `{name}` stands twice, or is not of letters, digits, - and _")
        here = Path(path).resolve().parent
        for key in ("preset", "data", "init"):
            # A package that is bundled is named, not a path.
            if row.get(key) and (key != "init" or (here / row[key]).exists()):
                row[key] = str(here / row[key])
        found[name] = row
    return found


experiments = experiments_of(config["experiments"]) if config.get("experiments") else {}
runs = out / "experiments"
# Absolute: a job may run elsewhere.
trainer = config.get("trainer", mithras)


def folds_of(name):
    """The parts that are trained by jobs of their own."""
    row = experiments[name]
    own = [str(k) for k in range(int(row["folds"]))]
    return own + ["final"] if row["kind"] == "detector" else own


def command_of(name, fold):
    """The words of `mithras train` for a fold, or for all of them."""
    row = experiments[name]
    words = ["train", row["kind"], "--preset", row["preset"], "--data", row["data"], "--out", str(runs / name)]
    if row.get("init"):
        words += ["--init", row["init"]]
    if row["kind"] == "detector":
        words += ["--only", fold] if fold else []
    else:
        words += ["--fold", fold or "all", "--resume"]
    return words


def before(wildcards):
    """Data and preset; and of a probe the first fold, which makes the features that the others read."""
    row = experiments[wildcards.name]
    first = row["kind"] == "probe" and wildcards.fold != "0"
    return [row["preset"]] + ([marks / "experiments" / wildcards.name / "0"] if first else [])


def figures_of(name):
    """Rows of the table: items, metric, mean, sd, folds."""
    run = runs / name
    if experiments[name]["kind"] == "detector":
        stages = json.loads((run / "calibration" / "calibration.json").read_text())["stages"]
        for stage, result in stages.items():
            for rule, of in result["rules"].items():
                for metric in ("f1", "precision", "recall"):
                    n = sum(1 for r in of["folds"] if r["left_out"] != "pooled")
                    yield f"held out, {stage}, {rule}", metric, of[f"{metric}_mean"], of[f"{metric}_sd"], n
        return
    probes = sorted(p.parent.name for p in run.glob("*/protocol.json"))
    for probe in probes or [""]:
        for items, file in (("held out", "metrics.json"), ("test part", "test/metrics.json")):
            path = run / probe / file
            if not path.is_file():
                continue
            over = json.loads(path.read_text()).get("over_folds") or {}
            for metric in METRICS:
                if metric in over:
                    of = over[metric]
                    yield ", ".join(filter(None, [probe, items])), metric, of["mean"], of["sd"], of["folds"]


rule experiments:
    input:
        out / "experiments.csv",


rule experiment_fold:
    input:
        before,
    output:
        touch(marks / "experiments" / "{name}" / r"{fold,\d+|final}"),
    log:
        marks / "experiments" / "{name}" / "{fold}.log",
    threads: int(config.get("threads", 4))
    resources:
        gpu=int(config.get("gpus", 0)),
    params:
        command=lambda w: command_of(w.name, w.fold),
        flags=lambda w: experiments[w.name].get("flags", ""),
        device=config.get("device", "auto"),
    shell:
        "{trainer:q} {params.command:q} --device {params.device} --threads {threads} {params.flags} >{log:q} 2>&1"


rule experiment:
    input:
        lambda w: [marks / "experiments" / w.name / fold for fold in folds_of(w.name)],
    output:
        touch(marks / "experiments" / "{name}.done"),
    log:
        marks / "experiments" / "{name}.log",
    threads: int(config.get("threads", 4))
    params:
        command=lambda w: command_of(w.name, None),
        flags=lambda w: experiments[w.name].get("flags", ""),
        device=config.get("device", "auto"),
        run=lambda w: str(runs / w.name),
        data=lambda w: experiments[w.name]["data"],
        test=lambda w: experiments[w.name].get("test", ""),
    shell:
        # The folds are there: this joins their predictions, or calibrates and packages.
        """
        {trainer:q} {params.command:q} --device {params.device} --threads {threads} {params.flags} >{log:q} 2>&1
        [ "{params.test}" = yes ] || exit 0
        for run in {params.run:q} {params.run:q}/*/; do
            # A test part that was scored stays so.
            if [ -e "$run/protocol.json" ] && [ -e "$run/fold-0/model.safetensors" ] && [ ! -e "$run/test/metrics.json" ]; then
                {trainer:q} train test --run "$run" --data {params.data:q} --device {params.device} --threads {threads} >>{log:q} 2>&1
            fi
        done
        """


rule experiments_table:
    input:
        [marks / "experiments" / f"{name}.done" for name in experiments],
        config["experiments"] if experiments else [],
    output:
        out / "experiments.csv",
    run:
        with open(output[0], "w", newline="", encoding="utf-8") as f:
            table = csv.writer(f, lineterminator="\n")
            table.writerow(["experiment", "kind", "items", "metric", "mean", "sd", "folds"])
            for name, row in experiments.items():
                for figures in figures_of(name):
                    table.writerow([name, row["kind"], *figures])
