"""Plugins of outsiders: found when installed, negotiated over TCP, switched off, in conflict,
broken.
"""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import trio
import trio.testing

from penstock.api import ConnectionLost, PluginError
from penstock.protocols import rsio
from penstock.runtime import Service, connect, serve, subscribe
from penstock.spi import DISABLE, PluginStatus, Registry, build_registry
from tests.runtime import _outsider
from tests.runtime._services import raw_connection
from tests.spi._helpers import Shelf

CODE = Path(_outsider.__file__).read_text(encoding="utf-8")
PAIRS = [("a", "1"), ("b", "2")]


@pytest.fixture
def shelf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shelf:
    """The folder where the tests install distributions."""
    return Shelf(tmp_path, monkeypatch)


def pairs_service(serializer: str = "pairs") -> Service:
    service = Service()
    service.publish(
        "pairs", PAIRS if serializer == "pairs" else [b"a=1", b"b=2"], serializer=serializer
    )

    @service.publisher("large")
    async def large() -> AsyncIterator[bytes]:
        yield bytes(100_000)
        yield b"small"

    service.publish("fixed", [b"aabb"], element_size=2)
    return service


def installed(shelf: Shelf) -> Registry:
    """The registry once the outsider's distribution is installed."""
    shelf.install("penstock-outsider", CODE, entry="outsider")
    return build_registry(environ={})


@pytest.mark.parametrize("scheme", ["tcp", "plain"])
async def test_installing_a_distribution_is_enough(shelf: Shelf, scheme: str) -> None:
    """Its serializer, its transport and its extension work beside ours;
    the program only names them.
    """
    registry = installed(shelf)
    assert registry.problems == ()
    async with serve(pairs_service(), f"{scheme}://127.0.0.1:0", registry=registry) as server:
        async with subscribe(
            f"{server.addresses[0]}/pairs", serializer="pairs", registry=registry
        ) as stream:
            assert [pair async for pair in stream] == PAIRS
        async with subscribe(f"{server.addresses[0]}/large", registry=registry) as stream:
            assert [element async for element in stream] == [bytes(100_000), b"small"]
        async with subscribe(f"{server.addresses[0]}/fixed", registry=registry) as stream:
            assert [element async for element in stream] == [b"aa", b"bb"]


async def test_an_extension_changes_elements_once_both_sides_have_agreed(shelf: Shelf) -> None:
    """On the wire: both hellos list it, the server declares, no element comes before the client
    agrees, and then they are masked.
    """
    registry = installed(shelf)
    async with (
        serve(pairs_service(), "tcp://127.0.0.1:0", registry=registry) as server,
        trio.open_nursery() as nursery,
    ):
        raw = await raw_connection(nursery, server.addresses[0])
        hello = rsio.encode(rsio.ClientHello(version=0, extensions=(200,)))
        await raw.send(
            hello + rsio.encode(rsio.Subscribe(publisher="pairs", subscriber=0, demand=9))
        )
        due = (
            rsio.encode(rsio.ServerHello(version=0, extensions=(3, 6, 1, 200, 7)))
            + rsio.encode(rsio.ExtensionMessage(type=0x60, body=b"\x5a"))
            + rsio.encode(rsio.OnSubscribe(subscriber=0, element_size=0))
        )
        heard = b""
        while len(heard) < len(due):
            heard += await raw.receive() or b""
        assert heard == due
        async with trio.open_nursery() as listening:
            listening.start_soon(raw.receive)
            await trio.testing.wait_all_tasks_blocked(0.05)
            assert len(listening.child_tasks) == 1  # it has heard nothing
            listening.cancel_scope.cancel()
        await raw.send(rsio.encode(rsio.ExtensionMessage(type=0x61, body=b"")))
        masked = [bytes(letter ^ 0x5A for letter in element) for element in (b"a=1", b"b=2")]
        due = b"".join(rsio.next_header(0, 3) + element for element in masked) + rsio.encode(
            rsio.OnComplete(subscriber=0)
        )
        heard = b""
        while len(heard) < len(due):
            heard += await raw.receive() or b""
        assert heard == due
        await raw.abort()


@pytest.mark.parametrize("lacking", ["server", "client"])
async def test_an_extension_that_one_side_lacks_is_not_negotiated(
    shelf: Shelf, lacking: str
) -> None:
    """The elements go unmasked; nothing is reported."""
    registry = installed(shelf)
    plain = build_registry(environ={DISABLE: "outsider"})
    async with serve(
        pairs_service("bytes"),
        "tcp://127.0.0.1:0",
        registry=plain if lacking == "server" else registry,
    ) as server:
        async with subscribe(
            f"{server.addresses[0]}/pairs", registry=plain if lacking == "client" else registry
        ) as stream:
            assert [element async for element in stream] == [b"a=1", b"b=2"]


