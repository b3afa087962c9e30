"""Each contract about imports catches a fault: faults are planted in a copy of the code, and
import-linter must report each of them.

All imports are planted at once, each in a separate file, so that one run of import-linter judges
them all: the report of the contract must name that file. Faults that change what other contracts
see (a new folder, circles) are planted in a second copy.

Run by `nox -s imports`, which installs import-linter.
"""

import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

ROOT = Path(__file__).parents[2]
PLACES = ("src/penstock", "tck/src/penstock_tck")
CONTRACTS: list[dict[str, Any]] = tomllib.loads(
    (ROOT / "pyproject.toml").read_text(encoding="utf-8")
)["tool"]["importlinter"]["contracts"]


class Fault(NamedTuple):
    """An import that must not stand in a package, and the contract that forbids it."""

    folder: str
    line: str
    contract: str

    def __str__(self) -> str:
        return f"{self.folder}: {self.line}"


AIO = "aio starts no thread"
API = "api imports the standard library only"
BLOCKING = "blocking runs no event loop"
CIRCLES = "No circles of imports"
CLIENT = "client and reader do no I/O"
IN_PROCESS = "core, streams and logs import nothing of the network"
NO_TRIO = "The clients without trio import nothing that runs on it"
KIT = "penstock does not depend on the test kit"
LAYERS = "Layers point one way"
OUTSIDER = "protocols import no more than a plugin may"
PLUGIN_AUTHORS = "spi rests on api, attrs, msgspec, pluggy and trio"
REGISTRY = "runtime speaks what its registry offers"
PURE = "Codecs and session do no I/O and use neither clock nor random numbers"
ROOT_PACKAGE = "Layers do not import the root package"
RUNTIME = "runtime's packages point one way"
SERVICE = "service knows no session"
SESSION = "session knows no protocol"
SHIPPED = "elements, transports and extensions import the plugin surface only"
TCK = "The test kit imports the public surface only"
TCK_ROOT = "The test kit does not import the root package"
TESTING = "testing imports no pytest"
WIRE_CHECK = "The wire checks import no code that they check"

