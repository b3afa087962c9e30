"""The requirements of RSocket: servers without a fault pass, and each fault fails the requirements
that are listed for it.
"""

import importlib.util
import os
import re
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType

import pytest
from _faults import FAULTS
from _scripted import QUICK, check_script, not_passed
from penstock_rsocket.checks import TABLE
from penstock_tck.wire import (
    OFFERS,
    Level,
    Requirement,
    Result,
    Target,
    Verdict,
    check_target,
    requirements,
)

from penstock import serve
from penstock.spi import build_registry
from penstock.testing import run_virtual

ROOT = Path(__file__).parents[4]
PAGE = ROOT / "docs/reference/penstock_tck.wire.md"
UNASKED = {"lease-exceeded"}
"""Penstock grants leases of `Limits.max_subscriptions` requests, more than the check uses up."""


def test_a_server_without_a_fault_passes_every_requirement() -> None:
    """It has no code in common with the plugin. So a requirement that it fails with a fault
    is failed because of that fault.
    """
    assert not_passed(run_virtual(lambda: check_script(""))) == {}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_fails_its_requirements(fault: str) -> None:
    """If a server has this one fault, the requirements listed for it fail."""
    only = sorted(FAULTS[fault])
    failed = {
        result.name
        for result in run_virtual(lambda: check_script(fault, only))
        if result.verdict is Verdict.FAIL
    }
    assert failed == FAULTS[fault]


def test_each_requirement_can_fail() -> None:
    """Each requirement has a fault that makes it fail.
    A check that no server can fail would prove nothing.
    """
    assert {row.name for row in TABLE.rows} - set().union(*FAULTS.values()) == set()


def test_a_route_that_the_server_lacks_is_not_supported() -> None:
    """It is refused as a route that does not exist; the other requirements are judged."""
    lacking = Target(quiet=0.05, three="nowhere")
    results = run_virtual(lambda: check_script("", target=lacking))
    due = {row.name for row in TABLE.rows if "three" in row.needs}
    assert {result.name for result in results if result.lacks} == due
    assert {result.verdict for result in results if not result.lacks} == {Verdict.PASS}


def _server() -> ModuleType:
    spec = importlib.util.spec_from_file_location(
        "penstock_server", ROOT / "campaigns/wire_rsocket/_penstock_server.py"
    )
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


async def _check_penstock(url: str, *, resume: bool = True) -> list[Result]:
    registry = build_registry()
    async with serve(
        _server().service_of(), url, registry=registry, resume=resume, on_violation=lambda _: None
    ) as server:
        return await check_target(str(server.addresses[0]), QUICK, registry=registry)


def _judge(results: list[Result], unasked: set[str] = UNASKED) -> None:
    found = not_passed(results)
    assert {name: seen for name, seen in found.items() if name not in unasked} == {}


def test_the_server_of_penstock_passes() -> None:
    """Over memory, on virtual time, with the service of the campaign."""
    _judge(run_virtual(lambda: _check_penstock("rsocket+memory://checked")))


def test_the_server_of_penstock_passes_without_resuming() -> None:
    """It refuses a SETUP with a token. So it is not asked for what follows."""
    results = run_virtual(lambda: _check_penstock("rsocket+memory://checked", resume=False))
    _judge(results, UNASKED | {"resume-goes-on"})


async def test_the_server_of_penstock_passes_over_real_sockets() -> None:
    """Over TCP, in real time, by the entry point of the plugin: where a read may end inside a
    frame.
    """
    _judge(await _check_penstock("rsocket+tcp://127.0.0.1:0"))


def test_the_kit_finds_the_table_by_its_entry_point() -> None:
    """Under the name of the protocol."""
    assert requirements("rsocket") is TABLE.rows


def test_rows_name_sections_and_say_what_they_read() -> None:
    """The names of a table differ, the offers that a row needs exist, and a row with the level MUST
    has the word in its sentence.
    """
    for rows in (TABLE.rows, TABLE.clients):
        assert len({row.name for row in rows}) == len(rows)
    every = (*TABLE.rows, *TABLE.clients)
    assert [
        row.name
        for row in every
        if len(row.reading) < 15 or not set(row.needs) <= set(OFFERS) or not row.section
    ] == []
    assert [
        row.name
        for row in every
        if row.level is Level.MUST and not re.search(r"MUST|are for streams", row.sentence)
    ] == []


def _table(rows: Sequence[Requirement]) -> str:
    def cell(text: str) -> str:
        return text.replace("|", "\\|").replace("*", "\\*").replace("__", "").replace("<", "&lt;")

    lines = [
        (
            f"| `{row.name}` | {row.section} | {row.level.value} | {cell(row.sentence)} | "
            f"{cell(row.reading)} |"
        )
        for row in rows
    ]
    return "\n".join(
        [
            (
                "| requirement | section | level | what the specification demands | what the check "
                "does |"
            ),
            "|---|---|---|---|---|",
            *lines,
        ]
    )


@pytest.mark.parametrize("name", ["rsocket", "rsocket clients"])
def test_the_page_shows_the_table(name: str) -> None:
    """Word for word. With PENSTOCK_WRITE_OUT set, the test writes the table to the page; read
    the difference before you commit it.
    """
    text = PAGE.read_text(encoding="utf-8")
    rows = TABLE.rows if name == "rsocket" else TABLE.clients
    wanted = f"<!-- {name} -->\n\n{_table(rows)}\n\n<!-- end -->"
    if "PENSTOCK_WRITE_OUT" in os.environ:
        place = rf"<!-- {name} -->.*?<!-- end -->"
        text = re.sub(place, lambda _: wanted, text, flags=re.DOTALL)
        PAGE.write_text(text, encoding="utf-8")
    assert wanted in text
