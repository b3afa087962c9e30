"""The toy over `serve` and `connect`, as an installed plugin: in URLs, on every transport, and
beside the other protocols.
"""

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest
import trio
import trio.testing

from penstock.api import ConnectionLost, PublisherFailed, Rejected, UsageError
from penstock.runtime import Peer, Server, Service, connect, serve, subscribe
from penstock.spi import Connection, Registry, TransportOptions, Url, build_registry
from tests._certificates import certify
from tests.protocols import _toy_protocol as toy_protocol
from tests.runtime._services import raw_connection
from tests.spi._helpers import Shelf

CODE = Path(toy_protocol.__file__).read_text(encoding="utf-8")
PLACES = ["memory://toy", "memory-framed://toy", "tcp://127.0.0.1:0"]
WORDS = ["one", "two", "three"]


@pytest.fixture
def registry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Registry:
    """The registry with the distribution of the toy."""
    Shelf(tmp_path, monkeypatch).install("penstock-toy", CODE, entry="toy")
    found = build_registry(environ={})
    assert found.problems == ()
    return found


def words_service(*words: str) -> Service:
    service = Service()
    service.publish("words", list(words), serializer="text")

    @service.publisher("channel/{room}", serializer="text")
    async def room(room: str) -> AsyncIterator[str]:
        for word in words:
            yield f"{room}: {word}"

    @service.publisher("large")
    async def large() -> AsyncIterator[bytes]:
        yield bytes(100_000)
        yield b"small"

    @service.publisher("failing")
    async def failing() -> AsyncIterator[bytes]:
        yield b"1"
        raise ValueError("a secret")

    return service


def toy(server: Server) -> str:
    return f"toy+{str(server.addresses[0]).removeprefix('toy+')}"


async def peer_of(server: Server) -> Peer:
    while not server.peers:
        await trio.lowlevel.checkpoint()
    return server.peers[0]


@pytest.mark.parametrize("place", PLACES)
async def test_a_url_selects_the_toy(registry: Registry, place: str) -> None:
    """On transports of bytes, with the length of a frame, and of messages, without it."""
    async with serve(words_service(*WORDS), f"toy+{place}", registry=registry) as server:
        async with subscribe(
            f"{toy(server)}/words", serializer="text", registry=registry
        ) as stream:
            assert [word async for word in stream] == WORDS
        async with subscribe(f"{toy(server)}/large", registry=registry) as stream:
            assert [element async for element in stream] == [bytes(100_000), b"small"]


async def test_without_its_distribution_the_toy_is_refused() -> None:
    """Before a connection is opened. The error lists the installed protocols."""
    with pytest.raises(UsageError, match="'toy'; there is: reactivesocket, rsio"):
        subscribe("toy+memory://toy/words", registry=build_registry(environ={}))


@pytest.mark.parametrize("place", PLACES)
async def test_one_port_serves_all_three_protocols(registry: Registry, place: str) -> None:
    """Each client is recognised by its first bytes, and gets large elements whole or in parts,
    as its protocol requires.
    """
    async with serve(words_service(*WORDS), place, registry=registry) as server:
        for protocol in ("rsio", "reactivesocket", "toy"):
            async with subscribe(
                f"{protocol}+{server.addresses[0]}/words", serializer="text", registry=registry
            ) as stream:
                assert [word async for word in stream] == WORDS, protocol
            async with subscribe(
                f"{protocol}+{server.addresses[0]}/large", registry=registry
            ) as stream:
                assert [element async for element in stream] == [bytes(100_000), b"small"], protocol


@pytest.mark.parametrize("protocol", ["rsio", "reactivesocket"])
async def test_a_client_of_another_protocol_is_refused_in_its_own_protocol(
    registry: Registry, protocol: str
) -> None:
    """The port serves the toy only."""
    async with serve(words_service(), "toy+tcp://127.0.0.1:0", registry=registry) as server:
        address = str(server.addresses[0]).removeprefix("toy+")
        with pytest.raises((ConnectionLost, Rejected), match="protocol:not-served"):
            async with subscribe(f"{protocol}+{address}/words", registry=registry) as stream:
                await anext(stream)


@pytest.mark.parametrize("place", PLACES)
async def test_a_channel_carries_streams_both_ways_on_one_id(
    registry: Registry, place: str
) -> None:
    """Each side has a publisher of that name and subscribes to the other.
    Each direction ends by itself.
    """
    async with (
        serve(words_service(*WORDS), f"toy+{place}", registry=registry) as server,
        connect(toy(server), service=words_service("uno", "dos"), registry=registry) as peer,
        peer.subscribe("channel/a", serializer="text") as down,
    ):
        assert await anext(down) == "a: one"
        other = await peer_of(server)
        dialect = other._connection.session.channel.dialect
        assert dialect.halves == {1: "channel/a"}
        async with other.subscribe("channel/a", serializer="text") as up:
            assert await anext(up) == "a: uno"
            assert dialect.halves == {}
            assert dialect.next_id("another") == 2  # the server has opened no stream before
            assert [word async for word in up] == ["a: dos"]
        assert [word async for word in down] == ["a: two", "a: three"]


