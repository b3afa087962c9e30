"""The tables as a whole: servers without a fault pass, every MUST has its row,
and the reference page shows the tables.
"""

import importlib.util
import os
import re
from dataclasses import replace
from pathlib import Path

import pytest
import trio
from penstock_tck.wire import (
    OFFERS,
    Level,
    Requirement,
    Target,
    Verdict,
    check_target,
    requirements,
)
from penstock_tck.wire._rsio_encoding_rows import ENCODINGS
from penstock_tck.wire._tables import TABLES
from trio.testing import MockClock

from penstock.api import Limits
from penstock.runtime import Service, serve
from tck.tests.wire._rs_saboteur import rs_server
from tck.tests.wire._rsio_saboteur import rsio_server
from tck.tests.wire._scripted_target import REGISTRY, failed_requirements, failing, not_supported

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "docs/reference/penstock_tck.wire.md"
SCRIPTS = {"reactivesocket": rs_server, "rsio": rsio_server}
AUTH = {
    "rsio": ["auth-refused", "auth-unreadable"],
    "reactivesocket": ["auth-setup", "auth-setup-unreadable"],
}
ENCODED = {row.name for row in ENCODINGS.rows}
UNASKED = {
    "rsio": {"hello-discarded", *ENCODED, *AUTH["rsio"]},
    "reactivesocket": set(AUTH["reactivesocket"]),
}
"""Requirements that penstock's example does not support: one binds clients, the service examines no
credentials, and the encodings of the plugins are not installed.
"""

LENGTHS = {
    "frame-length",
    "frame-length-reserved",
    "frame-length-short",
    "frame-length-huge",
    "frame-cut",
}
MUSTS = {
    # Every line of the drafts with a MUST or a must for one of the sides. Lines for authors of
    # extensions and transports are left out.
    "reactivesocket": {24, 56, 78, 304, 311, 341},
    "rsio": {27, 30, 31, 35, 58, 71},
}


@pytest.mark.parametrize("dialect", sorted(TABLES))
def test_the_honest_server_passes_every_requirement(dialect: str) -> None:
    """So a requirement that a scripted server fails is failed because of its fault."""
    assert failed_requirements(dialect, SCRIPTS[dialect]) == set()


def _load_example():
    found = importlib.util.spec_from_file_location(
        "conformance_service", ROOT / "examples/conformance_service.py"
    )
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module


async def _check_penstock(
    dialect: str, scheme: str, monkeypatch: pytest.MonkeyPatch
) -> tuple[dict[str, str], set[str]]:
    monkeypatch.setattr(
        "sys.argv",
        [
            "conformance_service.py",
            f"{dialect}+{scheme}://{'127.0.0.1:0' if scheme == 'tcp' else 'ours'}",
        ],
    )
    module = _load_example()
    # How long the server waits for a client that it refuses.
    limits = replace(Limits(), goodbye_timeout=0.1, linger=0.1)
    async with serve(
        module.service, *module.URLS, limits=limits, registry=REGISTRY, on_violation=lambda _: None
    ) as server:
        module.servers.append(server)
        results = await check_target(
            str(server.addresses[0]), Target(quiet=0.05), registry=REGISTRY
        )
    return failing(results), not_supported(results)


@pytest.mark.parametrize("dialect", sorted(TABLES))
@pytest.mark.parametrize("scheme", ["memory", "memory-framed"])
def test_penstocks_server_passes_every_requirement(
    dialect: str, scheme: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Over a byte stream, and over a framed transport,
    where the requirements on frame lengths are not supported.
    """
    failed = trio.run(
        _check_penstock, dialect, scheme, monkeypatch, clock=MockClock(autojump_threshold=0)
    )
    lengths = LENGTHS if scheme == "memory-framed" and dialect == "reactivesocket" else set()
    assert failed == ({}, lengths | UNASKED[dialect])


@pytest.mark.parametrize("dialect", sorted(TABLES))
async def test_penstocks_server_with_authentication_passes_its_requirements(
    dialect: str, autojump_clock: MockClock
) -> None:
    """The example service has no authentication, so another service is checked here."""
    service = Service(authenticate=lambda _scheme, token, _peer: token == b"known")
    async with serve(service, f"{dialect}+memory://guarded", registry=REGISTRY):
        results = await check_target(
            f"{dialect}+memory://guarded", only=AUTH[dialect], registry=REGISTRY
        )
    assert [(result.name, result.verdict) for result in results] == [
        (name, Verdict.PASS) for name in AUTH[dialect]
    ]


@pytest.mark.parametrize("dialect", sorted(TABLES))
async def test_penstocks_server_passes_over_real_sockets(
    dialect: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Over TCP, in real time, where a read may end inside a message."""
    assert await _check_penstock(dialect, "tcp", monkeypatch) == ({}, UNASKED[dialect])


@pytest.mark.parametrize("dialect", sorted(TABLES))
def test_every_must_has_a_row(dialect: str) -> None:
    """Each line of the draft that binds a side has a row,
    and each row with the level MUST belongs to such a line.
    """
    assert {row.line for row in requirements(dialect) if row.level is Level.MUST} == MUSTS[dialect]


@pytest.mark.parametrize("dialect", sorted(TABLES))
def test_a_sentence_that_the_draft_does_not_have_is_one_of_the_reference_page(dialect: str) -> None:
    """It is quoted from that page to the letter, and has no line in the draft."""
    page = " ".join((ROOT / f"docs/reference/{dialect}.md").read_text(encoding="utf-8").split())
    rows = requirements(dialect)
    assert [row.name for row in rows if (row.level is Level.OWN) != (row.line == 0)] == []
    assert [row.name for row in rows if row.level is Level.OWN and row.sentence not in page] == []


@pytest.mark.parametrize("dialect", sorted(TABLES))
def test_names_are_unique_and_readings_are_given(dialect: str) -> None:
    """The offers that a row needs exist."""
    rows = requirements(dialect)
    assert len({row.name for row in rows}) == len(rows)
    assert [
        row.name for row in rows if len(row.reading) < 15 or not set(row.needs) <= set(OFFERS)
    ] == []


def _table(rows: tuple[Requirement, ...]) -> str:
    def cell(text: str) -> str:
        return text.replace("|", "\\|").replace("*", "\\*").replace("__", "").replace("<", "&lt;")

    lines = [
        (
            f"| `{row.name}` | {row.line} | {row.level.value} | {cell(row.sentence)} | "
            f"{cell(row.reading)} |"
        )
        for row in rows
    ]
    return "\n".join(
        [
            "| requirement | line | level | what the draft demands | what the check does |",
            "|---|---|---|---|---|",
            *lines,
        ]
    )


@pytest.mark.parametrize("dialect", sorted(TABLES))
def test_the_page_shows_the_table(dialect: str) -> None:
    """Word for word. With PENSTOCK_WRITE_OUT set, the test writes the table to the page; read
    the difference before you commit it.
    """
    text = PAGE.read_text(encoding="utf-8")
    wanted = f"<!-- {dialect} -->\n\n{_table(tuple(requirements(dialect)))}\n\n<!-- end -->"
    if "PENSTOCK_WRITE_OUT" in os.environ:
        text = re.sub(
            rf"<!-- {dialect} -->.*?<!-- end -->", lambda _: wanted, text, flags=re.DOTALL
        )
        PAGE.write_text(text, encoding="utf-8")
    assert wanted in text
