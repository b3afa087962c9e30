"""The tables as a whole: honest servers pass, every MUST has its row, and the documentation shows what there is."""

import importlib.util
import os
import re
from dataclasses import replace
from pathlib import Path

import pytest
import trio
from penstock_tck.wire import OFFERS, Level, Requirement, Target, check_target, requirements
from penstock_tck.wire._tables import TABLES
from trio.testing import MockClock

from penstock.api import Limits
from penstock.runtime import serve
from tck.tests.wire._rs_saboteur import rs_server
from tck.tests.wire._rsio_saboteur import rsio_server
from tck.tests.wire._scripted_target import REGISTRY, failed_requirements, failing, not_supported

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "docs/reference/penstock_tck.wire.md"
SCRIPTS = {"reactivesocket": rs_server, "rsio": rsio_server}
UNASKED = {"rsio": {"hello-discarded"}, "reactivesocket": set()}
LENGTHS = {"frame-length", "frame-length-reserved", "frame-length-short", "frame-length-huge", "frame-cut"}
MUSTS = {
    # Every line of the drafts in which a MUST, or a must, binds a side; but for those about who writes extensions and transports.
    "reactivesocket": {24, 56, 78, 304, 311, 341},
    "rsio": {27, 30, 31, 35, 58, 71},
}


@pytest.mark.parametrize("dialect", sorted(TABLES))
def test_the_honest_server_passes_every_requirement(dialect: str) -> None:
    """What a scripted server fails comes from its fault alone."""
    assert failed_requirements(dialect, SCRIPTS[dialect]) == set()


def _example():
    found = importlib.util.spec_from_file_location("conformance_service", ROOT / "examples/conformance_service.py")
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module


async def _ours(dialect: str, scheme: str, monkeypatch: pytest.MonkeyPatch) -> tuple[dict[str, str], set[str]]:
    monkeypatch.setattr("sys.argv", ["conformance_service.py", f"{dialect}+{scheme}://{'127.0.0.1:0' if scheme == 'tcp' else 'ours'}"])
    module = _example()
    limits = replace(Limits(), goodbye_timeout=0.1, linger=0.1)  # how long our server waits for who is refused
    async with serve(module.service, *module.URLS, limits=limits, registry=REGISTRY, on_violation=lambda _: None) as server:
        module.servers.append(server)
        results = await check_target(server.addresses[0], Target(quiet=0.05), registry=REGISTRY)
    return failing(results), not_supported(results)


@pytest.mark.parametrize("dialect", sorted(TABLES))
@pytest.mark.parametrize("scheme", ["memory", "memory-framed"])
def test_our_own_server_passes_every_requirement(dialect: str, scheme: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Over a stream of bytes, and over whole messages, where only what is about lengths cannot be asked."""
    failed = trio.run(_ours, dialect, scheme, monkeypatch, clock=MockClock(autojump_threshold=0))
    lengths = LENGTHS if scheme == "memory-framed" and dialect == "reactivesocket" else set()
    assert failed == ({}, lengths | UNASKED[dialect])


@pytest.mark.parametrize("dialect", sorted(TABLES))
async def test_our_own_server_passes_over_real_sockets(dialect: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same over TCP, in real time, where messages are cut anywhere."""
    assert await _ours(dialect, "tcp", monkeypatch) == ({}, UNASKED[dialect])


@pytest.mark.parametrize("dialect", sorted(TABLES))
def test_every_must_has_a_row(dialect: str) -> None:
    """No line of the draft that binds a side is left out, and a row that says MUST is of one of them."""
    assert {row.line for row in requirements(dialect) if row.level is Level.MUST} == MUSTS[dialect]


@pytest.mark.parametrize("dialect", sorted(TABLES))
def test_a_row_has_a_name_of_its_own_and_says_what_it_does(dialect: str) -> None:
    """What it needs exists, too."""
    rows = requirements(dialect)
    assert len({row.name for row in rows}) == len(rows)
    assert [row.name for row in rows if len(row.reading) < 15 or not set(row.needs) <= set(OFFERS)] == []


def _table(rows: tuple[Requirement, ...]) -> str:
    def cell(text: str) -> str:
        return text.replace("|", "\\|").replace("*", "\\*").replace("__", "").replace("<", "&lt;")

    lines = [f"| `{row.name}` | {row.line} | {row.level.value} | {cell(row.sentence)} | {cell(row.reading)} |" for row in rows]
    return "\n".join(["| requirement | line | level | the draft's words | what is done |", "|---|---|---|---|---|", *lines])


@pytest.mark.parametrize("dialect", sorted(TABLES))
def test_the_page_shows_the_table(dialect: str) -> None:
    """Word for word. Set PENSTOCK_WRITE_OUT to write it as it is now; then read the difference before you commit it."""
    text = PAGE.read_text(encoding="utf-8")
    wanted = f"<!-- {dialect} -->\n\n{_table(tuple(requirements(dialect)))}\n\n<!-- end -->"
    if "PENSTOCK_WRITE_OUT" in os.environ:
        text = re.sub(rf"<!-- {dialect} -->.*?<!-- end -->", lambda _: wanted, text, flags=re.DOTALL)
        PAGE.write_text(text, encoding="utf-8")
    assert wanted in text
