"""The client: `subscribe` with an ``http://`` URL, over memory on virtual time,
and over sockets.
"""

from collections.abc import AsyncIterator, Callable
from functools import partial
from typing import Any
from urllib.parse import SplitResult

import pytest
import trio
import trio.testing
from _site_in_memory import service, world
from penstock_http import HttpSource, _source

from penstock import (
    AuthRefused,
    ConnectionLost,
    Credentials,
    Limits,
    PublicError,
    PublisherFailed,
    Rejected,
    Retention,
    RingLog,
    Service,
    UsageError,
    collect,
    connect,
    empty,
    failed,
    remote,
    serve,
    subscribe,
)
from penstock.api import LimitExceeded, ProtocolError
from penstock.spi import (
    ByteConnection,
    PeerIdentity,
    Registry,
    TransportOptions,
    UrlSource,
    build_registry,
    hookimpl,
    parse_url,
)
from penstock.transports import MemoryTransport

Clock = trio.testing.MockClock
PEER = PeerIdentity(address="memory://site")


class Cutting(trio.abc.Stream):
    """A stream that breaks after a number of bytes, in one direction."""

    def __init__(
        self, below: trio.abc.Stream, *, receives: int | None = None, sends: int | None = None
    ) -> None:
        self._below = below
        self._receives, self._sends = receives, sends

    async def send_all(self, data: bytes | bytearray | memoryview) -> None:
        if self._sends is not None:
            part, self._sends = data[: self._sends], self._sends - len(data)
            if self._sends < 0:
                await self._below.send_all(part)
                await self._below.aclose()
                raise trio.BrokenResourceError("cut")
        await self._below.send_all(data)

    async def wait_send_all_might_not_block(self) -> None:
        await self._below.wait_send_all_might_not_block()

    async def receive_some(self, max_bytes: int | None = None) -> bytes | bytearray:
        if self._receives is None:
            return await self._below.receive_some(max_bytes)
        if self._receives <= 0:
            await self._below.aclose()
            raise trio.BrokenResourceError("cut")
        data = await self._below.receive_some(min(self._receives, max_bytes or self._receives))
        self._receives -= len(data)
        return data

    async def aclose(self) -> None:
        await self._below.aclose()


class Plugin:
    """The source over memory. `wrap` gets the stream of each connection, and its number."""

    def __init__(
        self, wrap: Callable[[trio.abc.Stream, int], trio.abc.Stream] | None = None
    ) -> None:
        self.wrap = wrap
        self.opened: list[str] = []

    async def open(
        self, url: SplitResult, _proxy: object, options: TransportOptions, nursery: trio.Nursery
    ) -> ByteConnection:
        below = await MemoryTransport().connect(
            parse_url(f"memory://{url.hostname}"), options=options, nursery=nursery
        )
        assert isinstance(below, ByteConnection)
        self.opened.append(url.netloc)
        if self.wrap is None:
            return below
        return ByteConnection(self.wrap(below.stream, len(self.opened)), peer=PEER, options=options)

    @hookimpl
    def penstock_sources(self) -> list[UrlSource]:
        return [HttpSource(self.open)]

    @property
    def registry(self) -> Registry:
        """With this source in the place of the installed one."""
        return build_registry([self], environ={"PENSTOCK_DISABLE_PLUGINS": "http"})


async def read(url: str, plugin: Plugin | None = None, **options: Any) -> list[Any]:
    options.setdefault("serializer", "json")
    async with subscribe(url, registry=(plugin or Plugin()).registry, **options) as stream:
        return [element async for element in stream]


def localhost(path: str) -> str:
    # The name of the listener in memory; the Host header must be one that the site knows.
    return f"http://site{path}"


known = partial(world, hosts="site,other")


@pytest.mark.parametrize("demand", [1, 3, 256])
async def test_a_stream_is_read_to_its_end(demand: int, autojump_clock: Clock) -> None:
    """In order and once, with little demand and with much; nothing of it is left at the server."""
    async with known() as (server, _):
        assert await read(localhost("/p/numbers/1000"), demand=demand) == list(range(1000))
        assert await read(localhost("/p/numbers/0"), demand=demand) == []
    assert server.told == []


