"""The toy over `serve` and `connect`, brought by a distribution that somebody installs: in URLs, on every transport, beside the others."""

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest
import trio
import trio.testing
import trustme

from penstock.api import ConnectionLost, PublisherFailed, Rejected, UsageError
from penstock.plugins import Connection, Registry, Tls, TransportOptions, build_registry
from penstock.runtime import Peer, Server, Service, connect, serve, subscribe
from tests.plugins._helpers import Shelf
from tests.protocols import _toy
from tests.runtime._services import raw_connection

CODE = Path(_toy.__file__).read_text(encoding="utf-8")
PLACES = ["memory://toy", "memory-framed://toy", "tcp://127.0.0.1:0"]
WORDS = ["one", "two", "three"]


@pytest.fixture
def registry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Registry:
    """What is found once the distribution is installed."""
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
    return f"toy+{server.addresses[0].removeprefix('toy+')}"


async def peer_of(server: Server) -> Peer:
    while not server.peers:
        await trio.lowlevel.checkpoint()
    return server.peers[0]


@pytest.mark.parametrize("place", PLACES)
async def test_a_url_asks_for_it(registry: Registry, place: str) -> None:
    """On byte streams with the length of a frame, where messages arrive whole without it."""
    async with serve(words_service(*WORDS), f"toy+{place}", registry=registry) as server:
        async with subscribe(f"{toy(server)}/words", serializer="text", registry=registry) as stream:
            assert [word async for word in stream] == WORDS
        async with subscribe(f"{toy(server)}/large", registry=registry) as stream:
            assert [element async for element in stream] == [bytes(100_000), b"small"]


async def test_without_its_distribution_there_is_no_such_protocol() -> None:
    """It is refused before anything is opened, and it says what there is."""
    with pytest.raises(UsageError, match="'toy'; there is: reactivesocket, rsio"):
        subscribe("toy+memory://toy/words", registry=build_registry(environ={}))


@pytest.mark.parametrize("place", PLACES)
async def test_one_port_speaks_all_three(registry: Registry, place: str) -> None:
    """A client of each is told by what it says first, and gets its elements whole or in parts as its protocol has it."""
    async with serve(words_service(*WORDS), place, registry=registry) as server:
        for protocol in ("rsio", "reactivesocket", "toy"):
            async with subscribe(f"{protocol}+{server.addresses[0]}/words", serializer="text", registry=registry) as stream:
                assert [word async for word in stream] == WORDS, protocol
            async with subscribe(f"{protocol}+{server.addresses[0]}/large", registry=registry) as stream:
                assert [element async for element in stream] == [bytes(100_000), b"small"], protocol


@pytest.mark.parametrize("protocol", ["rsio", "reactivesocket"])
async def test_who_speaks_another_protocol_is_told_so_where_the_toy_alone_is_served(registry: Registry, protocol: str) -> None:
    """In the words of that protocol."""
    async with serve(words_service(), "toy+tcp://127.0.0.1:0", registry=registry) as server:
        address = server.addresses[0].removeprefix("toy+")
        with pytest.raises((ConnectionLost, Rejected), match="protocol:not-served"):
            async with subscribe(f"{protocol}+{address}/words", registry=registry) as stream:
                await anext(stream)


@pytest.mark.parametrize("place", PLACES)
async def test_a_channel_carries_streams_both_ways_on_one_id(registry: Registry, place: str) -> None:
    """Each side publishes under the name and subscribes to it; they end one after the other, each on its own."""
    async with (
        serve(words_service(*WORDS), f"toy+{place}", registry=registry) as server,
        connect(toy(server), service=words_service("uno", "dos"), registry=registry) as peer,
        peer.subscribe("channel/a", serializer="text") as down,
    ):
        assert await anext(down) == "a: one"
        other = await peer_of(server)
        dialect = other._connection.session.dialect
        assert dialect.halves == {1: "channel/a"}
        async with other.subscribe("channel/a", serializer="text") as up:
            assert await anext(up) == "a: uno"
            assert dialect.halves == {}
            assert dialect.next_id("another") == 2  # it has opened none itself
            assert [word async for word in up] == ["a: dos"]
        assert [word async for word in down] == ["a: two", "a: three"]


