"""Each refusal is counted, told to observers, and logged at a bounded rate."""

import logging
from pathlib import Path

import pytest
import trio
import trio.testing

from penstock.api import Rejected
from penstock.runtime import Service, connect, serve
from penstock.runtime.server._refusals import _AT_THE_DOOR, Refusals
from penstock.spi import ConnectionRefused, Events, PeerIdentity
from tests.runtime._observer import Observer
from tests.runtime._services import numbers_service, raw_connection

PEER = PeerIdentity(address="192.0.2.1:5", host="192.0.2.1", port=5)


def events_to(observer: Observer) -> Events:
    return Events.of(
        [("observer", "penstock_connection_refused", observer.penstock_connection_refused)]
    )  # type: ignore[list-item]  # one kind


@pytest.mark.parametrize(
    ("reason", "token", "level"),
    [
        ("places:address", "places:address", logging.WARNING),
        ("places:silent", "places:silent", logging.WARNING),
        ("places:connections", "places:connections", logging.WARNING),
        ("limit:memory", "limit:memory", logging.INFO),
        ("handshake", "handshake", logging.INFO),
        ("protocol:http", "protocol:http", logging.INFO),
        ("limit:handshake", "limit:handshake", logging.INFO),
        ("limit:frame 70000 > 65536", "limit:frame", logging.INFO),
        ("the words of a setup function", "refused", logging.INFO),
    ],
)
async def test_a_refusal_is_counted_reported_and_logged(
    reason: str, token: str, level: int, caplog: pytest.LogCaptureFixture
) -> None:
    """By its token: neither numbers nor texts of a peer become keys of the table."""
    observer = Observer()
    refusals = Refusals(events_to(observer))
    with caplog.at_level(logging.INFO, "penstock.server"):
        refusals.add(reason, PEER, "tcp://here")
    assert dict(refusals.counts) == {token: 1}
    assert observer.refused == [ConnectionRefused(address="tcp://here", peer=PEER, reason=token)]
    (record,) = caplog.records
    assert record.levelno == level
    assert record.getMessage().startswith(f"refused 192.0.2.1:5 at tcp://here: {token}: ")


async def test_a_flood_of_refusals_is_counted_and_logged_in_part(
    autojump_clock: trio.testing.MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    """100,000 in ten seconds: all are counted, a dozen lines are written,
    and the last one says how many were left out.
    """
    refusals = Refusals(Events())
    with caplog.at_level(logging.INFO, "penstock.server"):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(refusals.run)
            for _ in range(100):
                for _ in range(1000):
                    refusals.add("places:address", PEER, "tcp://here")
                await trio.sleep(0.1)
            await trio.sleep(100)
            nursery.cancel_scope.cancel()
    assert refusals.counts["places:address"] == 100_000
    assert len(caplog.records) < 15
    assert caplog.messages[-1].endswith(" lines were left out")
    before = len(caplog.records)
    refusals.flush()
    assert len(caplog.records) == before


async def test_a_server_reports_each_refusal_before_the_hello(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """HTTP, a faulty hello, silence.
    A client that leaves by itself was not refused, and neither was one that was served.
    """
    observer = Observer()
    async with (
        trio.open_nursery() as nursery,
        serve(numbers_service(), "memory://test", registry=observer.registry()) as server,
    ):
        for said in (b"GET / HTTP/1.1\r\n\r\n", b"\x21\x00\x05early", b"SSH-2.0-x\r\n", b""):
            raw = await raw_connection(nursery)
            if said:
                await raw.send(said)
            await trio.sleep(15)
            await raw.abort()
        leaves = await raw_connection(nursery)
        await leaves.abort()
        leaves = await raw_connection(nursery)
        await leaves.send(b"\x03\x0dprotocol:http")  # a goodbye whose reason the peer has chosen
        await trio.sleep(5)
        await leaves.abort()
        async with connect("memory://test") as peer:
            await peer.wait_accepted()
        await trio.sleep(5)
        assert dict(server.refused) == {
            "protocol:http": 1,
            "protocol:hello": 1,
            "protocol:text": 1,
            "limit:handshake": 1,
        }
    assert [event.reason for event in observer.refused] == [
        "protocol:http",
        "protocol:hello",
        "protocol:text",
        "limit:handshake",
    ]
    assert {event.address for event in observer.refused} == {"memory://test"}
    assert len(observer.opened) == 1


async def test_a_client_that_the_setup_function_refuses_is_counted(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """Under one token, for any text of the function."""

    async def examine(data: bytes) -> None:
        await trio.lowlevel.checkpoint()
        raise Rejected(f"not you, {data.decode()}")

    async with serve(Service(setup=examine), "reactivesocket+memory://test") as server:
        for name in (b"anna", b"ben"):
            with pytest.raises(Rejected, match="not you"):
                async with connect("reactivesocket+memory://test", setup=name) as peer:
                    await peer.wait_accepted()
        await trio.sleep(5)
        assert dict(server.refused) == {"refused": 2}


def test_each_reason_of_a_refusal_is_on_the_page_of_reasons() -> None:
    """In the table of the reasons that are never sent."""
    page = (Path(__file__).parents[3] / "docs/reference/reasons.md").read_text(encoding="utf-8")
    assert [token for token in (*_AT_THE_DOOR, "refused") if f"| `{token}` |" not in page] == []
