"""A client asks its peer: requests, streams and failures; and the peer asks the client."""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

from penstock.api import ProtocolError, PublisherFailed, Rejected, UsageError
from tests._shells import Shell, over_each_shell
from tests.contracts._trio_server import Quote, Served


@over_each_shell
async def test_requests_carry_a_payload_and_bring_a_value(shell: Shell, served: Served) -> None:
    """With a payload, without one, with a type, and from a publisher."""
    async with shell.connect(served.url) as peer:
        assert await peer.request("echo", b"payload") == b"payload"
        assert await peer.request("echo", b"") == b""
        assert await peer.request("echo") == b"nothing"
        assert await peer.request("echo", {"a": 1}, type=dict) == {"a": 1}
        assert await peer.request("numbers", type=str) == "0"


@over_each_shell
async def test_elements_have_the_type_that_was_asked_for(shell: Shell, served: Served) -> None:
    """A dataclass is JSON; a serializer can be named as well. An element that does not decode ends
    its stream only.
    """
    async with shell.connect(served.url) as peer:
        async with peer.subscribe("quotes", type=Quote) as stream:
            assert [quote async for quote in stream] == [
                Quote("EURUSD", number) for number in range(3)
            ]
        async with peer.subscribe("numbers?count=3", serializer="json") as stream:
            assert [number async for number in stream] == [0, 1, 2]
        async with peer.subscribe("failing", serializer="json") as stream:
            with pytest.raises(Exception, match=r"^element 0 \(3 bytes\)"):
                await anext(stream)
        assert await peer.request("echo") == b"nothing"


@over_each_shell
async def test_a_stream_begins_at_a_time(shell: Shell, served: Served) -> None:
    """The peer tells the position of a time in a partition of its log. A datetime is one as well."""
    async with shell.connect(served.url) as peer:
        await peer.request("fill the log")
        east = "log?partition=east"
        assert await peer.position_at(east, 1_006) == 6
        assert await peer.position_at(east, 1_006.5) == 7
        assert await peer.position_at(east, "1970-01-01T00:16:47Z") == 7
        assert await peer.position_at(east, datetime(1970, 1, 1, tzinfo=UTC)) == 0
        assert await peer.position_at(east, datetime.now(UTC)) == 10
        start = await peer.position_at(east, 1_008)
        async with peer.subscribe(east, start=start, stop="latest") as stream:
            assert [element async for element in stream] == [b"8", b"9"]
        with pytest.raises(UsageError, match=r"name one, as in log\?partition=east"):
            await peer.position_at("log", 1_006)
        for time in (True, "yesterday", datetime(2026, 7, 1)):  # noqa: DTZ001  # it is refused
            with pytest.raises(UsageError, match=r"is no time|has no time zone"):
                await peer.position_at(east, time)
        with pytest.raises(ProtocolError, match="as the position of a time"):
            await peer.position_at("no log", 1_006)


@pytest.mark.parametrize(
    "call",
    [
        lambda peer: peer.subscribe(""),
        lambda peer: peer.subscribe(b"numbers"),
        lambda peer: peer.subscribe("\ud800"),
        lambda peer: peer.subscribe("x" * 2000),
        lambda peer: peer.subscribe("numbers", demand=-1),
        lambda peer: peer.subscribe("numbers", demand=True),
        lambda peer: peer.subscribe("numbers", window_bytes=0),
        lambda peer: peer.subscribe("numbers", window_bytes=True),
        lambda peer: peer.subscribe("numbers", window_bytes=1.5),
        lambda peer: peer.subscribe("numbers", serializer="nothing"),
        lambda peer: peer.subscribe("numbers", start=-1),
        lambda peer: peer.subscribe("numbers", start="middle"),
        lambda peer: peer.subscribe("numbers", stop=2**63),
        lambda peer: peer.subscribe("numbers?start=1", start=3),
        lambda peer: peer.subscribe("numbers", window=3),
        lambda peer: peer.request("echo", object()),
        lambda peer: peer.request("\ud800"),
        lambda peer: peer.request(""),
        lambda peer: peer.request("echo", serializer="nothing"),
    ],
)
@over_each_shell
async def test_a_mistake_is_an_error_of_the_call(
    shell: Shell, served: Served, call: Callable[[Any], Any]
) -> None:
    """Nothing was sent: the connection goes on."""
    async with shell.connect(served.url) as peer:
        with pytest.raises(UsageError):
            await call(peer)
        assert await peer.request("echo") == b"nothing"


@over_each_shell
async def test_a_stream_is_opened_once(shell: Shell, served: Served) -> None:
    """One object is one subscription."""
    async with shell.connect(served.url) as peer:
        opening = peer.subscribe("numbers")
        async with opening as stream:
            assert await anext(stream) == b"0"
        with pytest.raises(UsageError, match="opened before"):
            await opening.__aenter__()


