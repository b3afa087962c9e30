"""`connect`: a block with the peer in it."""

from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
import trio
import trio.testing

from penstock.api import ConnectionLost, PluginError, Subscriber, Subscription, UsageError
from penstock.runtime import Service, connect, remote, request, serve, subscribe
from penstock.runtime.connection._peer import RemoteSource
from penstock.spi import ByteConnection
from penstock.transports import MemoryTransport
from tests.runtime._services import numbers_service


async def test_no_server_is_a_lost_connection() -> None:
    """ConnectionLost is raised from the entry of the block, without a group around it."""
    with pytest.raises(ConnectionLost, match="no listener at"):
        async with connect("memory://nobody"):
            pass
    with pytest.raises(ConnectionLost, match="no listener at"):
        async with subscribe("memory://nobody/x") as stream:
            await anext(stream)


async def ask(url: str, **options: Any) -> None:
    """Make one request, and nothing of its answer."""
    await request(url, **options)


@pytest.mark.parametrize("act", [connect, subscribe, remote, ask])
@pytest.mark.parametrize("protocol", ["", "reactivesocket+"])
async def test_a_transport_that_is_not_permitted_is_refused_before_anything_is_opened(
    act: Callable[..., Any], protocol: str
) -> None:
    """The program that `exec:` names is not started, nor looked for."""
    url = f"{protocol}exec:does-not-exist{'' if act is connect else '#name'}"
    with pytest.raises(
        UsageError,
        match=r"uses the transport 'exec', and transports= permits tcp, tls; correct the URL",
    ):
        await act(url, transports=("tcp", "tls"))
    with pytest.raises(UsageError, match=r"permits none"):
        await act(url, transports=())
    with pytest.raises(
        UsageError, match=r"transports='exec'; give the names of those that are permitted"
    ):
        await act(url, transports="exec")


async def test_a_permitted_transport_is_used() -> None:
    """Its name alone counts, not the protocol before it."""
    async with serve(numbers_service(), "memory://t") as server:
        url = f"{server.addresses[0]}/numbers/2"
        for protocol in ("", "rsio+", "reactivesocket+"):
            async with subscribe(
                protocol + url, serializer="json", transports=["memory"]
            ) as stream:
                assert [number async for number in stream] == [0, 1]
            assert await request(protocol + url, transports={"tcp", "memory"}) == b"0"


async def test_wrong_arguments_are_refused_at_the_call() -> None:
    """UsageError is raised before anything is opened."""
    with pytest.raises(UsageError, match="names a publisher"):
        connect("tcp://127.0.0.1:1/name")
    with pytest.raises(
        UsageError,
        match=r"names a protocol and no transport; write for example reactivesocket\+tcp",
    ):
        connect("reactivesocket://127.0.0.1:1")
    with pytest.raises(UsageError, match="names no publisher"):
        subscribe("tcp://127.0.0.1:1")
    with pytest.raises(UsageError, match="no transport 'carrier-pigeon'"):
        subscribe("carrier-pigeon://x/y")
    with pytest.raises(UsageError, match="no URL"):
        serve(Service())
    with pytest.raises(UsageError, match="only a URL"):
        subscribe([1], serializer="json")  # type: ignore[call-overload]  # the point: a mistake


async def test_an_exception_of_the_body_leaves_every_block_unwrapped() -> None:
    """It passes the blocks of a stream, a connection and a server."""
    with pytest.raises(KeyError, match="mine"):
        async with (
            serve(numbers_service(), "memory://test") as server,
            connect(server.addresses[0]) as peer,
        ):
            async with peer.subscribe("endless") as stream:
                async for _ in stream:
                    raise KeyError("mine")


async def test_either_side_publishes(url: str) -> None:
    """The server subscribes to a publisher of its client, over the same connection."""
    seen: list[Any] = []
    service = Service()

    async with (
        serve(service, url) as server,
        connect(server.addresses[0], service=numbers_service()) as peer,
    ):
        await peer.wait_accepted()
        (theirs,) = server.peers
        async with theirs.subscribe("numbers/4", serializer="json") as stream:
            seen += [number async for number in stream]
    assert seen == [0, 1, 2, 3]


