"""A service with a handler for each kind of request.
It keeps the messages and the identities that it gets.
"""

from collections.abc import AsyncIterator

from penstock.api import PublicError
from penstock.runtime import Service
from penstock.spi import PeerIdentity
from tests.runtime._services import numbers_service


class Handlers:
    """The service, the fire-and-forget messages, and the identities of the peers."""

    def __init__(self, service: Service | None = None) -> None:
        self.service = service or numbers_service()
        self.shots: list[bytes] = []
        self.askers: list[PeerIdentity] = []
        add_handlers(self)


def add_handlers(handlers: Handlers) -> None:
    service = handlers.service

    @service.request_response
    async def reversed_data(data: bytes, peer: PeerIdentity) -> bytes:
        handlers.askers.append(peer)
        if data == b"out of stock":
            raise PublicError("out of stock")
        if data == b"broken":
            raise ValueError("a secret")
        return data[::-1]

    @service.fire_and_forget
    async def note(data: bytes) -> None:
        if data == b"broken":
            raise ValueError("a secret")
        handlers.shots.append(data)

    @service.request_stream
    async def repeated(data: bytes) -> AsyncIterator[bytes]:
        for _ in range(3):
            yield data

    @service.request_subscription
    def listed(data: bytes) -> list[bytes]:
        return [data, data]