@pytest.mark.parametrize("place", PLACES)
async def test_a_channel_in_which_both_sides_hear_each_other(registry: Registry, place: str) -> None:
    """What the server sends is what it gets, through one channel, element by element: demand crosses in both directions."""
    asked, answers = trio.open_memory_channel[str](1)
    service, answering = Service(), Service()

    @service.publisher("channel/echo", serializer="text")
    async def echo() -> AsyncIterator[str]:
        async with (await peer_of(server)).subscribe("channel/echo", serializer="text", demand=1) as heard:
            async for word in heard:
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


async def test_failures_arrive_as_what_they_are(registry: Registry) -> None:
    """By their codes; what a publisher raised stays at home."""
    told: list[BaseException] = []
    async with (
        serve(words_service(), "toy+memory://toy", registry=registry, on_violation=told.append) as server,
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
    assert [type(error) for error in told] == [ValueError]


async def test_a_server_that_leaves_says_goodbye_in_the_toys_words(registry: Registry) -> None:
    """With the code for an end in good order; the answer to it ends the connection."""
    heard = bytearray()

    async def listen(raw: Connection) -> None:
        while (data := await raw.receive()) is not None:
            heard.extend(data)
            if heard.endswith(b"shutdown"):
                await raw.send(_toy.frame(_toy.FAILED, 0, _toy.CLOSED.to_bytes(4)))
        await raw.abort()

    async with trio.open_nursery() as nursery, serve(words_service(), "toy+memory://toy", registry=registry) as server:
        raw = await raw_connection(nursery, "memory://toy")
        await raw.send(_toy.frame(_toy.HELLO, 0, _toy.VERSION))
        await peer_of(server)
        nursery.start_soon(listen, raw)
    assert bytes(heard) == _toy.frame(_toy.HELLO, 0, _toy.VERSION) + _toy.frame(_toy.FAILED, 0, b"\0\0\1\1shutdown")


async def test_its_keepalive_runs_on_the_clock_of_the_connection(registry: Registry, autojump_clock: trio.testing.MockClock) -> None:
    """Two that have nothing to say ask each other whether they are there; who has fallen silent is left."""
    silence = Service()

    @silence.publisher("silence")
    async def nothing() -> AsyncIterator[bytes]:
        await trio.sleep(1_000)
        yield b"at last"

    async with serve(silence, "toy+memory://toy", registry=registry) as server:
        async with connect(toy(server), registry=registry) as peer, peer.subscribe("silence") as stream:
            assert await anext(stream) == b"at last"
        async with trio.open_nursery() as nursery:
            raw = await raw_connection(nursery, "memory://toy")
            await raw.send(_toy.frame(_toy.HELLO, 0, _toy.VERSION))
            began, heard = trio.current_time(), bytearray()
            while not heard.endswith(b"limit:keepalive"):
                heard += await raw.receive() or b""
            assert trio.current_time() - began == _toy.ToyDialect.patience
            await raw.abort()


# --- what TLS agrees on

NAMES = {"rsio": "rsio/0", "reactivesocket": "reactivesocket/0", "toy": "toy/1"}


@pytest.fixture(scope="module")
def certified(tmp_path_factory: pytest.TempPathFactory) -> TransportOptions:
    """For both sides: a server's certificate, and who issued it."""
    folder, ca = tmp_path_factory.mktemp("certificates"), trustme.CA()
    ca.cert_pem.write_to_path(folder / "ca.pem")
    ca.issue_cert("127.0.0.1").private_key_and_cert_chain_pem.write_to_path(folder / "server.pem")
    return TransportOptions(tls=Tls(certificate=folder / "server.pem", authorities=folder / "ca.pem", client_may_be_unknown=True))


async def chosen_by_server(address: str, options: TransportOptions, offered: str) -> str | None:
    """Return what a server makes of a client that offers one name."""
    assert options.tls is not None
    host, port = address.rpartition("//")[2].split(":")
    stream = trio.SSLStream(await trio.open_tcp_stream(host, int(port)), options.tls.client_context([offered]), server_hostname=host)
    await stream.do_handshake()
    chosen = stream.selected_alpn_protocol()
    await stream.transport_stream.aclose()
    return chosen


@pytest.mark.parametrize("prefix", ["", "rsio+", "reactivesocket+", "toy+"])
async def test_a_server_offers_tls_what_its_url_speaks(registry: Registry, certified: TransportOptions, prefix: str) -> None:
    """One protocol where the URL names one, else all of them, somebody else's too; other names are agreed on by nobody."""
    async with serve(Service(), f"{prefix}tls://127.0.0.1:0", registry=registry, options=certified) as server:
        for name, alpn in NAMES.items():
            expected = alpn if prefix in ("", f"{name}+") else None
            assert await chosen_by_server(server.addresses[0], certified, alpn) == expected
        assert await chosen_by_server(server.addresses[0], certified, "h2") is None


async def test_each_url_of_a_server_offers_its_own(registry: Registry, certified: TransportOptions) -> None:
    """Two ports, two protocols."""
    urls = ("toy+tls://127.0.0.1:0", "reactivesocket+tls://127.0.0.1:0")
    async with serve(Service(), *urls, registry=registry, options=certified) as server:
        chosen = [[await chosen_by_server(at, certified, alpn) for alpn in NAMES.values()] for at in server.addresses]
        assert chosen == [[None, None, "toy/1"], [None, "reactivesocket/0", None]]


async def offered_by_client(url: str, registry: Registry, options: TransportOptions) -> str | None:
    """Return which of all names a server that has them all agrees on with a client of that URL."""
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


async def test_a_client_offers_tls_the_protocol_of_its_url(registry: Registry, certified: TransportOptions) -> None:
    """RS.io where it names none; and what the program says instead, be it nothing."""
    assert await offered_by_client("tls", registry, certified) == "rsio/0"
    for name, alpn in NAMES.items():
        assert await offered_by_client(f"{name}+tls", registry, certified) == alpn
    assert await offered_by_client("toy+tls", registry, replace(certified, protocols=("mine",))) == "mine"
    assert await offered_by_client("toy+tls", registry, replace(certified, protocols=())) is None


@pytest.mark.parametrize("protocol", NAMES)
async def test_tls_carries_each_of_the_protocols_on_one_port(registry: Registry, certified: TransportOptions, protocol: str) -> None:
    """What was agreed on is what is spoken."""
    async with serve(words_service(*WORDS), "tls://127.0.0.1:0", registry=registry, options=certified) as server:
        url = f"{protocol}+{server.addresses[0]}"
        async with connect(url, registry=registry, options=certified) as peer, peer.subscribe("words", serializer="text") as stream:
            assert [word async for word in stream] == WORDS
            assert peer._connection.connection.facts.protocol == NAMES[protocol]


async def test_a_protocol_without_a_name_for_tls_is_spoken_without(
    certified: TransportOptions, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may have been forgotten, or be empty: nobody agrees on anything, and the others keep theirs."""
    shelf = Shelf(tmp_path, monkeypatch)
    for entry, alpn in (("toy", ""), ("mute", 'alpn: ClassVar[str] = ""')):
        code = CODE.replace('alpn: ClassVar[str] = "toy/1"', alpn).replace('"toy"', f'"{entry}"')
        shelf.install(f"penstock-{entry}", code, entry=entry)
    registry = build_registry(environ={})
    assert {"toy", "mute"} <= set(registry.dialects)
    async with serve(words_service(*WORDS), "tls://127.0.0.1:0", registry=registry, options=certified) as server:
        chosen = [await chosen_by_server(server.addresses[0], certified, alpn) for alpn in NAMES.values()]
        assert chosen == ["rsio/0", "reactivesocket/0", None]
        async with subscribe(f"toy+{server.addresses[0]}/words", serializer="text", registry=registry, options=certified) as stream:
            assert [word async for word in stream] == WORDS