FAULTS = [
    Fault("penstock/aio", "import trio", NO_TRIO),
    Fault("penstock/aio", "from penstock.runtime import connect", NO_TRIO),
    Fault("penstock/aio", "from penstock.blocking import connect", LAYERS),
    Fault("penstock/aio", "import threading", AIO),
    Fault("penstock/aio", "import concurrent.futures", AIO),
    Fault("penstock/blocking", "import trio", NO_TRIO),
    Fault("penstock/blocking", "from penstock.core import Stream", NO_TRIO),
    Fault("penstock/blocking", "import asyncio", BLOCKING),
    Fault("penstock/client", "import trio", NO_TRIO),
    Fault("penstock/client", "from penstock.logs import RingLog", NO_TRIO),
    Fault("penstock/client", "from penstock.aio import connect", LAYERS),
    Fault("penstock/client", "import socket", CLIENT),
    Fault("penstock/reader", "import trio", NO_TRIO),
    Fault("penstock/reader", "import asyncio", CLIENT),
    Fault("penstock/reader", "from penstock.spi import Serializer", LAYERS),
    Fault("penstock/client", "import asyncio", CLIENT),
    Fault("penstock/client", "from penstock.runtime import connect", LAYERS),
    Fault("penstock/api", "import trio", API),
    Fault("penstock/api", "import attrs", API),
    Fault("penstock/api", "import time", PURE),
    Fault("penstock/api", "import random", PURE),
    Fault("penstock/api", "from penstock.core import subscribe", LAYERS),
    Fault("penstock/extensions", "import pluggy", SHIPPED),
    Fault("penstock/transports", "from penstock.core import subscribe", SHIPPED),
    Fault("penstock/elements", "from penstock.protocols import rsio", SHIPPED),
    Fault("penstock/core", "from penstock.streams import subscribe", LAYERS),
    Fault("penstock/core", "from penstock import pipe", ROOT_PACKAGE),
    Fault("penstock/core", "import socket", IN_PROCESS),
    Fault("penstock/core", "import pluggy", IN_PROCESS),
    Fault("penstock/core", "from penstock.protocols import rsio", IN_PROCESS),
    Fault("penstock/core", "from penstock.draft import as_draft", LAYERS),
    Fault("penstock/draft", "from penstock.runtime import connect", LAYERS),
    Fault("penstock/draft", "import socket", IN_PROCESS),
    Fault("penstock/streams", "from penstock.logs import RingLog", LAYERS),
    Fault("penstock/logs", "import socket", IN_PROCESS),
    Fault("penstock/logs", "from penstock.session import Session", IN_PROCESS),
    Fault("penstock/streams", "import penstock", ROOT_PACKAGE),
    Fault("penstock/streams", "import penstock.testing", LAYERS),
    Fault("penstock/streams", "from penstock.spi import Transport", IN_PROCESS),
    Fault("penstock/streams", "from penstock.session import Session", IN_PROCESS),
    Fault("penstock/spi", "from penstock.core import subscribe", LAYERS),
    Fault("penstock/spi", "from penstock.transports import TcpTransport", LAYERS),
    Fault("penstock/spi", "from penstock.protocols import rsio", PLUGIN_AUTHORS),
    Fault("penstock/protocols", "from penstock.runtime import Service", LAYERS),
    Fault("penstock/protocols", "from penstock.core import subscribe", OUTSIDER),
    Fault("penstock/protocols", "import trio", OUTSIDER),
    Fault("penstock/protocols/reactivesocket", "import trio", PURE),
    Fault("penstock/protocols/rsio", "import trio", PURE),
    Fault("penstock/protocols/rsio", "import random", PURE),
    Fault("penstock/runtime", "from penstock.extensions import Keepalive", REGISTRY),
    Fault("penstock/runtime", "import penstock.cli", LAYERS),
    Fault("penstock/runtime/client", "from penstock.runtime.server import serve", RUNTIME),
    Fault("penstock/runtime/connection", "from penstock.runtime.client import connect", RUNTIME),
    Fault("penstock/runtime/service", "from penstock.runtime.connection import Peer", RUNTIME),
    Fault("penstock/runtime/service", "from penstock.session import Session", SERVICE),
    Fault("penstock/runtime/service", "from penstock.protocols import rsio", SERVICE),
    Fault(
        "penstock/runtime/service", "from penstock.runtime.connection._peer import Peer", SERVICE
    ),
    Fault(
        "penstock/runtime/service", "from penstock.runtime.client._connect import connect", SERVICE
    ),
    Fault("penstock/runtime/service", "from penstock.runtime.server._serve import serve", SERVICE),
    Fault("penstock/session", "from penstock.core import subscribe", LAYERS),
    Fault("penstock/session", "from penstock.runtime import serve", LAYERS),
    Fault("penstock/session", "from penstock.protocols.rsio import RsioDialect", SESSION),
    Fault(
        "penstock/session",
        "from penstock.protocols.reactivesocket import ReactiveSocketDialect",
        SESSION,
    ),
    Fault("penstock/session", "from time import monotonic", PURE),
    Fault("penstock/session", "import trio", PURE),
    Fault("penstock/session", "import pluggy", PURE),
    Fault("penstock/testing", "from penstock.cli import main", LAYERS),
    Fault("penstock/testing", "import pytest", TESTING),
    Fault("penstock/testing", "from penstock_tck import run_checks", KIT),
    Fault("penstock/wire", "from penstock.session import Session", LAYERS),
    Fault("penstock/wire", "from penstock.protocols.rsio import RsioDialect", LAYERS),
    Fault("penstock_tck", "from penstock.session import Session", TCK),
    Fault("penstock_tck", "from penstock.core import subscribe", TCK),
    Fault("penstock_tck", "import penstock.streams", TCK),
    Fault("penstock_tck", "from penstock import subscribe", TCK_ROOT),
    Fault("penstock_tck/wire", "from penstock.protocols import rsio", WIRE_CHECK),
    Fault("penstock_tck/wire", "from penstock.session import Session", WIRE_CHECK),
]


def _source(folder: str) -> str:
    return f"tck/src/{folder}" if folder.startswith("penstock_tck") else f"src/{folder}"


PLANTED = {fault: f"_planted_{number:02}" for number, fault in enumerate(FAULTS)}

