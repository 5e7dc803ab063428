#!/usr/bin/env python3
"""Bill of materials and licences of what is in the binary.

Reads `cargo metadata` (no network) and walks from the crate `cli` over what is built into the program:
normal and build dependencies, no development ones. Writes into --out:

- sbom.cdx.json    CycloneDX 1.5: every crate with version, licence, SHA-256 of its package; bundled models
- licenses.txt     the licence texts of the crates, each text once, and the licences of the models
"""

import argparse
import collections
import hashlib
import json
import pathlib
import subprocess
import sys
import tomllib

ROOT = pathlib.Path(__file__).resolve().parent.parent


def metadata(features, target):
    command = ["cargo", "metadata", "--format-version", "1", "--locked", "--offline"]
    command += ["--filter-platform", target]
    command += ["--features", ",".join(features)] if features else []
    ran = subprocess.run(command, cwd=ROOT / "crates/cli", capture_output=True, text=True)
    if ran.returncode:
        sys.exit(f"sbom: {' '.join(command)} failed; `cargo fetch --locked` fetches what it needs\n{ran.stderr}")
    return json.loads(ran.stdout)


def reached(data):
    """Packages in the program, found from `cli`."""
    nodes = {n["id"]: n for n in data["resolve"]["nodes"]}
    packages = {p["id"]: p for p in data["packages"]}
    start = next(i for i, p in packages.items() if p["name"] == "mithras-cli" and p["source"] is None)
    seen, open_ = {start}, [start]
    while open_:
        for dep in nodes[open_.pop()]["deps"]:
            used = any(kind["kind"] in (None, "build") for kind in dep["dep_kinds"])
            if used and dep["pkg"] not in seen:
                seen.add(dep["pkg"])
                open_.append(dep["pkg"])
    return [packages[i] for i in sorted(seen, key=lambda i: (packages[i]["name"], packages[i]["version"]))]


def checksums():
    lock = tomllib.loads((ROOT / "Cargo.lock").read_text())
    return {(p["name"], p["version"]): p.get("checksum") for p in lock["package"]}


def texts(package):
    """Licence texts that are in a crate's package."""
    folder = pathlib.Path(package["manifest_path"]).parent
    starts = ("license", "licence", "copying", "notice", "unlicense", "copyright")
    files = [f for f in sorted(folder.iterdir()) if f.is_file() and f.name.lower().startswith(starts)]
    if package["license_file"]:
        files.append(folder / package["license_file"])
    for file in dict.fromkeys(files):
        yield file.name, file.read_text(encoding="utf-8", errors="replace").strip()


def models():
    for card in sorted((ROOT / "models").glob("*/card.toml")):
        about = tomllib.loads(card.read_text())
        yield about["name"], about["license"], hashlib.sha256(card.read_bytes()).hexdigest()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--features", default="", help="of the crate `cli`, separated by commas")
    parser.add_argument("--target", default="x86_64-unknown-linux-gnu")
    args = parser.parse_args()
    data = metadata([f for f in args.features.split(",") if f], args.target)
    packages, sums = reached(data), checksums()
    foreign = [p for p in packages if p["source"] is not None]
    own = next(p for p in packages if p["name"] == "mithras-cli")

    unlicensed = [p["name"] for p in foreign if not p["license"] and not p["license_file"]]
    if unlicensed:
        sys.exit(f"sbom: no licence is stated by {', '.join(unlicensed)}")
    components = []
    for p in foreign:
        # `MIT/Apache-2.0` is the old way to write OR.
        licence = (p["license"] or "").replace("/", " OR ")
        component = {
            "type": "library",
            "name": p["name"],
            "version": p["version"],
            "purl": f"pkg:cargo/{p['name']}@{p['version']}",
            "licenses": [{"expression": licence}] if licence else [{"license": {"name": p["license_file"]}}],
        }
        if sums.get((p["name"], p["version"])):
            component["hashes"] = [{"alg": "SHA-256", "content": sums[(p["name"], p["version"])]}]
        components.append(component)
    for name, licence, digest in models():
        components.append({
            "type": "machine-learning-model",
            "name": name,
            "licenses": [{"license": {"name": licence}}],
            "hashes": [{"alg": "SHA-256", "content": digest}],
        })
    bom = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {
            "component": {
                "type": "application",
                "name": "mithras",
                "version": own["version"],
                "licenses": [{"expression": own["license"]}],
            }
        },
        "components": components,
    }
    args.out.mkdir(parents=True, exist_ok=True)
    (args.out / "sbom.cdx.json").write_text(json.dumps(bom, indent=1) + "\n")

    same = collections.defaultdict(list)
    without = []
    for p in foreign:
        found = list(texts(p))
        if not found:
            without.append(f"{p['name']} {p['version']}: {p['license']}")
        for name, text in found:
            same[text].append(f"{p['name']} {p['version']} ({name})")
    with open(args.out / "licenses.txt", "w", encoding="utf-8") as out:
        out.write("Licences of the crates in this program; NOTICE holds those of code that was taken over.\n")
        for text, whose in sorted(same.items(), key=lambda item: item[1][0]):
            out.write("\n" + "=" * 80 + "\n" + "\n".join(whose) + "\n" + "-" * 80 + "\n" + text + "\n")
        if without:
            out.write("\n" + "=" * 80 + "\nCrates whose packages hold no licence text, with the licence they state:\n")
            out.write("\n".join(without) + "\n")
        out.write("\n" + "=" * 80 + "\nBundled models:\n")
        out.writelines(f"{name}: {licence}\n" for name, licence, _ in models())
    print(f"{len(foreign)} crates, {len(same)} licence texts, {len(without)} crates without one")


if __name__ == "__main__":
    main()
