"""The parts of a release that can be judged without making one: `nox -s release` does that."""

import json
import sys
import tarfile
from pathlib import Path

import pytest

from release._build import CLIENT, build_man, distributions
from release._check import check_versions, sources_of, versions
from release._try import licence_of
from tests.repo._tree import ROOT


def _tree(folder: Path, library: str, kit: str) -> Path:
    """A repository with two distributions and the client, in these versions."""
    for name, place, version in (("penstock", ".", library), ("penstock-tck", "tck", kit)):
        (folder / place).mkdir(exist_ok=True)
        text = f'[project]\nname = "{name}"\nversion = "{version}"\n'
        (folder / place / "pyproject.toml").write_text(text)
    (folder / "src/penstock").mkdir(parents=True)
    (folder / "src/penstock/__init__.py").write_text(f'__version__ = "{library}"\n')
    (folder / CLIENT).mkdir(parents=True)
    (folder / CLIENT / "package.json").write_text(json.dumps({"version": library}))
    return folder


def test_all_parts_have_one_version() -> None:
    """The library, the kit, each plugin, the module and the client in JavaScript."""
    found = versions(ROOT)
    assert len(found) >= 11
    assert len(set(found.values())) == 1, found


def test_a_part_of_another_version_stops_the_release(tmp_path: Path) -> None:
    """The text names each part with its version."""
    assert check_versions(_tree(tmp_path, "1.2.0", "1.2.0"), None) == "1.2.0"
    (tmp_path / "tck/pyproject.toml").write_text(
        '[project]\nname = "penstock-tck"\nversion = "1.1.0"\n'
    )
    with pytest.raises(SystemExit, match=r"different versions:(.|\n)*1\.1\.0  penstock-tck"):
        check_versions(tmp_path, None)


def test_another_version_than_the_one_meant_stops_the_release(tmp_path: Path) -> None:
    """`--version` says which one is meant."""
    tree = _tree(tmp_path, "1.2.0", "1.2.0")
    assert check_versions(tree, "1.2.0") == "1.2.0"
    with pytest.raises(SystemExit, match=r"the version is 1\.2\.0, and not 1\.3\.0"):
        check_versions(tree, "1.3.0")


def test_templates_are_not_released() -> None:
    """They are there to be copied."""
    names = {folder.name for folder in distributions(ROOT)}
    assert {"tck", "penstock-http", "penstock-spark"} <= names
    assert not any(name.startswith("template") for name in names)


def test_each_file_of_a_package_belongs_into_its_wheel() -> None:
    """Those that are no modules, too: the mark of types, and the script that runs a Java."""
    assert "penstock/py.typed" in sources_of(ROOT)
    assert "penstock_spark/java_home/bin/java" in sources_of(ROOT / "plugins/penstock-spark")


def test_the_manual_pages_are_a_file_of_a_release(tmp_path: Path) -> None:
    """Those of all commands, below one folder, and twice the same bytes."""
    packed = []
    for name in ("one", "two"):
        (tmp_path / name / "dist").mkdir(parents=True)
        programs, to = Path(sys.executable).parent, tmp_path / name / "dist"
        packed.append(build_man(programs, to, tmp_path / name, "1.2.0"))
    with tarfile.open(packed[0]) as archive:
        names = archive.getnames()
    assert packed[0].name == "penstock-1.2.0-man.tar.gz"
    assert {f"penstock-1.2.0-man/man1/penstock{each}.1" for each in ("", "-cat")} <= set(names)
    assert packed[0].read_bytes() == packed[1].read_bytes()


@pytest.mark.parametrize(
    ("part", "licence"),
    [
        ({"licenses": [{"expression": "MIT OR Apache-2.0"}]}, "MIT OR Apache-2.0"),
        ({"licenses": [{"license": {"id": "MIT"}}]}, "MIT"),
        (
            {"licenses": [{"license": {"name": "License :: OSI Approved :: BSD License"}}]},
            "BSD License",
        ),
        ({}, "not named"),
        ({"licenses": [{"license": {}}]}, "not named"),
    ],
)
def test_a_licence_is_read_in_each_form(part: dict[str, object], licence: str) -> None:
    """CycloneDX has an expression, an id of SPDX, or a name."""
    assert licence_of(part) == licence