UNDER_TYPE_CHECKING = "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n"
CIRCLE = {
    "src/penstock/core/_circle_one.py": "from penstock.core import _circle_two",
    "src/penstock/core/_circle_two.py": "from penstock.core import _circle_one",
    "src/penstock/streams/ops/_typed_one.py": "from penstock.streams.ops import _typed_two",
    "src/penstock/streams/ops/_typed_two.py": (
        f"{UNDER_TYPE_CHECKING}    from penstock.streams.ops import _typed_one"
    ),
    "tck/src/penstock_tck/_draft_checks/_circle_three.py": (
        "from penstock_tck._draft_checks import _circle_four"
    ),
    "tck/src/penstock_tck/_draft_checks/_circle_four.py": (
        "from penstock_tck._draft_checks import _circle_three"
    ),
}
NEW_FOLDER = {"src/penstock/utils/__init__.py": "import enum"}


def _reports(folder: Path, planted: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Plant files in a copy of the code, run import-linter there, and return the report of each
    broken contract by its name.
    """
    for place in PLACES:
        shutil.copytree(ROOT / place, folder / place, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", folder)
    for name, line in planted:
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(f'"""A planted fault."""\n\n{line}\n', encoding="utf-8")
    paths = os.pathsep.join(str((folder / place).parent) for place in PLACES)
    # wide, so that no name is broken over two lines.
    environment = {**os.environ, "PYTHONPATH": paths, "PYTHONUTF8": "1", "COLUMNS": "500"}
    command = [str(Path(sys.executable).with_name("lint-imports")), "--no-cache"]
    done = subprocess.run(
        command,
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
    )
    broken = set(re.findall(r"^(.+) BROKEN\b", done.stdout, re.MULTILINE))
    assert (done.returncode != 0) is bool(broken), done.stdout + done.stderr
    sections = re.split(r"^(.+)\n-{3,}\n", done.stdout, flags=re.MULTILINE)
    reports = dict(zip(sections[1::2], sections[2::2], strict=True))
    return {name: reports[name] for name in broken}


@pytest.fixture(scope="module")
def reports_of_imports(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The reports about a copy with one file for each forbidden import."""
    planted = [
        (f"{_source(fault.folder)}/{name}.py", fault.line) for fault, name in PLANTED.items()
    ]
    return _reports(tmp_path_factory.mktemp("imports"), planted)


@pytest.fixture(scope="module")
def reports_of_structure(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The reports about a copy with circles and with a folder that no contract declares."""
    return _reports(tmp_path_factory.mktemp("structure"), {**CIRCLE, **NEW_FOLDER}.items())


def test_the_code_itself_breaks_no_contract(tmp_path: Path) -> None:
    """Without a planted fault no contract is broken:
    the reports in the other tests come from their faults.
    """
    assert _reports(tmp_path, []) == {}


@pytest.mark.parametrize("fault", FAULTS, ids=str)
def test_a_forbidden_import_is_reported_by_its_contract(
    reports_of_imports: dict[str, str], fault: Fault
) -> None:
    """The report of the contract names the planted file."""
    assert PLANTED[fault] in reports_of_imports.get(fault.contract, "")


def test_a_folder_that_no_contract_declares_is_reported(
    reports_of_structure: dict[str, str],
) -> None:
    """A new layer has to be given its place among the layers."""
    assert "utils" in reports_of_structure[LAYERS]


@pytest.mark.parametrize("package", ["penstock.core", "penstock_tck._draft_checks"])
def test_a_circle_is_reported(reports_of_structure: dict[str, str], package: str) -> None:
    """Two files of a package that import one another are reported,
    in every package of both distributions.
    """
    assert f"No cycles are allowed in {package}." in reports_of_structure[CIRCLES]


def test_a_circle_under_type_checking_is_reported(reports_of_structure: dict[str, str]) -> None:
    """An import that only type checkers follow counts:
    the two files still cannot be understood one after the other.
    """
    assert "No cycles are allowed in penstock.streams.ops." in reports_of_structure[CIRCLES]


def test_each_contract_has_a_fault_that_it_catches() -> None:
    """A contract that no planted fault breaks might guard nothing."""
    assert sorted(
        {contract["name"] for contract in CONTRACTS} - {fault.contract for fault in FAULTS}
    ) == [CIRCLES]
