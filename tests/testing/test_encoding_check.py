"""The check of encodings: it passes a sound one, and finds each fault."""

from collections.abc import Callable
from typing import Any

import pytest

from penstock.protocols import rsio
from penstock.protocols.rsio._encoding import CompactEncoding
from penstock.testing import check_encoding
from tests.protocols.rsio._masked_encoding import MaskedEncoding


class WrongType(MaskedEncoding):
    def encode(self, message: rsio.Message, /) -> bytes:
        return b"\x2f" + super().encode(message)[1:]


class WrongRequest(CompactEncoding):
    def encode_request(self, subscriber: int, demand: int, /) -> bytes:  # type: ignore[override]  # the compact one is a static method
        return rsio.encode_request(demand, subscriber)


class WrongRun(CompactEncoding):
    def join_run(self, subscriber: int, elements: list[bytes], /) -> bytearray:  # type: ignore[override]  # the same
        return rsio.join_run(subscriber, elements[::-1])


class WrongText(MaskedEncoding):
    def encode(self, message: rsio.Message, /) -> bytes:
        return super().encode(
            rsio.Goodbye(reason=message.reason.upper())
            if isinstance(message, rsio.Goodbye)
            else message
        )


class Greedy(CompactEncoding):
    """Its decoder waits for a byte more than the message has."""

    def decoder(self, *arguments: Any) -> Any:
        decoder = super().decoder(*arguments)
        feed: Callable[..., bool] = decoder.feed

        class Waiting:
            held = 1

            def feed(self, data: bytes) -> bool:
                return feed(data)

        return Waiting()


class Late(CompactEncoding):
    """Its decoder forgets the bytes of an incomplete message."""

    def decoder(self, sink: Any, streams: Any, limits: Any, /) -> Any:
        parent = super()

        class Forgetful:
            held = 0

            def feed(self, data: bytes) -> bool:
                return parent.decoder(sink, streams, limits).feed(data)

        return Forgetful()


@pytest.mark.parametrize(
    ("encoding", "why"),
    [
        (WrongType(), "begins with 2f, and the type is 01"),
        (WrongRequest(), "and the function for it"),
        (WrongRun(), r"join_run\(\) differs from single elements"),
        (WrongText(), "decoded as a whole: {'reason': 'bye é'} of Goodbye arrived as"),
        (Greedy(), "1 bytes were not decoded"),
        (Late(), "its decoder refuses what it has written"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_fault_is_found_and_named(encoding: rsio.Encoding, why: str) -> None:
    """The error says what differs."""
    with pytest.raises(AssertionError, match=why):
        check_encoding(encoding)
