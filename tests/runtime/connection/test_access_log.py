"""The access log: a line for each connection, and for each stream that is refused or fails."""

import logging
import re
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import replace

import pytest
import trio
import trio.testing

from penstock.api import Limits, NotAvailable, PublicError
from penstock.protocols import rsio
from penstock.runtime import Service, connect, serve
from penstock.runtime.connection._access_log import ACCESS, AccessLog, failure_reason, source_of
from penstock.spi import PeerIdentity
from tests.runtime._services import raw_connection

FIELDS = re.compile(r'(\w+)=("(?:[^"\\]|\\.)*"|\S+)')


@pytest.fixture
def lines(caplog: pytest.LogCaptureFixture) -> Iterator[Callable[[], list[str]]]:
    """The access log is on; call it for the lines so far."""
    with caplog.at_level(logging.INFO, ACCESS):
        yield lambda: caplog.messages


def fields(line: str) -> dict[str, str]:
    """Return the fields of a line, without quotes."""
    return {name: value.strip('"') for name, value in FIELDS.findall(line)}


def a_service() -> Service:
    service = Service(may_open=lambda name, _: name != "hooked")

    @service.publisher("numbers/{count}")
    async def numbers(count: int) -> AsyncIterator[bytes]:
        for number in range(count):
            yield b"%05d" % number
        await trio.sleep(2)

    @service.publisher("broken")
    async def broken() -> AsyncIterator[bytes]:
        yield b"one"
        yield b"three"
        await trio.sleep(3)
        raise ValueError("a\nsecret")

    @service.publisher("sold")
    async def sold() -> AsyncIterator[bytes]:
        yield b"one"
        try:
            int("many")
        except ValueError as error:
            raise PublicError("out of stock") from error

    @service.publisher("denied")
    async def denied() -> AsyncIterator[bytes]:
        if service:
            raise NotAvailable("not yours")
        yield b""

    @service.publisher("hooked")
    async def hooked() -> AsyncIterator[bytes]:
        yield b""

    @service.publisher("made")
    def made() -> list[bytes]:
        raise PublicError("closed on Sundays")

    return service


async def read(name: str, *, quiet: bool = True) -> None:
    """Subscribe over a new connection, to the end."""
    async with connect("memory://log") as peer:
        with trio.CancelScope():
            try:
                async with peer.subscribe(name) as stream:
                    async for _ in stream:
                        pass
            except Exception:  # each name ends in its own way
                assert quiet


async def test_it_is_off_unless_its_own_level_is_set(caplog: pytest.LogCaptureFixture) -> None:
    """A program that logs everything at INFO has not asked for this log."""
    with caplog.at_level(logging.DEBUG):
        async with serve(a_service(), "memory://log"):
            await read("nobody")
    assert [record for record in caplog.records if record.name == ACCESS] == []


async def test_a_connection_has_one_line_at_its_end(
    lines: Callable[[], list[str]], autojump_clock: trio.testing.MockClock
) -> None:
    """The line has its peer, its reason, its streams and elements, and its bytes on the wire. A
    stream that ends well has no line.
    """
    async with serve(a_service(), "memory://log"):
        await read("numbers/3", quiet=False)
    (line,) = lines()  # the client of this process writes no line
    assert line.startswith("connection peer=")
    here = fields(line)
    assert here["streams"] == "1"
    assert here["peer"] == here["at"] == "memory://log"
    assert (here["protocol"], here["reason"], here["elements"]) == ("rsio", "closed", "3")
    assert int(here["sent"]) > 15
    assert int(here["received"]) > 10
    assert here["seconds"] == "2.000"


@pytest.mark.parametrize(
    ("name", "outcome", "reason", "counts"),
    [
        ("nobody", "refused", "no publisher and no request has this name", ("0", "0", "0.000")),
        (
            "numbers/x",
            "refused",
            "the parameter 'count' of numbers/{count} cannot be 'x': it does not fit",
            ("0", "0", "0.000"),
        ),
        (
            "numbers/1?step=2",
            "refused",
            "numbers/{count} takes no parameter 'step'",
            ("0", "0", "0.000"),
        ),
        ("denied", "refused", "it raised NotAvailable: not yours", ("0", "0", "0.000")),
        ("hooked", "refused", "may_open refused it", ("0", "0", "0.000")),
        (
            "made",
            "refused",
            "its function raised PublicError: closed on Sundays",
            ("0", "0", "0.000"),
        ),
        ("broken", "failed", "ValueError: a\\nsecret", ("2", "8", "3.000")),
        (
            "sold",
            "failed",
            (
                "PublicError: out of stock (caused by ValueError: invalid literal for int() with "
                "base 10: 'many')"
            ),
            ("1", "3", "0.000"),
        ),
    ],
)
async def test_a_refused_or_failed_stream_has_a_line_with_the_reason(
    name: str,
    outcome: str,
    reason: str,
    counts: tuple[str, ...],
    lines: Callable[[], list[str]],
    autojump_clock: trio.testing.MockClock,
) -> None:
    """The reason that the peer is not told: which of the ways not to open it was."""
    async with serve(a_service(), "memory://log", on_violation=lambda _: None):
        await read(name)
    (line,) = [each for each in lines() if each.startswith("stream ")]
    told = fields(line)
    assert (told["peer"], told["name"], told["outcome"]) == ("memory://log", name, outcome)
    assert told["reason"].startswith(reason)
    assert (told["elements"], told["bytes"], told["seconds"]) == counts


