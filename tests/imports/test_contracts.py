"""The contracts about imports bite: each is broken on purpose in a copy of the code, and import-linter must name it.

Run by `nox -s imports`, which installs import-linter.
"""

import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[2]
PLACES = ("src/penstock", "tck/src/penstock_tck")
CONTRACTS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]["contracts"]


class Fault(NamedTuple):
    """One line in one new file, and the contract that it breaks."""

    file: str
    line: str
    contract: str


FAULTS = [
    Fault("src/penstock/api/_new.py", "import trio", "api imports the standard library only"),
    Fault("src/penstock/api/_new.py", "import attrs", "api imports the standard library only"),
    Fault("src/penstock/api/_new.py", "import time", "Codecs and session do no I/O, read no clock, roll no dice"),
    Fault("src/penstock/api/_new.py", "import random", "Codecs and session do no I/O, read no clock, roll no dice"),
    Fault("src/penstock/api/_new.py", "from penstock.core import subscribe", "Layers point one way"),
    Fault("src/penstock/core/_new.py", "from penstock.operators import pipe", "Layers point one way"),
    Fault("src/penstock/operators/_new.py", "import penstock.testing", "Layers point one way"),
    Fault("src/penstock/wire/_new.py", "from penstock.session import Session", "Layers point one way"),
    Fault("src/penstock/session/_new.py", "from penstock.core import subscribe", "Layers point one way"),
    Fault("src/penstock/session/_new.py", "from penstock.runtime import serve", "Layers point one way"),
    Fault("src/penstock/runtime/_new.py", "from penstock.builtin import Keepalive", "Layers point one way"),
    Fault("src/penstock/runtime/_new.py", "import penstock.cli", "Layers point one way"),
    Fault("src/penstock/testing/_new.py", "from penstock.cli import main", "Layers point one way"),
    Fault("src/penstock/protocols/rsio/_new.py", "import trio", "Codecs and session do no I/O, read no clock, roll no dice"),
    Fault("src/penstock/protocols/rsio/_new.py", "import random", "Codecs and session do no I/O, read no clock, roll no dice"),
    Fault("src/penstock/session/_new.py", "from time import monotonic", "Codecs and session do no I/O, read no clock, roll no dice"),
    Fault("src/penstock/session/_new.py", "import trio", "Codecs and session do no I/O, read no clock, roll no dice"),
    Fault("src/penstock/session/_new.py", "import pluggy", "Codecs and session do no I/O, read no clock, roll no dice"),
    Fault("src/penstock/utils/__init__.py", "import enum", "Layers point one way"),
    Fault("src/penstock/core/_new.py", "from penstock import pipe", "Layers do not import the root package"),
    Fault("src/penstock/operators/_new.py", "import penstock", "Layers do not import the root package"),
    Fault("src/penstock/core/_new.py", "import socket", "In-process streams know nothing of the wire"),
    Fault("src/penstock/core/_new.py", "import pluggy", "In-process streams know nothing of the wire"),
    Fault("src/penstock/operators/_new.py", "from penstock.plugins import Transport", "In-process streams know nothing of the wire"),
    Fault("src/penstock/core/_new.py", "from penstock.protocols import rsio", "In-process streams know nothing of the wire"),
    Fault("src/penstock/operators/_new.py", "from penstock.session import Session", "In-process streams know nothing of the wire"),
    Fault(
        "src/penstock/plugins/_new.py",
        "from penstock.protocols import rsio",
        "What plugin authors import rests on api, attrs, pluggy and trio",
    ),
    Fault("src/penstock/builtin/_new.py", "from penstock.protocols import rsio", "What we ship uses the plugin surface only"),
    Fault("src/penstock/session/_new.py", "from penstock.wire._element_runs import run_length", "wire.pieces is entered by its front door"),
    Fault(
        "src/penstock/session/_new.py",
        "from penstock.protocols.rsio._varint import encode_varint",
        "wire.rsio is entered by its front door",
    ),
    Fault("src/penstock/protocols/reactivesocket/_new.py", "import trio", "Codecs and session do no I/O, read no clock, roll no dice"),
    Fault(
        "src/penstock/protocols/reactivesocket/_new.py",
        "from penstock.protocols.rsio._varint import encode_varint",
        "wire.rsio is entered by its front door",
    ),
    Fault(
        "src/penstock/session/_new.py",
        "from penstock.protocols.reactivesocket._layout import HEADER",
        "wire.reactivesocket is entered by its front door",
    ),
    Fault("src/penstock/runtime/_new.py", "from penstock.session._demand_ledger import Ledger", "session is entered by its front door"),
    Fault("src/penstock/cli/_new.py", "from penstock.runtime.service._router import Router", "runtime is entered by its front door"),
    Fault("src/penstock/_new.py", "from penstock.cli._cat import run", "cli is entered by its front door"),
    Fault("tck/src/penstock_tck/_new.py", "from penstock.session import Session", "The test kit judges from outside"),
    Fault("src/penstock/plugins/_new.py", "from penstock.core import subscribe", "Layers point one way"),
    Fault("src/penstock/plugins/_new.py", "import pytest", "What plugin authors import rests on api, attrs, pluggy and trio"),
    Fault("src/penstock/plugins/_new.py", "from penstock.builtin import TcpTransport", "Layers point one way"),
    Fault("src/penstock/builtin/_new.py", "import pluggy", "What we ship uses the plugin surface only"),
    Fault("src/penstock/builtin/_new.py", "from penstock.core import subscribe", "What we ship uses the plugin surface only"),
    Fault("src/penstock/builtin/_new.py", "from penstock.plugins._url import Url", "plugins is entered by its front door"),
    Fault("src/penstock/dialects/_new.py", "from penstock.runtime import Service", "Layers point one way"),
    Fault("src/penstock/dialects/_new.py", "from penstock.protocols import rsio", "Dialects are offered with what an outsider has"),
    Fault(
        "src/penstock/testing/_new.py", "from penstock.protocols._hooks import penstock_dialects", "dialects is entered by its front door"
    ),
    Fault("src/penstock/testing/_new.py", "from penstock.builtin._tcp import TcpTransport", "builtin is entered by its front door"),
    Fault("src/penstock/core/_new.py", "from penstock.api._demand import add_demand", "api is entered by its front door"),
    Fault("src/penstock/operators/_new.py", "from penstock.core._source import Source", "core is entered by its front door"),
    Fault("src/penstock/testing/_new.py", "from penstock.operators._pipe import pipe", "operators is entered by its front door"),
    Fault("tck/src/penstock_tck/_new.py", "import penstock.testing._transcript", "testing is entered by its front door"),
    Fault("src/penstock/cli/_new.py", "from penstock_tck.wire._line import Line", "wirecheck is entered by its front door"),
    Fault("src/penstock/wirecheck/_new.py", "from penstock.protocols import rsio", "The wire check uses none of the code that it checks"),
    Fault("src/penstock/testing/_new.py", "import pytest", "testing imports no pytest"),
    Fault("tck/src/penstock_tck/_new.py", "from penstock.core import subscribe", "The test kit judges from outside"),
    Fault("tck/src/penstock_tck/_new.py", "import penstock.operators", "The test kit judges from outside"),
    Fault("tck/src/penstock_tck/_new.py", "from penstock import subscribe", "The test kit does not come in through the root package"),
]


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the code and of the contracts, to break."""
    folder = tmp_path_factory.mktemp("copy")
    for place in PLACES:
        shutil.copytree(ROOT / place, folder / place, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", folder)
    return folder


def _broken_contracts(copy: Path) -> set[str]:
    """What import-linter says about the copy: the names of the contracts that are broken."""
    paths = os.pathsep.join(str((copy / place).parent) for place in PLACES)
    environment = {**os.environ, "PYTHONPATH": paths, "PYTHONUTF8": "1"}
    command = [str(Path(sys.executable).with_name("lint-imports")), "--no-cache"]
    done = subprocess.run(command, cwd=copy, env=environment, capture_output=True, text=True, encoding="utf-8", check=False)
    broken = {line.removesuffix(" BROKEN") for line in done.stdout.splitlines() if line.endswith(" BROKEN")}
    assert (done.returncode != 0) is bool(broken), done.stdout + done.stderr
    return broken


def test_the_copy_is_whole(copy: Path) -> None:
    """Without a fault no contract is broken: what the other tests see comes from their fault alone."""
    assert _broken_contracts(copy) == set()


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: f"{fault.file}: {fault.line}")
def test_a_planted_fault_is_caught_by_name(copy: Path, fault: Fault) -> None:
    """The contract that guards against this fault is broken by it."""
    planted = copy / fault.file
    made = not planted.parent.exists()
    planted.parent.mkdir(parents=True, exist_ok=True)
    planted.write_text(f'"""A fault, planted."""\n\n{fault.line}\n', encoding="utf-8")
    try:
        assert fault.contract in _broken_contracts(copy)
    finally:
        shutil.rmtree(planted.parent) if made else planted.unlink()


@pytest.mark.parametrize("name", [contract["name"] for contract in CONTRACTS])
def test_each_contract_has_a_fault_that_it_catches(name: str) -> None:
    """A contract that nothing can break guards nothing."""
    assert name in {fault.contract for fault in FAULTS}
