"""The requirements of the mapping: servers without a fault pass, and each fault fails the
requirements that are listed for it.
"""

import os
import re
from collections.abc import Sequence
from pathlib import Path

import pytest
import trio
from _faults import FAULTS
from _mapping_server import MappingServer
from _site_in_memory import MemoryHttp, Plugin
from penstock_http.checks import TABLE
from penstock_tck.wire import (
    OFFERS,
    PRIVATE_TEXT,
    Level,
    Result,
    Target,
    Verdict,
    WireTable,
    check_target,
    large_element,
    requirements,
)

from penstock import PublicError, Service, serve, timer
from penstock.spi import Connection, TransportOptions, Url, build_registry, parse_url
from penstock.testing import run_virtual
from penstock.transports import MemoryTransport

ROOT = Path(__file__).parents[4]
PAGE = ROOT / "docs/reference/penstock_tck.wire.md"
QUICK = Target(quiet=0.05)
MUSTS = {20, 92, 94, 116, 147, 149, 177, 181, 183, 185}
"""The lines of the draft that bind the server, or both sides.
Line 96 and line 151 bind the client.
"""


async def _connect(url: Url, options: TransportOptions, nursery: trio.Nursery) -> Connection:
    return await MemoryTransport().connect(
        parse_url("memory://site"), options=options, nursery=nursery
    )


IN_MEMORY = WireTable(rows=TABLE.rows, connect=_connect, refusal=TABLE.refusal)


async def _check_script(
    fault: str, only: Sequence[str] = (), target: Target = QUICK
) -> list[Result]:
    server = MappingServer(fault)
    async with trio.open_nursery() as nursery:
        listener = await MemoryTransport().listen(
            parse_url("memory://site"), options=TransportOptions(), nursery=nursery
        )

        async def serve_one(connection: Connection) -> None:
            try:
                await server.serve(connection)
            except (trio.BrokenResourceError, trio.ClosedResourceError):
                pass
            finally:
                with trio.CancelScope(shield=True):
                    await connection.abort()

        async def accept() -> None:
            while True:
                nursery.start_soon(serve_one, await listener.accept())

        nursery.start_soon(accept)
        results = await check_target("http://localhost", target, table=IN_MEMORY, only=only)
        nursery.cancel_scope.cancel()
        with trio.CancelScope(shield=True):
            await listener.aclose()
    return results


def _failed(results: list[Result]) -> dict[str, str]:
    return {result.name: result.seen for result in results if result.verdict is not Verdict.PASS}


def test_a_server_without_a_fault_passes_every_requirement() -> None:
    """It has no code in common with penstock-http. So a requirement that it fails with a fault
    is failed because of that fault.
    """
    assert _failed(run_virtual(lambda: _check_script(""))) == {}


@pytest.mark.parametrize("way", ["honest:closes", "honest:chunked", "honest:uuid"])
def test_other_honest_servers_pass_every_requirement(way: str) -> None:
    """One closes the connection after each answer, and answers no second request of several that
    were sent at once; one sends every body in chunks; the URLs of one are random UUIDs.
    """
    assert _failed(run_virtual(lambda: _check_script(way))) == {}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_fails_its_requirements(fault: str) -> None:
    """If a server has this one fault, the requirements listed for it fail."""
    failed = {
        result.name
        for result in run_virtual(lambda: _check_script(fault, sorted(FAULTS[fault])))
        if result.verdict is Verdict.FAIL
    }
    assert failed == FAULTS[fault]


def test_each_requirement_can_fail() -> None:
    """Each requirement has a fault that makes it fail.
    A check that no server can fail would prove nothing.
    """
    assert {row.name for row in TABLE.rows} - set().union(*FAULTS.values()) == set()


def test_a_publisher_that_the_server_lacks_is_not_supported() -> None:
    """It is answered as a path where no publisher is; the other requirements are judged."""
    results = run_virtual(lambda: _check_script("", target=Target(quiet=0.05, three="nowhere")))
    rows = {row.name: row for row in TABLE.rows}
    lacking = {result.name for result in results if result.lacks}
    assert lacking == {name for name, row in rows.items() if "three" in row.needs}
    assert {result.verdict for result in results if result.name not in lacking} == {Verdict.PASS}
    assert {result.verdict for result in results if result.name in lacking} == {
        Verdict.NOT_SUPPORTED
    }


