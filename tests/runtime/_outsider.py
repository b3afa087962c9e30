"""A distribution of an outsider: a transport, a serializer, and an extension
that changes the meaning of elements.

Tests install this file as a separate distribution.
It imports only modules that a plugin may import.
"""

from typing import ClassVar

import trio

from penstock.api import (
    ActiveExtension,
    ConnectionLost,
    ExtensionLink,
    ProtocolError,
    Role,
    UsageError,
)
from penstock.spi import (
    ByteConnection,
    Connection,
    Factory,
    Listener,
    PeerIdentity,
    Serializer,
    Transport,
    TransportOptions,
    Url,
    hookimpl,
)

DECLARE = 0x60
AGREE = 0x61


class Pairs(Serializer):
    """Elements are pairs of texts."""

    name = "pairs"

    def dumps(self, element: object, /) -> bytes:
        if not isinstance(element, tuple):
            raise UsageError(f"the serializer 'pairs' takes tuples, not {type(element).__name__}")
        return "=".join(element).encode()

    def loads(self, data: bytes, /) -> object:
        key, mark, value = bytes(data).decode().partition("=")
        if not mark:
            raise ProtocolError("the element is no pair")
        return key, value


class Masked:
    """Masks the elements of the server:
    it declares the key, and goes on when the client has agreed.
    """

    id: int = 200
    name: str = "masked"
    codes: frozenset[int] = frozenset({DECLARE, AGREE})

    def open(self, link: ExtensionLink, now: float, /) -> ActiveExtension:
        return _Masking(link)


class _Masking:
    def __init__(self, link: ExtensionLink) -> None:
        self._link = link
        self._key = 0x5A
        if link.role is Role.SERVER:
            link.hold_elements()
            link.send(DECLARE, bytes([self._key]))

    def received(self, type: int, body: bytes, now: float, /) -> None:  # noqa: A002  # the wire's word
        due = AGREE if self._link.role is Role.SERVER else DECLARE
        if type != due or len(body) != (type == DECLARE):
            self._link.close_protocol_error("protocol:masked")
        elif type == DECLARE:
            self._key = body[0]
            self._link.change_elements(incoming=self._mask)
            self._link.send(AGREE, b"")
        else:
            self._link.change_elements(outgoing=self._mask)
            self._link.resume_elements()

    def _mask(self, element: bytes) -> bytes:
        return bytes(letter ^ self._key for letter in element)


class PlainTransport(Transport):
    """``plain://host:port``: TCP, and nothing else."""

    schemes: ClassVar[tuple[str, ...]] = ("plain",)

    async def connect(
        self, url: Url, *, options: TransportOptions, nursery: trio.Nursery
    ) -> Connection:
        try:
            stream = await trio.open_tcp_stream(url.host or "", url.port or 0)
        except OSError as error:
            raise ConnectionLost(f"nobody is there: {error}") from error
        return ByteConnection(stream, peer=PeerIdentity(address=str(url.address)), options=options)

    async def listen(
        self, url: Url, *, options: TransportOptions, nursery: trio.Nursery
    ) -> Listener:
        (listener,) = await trio.open_tcp_listeners(url.port or 0, host=url.host)
        return _PlainListener(listener, url, options)


class _PlainListener(Listener):
    def __init__(self, listener: trio.SocketListener, url: Url, options: TransportOptions) -> None:
        self.addresses = (url.at(url.host or "", listener.socket.getsockname()[1]),)
        self._listener = listener
        self._options = options

    async def accept(self) -> Connection:
        stream = await self._listener.accept()
        return ByteConnection(stream, peer=PeerIdentity(address="somebody"), options=self._options)

    async def aclose(self) -> None:
        await self._listener.aclose()


@hookimpl
def penstock_transports() -> list[Transport]:
    return [PlainTransport()]


@hookimpl
def penstock_serializers() -> list[Serializer]:
    return [Pairs()]


@hookimpl
def penstock_extensions() -> list[Factory]:
    return [Factory(name="masked", id=200, make=Masked)]