@pytest.mark.parametrize("source", [empty(), failed(PublicError("shut"))])
async def test_a_stream_that_ends_at_once_needs_no_demand(
    source: Any, autojump_clock: Clock
) -> None:
    """One poll without demand tells the end, and its error."""
    served = Service()
    served.publish("ended", source)
    async with (
        known(served),
        subscribe(localhost("/p/ended"), registry=Plugin().registry, demand=0) as stream,
    ):
        with trio.fail_after(1):
            if "failed" in repr(source):
                with pytest.raises(PublisherFailed, match="shut"):
                    await anext(stream)
            else:
                assert [element async for element in stream] == []


async def test_a_stream_without_demand_is_not_forgotten(autojump_clock: Clock) -> None:
    """The client polls before the first request and between two: the server forgets a subscription
    that gets no poll.
    """
    async with (
        known(idle=10),
        subscribe(
            localhost("/p/numbers/2"), registry=Plugin().registry, demand=0, serializer="json"
        ) as stream,
    ):
        for number in range(2):
            await trio.sleep(300)
            stream.request(1)
            with trio.fail_after(10):
                assert await anext(stream) == number


async def test_elements_arrive_as_they_are_published(autojump_clock: Clock) -> None:
    """The stream waits for a slow publisher, also longer than a poll is held."""
    async with known():
        began = trio.current_time()
        async with subscribe(localhost("/p/slow/40"), registry=Plugin().registry) as stream:
            times = [round(trio.current_time() - began) async for _ in stream]
        assert times == [40, 80, 120]


async def test_failures_and_refusals_are_told_apart(autojump_clock: Clock) -> None:
    """As over a connection: the publisher's public text, a name that leads nowhere, credentials,
    no server.
    """
    served = service()
    async with known(served):
        with pytest.raises(PublisherFailed, match="out of stock"):
            await read(localhost("/p/failing"))
        with pytest.raises(Rejected, match="no such publisher"):
            await read(localhost("/p/nowhere"))
    with pytest.raises(ConnectionLost):
        await read(localhost("/p/numbers/1"))


async def test_credentials_are_shown(autojump_clock: Clock) -> None:
    """A token or a password; others than those are refused at the call,
    and wrong ones by the server.
    """
    served = Service(
        authenticate=lambda scheme, data, peer: (
            f"{scheme} {data.decode()}" if b"wrong" not in data else None
        )
    )

    @served.publisher("who", serializer="text")
    async def who(peer: PeerIdentity) -> AsyncIterator[str]:
        yield str(peer.principal)

    async with known(served):
        for credentials, name in (
            (Credentials.bearer("t"), "bearer t"),
            (Credentials.basic("a", "b"), "basic a:b"),
        ):
            assert await read(localhost("/p/who"), credentials=credentials, serializer="text") == [
                name
            ]
        with pytest.raises(AuthRefused):
            await read(localhost("/p/who"), credentials=Credentials.bearer("wrong"))
        with pytest.raises(UsageError, match="bearer"):
            await read(localhost("/p/who"), credentials=Credentials("mtls"))


async def test_leaving_cancels_the_publisher_at_the_server(autojump_clock: Clock) -> None:
    """At once, and not after the time for a subscription without requests."""
    closed: list[float] = []
    served = Service()

    @served.publisher("endless")
    async def endless() -> AsyncIterator[bytes]:
        try:
            while True:
                yield b"x"
                await trio.sleep(1)
        finally:
            closed.append(trio.current_time())

    async with known(served):
        async with subscribe(localhost("/p/endless"), registry=Plugin().registry) as stream:
            async for _ in stream:
                break
            left = trio.current_time()
        await trio.testing.wait_all_tasks_blocked()
        assert closed == [pytest.approx(left, abs=0.1)]


