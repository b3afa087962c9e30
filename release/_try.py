"""Tries of the files as a user has them: installed from files into empty environments."""

import json
import re
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from release._words import ROOT, run, say, stop

CLIENT_PROGRAM = """
import assert from "node:assert";
import { connect, ConnectionLost } from "penstock";
import { stream } from "penstock/http";
assert.equal(typeof connect, "function");
assert.equal(typeof stream, "function");
assert.ok(new ConnectionLost("x") instanceof Error);
"""
CLIENT_TYPES = """
import { connect } from "penstock";
import { stream } from "penstock/http";
const connection = await connect("ws://127.0.0.1:1/");
for await (const tick of connection.stream("ticks", { type: "text" })) console.log(tick.length);
const ticks = stream("http://127.0.0.1:1/p/ticks", { type: "text" });
for await (const tick of ticks) console.log(tick.length);
"""
CHECKED = {"module": "nodenext", "target": "es2022", "strict": True, "noEmit": True, "types": []}
"""Of tsc, as a program on Node.js sets it."""


def pythons() -> list[str]:
    """Return the lowest and the newest Python of this machine that penstock runs on."""
    oldest = (3, 11)
    found = {sys.version_info[:2]: sys.executable}
    for path in sorted((Path.home() / ".pyenv/versions").glob("3.*/bin/python3")):
        numbers = re.findall(r"\d+", path.parent.parent.name)
        found.setdefault((int(numbers[0]), int(numbers[1])), str(path))
    for minor in range(oldest[1], oldest[1] + 10):
        command = shutil.which(f"python3.{minor}")
        if command and _runs(command):
            found.setdefault((3, minor), command)
    usable = sorted(each for each in found if each >= oldest)
    return [found[each] for each in dict.fromkeys((usable[0], usable[-1]))]


def _runs(python: str) -> bool:
    """Return False for the command of a version manager that has no such Python."""
    done = subprocess.run([python, "-c", ""], capture_output=True, check=False)
    return done.returncode == 0


def _environment(python: str, folder: Path) -> Path:
    run("uv", "venv", "--quiet", "--python", python, str(folder), cwd=folder.parent)
    return folder / "bin"


def _install(programs: Path, *requirements: str) -> None:
    where = ("--python", str(programs / "python"))
    run("uv", "pip", "install", "--quiet", *where, *requirements, cwd=programs)


def try_python(python: str, wheels: list[Path], tree: Path, work: Path) -> None:
    """Install the library alone and run the README; then install all, and list the plugins."""
    version = run(python, "--version", cwd=work)
    folder = work / re.sub(r"\W", "-", version)
    folder.mkdir()
    programs = _environment(python, folder / "environment")
    (library,) = (wheel for wheel in wheels if re.match(r"penstock-\d", wheel.name))
    _install(programs, str(library))
    readme = folder / "readme"
    shutil.copytree(tree / "examples", readme / "examples")
    # Its own imports are those of the tree, and those of the programs of the installed wheel.
    ran = run(str(programs / "python"), "-m", "release._readme", str(readme), cwd=ROOT)
    _install(programs, f"penstock[all] @ {library.as_uri()}", *map(str, wheels))
    run("uv", "pip", "check", "--python", str(programs / "python"), cwd=folder)
    listed = run(str(programs / "penstock"), "plugins", cwd=folder)
    if "!" in listed or "refused" in listed:
        stop(f"with {version} a plugin has a problem:\n{listed}")
    said = run(str(programs / "penstock"), "--version", cwd=folder)
    say(f"{version}: README {ran}; all extras fit; {len(listed.splitlines())} plugins; {said}")


def try_npm(package: Path, work: Path) -> None:
    """Install the client from its file, import it in Node.js, and check its types with tsc."""
    folder = work / "node"
    folder.mkdir()
    (folder / "package.json").write_text('{"type": "module", "private": true}')
    install = ("npm", "install", "--silent", str(package), "typescript@5", "@types/node@20")
    run(*install, cwd=folder)
    (folder / "program.js").write_text(CLIENT_PROGRAM)
    run("node", "program.js", cwd=folder)
    (folder / "program.ts").write_text(CLIENT_TYPES)
    options = {**CHECKED, "lib": ["es2022", "dom"]}
    (folder / "tsconfig.json").write_text(
        json.dumps({"compilerOptions": options, "files": ["program.ts"]})
    )
    run("node_modules/.bin/tsc", "--project", ".", cwd=folder)
    node = run("node", "--version", cwd=folder)
    say(f"Node.js {node}: both modules of the package are imported; tsc accepts their types")


def install_all(wheels: list[Path], work: Path) -> Path:
    """Install all wheels and extras into an environment; return the folder of its programs."""
    programs = _environment(sys.executable, work / "all")
    (library,) = (wheel for wheel in wheels if re.match(r"penstock-\d", wheel.name))
    _install(programs, f"penstock[all] @ {library.as_uri()}", *map(str, wheels))
    return programs


def bill_of_materials(programs: Path, to: Path, work: Path, version: str) -> None:
    """Write what an installation with all extras has (CycloneDX), and tell its licences."""
    bill = to / f"penstock-{version}.cdx.json"
    made = ("cyclonedx-py", "environment", "--output-reproducible", "--of", "JSON")
    # PYTHONPATH would bring the packages of this program.
    alone = {"PYTHONPATH": ""}
    run(*made, "-o", str(bill), str(programs / "python"), cwd=work, env=alone)
    parts = json.loads(bill.read_text(encoding="utf-8"))["components"]
    licences = Counter(licence_of(part) for part in parts)
    listed = ", ".join(f"{name} {count}" for name, count in licences.most_common())
    say(f"{bill.name}: {len(parts)} packages; {listed}")
    if unnamed := [part["name"] for part in parts if licence_of(part) == "not named"]:
        say(f"  look up the licence of {', '.join(unnamed)}")


def licence_of(part: Mapping[str, Any]) -> str:
    """Return the licence of a component of CycloneDX, as its package names it."""
    for each in part.get("licenses", ()):
        named = each.get("license", {})
        if found := each.get("expression") or named.get("id") or named.get("name"):
            return str(found).removeprefix("License :: OSI Approved :: ")
    return "not named"
