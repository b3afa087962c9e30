"""Checks of the files that need no installation."""

import json
import re
import zipfile
from pathlib import Path

from release._build import CLIENT, distributions, project_of
from release._words import run, say, stop


def check_versions(tree: Path, meant: str | None) -> str:
    """Return the one version of all parts. Stop if two differ, or if it is not the one meant."""
    found = versions(tree)
    if len(set(found.values())) != 1:
        listed = "\n".join(f"  {version}  {name}" for name, version in found.items())
        stop(f"the parts have different versions:\n{listed}")
    (version,) = set(found.values())
    if meant not in {None, version}:
        stop(f"the version is {version}, and not {meant}")
    return version


def versions(tree: Path) -> dict[str, str]:
    """Return the version of each part: of each distribution, of the module, of the client."""
    found = {
        project["name"]: project["version"] for project in map(project_of, distributions(tree))
    }
    module = (tree / "src/penstock/__init__.py").read_text(encoding="utf-8")
    found["penstock.__version__"] = re.findall(r'^__version__ = "(.+)"$', module, re.MULTILINE)[0]
    client = json.loads((tree / CLIENT / "package.json").read_text(encoding="utf-8"))
    found["the client in JavaScript"] = client["version"]
    return found


def check_python(tree: Path, to: Path) -> None:
    """Check the metadata, the contents of the wheels, and that no file of a package is missing."""
    files = sorted(map(str, (*to.glob("*.whl"), *to.glob("*.tar.gz"))))
    run("twine", "check", "--strict", *files, cwd=to)
    wheels = [each for each in files if each.endswith(".whl")]
    # W002: two small modules of a package may have the same text. W009: penstock-spark has
    # pyspark_penstock beside its package, by whose name Spark finds a source.
    run("check-wheel-contents", "--ignore=W002,W009", *wheels, cwd=to)
    for folder in distributions(tree):
        name = project_of(folder)["name"].replace("-", "_")
        (wheel,) = to.glob(f"{name}-[0-9]*.whl")
        with zipfile.ZipFile(wheel) as packed:
            shipped = set(packed.namelist())
        if missing := sources_of(folder) - shipped:
            stop(f"{wheel.name} lacks {', '.join(sorted(missing))}")
        if not any(each.endswith("licenses/LICENSE") for each in shipped):
            stop(f"{wheel.name} has no LICENSE")
    say(f"twine and check-wheel-contents find nothing in {len(files)} files; no file is missing")


def sources_of(folder: Path) -> set[str]:
    """Return the files of a distribution's packages, as its wheel has to name them."""
    source = folder / "src"
    return {
        path.relative_to(source).as_posix()
        for path in source.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
