"""Checking a client: it is waited for, each requirement gets the next of its connections, and
arguments that cannot be used are refused.
"""

import argparse
from functools import partial

import pytest
import trio
from penstock_tck.wire import (
    CheckContext,
    Table,
    Target,
    Verdict,
    WireTable,
    add_arguments,
    check_client,
    join_tables,
    run_command,
    verify,
)

from penstock.api import ConnectionLost, UsageError
from penstock.spi import TransportOptions
from tck.tests.wire._scripted_target import PARSED_URL, REGISTRY, URL

ROWS = Table("a toy")


@ROWS.row("greets", 1, "A client says hello.")
async def greets(context: CheckContext) -> str:
    """Its first bytes are b"hello"."""
    got = await (await context.connect()).receive()
    verify(got == b"hello", f"{got!r} came")
    return "hello"


@ROWS.row("greets-again", 1, "A client says hello.")
async def greets_again(context: CheckContext) -> str:
    """The same on its next connection."""
    return await greets(context)


CLIENTS = WireTable(rows=(), clients=join_tables(ROWS))
check = partial(check_client, URL, registry=REGISTRY, table=CLIENTS)


async def _say(word: bytes, times: int) -> None:
    """Connect so many times, and say a word on each connection until the other side closes it."""
    for _ in range(times):
        async with trio.open_nursery() as nursery:
            transport = REGISTRY.transport("memory")
            connection = await transport.connect(
                PARSED_URL, options=TransportOptions(), nursery=nursery
            )
            await connection.send(word)
            await connection.receive()
            await connection.abort()


@pytest.mark.parametrize(("word", "verdict"), [(b"hello", Verdict.PASS), (b"bye", Verdict.FAIL)])
async def test_each_requirement_gets_the_next_connection(
    autojump_clock, word: bytes, verdict: Verdict
) -> None:
    """The client makes two, one after the other."""
    seen: list[str] = []
    async with trio.open_nursery() as nursery:

        def start(url: str) -> None:
            seen.append(url)
            nursery.start_soon(_say, word, 2)

        results = await check(on_listening=start, on_result=lambda row, _: seen.append(row.name))
    assert seen == [URL, "greets", "greets-again"]
    assert [each.verdict for each in results] == [verdict] * 2


async def test_a_client_that_does_not_connect_again_fails(autojump_clock) -> None:
    """The second requirement says that there was no connection."""
    async with trio.open_nursery() as nursery:
        results = await check(on_listening=lambda _: nursery.start_soon(_say, b"hello", 1))
    assert [each.verdict for each in results] == [Verdict.PASS, Verdict.FAIL]
    assert results[1].seen == "no connection was made within 5.0 s"


async def test_a_client_that_never_connects_raises_connection_lost(autojump_clock) -> None:
    """No table is made in which every row has failed for this reason."""
    with pytest.raises(ConnectionLost, match="no client has connected within 12 s"):
        await check(Target(patience=1.0))
    # The address is free again.
    with pytest.raises(ConnectionLost, match="no client"):
        await check(Target(patience=1.0))


async def test_arguments_that_cannot_be_used_raise_a_usage_error(autojump_clock) -> None:
    """Before anything is listened at."""
    with pytest.raises(UsageError, match="there is no requirement odd; there are: greets, "):
        await check(only=["odd"])
    with pytest.raises(UsageError, match="there are no requirements for clients of memory"):
        await check_client(URL, registry=REGISTRY)
    command = argparse.ArgumentParser()
    add_arguments(command)
    options = command.parse_args(["--client", URL, "--encoding", "msgpack"])
    with pytest.raises(UsageError, match="--encoding is for servers"):
        await run_command(options, transport=TransportOptions())