def test_a_distribution_is_switched_off_by_the_environment(shelf: Shelf) -> None:
    """All of it, under each of its names; the list shows it."""
    installed(shelf)
    for name in ("outsider", "penstock-outsider", "all"):
        registry = build_registry(environ={DISABLE: name})
        assert "plain" not in registry.transports
        assert "masked" not in registry.extensions
        assert "pairs" not in registry.serializers
        (report,) = [each for each in registry.plugins if each.name == "outsider"]
        assert report.status is PluginStatus.DISABLED


async def test_an_extension_id_of_two_plugins_goes_to_neither(shelf: Shelf) -> None:
    """Both are reported, and a connection works without them."""
    installed(shelf)
    shelf.install(
        "penstock-rival",
        CODE.replace('"masked"', '"hidden"')
        .replace('"plain"', '"bare"')
        .replace('"pairs"', '"twos"'),
        entry="rival",
    )
    registry = build_registry(environ={})
    assert {problem.plugin for problem in registry.problems} == {"outsider", "rival"}
    assert set(registry.extensions) == {
        "auth",
        "content",
        "drain",
        "keepalive",
        "position",
        "requests",
    }
    assert {"plain", "bare", "tcp"} <= set(registry.transports)
    async with serve(pairs_service(), "bare://127.0.0.1:0", registry=registry) as server:
        async with subscribe(
            f"{server.addresses[0]}/pairs".replace("bare", "plain"),
            serializer="pairs",
            registry=registry,
        ) as stream:
            assert [pair async for pair in stream] == PAIRS


BROKEN = [
    ("raise ImportError('half installed')", "cannot be loaded"),
    (
        "from penstock.spi import hookimpl\n@hookimpl\ndef penstock_transport(): return []",
        "has a hook that does not fit",
    ),
    (
        "from penstock.spi import hookimpl\n@hookimpl\ndef penstock_extensions(): return [1]",
        "each must be a Factory",
    ),
    (CODE.replace("id=200", "id=5"), "give an integer from 128 on"),
]


@pytest.mark.parametrize(("code", "says"), BROKEN, ids=["import", "hook", "offer", "id"])
async def test_a_broken_plugin_is_reported_and_left_out(shelf: Shelf, code: str, says: str) -> None:
    """All of it; the process goes on without it."""
    shelf.install("penstock-broken", code, entry="broken")
    registry = build_registry(environ={})
    (report,) = [each for each in registry.plugins if each.name == "broken"]
    assert report.status is PluginStatus.REFUSED
    assert says in report.reason
    async with serve(pairs_service("bytes"), "tcp://127.0.0.1:0", registry=registry) as server:
        async with subscribe(f"{server.addresses[0]}/pairs", registry=registry) as stream:
            assert [element async for element in stream] == [b"a=1", b"b=2"]


@pytest.mark.parametrize("side", ["server", "client"])
async def test_an_extension_that_raises_on_an_element_ends_its_connection_only(
    shelf: Shelf, side: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its own side reports which extension it was; the other side gets the end of the
    connection; the server goes on.
    """
    registry = installed(shelf)
    offer = registry.extension("masked")
    module = __import__(offer.make.__module__)

    def fail(self: object, element: bytes) -> bytes:
        if self._link.role.value == side:  # type: ignore[attr-defined]  # an attribute of the extension, which has no type here
            raise KeyError("mine")
        return original(self, element)

    original = module._Masking._mask
    monkeypatch.setattr(module._Masking, "_mask", fail)
    for name in ("pairs", "large", "fixed"):
        async with serve(
            pairs_service("bytes"),
            "tcp://127.0.0.1:0",
            registry=registry,
            on_violation=lambda _: None,
        ) as server:
            with pytest.raises((PluginError, ConnectionLost)) as caught:
                async with (
                    connect(server.addresses[0], registry=registry) as peer,
                    peer.subscribe(name) as stream,
                ):
                    assert [element async for element in stream]
            assert ("the extension 'masked' raised on an element" in str(caught.value)) is (
                side == "client"
            )
            async with (
                connect(server.addresses[0], extensions=()) as peer,
                peer.subscribe("pairs") as stream,
            ):
                assert [element async for element in stream] == [b"a=1", b"b=2"]