@pytest.mark.parametrize("direction", ["receives", "sends"])
async def test_a_connection_that_is_cut_at_any_byte_loses_and_repeats_nothing(
    direction: str, autojump_clock: Clock
) -> None:
    """At bytes of either direction, and each connection after it at another one."""
    async with known() as (server, _):
        for cut in range(0, 700, 13):

            def wrap(stream: trio.abc.Stream, number: int, cut: int = cut) -> trio.abc.Stream:
                if number > 4:
                    return stream
                return Cutting(stream, **{direction: (cut * number) % 700})

            assert await read(localhost("/p/numbers/9"), Plugin(wrap), demand=4) == list(range(9))
    assert server.told == []


class Draft:
    """A server that knows the draft alone, played by hand:
    each answer is a status, headers and a body.
    """

    def __init__(self, *answers: tuple[int, dict[str, str], bytes]) -> None:
        self.answers = list(answers)
        self.asked: list[str] = []
        self.headers: list[bytes] = []

    async def serve(self, nursery: trio.Nursery, name: str = "site") -> None:
        listener = await MemoryTransport().listen(
            parse_url(f"memory://{name}"), options=TransportOptions(), nursery=nursery
        )
        nursery.start_soon(self._accept, listener, nursery)

    async def _accept(self, listener: Any, nursery: trio.Nursery) -> None:
        while True:
            nursery.start_soon(self._answer, await listener.accept())

    async def _answer(self, connection: Any) -> None:
        buffer = b""
        while (data := await connection.receive()) is not None:
            buffer += data
            while b"\r\n\r\n" in buffer:
                head, _, buffer = buffer.partition(b"\r\n\r\n")
                target = head.split(b" ")[1].decode()
                self.asked.append(target)
                self.headers.append(head)
                status, headers, body = (
                    (200, {}, b"") if target.endswith("/cancel") else self.answers.pop(0)
                )
                lines = "".join(f"{key}: {value}\r\n" for key, value in headers.items())
                length = (
                    f"Content-Length: {headers.get('length', len(body))}\r\n"
                    if status != 204
                    else ""
                )
                await connection.send(f"HTTP/1.1 {status} x\r\n{lines}{length}\r\n".encode() + body)
                if "length" in headers:
                    await connection.aclose()
                    return


CREATED = (201, {"Location": "../s/1"}, b"")
BATCH = {"Content-Encoding": "X-Rsio-LengthPrefixedElements"}


async def draft(
    *answers: tuple[int, dict[str, str], bytes], path: str = "/p/x", **options: Any
) -> tuple[list[Any], Draft]:
    """Read the stream of a server that gives these answers. Return the elements, and the server."""
    server = Draft(*answers)
    async with trio.open_nursery() as nursery:
        await server.serve(nursery)
        try:
            return await read(localhost(path), serializer="bytes", **options), server
        finally:
            nursery.cancel_scope.cancel()


async def test_a_server_that_knows_the_draft_alone_is_read(autojump_clock: Clock) -> None:
    """Single elements, both codings, nothing, and the completion.
    The demand is added up by `request`.
    """
    elements, server = await draft(
        CREATED,
        (200, {}, b"0"),
        (200, BATCH, b"\0\0\0\x011\0\0\0\0"),
        (204, {"Retry-After": "7"}, b""),
        (503, {"Retry-After": "2"}, b"busy"),
        (200, {"Content-Encoding": "X-Rsio-FixedSizeElements"}, b"\0\0\0\x02aabb"),
        (410, {}, b""),
        demand=8,
    )
    assert elements == [b"0", b"1", b"", b"aa", b"bb"]
    assert server.asked[0] == "/p/x?request=8"
    assert server.asked[1] == "/s/1?request=0"
    assert trio.current_time() >= 9


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        *(
            (None, 0),
            ("7", 7),
            ("0", 0),
            ("-5", 0),
            ("1e9", 0),
            ("999999999999", 300),
            ("soon", 0),
            ("", 0),
            ("inf", 0),
        ),
        ("Sun, 06 Nov 1994 08:49:37 GMT", 0),
        ("Fri, 31 Dec 9999 23:59:59 GMT", 300),
        ("Fri, 31 Feb 2099 23:59:59 GMT", 0),
    ],
)
def test_a_retry_after_is_a_number_or_a_date(text: str | None, seconds: float) -> None:
    """Obeyed for five minutes at most. A date that has passed, and any other text, say nothing."""
    assert _source._seconds(text) == seconds


