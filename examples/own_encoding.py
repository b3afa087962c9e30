"""An encoding of your own: every number has eight bytes, for peers
that should need no code for varints.
"""

from collections.abc import Mapping
from types import SimpleNamespace

import trio

import penstock
from penstock.protocols import rsio
from penstock.spi import Factory, build_registry, hookimpl
from penstock.testing import check_encoding


class WideEncoding(rsio.Encoding):
    """Messages to bytes."""

    name = "wide"

    def encode_number(self, number: int, /) -> bytes:
        """Return a number, which may also be a length."""
        return number.to_bytes(8)

    def decoder(
        self,
        sink: rsio.RsioSink,
        streams: Mapping[int, rsio.WireStream],
        limits: rsio.WireLimits,
        /,
    ) -> "WideDecoder":
        """Return the decoder of a connection."""
        return WideDecoder(sink, streams, limits)


class WideDecoder(rsio.MessageDecoder):
    """Bytes to messages."""

    def read_number(self, data: bytes, position: int, /) -> tuple[int, int]:
        """Return the number at `position`, and the position behind it."""
        end = position + 8
        return (
            (int.from_bytes(data[position:end]), end) if end <= len(data) else (0, rsio.NEED_MORE)
        )


@hookimpl
def penstock_encodings() -> list[Factory]:
    """Offer the encoding. A distribution has this in a module that an entry point names."""
    return [Factory(name="wide", id=200, make=WideEncoding)]


async def main() -> None:
    check_encoding(WideEncoding())
    registry = build_registry([SimpleNamespace(penstock_encodings=penstock_encodings)])
    service = penstock.Service()
    service.publish("words", ["one", "two"], serializer="text")
    async with (
        penstock.serve(service, "memory://words", registry=registry) as server,
        penstock.connect(server.addresses[0], registry=registry, encoding="wide") as peer,
        peer.subscribe("words", serializer="text") as words,
    ):
        print([word async for word in words])


if __name__ == "__main__":
    trio.run(main)
