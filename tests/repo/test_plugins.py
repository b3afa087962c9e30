"""The distributions in plugins/: all of the same shape, and all import the plugin surface only."""

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

from tests.repo._tree import ROOT, imports_of, python_files, refuse, text_of

FOLDERS = sorted(path.parent.relative_to(ROOT) for path in ROOT.glob("plugins/*/pyproject.toml"))
MAY_IMPORT = {"penstock.spi", "penstock.api"}
# A log on a broker is derived from `BrokerLog`.
OF_LOGS = {"penstock.logs", "penstock.brokers"}
LOGS = {Path(f"plugins/penstock-{name}") for name in ("kafka", "nats", "redis")}
# An encoding is written on the decoder that all protocols share,
# and calls the sink of the protocol.
OF_ENCODINGS = {"penstock.protocols.rsio", "penstock.wire"}
ENCODINGS = {Path("plugins/penstock-msgpack"), Path("plugins/penstock-protobuf")}
# A dialect is written on the session, and on the decoder that all protocols share.
OF_DIALECTS = {"penstock.session", "penstock.wire"}
DIALECTS = {Path("plugins/penstock-rsocket")}
# It reads the files of a record, and connects without trio: Spark loads it.
OF_SPARK = {"penstock.recording", "penstock.blocking"}
SPARK = Path("plugins/penstock-spark")
# Its application serves by itself, in the program of a web server.
OF_APPLICATIONS = {"penstock", "penstock.aio"}
APPLICATIONS = Path("plugins/penstock-http")
GUIDES = [
    ("plugins/template-serializer", "docs/how-to/write-a-plugin.md"),
    ("plugins/template-transport", "docs/how-to/write-a-transport.md"),
]


def _project(folder: Path) -> dict[str, Any]:
    project: dict[str, Any] = tomllib.loads(text_of(folder / "pyproject.toml"))["project"]
    return project


def _package(folder: Path) -> Path:
    # Without the folder of bytecode that an earlier session has left beside a module.
    [package] = (ROOT / folder / "src").glob("*/__init__.py")
    package = package.parent
    return package.relative_to(ROOT)


def test_a_plugin_has_the_shape_that_all_plugins_have() -> None:
    """Each plugin has a README, a front door, hooks, types and tests, in the same places."""
    assert {Path("plugins/template-serializer"), Path("plugins/template-transport")} <= set(FOLDERS)
    wanted = [
        path
        for folder in FOLDERS
        for package in [_package(folder)]
        for path in (
            folder / "README.md",
            package / "__init__.py",
            package / "py.typed",
            folder / "tests",
        )
    ]
    wanted += [_package(folder) / "_hooks.py" for folder in FOLDERS]
    refuse((path for path in wanted if not (ROOT / path).exists()), "these files are missing:")


def test_a_plugin_is_found_by_its_entry_point() -> None:
    """Its name begins with `penstock-`, and its entry points lead to its package: the one of its
    hooks, those of its commands, or both.
    """
    projects = {folder: _project(folder) for folder in FOLDERS}
    refuse(
        (
            folder
            for folder, project in projects.items()
            if not project["name"].startswith("penstock-")
        ),
        "rename to penstock-...:",
    )
    for folder in FOLDERS:
        package, groups = _package(folder).name, projects[folder]["entry-points"]
        hooks = list(groups.get("penstock", {}).values())
        commands = groups.get("penstock_commands", {}).values()
        refuse(
            (value for value in hooks if hooks != [package]),
            f"{folder} has one entry point for hooks, which is its package:",
        )
        refuse(
            (value for value in commands if not value.startswith(f"{package}.")),
            f"{folder} has commands of its own package:",
        )
        assert hooks or commands, f"{folder} has no entry point"


def test_each_dependency_of_a_plugin_has_a_lower_bound() -> None:
    """`penstock` is among the dependencies, and each has a lower bound."""
    dependencies = {folder: _project(folder)["dependencies"] for folder in FOLDERS}
    refuse(
        (
            folder
            for folder, rows in dependencies.items()
            if not any(row.startswith("penstock>=") for row in rows)
        ),
        "not on penstock:",
    )
    rows = [(folder, row) for folder, entries in dependencies.items() for row in entries]
    refuse(
        (
            f"{folder}: {row}"
            for folder, row in rows
            if not re.fullmatch(r"[\w.-]+>=[\d.]+(,<[\d.]+)?", row)
        ),
        "no lower bound:",
    )


def test_a_plugin_imports_the_plugin_surface_only() -> None:
    """Of penstock, a plugin imports `penstock.spi` and `penstock.api`, and one with an encoding,
    a dialect or a log the front doors that this needs.
    """
    more = {
        **dict.fromkeys(ENCODINGS, OF_ENCODINGS),
        **dict.fromkeys(DIALECTS, OF_DIALECTS),
        **dict.fromkeys(LOGS, OF_LOGS),
        SPARK: OF_SPARK,
        APPLICATIONS: OF_APPLICATIONS,
    }
    deep = []
    for folder in FOLDERS:
        allowed = MAY_IMPORT | more.get(folder, set())
        imports = [
            (path, name)
            for path in python_files(str(_package(folder)))
            for name in imports_of(path)
        ]
        deep += [
            f"{path}: {name}"
            for path, name in imports
            if name.split(".")[0] == "penstock" and name not in allowed
        ]
    refuse(deep, f"a plugin may import {sorted(MAY_IMPORT)} of penstock:")


@pytest.mark.parametrize(("template", "guide"), GUIDES)
def test_a_guide_shows_every_file_of_its_template(template: str, guide: str) -> None:
    """The guide includes each Python and TOML file of the template,
    so it describes the files that the tests install.
    """
    shown = set(
        re.findall(rf"\{{literalinclude\}} \.\./\.\./({template}/\S+)", text_of(Path(guide)))
    )
    assert shown == {
        str(path.relative_to(ROOT))
        for path in (ROOT / template).rglob("*")
        if path.suffix in {".py", ".toml"}
    }