async def test_a_batch_without_positions_counts_when_it_is_whole(autojump_clock: Clock) -> None:
    """The draft's server sends all of it again."""
    elements, _ = await draft(
        CREATED,
        (200, {**BATCH, "length": "100"}, b"\0\0\0\x011\0\0"),
        (200, BATCH, b"\0\0\0\x011\0\0\0\x012"),
        (410, {}, b""),
    )
    assert elements == [b"1", b"2"]


@pytest.mark.parametrize(("path", "has_advice"), [("/x", True), ("/p/x", False)])
async def test_a_path_without_a_publisher_is_told_where_publishers_are(
    path: str, has_advice: bool, autojump_clock: Clock
) -> None:
    """`http://site/x` is what a URL of the other transports looks like."""
    with pytest.RaisesGroup(pytest.RaisesExc(Rejected, match="HTTP 404")) as caught:
        await draft((404, {}, b""), path=path)
    assert ("/p/NAME" in str(caught.value.exceptions[0])) == has_advice


async def test_more_than_was_requested_is_kept_and_not_lost(autojump_clock: Clock) -> None:
    """A request that was sent again may have doubled the demand."""
    body = b"".join(b"\0\0\0\x01%d" % number for number in range(6))
    busy = (503, {}, b"")
    elements, _ = await draft(busy, busy, CREATED, (200, BATCH, body), (410, {}, b""), demand=2)
    assert elements == [b"%d" % number for number in range(6)]


@pytest.mark.parametrize(
    ("answers", "error", "text"),
    [
        ([(404, {}, b"<html>")], Rejected, "HTTP 404"),
        ([(201, {}, b"")], Rejected, "HTTP 201"),
        ([(301, {"Location": "/p/x"}, b"")] * 6, ConnectionLost, "redirected"),
        ([(201, {"Location": "ftp://x/y"}, b"")], ProtocolError, "none of HTTP"),
        ([(201, {"Location": "http://[bad/s/1"}, b"")], ProtocolError, "none of HTTP"),
        ([(201, {"Location": "http://site:99999/s/1"}, b"")], ProtocolError, "none of HTTP"),
        ([(307, {"Location": "http://site:0/s/1"}, b"")], ProtocolError, "none of HTTP"),
        ([(307, {"Location": "/s/a b"}, b"")], ProtocolError, "none of HTTP"),
        ([(201, {"Location": "/s/\u00fc"}, b"")], ProtocolError, "none of HTTP"),
        ([CREATED, (301, {"Location": "/p/x"}, b"")], Rejected, "HTTP 301"),
        (
            [CREATED, (500, {"X-Rsio-Error": "true"}, b"out of stock")],
            PublisherFailed,
            "out of stock",
        ),
        ([CREATED, (404, {"X-Rsio-Error": "true"}, b"")], Rejected, "HTTP 404"),
        ([CREATED, (501, {}, b"")], Rejected, "HTTP 501"),
        ([CREATED, *[(503, {}, b"")] * 7], Rejected, "HTTP 503"),
        (
            [CREATED, *[(200, {**BATCH, "length": "9"}, b"\0\0")] * 7],
            ConnectionLost,
            "break before their first",
        ),
        ([CREATED, (200, {"Content-Encoding": "br"}, b"x")], ProtocolError, "coding"),
        ([CREATED, (200, {"X-Rsio-Position": "5"}, b"x")], ProtocolError, "left out"),
        ([CREATED, (200, {"X-Rsio-Position": "x"}, b"x")], ProtocolError, "position"),
        (
            [CREATED, (200, {"Content-Encoding": "X-Rsio-FixedSizeElements"}, b"\0\0\0\0")],
            ProtocolError,
            "whole number",
        ),
        ([CREATED, (200, BATCH, b"\x7f\0\0\0x")], LimitExceeded, "max_element"),
        ([CREATED, (200, {}, b"x" * 2000)], LimitExceeded, "max_element|more than"),
    ],
)
async def test_a_wrong_answer_ends_the_stream(
    answers: list[tuple[int, dict[str, str], bytes]],
    error: type[Exception],
    text: str,
    autojump_clock: Clock,
) -> None:
    """With its reason. Without X-Rsio-Error the server may have the subscription still,
    so it is cancelled.
    """
    server = Draft(*answers)
    async with trio.open_nursery() as nursery:
        await server.serve(nursery)
        with pytest.raises(error, match=text):
            await read(localhost("/p/x"), serializer="bytes", limits=Limits(max_element=1000))
        nursery.cancel_scope.cancel()
    is_made = answers[0] == CREATED
    is_known = is_made and "X-Rsio-Error" not in answers[1][1]
    assert ("/s/1/cancel" in server.asked) == is_known


