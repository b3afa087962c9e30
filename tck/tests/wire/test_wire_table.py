"""Which table is for a URL, and the tables of plugins."""

from importlib.metadata import EntryPoint, EntryPoints

import pytest
import trio
from penstock_tck.wire import (
    Requirement,
    Verdict,
    WireTable,
    _wire_table,
    check_target,
    requirements,
)
from penstock_tck.wire._check_context import CheckContext
from penstock_tck.wire._requirement import Table

from penstock.api import UsageError
from penstock.spi import parse_url
from tck.tests.wire._rsio_saboteur import rsio_server
from tck.tests.wire._scripted_target import REGISTRY, serve_script

MORSE = Table("Morse")


@MORSE.row("greeted", 1, "A server says something.")
async def greeted(context: CheckContext) -> str:
    """The connection can be opened."""
    return type(await context.connect()).__name__


OF_A_PLUGIN = WireTable(
    rows=tuple(MORSE.rows),
    schemes=("morse",),
    connect=lambda _url, options, nursery: _connect(options, nursery),
)
NO_TABLE = object()


async def _connect(options, nursery):
    connection = await REGISTRY.transport("memory").connect(
        parse_url("memory://scripted"), options=options, nursery=nursery
    )
    await connection.handshake(nursery)
    return connection


@pytest.fixture(autouse=True)
def _installed(monkeypatch: pytest.MonkeyPatch) -> None:
    here = __name__
    entries = EntryPoints(
        [
            EntryPoint("odd", f"{here}:NO_TABLE", "penstock_tck"),
            EntryPoint("morse-code", f"{here}:OF_A_PLUGIN", "penstock_tck"),
        ]
    )
    monkeypatch.setattr(_wire_table, "entry_points", lambda group: entries.select(group=group))


def _names(rows: tuple[Requirement, ...]) -> list[str]:
    return [row.name for row in rows]


def test_the_scheme_of_a_url_finds_the_table_of_a_plugin() -> None:
    """An entry point that leads to something else is passed over."""
    assert _wire_table.table_for(parse_url("morse://x")) is OF_A_PLUGIN
    assert requirements("morse-code") is OF_A_PLUGIN.rows


def test_a_url_without_a_table_of_a_plugin_has_that_of_rsio() -> None:
    """A protocol before the '+' is one of the kit, and not of a plugin."""
    assert _wire_table.table_for(parse_url("tcp://x")).rows is requirements("rsio")
    assert _wire_table.table_for(parse_url("reactivesocket+morse://x")).rows is requirements(
        "reactivesocket"
    )


@pytest.mark.parametrize("name", ["semaphore", "odd"])
def test_a_name_without_a_table_raises_a_usage_error(name: str) -> None:
    """The error lists the names that exist."""
    with pytest.raises(
        UsageError,
        match=(
            f"no table of requirements for '{name}'; there is one for morse-code, odd, "
            "reactivesocket, rsio"
        ),
    ):
        requirements(name)


async def test_the_connections_of_a_table_are_opened_by_its_function(autojump_clock) -> None:
    """No transport has the scheme of the URL."""
    async with trio.open_nursery() as nursery:
        await nursery.start(serve_script, rsio_server, "")
        results = await check_target("morse://x", registry=REGISTRY)
        nursery.cancel_scope.cancel()
    assert [(result.name, result.verdict) for result in results] == [("greeted", Verdict.PASS)]