@pytest.mark.parametrize("place", PLACES)
async def test_a_channel_can_echo_element_by_element(registry: Registry, place: str) -> None:
    """The server sends each element that it gets through the same channel,
    so demand crosses in both directions.
    """
    asked, answers = trio.open_memory_channel[str](1)
    service, answering = Service(), Service()

    @service.publisher("channel/echo", serializer="text")
    async def echo() -> AsyncIterator[str]:
        async with (await peer_of(server)).subscribe(
            "channel/echo", serializer="text", demand=1
        ) as words:
            async for word in words:
                yield word.upper()

    @answering.publisher("channel/echo", serializer="text")
    async def words() -> AsyncIterator[str]:
        async for word in answers:
            yield word

    async with (
        serve(service, f"toy+{place}", registry=registry) as server,
        connect(toy(server), service=answering, registry=registry) as peer,
        peer.subscribe("channel/echo", serializer="text", demand=1) as echoed,
    ):
        for word in WORDS:
            asked.send_nowait(word)
            assert await anext(echoed) == word.upper()
        asked.close()
        assert [word async for word in echoed] == []


async def test_a_failure_and_a_refusal_arrive_as_different_exceptions(registry: Registry) -> None:
    """Their codes differ. The text of the exception of a publisher is not sent."""
    violations: list[BaseException] = []
    async with (
        serve(
            words_service(), "toy+memory://toy", registry=registry, on_violation=violations.append
        ) as server,
        connect(toy(server), registry=registry) as peer,
    ):
        with pytest.raises(Rejected, match="refused: 'no such publisher'"):
            async with peer.subscribe("nothing") as stream:
                await anext(stream)
        with pytest.raises(PublisherFailed, match="0x201") as caught:
            async with peer.subscribe("failing") as stream:
                assert [element async for element in stream]
        assert "secret" not in str(caught.value)
        with pytest.raises(UsageError, match="this connection speaks toy"):
            await peer.request_response(b"words")
    assert [type(error) for error in violations] == [ValueError]


async def test_a_server_that_ends_sends_the_goodbye_of_the_toy(registry: Registry) -> None:
    """With the code of a normal end. The answer ends the connection."""
    heard = bytearray()

    async def listen(raw: Connection) -> None:
        while (data := await raw.receive()) is not None:
            heard.extend(data)
            if heard.endswith(b"shutdown"):
                await raw.send(
                    toy_protocol.frame(toy_protocol.FAILED, 0, toy_protocol.CLOSED.to_bytes(4))
                )
        await raw.abort()

    async with (
        trio.open_nursery() as nursery,
        serve(words_service(), "toy+memory://toy", registry=registry) as server,
    ):
        raw = await raw_connection(nursery, "memory://toy")
        await raw.send(toy_protocol.frame(toy_protocol.HELLO, 0, toy_protocol.VERSION))
        await peer_of(server)
        nursery.start_soon(listen, raw)
    assert bytes(heard) == toy_protocol.frame(
        toy_protocol.HELLO, 0, toy_protocol.VERSION
    ) + toy_protocol.frame(toy_protocol.FAILED, 0, b"\0\0\1\1shutdown")


async def test_the_keepalive_uses_the_clock_of_the_connection(
    registry: Registry, autojump_clock: trio.testing.MockClock
) -> None:
    """Two idle peers ping each other and stay connected. A silent peer is disconnected."""
    silence = Service()

    @silence.publisher("silence")
    async def nothing() -> AsyncIterator[bytes]:
        await trio.sleep(1_000)
        yield b"at last"

    async with serve(silence, "toy+memory://toy", registry=registry) as server:
        async with (
            connect(toy(server), registry=registry) as peer,
            peer.subscribe("silence") as stream,
        ):
            assert await anext(stream) == b"at last"
        async with trio.open_nursery() as nursery:
            raw = await raw_connection(nursery, "memory://toy")
            await raw.send(toy_protocol.frame(toy_protocol.HELLO, 0, toy_protocol.VERSION))
            began, heard = trio.current_time(), bytearray()
            while not heard.endswith(b"limit:keepalive"):
                heard += await raw.receive() or b""
            assert trio.current_time() - began == toy_protocol.ToyDialect.ping_timeout
            await raw.abort()


# --- ALPN

NAMES = {"rsio": "rsio/0", "reactivesocket": "reactivesocket/0", "toy": "toy/1"}


@pytest.fixture(scope="module")
def certified(tmp_path_factory: pytest.TempPathFactory) -> TransportOptions:
    """Options for both sides: the certificate of a server, and its authority."""
    return TransportOptions(tls=certify(tmp_path_factory.mktemp("certificates")))