@over_each_shell
async def test_failures_of_the_peer_are_raised_where_the_program_waits(
    shell: Shell, served: Served
) -> None:
    """An unknown name is a refusal; the publisher's error comes after its elements."""
    async with shell.connect(served.url) as peer:
        async with peer.subscribe("nowhere") as stream:
            with pytest.raises(Rejected, match="no such publisher"):
                await anext(stream)
        async with peer.subscribe("failing") as stream:
            assert await anext(stream) == b"one"
            with pytest.raises(PublisherFailed, match="out of paper"):
                await anext(stream)
        with pytest.raises((Rejected, PublisherFailed), match="no such publisher"):
            await peer.request("nowhere")


@over_each_shell
async def test_a_request_that_is_given_up_is_cancelled_there(shell: Shell, served: Served) -> None:
    """The handler ends, and the connection goes on."""
    served.stopped.clear()
    async with shell.connect(served.url) as peer:
        with pytest.raises(TimeoutError):
            await shell.within(0.1, lambda: peer.request("never"))
        assert await peer.request("echo") == b"nothing"
        await shell.until(lambda: "never" in served.stopped)


@over_each_shell
async def test_leaving_a_stream_stops_its_publisher(shell: Shell, served: Served) -> None:
    """The body may leave it by raising."""
    served.stopped.clear()
    async with shell.connect(served.url) as peer:
        async with peer.subscribe("forever") as stream:
            await anext(stream)
        with pytest.raises(ZeroDivisionError):
            async with peer.subscribe("forever") as stream:
                _ = 1 / len((await anext(stream))[1:])
        await shell.until(lambda: served.stopped.count("forever") == 2)


@over_each_shell
async def test_a_stream_of_large_elements_is_bounded_by_its_window(
    shell: Shell, served: Served
) -> None:
    """Elements of 1 MiB arrive in parts, and no more of them are under way than fit into the
    window.
    """
    async with shell.connect(served.url) as peer:
        async with peer.subscribe("numbers?count=6&size=1048576", window_bytes=2 << 20) as stream:
            async for element in stream:
                assert len(element) == 1 << 20
                assert stream.statistics().outstanding <= 4


@over_each_shell
async def test_statistics_tell_what_the_connection_does(shell: Shell, served: Served) -> None:
    """Before the connection is open, while a stream waits for demand, and behind the end."""
    async with shell.connect(served.url) as peer:
        before = peer.statistics()
        assert (before.protocol, before.transport, before.is_open, before.age) == (
            "rsio",
            "tcp",
            False,
            None,
        )
        async with peer.subscribe("numbers", demand=0) as stream:
            stream.request(3)
            assert [await anext(stream) for _ in range(3)] == [b"0", b"1", b"2"]
            now = peer.statistics()
            assert now.is_open
            assert (now.receiving.streams, now.receiving.opened, now.receiving.elements) == (
                1,
                1,
                3,
            )
            assert now.receiving.without_demand is not None
            assert now.receiving.without_demand.peer == peer.identity
            assert now.sending.streams == 0
            assert now.sent_bytes > 0
            assert now.received_bytes > 0
            assert now.buffered_bytes < 1000
    after = peer.statistics()
    assert (after.is_open, after.buffered_bytes, after.receiving.streams) == (False, 0, 0)


# ----------------------------------------------------------------------------------------
# publishers of the client


@over_each_shell
async def test_the_server_reads_publishers_of_the_client(shell: Shell, served: Served) -> None:
    """Functions, lists, and failures, each as far as the server asks. A failure is reported here,
    and its text does not cross.
    """
    pulled: list[int] = []

    def counting() -> Iterator[bytes]:
        for number in range(1000):
            pulled.append(number)
            yield b"%d" % number

    def failing() -> Iterator[bytes]:
        yield b"one"
        raise ValueError("secret")

    heard: list[Exception] = []
    publishers = {
        "counting": counting,
        "list": [b"a", b"b"],
        "failing": failing,
        "nothing": list,
        "none": [None],
        "text": ["not bytes"],
    }
    async with shell.connect(served.url, publishers=publishers, on_violation=heard.append) as peer:
        assert await peer.request("collect?name=list") == b"a,b"
        assert await peer.request("collect?name=nothing") == b""
        assert await peer.request("collect?name=counting&demand=3") == b",".join(
            b"%d" % number for number in range(1000)
        )
        assert pulled == [*range(1000)]
        for name in ("failing", "none", "text", "unknown"):
            with pytest.raises(PublisherFailed):
                await peer.request(f"collect?name={name}")
        assert await peer.request("echo") == b"nothing"
    assert len(heard) == 3
    assert isinstance(heard[0], ValueError)


@over_each_shell
async def test_publishers_are_closed_when_the_block_is_left(shell: Shell, served: Served) -> None:
    """The cleanup of a generator that the server still reads runs before the block is left."""
    closed: list[str] = []

    def endless() -> Iterator[bytes]:
        try:
            while True:
                yield b"x"
        finally:
            closed.append("endless")

    async with shell.connect(served.url, publishers={"endless": endless}) as peer:
        with pytest.raises(TimeoutError):
            await shell.within(0.1, lambda: peer.request("hold?name=endless&demand=2"))
    assert closed == ["endless"]