async def test_a_redirect_that_names_a_user_does_not_show_it(autojump_clock: Clock) -> None:
    """The part before '@' is neither a part of the Host header nor credentials."""
    _, server = await draft(
        (307, {"Location": "http://ann:secret@site/p/y"}, b""), CREATED, (410, {}, b""), demand=8
    )
    assert server.asked[1] == "/p/y?request=8"
    assert not any(b"ann" in head or b"Authorization" in head for head in server.headers)


async def test_a_redirect_to_another_origin_gets_no_credentials(autojump_clock: Clock) -> None:
    """One to the same origin does."""
    first, second = (
        Draft((307, {"Location": "/p/moved"}, b""), (307, {"Location": "http://other/p/y"}, b"")),
        Draft((201, {"Location": "/s/1"}, b""), (410, {}, b"")),
    )
    async with trio.open_nursery() as nursery:
        await first.serve(nursery)
        await second.serve(nursery, "other")
        assert await read(localhost("/p/x"), credentials=Credentials.bearer("secret")) == []
        nursery.cancel_scope.cancel()
    assert [b"secret" in head for head in first.headers] == [True, True]
    assert [b"secret" in head for head in second.headers] == [False, False]


@pytest.mark.parametrize(
    "url",
    [
        *(
            "http://site",
            "http://site/",
            "http:///p/x",
            "http://site/p/x#y",
            "http://[bad/p/x",
            "http://site:99999/p/x",
        ),
        *(
            "http://site/p/x?request=5",
            "http://site/p/x?a=1&request=2",
            "http://site/p/a b",
            "http://site/p/\u00fc",
            "http://a:b@site/p/x",
        ),
    ],
)
async def test_a_url_that_names_no_publisher_is_refused(url: str) -> None:
    """At the call. So is one that has the demand in it, a password, or characters
    that HTTP does not send.
    """
    with pytest.raises(UsageError):
        await read(url)
    with pytest.raises(UsageError, match="read its streams with subscribe"):
        connect("http://127.0.0.1:7002")


async def test_over_sockets() -> None:
    """As a user writes it."""
    async with serve(service(), "http://127.0.0.1:0") as server:
        url = f"{server.addresses[0]}/p/numbers/500"
        async with subscribe(url, serializer="json", demand=16) as stream:
            assert [number async for number in stream] == list(range(500))


async def test_a_named_reader_of_a_log_acknowledges_over_http() -> None:
    """And goes on where it has."""
    log, served = RingLog(retention=Retention(max_count=80, acknowledged=True)), Service()
    reader = await log.add_reader("nightly", max_count=70)
    await log.append([b"%d" % number for number in range(5)])
    served.publish("orders", log)
    async with serve(served, "http://127.0.0.1:0") as server:
        name = f"{server.addresses[0]}/p/orders?reader=nightly"
        assert await collect(remote(f"{name}&acknowledge=3")) == [b'{"0": 3}']
        assert reader.positions() == {"0": 3}
        assert await collect(remote(f"{name}&stop=latest")) == [b"3", b"4"]
