"""Type-checked, never run: a serializer, a transport
and hooks as the author of a plugin sees them.
"""

from typing import assert_type

import trio

from penstock.protocols.reactivesocket import ReactiveSocketDialect
from penstock.protocols.rsio import RsioDialect
from penstock.session import DialectFactory
from penstock.spi import (
    ByteConnection,
    Connection,
    Listener,
    PeerIdentity,
    Registry,
    Serializer,
    StreamOpened,
    Transport,
    TransportOptions,
    Url,
    build_registry,
    hookimpl,
    parse_url,
)


class UpperCaseSerializer(Serializer):
    """A serializer."""

    name = "upper"

    def dumps(self, element: object, /) -> bytes:
        return str(element).upper().encode()

    def loads(self, data: bytes, /) -> object:
        return data.decode()


class LoopTransport(Transport):
    """A transport that can only connect."""

    schemes = ("loop",)

    async def connect(
        self, url: Url, *, options: TransportOptions, nursery: trio.Nursery
    ) -> Connection:
        send, receive = trio.testing.memory_stream_one_way_pair()
        return ByteConnection(
            trio.StapledStream(send, receive), peer=PeerIdentity(address=str(url)), options=options
        )


@hookimpl
def penstock_serializers() -> list[Serializer]:
    """The mark keeps the type of the function."""
    return [UpperCaseSerializer()]


@hookimpl
def penstock_stream_opened(event: StreamOpened) -> None:
    """An observer."""
    assert_type(event.publisher, str)


assert_type(penstock_serializers(), list[Serializer])


async def use(registry: Registry, nursery: trio.Nursery) -> None:
    """The calls that the runtime makes."""
    url = parse_url("loop:x")
    transport = registry.transport(url.transport)
    assert_type(transport, Transport)
    connection = await transport.connect(url, options=TransportOptions(), nursery=nursery)
    assert_type(await connection.receive(), bytes | bytearray | None)
    listener = await transport.listen(url, options=TransportOptions(), nursery=nursery)
    assert_type(listener, Listener)
    assert_type(listener.addresses, tuple[Url, ...])
    assert_type(registry.serializer("upper").dumps(1), bytes)


assert_type(build_registry([LoopTransport()]), Registry)

factories: list[DialectFactory] = [RsioDialect, ReactiveSocketDialect]
"""The class of a dialect is its factory."""