async def chosen_by_server(address: Url, options: TransportOptions, offered: str) -> str | None:
    """Return the protocol that a server selects if a client offers one name."""
    assert options.tls is not None
    stream = trio.SSLStream(
        await trio.open_tcp_stream(address.host or "", address.port or 0),
        options.tls.client_context([offered]),
        server_hostname=address.host,
    )
    await stream.do_handshake()
    chosen = stream.selected_alpn_protocol()
    await stream.transport_stream.aclose()
    return chosen


@pytest.mark.parametrize("prefix", ["", "rsio+", "reactivesocket+", "toy+"])
async def test_a_server_offers_the_protocols_of_its_url_in_alpn(
    registry: Registry, certified: TransportOptions, prefix: str
) -> None:
    """One protocol if the URL names one, else all, plugins included.
    Other names are not selected.
    """
    async with serve(
        Service(), f"{prefix}tls://127.0.0.1:0", registry=registry, options=certified
    ) as server:
        for name, alpn in NAMES.items():
            expected = alpn if prefix in ("", f"{name}+") else None
            assert await chosen_by_server(server.addresses[0], certified, alpn) == expected
        assert await chosen_by_server(server.addresses[0], certified, "h2") is None


async def test_each_url_of_a_server_offers_its_own_protocol(
    registry: Registry, certified: TransportOptions
) -> None:
    """Two ports, two protocols."""
    urls = ("toy+tls://127.0.0.1:0", "reactivesocket+tls://127.0.0.1:0")
    async with serve(Service(), *urls, registry=registry, options=certified) as server:
        chosen = [
            [await chosen_by_server(at, certified, alpn) for alpn in NAMES.values()]
            for at in server.addresses
        ]
        assert chosen == [[None, None, "toy/1"], [None, "reactivesocket/0", None]]


async def offered_by_client(url: str, registry: Registry, options: TransportOptions) -> str | None:
    """Return the name that a server with all names selects for a client of that URL."""
    assert options.tls is not None
    context, chosen = options.tls.server_context([*NAMES.values(), "mine"]), []

    async def accept(stream: trio.SocketStream) -> None:
        secured = trio.SSLStream(stream, context, server_side=True)
        await secured.do_handshake()
        chosen.append(secured.selected_alpn_protocol())
        await stream.aclose()

    async with trio.open_nursery() as nursery:
        [listener] = await trio.open_tcp_listeners(0, host="127.0.0.1")
        nursery.start_soon(trio.serve_listeners, accept, [listener])
        address = f"{url}://127.0.0.1:{listener.socket.getsockname()[1]}/words"
        with pytest.raises(ConnectionLost):
            async with subscribe(address, registry=registry, options=options) as stream:
                await anext(stream)
        nursery.cancel_scope.cancel()
    return chosen[0]


async def test_a_client_offers_the_protocol_of_its_url_in_alpn(
    registry: Registry, certified: TransportOptions
) -> None:
    """RS.io if the URL names none. `TransportOptions.protocols` replaces it, also with nothing."""
    assert await offered_by_client("tls", registry, certified) == "rsio/0"
    for name, alpn in NAMES.items():
        assert await offered_by_client(f"{name}+tls", registry, certified) == alpn
    assert (
        await offered_by_client("toy+tls", registry, replace(certified, protocols=("mine",)))
        == "mine"
    )
    assert await offered_by_client("toy+tls", registry, replace(certified, protocols=())) is None


@pytest.mark.parametrize("protocol", NAMES)
async def test_each_protocol_can_be_selected_on_one_tls_port(
    registry: Registry, certified: TransportOptions, protocol: str
) -> None:
    """Both sides speak the selected protocol."""
    async with serve(
        words_service(*WORDS), "tls://127.0.0.1:0", registry=registry, options=certified
    ) as server:
        url = f"{protocol}+{server.addresses[0]}"
        async with (
            connect(url, registry=registry, options=certified) as peer,
            peer.subscribe("words", serializer="text") as stream,
        ):
            assert [word async for word in stream] == WORDS
            assert peer._connection.connection.stream.selected_alpn_protocol() == NAMES[protocol]


async def test_a_protocol_without_an_alpn_name_works_without_alpn(
    certified: TransportOptions, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The name may be missing or empty. The other protocols keep theirs."""
    shelf = Shelf(tmp_path, monkeypatch)
    for entry, alpn in (("toy", ""), ("mute", 'alpn: ClassVar[str] = ""')):
        code = CODE.replace('alpn: ClassVar[str] = "toy/1"', alpn).replace('"toy"', f'"{entry}"')
        shelf.install(f"penstock-{entry}", code, entry=entry)
    registry = build_registry(environ={})
    assert {"toy", "mute"} <= set(registry.dialects)
    async with serve(
        words_service(*WORDS), "tls://127.0.0.1:0", registry=registry, options=certified
    ) as server:
        chosen = [
            await chosen_by_server(server.addresses[0], certified, alpn) for alpn in NAMES.values()
        ]
        assert chosen == ["rsio/0", "reactivesocket/0", None]
        async with subscribe(
            f"toy+{server.addresses[0]}/words",
            serializer="text",
            registry=registry,
            options=certified,
        ) as stream:
            assert [word async for word in stream] == WORDS