def _service() -> Service:
    service = Service()
    service.publish("three", [b"one", b"two", b"three"])
    service.publish("one", [b"one"])
    service.publish("empty", ())
    service.publish("large", [large_element(number) for number in range(5)])
    service.publish("blank", [b""])
    service.publish("slow", timer(0.25).map(lambda _: b"late"))

    @service.publisher("numbers")
    @service.publisher("fixed", element_size=8)
    async def numbers():
        while True:
            yield b"a number"

    @service.publisher("failing")
    async def failing():
        yield b"one"
        raise PublicError("failed on purpose")

    @service.publisher("private")
    async def private():
        yield b"one"
        raise ValueError(PRIVATE_TEXT)

    return service


def test_the_server_of_penstock_passes_every_requirement() -> None:
    """Over memory, on virtual time."""

    async def check() -> list[Result]:
        registry = build_registry([Plugin()])
        assert isinstance(registry.transport("memory-http"), MemoryHttp)
        async with serve(
            _service(), "memory-http://site", registry=registry, on_violation=lambda _: None
        ):
            return await check_target("http://localhost", QUICK, table=IN_MEMORY)

    assert _failed(run_virtual(check)) == {}


async def test_the_server_of_penstock_passes_over_real_sockets() -> None:
    """Over TCP, in real time, by the entry point of the plugin: where a read may end inside a
    message, and a lost connection is reset.
    """
    async with serve(_service(), "http://127.0.0.1:0", on_violation=lambda _: None) as server:
        assert _failed(await check_target(server.addresses[0], QUICK)) == {}


def test_the_kit_finds_the_table_by_its_entry_point() -> None:
    """Under the name of the entry point, and for the URLs of its schemes."""
    assert requirements("http") is TABLE.rows


def test_every_must_has_a_row() -> None:
    """Each line of the draft that binds the server has a row,
    and each row with the level MUST belongs to such a line.
    """
    assert {row.line for row in TABLE.rows if row.level is Level.MUST} == MUSTS


def test_a_sentence_that_the_draft_does_not_have_is_one_of_the_reference_page() -> None:
    """It is quoted from that page to the letter, and has no line in the draft."""
    page = " ".join((ROOT / "docs/reference/http.md").read_text(encoding="utf-8").split())
    assert [row.name for row in TABLE.rows if (row.level is Level.OWN) != (row.line == 0)] == []
    assert [
        row.name for row in TABLE.rows if row.level is Level.OWN and row.sentence not in page
    ] == []


def test_names_are_unique_and_readings_are_given() -> None:
    """The offers that a row needs exist."""
    assert len({row.name for row in TABLE.rows}) == len(TABLE.rows)
    assert [
        row.name for row in TABLE.rows if len(row.reading) < 15 or not set(row.needs) <= set(OFFERS)
    ] == []


def _table() -> str:
    def cell(text: str) -> str:
        return text.replace("|", "\\|").replace("*", "\\*").replace("__", "").replace("<", "&lt;")

    lines = [
        (
            f"| `{row.name}` | {row.line} | {row.level.value} | {cell(row.sentence)} | "
            f"{cell(row.reading)} |"
        )
        for row in TABLE.rows
    ]
    return "\n".join(
        [
            "| requirement | line | level | what the draft demands | what the check does |",
            "|---|---|---|---|---|",
            *lines,
        ]
    )


def test_the_page_shows_the_table() -> None:
    """Word for word. With PENSTOCK_WRITE_OUT set, the test writes the table to the page; read
    the difference before you commit it.
    """
    text = PAGE.read_text(encoding="utf-8")
    wanted = f"<!-- http -->\n\n{_table()}\n\n<!-- end -->"
    if "PENSTOCK_WRITE_OUT" in os.environ:
        text = re.sub(r"<!-- http -->.*?<!-- end -->", lambda _: wanted, text, flags=re.DOTALL)
        PAGE.write_text(text, encoding="utf-8")
    assert wanted in text