async def test_what_the_session_refuses_has_a_line_too(lines: Callable[[], list[str]]) -> None:
    """The limit of streams, a name that is not UTF-8, a demand that is illegal."""
    limits = replace(Limits(), max_subscriptions=1)
    async with serve(a_service(), "memory://log", limits=limits), trio.open_nursery() as nursery:
        connection = await raw_connection(nursery, "memory://log")
        await connection.send(rsio.encode(rsio.ClientHello(version=0, extensions=())))
        for number, name in enumerate(("numbers/1", "numbers/2")):
            await connection.send(
                rsio.encode(rsio.Subscribe(publisher=name, subscriber=number, demand=0))
            )
        await connection.send(rsio.encode_request(0, 1).replace(b"\x01", b"\x00"))
        await connection.send(
            rsio.encode(rsio.Subscribe(publisher="ab", subscriber=5, demand=0)).replace(
                b"ab", b"\xff\xfe"
            )
        )
        await trio.testing.wait_all_tasks_blocked()
        await connection.abort()
        await trio.testing.wait_all_tasks_blocked()
        nursery.cancel_scope.cancel()
    told = [fields(line) for line in lines() if line.startswith("stream ")]
    assert [(each["name"], each["reason"]) for each in told] == [
        ("numbers/2", "refused"),
        ("numbers/1", "illegal demand"),
        ("\\udcff\\udcfe", "the publisher's name is no UTF-8"),
    ]


async def test_a_name_with_control_characters_is_one_line_of_printable_text(
    lines: Callable[[], list[str]],
) -> None:
    """C0, C1, bidirectional controls, line breaks, quotes."""
    hostile = 'x\x1b[2J\r\nERROR forged\x9b\u202e\u2028" reason="fine'
    async with serve(a_service(), "memory://log"):
        await read(hostile)
    (line,) = [each for each in lines() if each.startswith("stream ")]
    assert line.isprintable()
    assert fields(line)["reason"].startswith("no publisher")


async def test_one_peer_cannot_flood_it(
    lines: Callable[[], list[str]], autojump_clock: trio.testing.MockClock
) -> None:
    """A thousand refusals are a hundred lines, and one that says how many were left out."""
    async with serve(a_service(), "memory://log") as server, connect(server.addresses[0]) as peer:
        for _ in range(1000):
            with pytest.raises(Exception, match="no such publisher"):
                async with peer.subscribe("nobody") as stream:
                    await anext(stream)
            await trio.sleep(0.03)  # below the rate of short streams
    refused = [line for line in lines() if line.startswith("stream ")]
    assert 100 <= len(refused) <= 100 + 5 * 31
    assert (
        sum(
            int(found.replace(",", ""))
            for line in lines()
            for found in re.findall(r"([\d,]+) lines", line)
        )
        >= 700
    )


def test_the_log_is_none_while_it_is_off() -> None:
    """So a connection makes nothing for it."""
    assert AccessLog.if_enabled("memory://log", accepted=True) is None


@pytest.mark.parametrize(
    ("host", "source"),
    [
        (None, "peers without an address"),
        ("10.0.0.1", "10.0.0.1"),
        ("::ffff:10.0.0.1", "::ffff:10.0.0.1"),
        ("2001:db8::1:2:3:4", "2001:db8::/64"),
        ("2001:db8:0:0:9::", "2001:db8::/64"),
        ("fe80::1%eth0", "fe80::/64"),
        ("elsewhere", "peers with an unknown kind of address"),
    ],
)
def test_lines_are_bounded_by_address_and_by_network_of_ipv6(host: str | None, source: str) -> None:
    """A client has 2^64 addresses of IPv6, and one budget."""
    assert source_of(PeerIdentity(address="x", host=host)) == source


def test_the_reason_of_a_failure_has_the_cause_that_a_public_error_hides() -> None:
    """Of other failures the log of faults has the cause."""
    error, fault = PublicError("closed"), ValueError("broken")
    error.__cause__ = fault.__cause__ = OSError("disk")
    assert failure_reason(error) == "PublicError: closed (caused by OSError: disk)"
    assert failure_reason(fault) == "ValueError: broken"
