"""The files of a release: wheels and sdists of all distributions, the package of npm, the manual
pages, the notes.
"""

import json
import shutil
import tarfile
import tomllib
from gzip import GzipFile
from io import BytesIO
from pathlib import Path

from release._words import ROOT, run, say

CLIENT = Path("clients/javascript")


def stage(tree: Path) -> Path:
    """Lay the files of the newest commit into a folder, and return it. A distribution below
    plugins/ gets a copy of the licence, which each copy of the software must bring.
    """
    tree.mkdir()
    archive = tree.with_suffix(".tar")
    run("git", "archive", "--output", str(archive), "HEAD", cwd=ROOT)
    with tarfile.open(archive) as packed:
        packed.extractall(tree, filter="data")
    if changed := run("git", "status", "--porcelain", cwd=ROOT):
        say(f"{len(changed.splitlines())} changes are not committed, and not in the release")
    for folder in (*distributions(tree), tree / CLIENT):
        if not (folder / "LICENSE").exists():
            shutil.copy(tree / "LICENSE", folder)
    return tree


def distributions(tree: Path) -> list[Path]:
    """Return the folder of each distribution: the library, the kit, the plugins. The templates are
    there to be copied, and not released.
    """
    return [tree, tree / "tck", *sorted(tree.glob("plugins/penstock-*"))]


def project_of(folder: Path) -> dict[str, str]:
    """Return the table `project` of a distribution."""
    text = (folder / "pyproject.toml").read_text(encoding="utf-8")
    project: dict[str, str] = tomllib.loads(text)["project"]
    return project


def build_python(tree: Path, to: Path) -> list[Path]:
    """Build an sdist of each distribution, and from the sdist its wheel. Return the wheels."""
    # Times in the archives are those of the commit: the same commit gives the same bytes.
    date = {"SOURCE_DATE_EPOCH": run("git", "log", "-1", "--format=%ct", cwd=ROOT)}
    for folder in distributions(tree):
        build = ("python", "-m", "build", "--installer=uv", f"--outdir={to}", str(folder))
        run(*build, cwd=tree, env=date)
    wheels = sorted(to.glob("*.whl"))
    say(f"{len(wheels)} wheels, {len(list(to.glob('*.tar.gz')))} sdists")
    return wheels


def build_npm(tree: Path, to: Path, work: Path) -> Path:
    """Pack the JavaScript client, check the package with publint, and return it."""
    folder = tree / CLIENT
    facts = json.loads((folder / "package.json").read_text(encoding="utf-8"))
    # In the repository it stops a mistaken `npm publish`.
    del facts["private"]
    (folder / "package.json").write_text(json.dumps(facts, indent=2) + "\n", encoding="utf-8")
    name = run("npm", "pack", "--silent", "--pack-destination", str(to), cwd=folder).split()[-1]
    tools = work / "npm"
    tools.mkdir()
    run("npm", "install", "--silent", "--no-save", "--prefix", str(tools), "publint@0.3", cwd=tools)
    run(str(tools / "node_modules/.bin/publint"), "run", "--strict", str(to / name), cwd=tools)
    say(f"{name}: publint finds nothing")
    return to / name


def build_man(programs: Path, to: Path, work: Path, version: str) -> Path:
    """Pack the manual pages of the command, with those of all plugins, and return the archive.
    `programs` is the folder of programs of an installation.
    """
    folder = work / f"penstock-{version}-man" / "man1"
    run(str(programs / "penstock"), "man", str(folder), cwd=work, env={"COLUMNS": "80"})
    packed = to / f"{folder.parent.name}.tar.gz"
    pack(folder.parent, packed, int(run("git", "log", "-1", "--format=%ct", cwd=ROOT)))
    say(f"{packed.name}: {len(list(folder.iterdir()))} manual pages")
    return packed


def pack(folder: Path, to: Path, time: int) -> None:
    """Pack a folder. The same files give the same bytes: they have this time and no owner."""
    with (
        to.open("wb") as file,
        GzipFile("", "wb", fileobj=file, mtime=time) as compressed,
        tarfile.open(fileobj=compressed, mode="w", format=tarfile.USTAR_FORMAT) as packed,
    ):
        for path in sorted(each for each in folder.rglob("*") if each.is_file()):
            data = path.read_bytes()
            member = tarfile.TarInfo(path.relative_to(folder.parent).as_posix())
            member.size, member.mtime = len(data), time
            packed.addfile(member, BytesIO(data))


def notes(tree: Path, version: str) -> str:
    """Return the notes of the release: the fragments of docs/changes, collected."""
    draft = ("towncrier", "build", "--draft", "--version", version)
    text = run(*draft, cwd=tree)
    return text[text.index(f"## {version}") :] + "\n"
