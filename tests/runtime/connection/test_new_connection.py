"""The names in a URL, and connections that fail while they are made."""

from types import SimpleNamespace
from typing import Any

import pytest
import trio

from penstock.api import ConnectionLost, PluginError, UsageError
from penstock.client import (
    NegotiableExtensions,
    check_transport,
    dialects_agreed,
    dialects_at,
    protocols_of,
    settings_for,
    unserved_at,
)
from penstock.extensions import Keepalive
from penstock.runtime import Service, connect, serve, subscribe
from penstock.spi import Factory, TransportOptions, build_registry, hookimpl, parse_url
from tests.runtime._services import numbers_service


def test_a_url_without_a_plus_speaks_every_dialect_and_the_default_first() -> None:
    """With a plus it speaks the named one; the others can refuse their clients."""
    registry = build_registry()
    assert [kind.name for kind in dialects_at(registry, parse_url("tcp://127.0.0.1:1"))] == [
        "rsio",
        "reactivesocket",
    ]
    served = dialects_at(registry, parse_url("reactivesocket+tcp://127.0.0.1:1"))
    assert [kind.name for kind in served] == ["reactivesocket"]
    assert [kind.name for kind in unserved_at(registry, served)] == ["rsio"]


@pytest.mark.parametrize(
    ("protocol", "names"),
    [
        (None, []),
        ("", []),
        ("rsio.v0", ["rsio"]),
        ("rsio.v0+msgpack", ["rsio"]),
        ("reactivesocket.v0", ["reactivesocket"]),
        ("rsio.v1", []),
        ("rsio/0", []),
    ],
)
def test_a_subprotocol_names_one_dialect(protocol: str | None, names: list[str]) -> None:
    """An encoding may follow it. A name of ALPN leaves all of them:
    a client of TLS may speak another one.
    """
    dialects = dialects_at(build_registry(), parse_url("tcp://127.0.0.1:1"))
    assert [kind.name for kind in dialects_agreed(protocol, dialects)] == names


def test_a_dialect_without_alpn_is_left_out_of_it() -> None:
    """A plugin may lack the attribute, or have an empty one."""
    kinds: Any = [SimpleNamespace(alpn="one"), SimpleNamespace(alpn=""), SimpleNamespace()]
    assert list(protocols_of(kinds)) == ["one"]


def test_a_dialect_that_does_not_say_whether_it_takes_extensions_takes_none() -> None:
    """A plugin may lack the attribute."""
    offered = NegotiableExtensions(None, (Keepalive(),))
    taking: Any = SimpleNamespace(takes_extensions=True)
    silent: Any = SimpleNamespace()
    assert settings_for(taking, offered, framed=False).extensions == offered.offered
    assert settings_for(silent, offered, framed=False).extensions == ()


@pytest.mark.parametrize(
    ("url", "advice"),
    [
        ("localhost:7000", "tcp://localhost:7000"),
        ("rsio://there", "rsio+tcp://"),
        ("nothing://there", "penstock plugins"),
    ],
)
def test_a_transport_that_is_not_installed_is_refused_with_advice(url: str, advice: str) -> None:
    """Each text says what to write."""
    with pytest.raises(UsageError) as refused:
        check_transport(build_registry(), parse_url(url))
    assert advice in str(refused.value)


class BrokenDialect:
    """A dialect whose constructor raises, as a plugin may offer it."""

    name = "broken"
    takes_extensions = False
    alpn = ""

    def __call__(self, session: object, settings: object, /) -> Any:
        raise KeyError("dialect")

    def recognises(self, first: bytes, framed: bool, /) -> bool | None:
        return first[:1] == b"B"

    def refusal(self, reason: str, /, *, framed: bool = False) -> bytes:
        return b""


class BrokenPlugin:
    """Offers it."""

    @hookimpl
    def penstock_dialects(self) -> list[Factory]:
        return [Factory(name="broken", make=BrokenDialect())]


async def test_a_dialect_that_raises_fails_its_connect_and_nothing_else() -> None:
    """The nursery of the block is left, the transport is closed,
    and the rest of the run goes on.
    """
    registry = build_registry([BrokenPlugin()])
    async with (
        serve(numbers_service(), "memory://test") as server,
        connect(server.addresses[0]) as healthy,
    ):
        for _ in range(2):
            with pytest.raises(
                PluginError, match=r"the dialect 'broken' raised .*KeyError\('dialect'\)"
            ):
                async with connect("broken+memory://test", registry=registry):
                    raise AssertionError("it was entered")
            with pytest.raises(PluginError, match="the dialect 'broken' raised"):
                async with subscribe("broken+memory://test/endless", registry=registry) as stream:
                    await anext(stream)
        async with healthy.subscribe("numbers/2", serializer="json") as numbers:
            assert [number async for number in numbers] == [0, 1]
        assert len(server.peers) == 1


@pytest.mark.parametrize(
    "url", ["broken+memory://test", "memory://test"], ids=["named", "detected"]
)
async def test_a_dialect_that_raises_on_the_server_ends_that_connection_only(url: str) -> None:
    """Its exception is reported, the client is disconnected, and the next client is accepted."""
    told: list[Exception] = []
    registry = build_registry([BrokenPlugin()])
    async with serve(numbers_service(), url, registry=registry, on_violation=told.append) as server:
        for count in (1, 2):
            transport = registry.transport("memory")
            async with trio.open_nursery() as nursery:
                raw = await transport.connect(
                    parse_url("memory://test"), options=TransportOptions(), nursery=nursery
                )
                await raw.send(b"B" * 16)
                try:
                    while await raw.receive() is not None:
                        pass
                except trio.BrokenResourceError:
                    pass
                await raw.abort()
            await trio.testing.wait_all_tasks_blocked()
            assert len(told) == count
            assert "KeyError('dialect')" in repr(told[-1]) or "KeyError" in str(told[-1])
        if url == "memory://test":
            async with (
                connect(server.addresses[0]) as peer,
                peer.subscribe("numbers/1", serializer="json") as stream,
            ):
                assert [number async for number in stream] == [0]


@pytest.mark.parametrize("number", [-1, 1 << 32, 2.5, "7", None])
async def test_an_extension_with_an_impossible_id_is_refused_at_the_call(number: Any) -> None:
    """It would fail while the hello is written, in the middle of `connect`."""

    class Odd:
        id = number
        name = "odd"
        codes: frozenset[int] = frozenset()

        def open(self, link: object, now: float, /) -> Any: ...

    for call in (connect, lambda url, **options: serve(Service(), url, **options)):
        with pytest.raises(UsageError, match=r"'odd' has id=.*give an int from 0 to 4294967295"):
            call("memory://nobody", extensions=[Odd()])


async def test_a_server_that_is_not_there_is_a_lost_connection() -> None:
    """The error blames no plugin."""
    with pytest.raises(ConnectionLost):
        async with connect("memory://nobody"):
            pass
