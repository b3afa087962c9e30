"""A service with requests by name, and a serializer for the types of a test."""

import json
from dataclasses import asdict, dataclass, is_dataclass
from typing import Any

from penstock.api import ProtocolError, PublicError, UsageError
from penstock.runtime import Service
from penstock.spi import PeerIdentity, Serializer


@dataclass
class Order:
    """A payload."""

    lots: int
    note: str = ""


@dataclass
class Price:
    """An answer."""

    symbol: str
    cents: int


class Records(Serializer):
    """JSON for dataclasses, and for what JSON has itself."""

    name = "records"

    def __init__(self, kind: Any = None) -> None:
        self._kind = kind

    def dumps(self, element: object, /) -> bytes:
        try:
            return json.dumps(
                asdict(element)
                if is_dataclass(element) and not isinstance(element, type)
                else element
            ).encode()
        except TypeError as error:
            raise UsageError(f"records: {error}") from None

    def loads(self, data: bytes, /) -> object:
        try:
            value: Any = json.loads(data)
            return self._kind(**value) if is_dataclass(self._kind) else value
        except (ValueError, TypeError) as error:
            raise ProtocolError(f"at byte {getattr(error, 'pos', 0)}: no {self._kind}") from None

    def for_type(self, kind: Any, /) -> "Records":
        return Records(kind)


RECORDS = Records()


def named_service(service: Service | None = None) -> Service:
    """Return a service with requests of every signature."""
    service = service or Service()

    @service.request("price/{symbol}", serializer=RECORDS)
    async def price(payload: Order, symbol: str, cents: int = 100) -> Price:
        if payload.note == "secret":
            raise ValueError("a secret")
        if payload.note == "sold out":
            raise PublicError("sold out")
        return Price(symbol, payload.lots * cents)

    @service.request("echo")
    async def echo(payload: bytes = b"nothing") -> bytes:
        return payload

    @service.request("upper")
    async def upper(payload: str) -> str:
        return payload.upper()

    @service.request("time")
    async def time() -> bytes:
        return b"12:00"

    @service.request("whoami")
    async def whoami(peer: PeerIdentity) -> str:
        return peer.address

    @service.publisher("numbers", serializer="text")
    async def numbers():  # type: ignore[no-untyped-def]  # an async generator, as users write it
        for number in range(3):
            yield str(number)

    return service