@pytest.mark.parametrize("where", ["connect", "handshake"])
async def test_a_transport_that_raises_while_connecting_is_the_plugins_fault(
    where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """PluginError names the transport;
    it is raised from the block and from the stream, and the connection is closed.
    """

    async def fail(*_: object, **__: object) -> None:
        await trio.lowlevel.checkpoint()
        raise KeyError(where)

    async with serve(numbers_service(), "memory://test") as server:
        monkeypatch.setattr(MemoryTransport if where == "connect" else ByteConnection, where, fail)
        with pytest.raises(
            PluginError, match=rf"the transport 'memory' raised, .*KeyError\('{where}'\)"
        ):
            async with connect("memory://test"):
                pass
        with pytest.raises(PluginError):
            async with subscribe("memory://test/endless") as stream:
                await anext(stream)
        assert server.peers == ()


async def test_a_transport_that_returns_no_connection_is_the_plugins_fault(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The text shows what it returned."""

    async def forget_to_return(*_: object, **__: object) -> None:
        await trio.lowlevel.checkpoint()

    monkeypatch.setattr(MemoryTransport, "connect", forget_to_return)
    with pytest.raises(PluginError, match=r"the transport 'memory' returned None from connect\(\)"):
        async with connect("memory://test"):
            pass


async def test_an_abort_that_raises_does_not_hide_the_error_before_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The block raises the failure of the handshake; the failure of the abort is reported."""

    async def fail(*_: object) -> None:
        await trio.lowlevel.checkpoint()
        raise ConnectionLost("the certificate is not trusted")

    async def fail_again(*_: object) -> None:
        await trio.lowlevel.checkpoint()
        raise KeyError("abort")

    told: list[Exception] = []
    async with serve(numbers_service(), "memory://test"):
        monkeypatch.setattr(ByteConnection, "handshake", fail)
        monkeypatch.setattr(ByteConnection, "abort", fail_again)
        with pytest.raises(ConnectionLost, match="the certificate is not trusted"):
            async with connect("memory://test", on_violation=told.append):
                pass
        assert [repr(error) for error in told] == ["KeyError('abort')"]
        monkeypatch.undo()


async def test_a_handshake_that_never_ends_is_cut_by_its_deadline(
    autojump_clock: trio.testing.MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The text names the deadline."""

    async def hang(*_: object) -> None:
        await trio.sleep_forever()

    async with serve(numbers_service(), "memory://test"):
        monkeypatch.setattr(ByteConnection, "handshake", hang)
        with pytest.raises(ConnectionLost, match=r"memory://test did not answer within 10.0 s"):
            async with connect("memory://test"):
                pass
        assert trio.current_time() == pytest.approx(10, abs=0.1)


@pytest.mark.parametrize(
    ("url", "setup", "says"),
    [
        (
            "tcp://127.0.0.1:1",
            b"secret",
            "RS.io has no setup data; ReactiveSocket and RSocket do: reactivesocket",
        ),
        ("rsio+tcp://127.0.0.1:1", b"secret", "RS.io has no setup data"),
        ("reactivesocket+tcp://127.0.0.1:1", "secret", "as bytes; this is 'str'"),
        ("reactivesocket+tcp://127.0.0.1:1", None, "as bytes; this is 'NoneType'"),
        (
            "reactivesocket+tcp://127.0.0.1:1",
            b"secret" * 1000,
            "a setup of 6,000 bytes; 4,080 is the most",
        ),
    ],
)
def test_setup_data_that_could_not_arrive_is_refused_at_the_call(
    url: str, setup: Any, says: str
) -> None:
    """The text does not repeat the data, which may be a secret."""
    for call in (lambda: connect(url, setup=setup), lambda: subscribe(f"{url}/name", setup=setup)):
        with pytest.raises(UsageError, match=says) as told:
            call()
        assert "secret" not in str(told.value)


async def test_a_subscriber_that_raises_when_the_block_is_left_harms_this_connection_only() -> None:
    """Its exception leaves the block, the nursery of the connection is left,
    and the run goes on.
    """

    class Raising(Subscriber[Any]):
        def on_subscribe(self, subscription: Subscription, /) -> None:
            subscription.request(1)

        def on_next(self, element: Any, /) -> None: ...

        def on_complete(self, /) -> None: ...

        def on_error(self, error: BaseException, /) -> None:
            raise RuntimeError("a faulty subscriber")

    async def never() -> AsyncIterator[bytes]:
        await trio.sleep_forever()
        yield b""

    service = Service()
    service.publisher("never")(never)
    async with serve(service, "memory://raising"):
        with pytest.raises(RuntimeError, match="a faulty subscriber"):
            async with connect("memory://raising") as peer:
                RemoteSource(peer._connection, "never", None).attach(Raising())
                await trio.testing.wait_all_tasks_blocked()
        async with connect("memory://raising") as peer:
            await peer.wait_accepted()
