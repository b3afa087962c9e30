"""ReactiveSocket frames as bytes: encoded for the checking side or an attacker, correct or faulty,
and decoded from the answers of the other side.

The codec of penstock is not used. It refuses to encode faulty frames,
and a mistake in its decoder would go unnoticed here.
"""

from typing import Final

import attrs

SETUP: Final = 0x0001
REQUEST_RESPONSE: Final = 0x0011
REQUEST_FNF: Final = 0x0012
REQUEST_STREAM: Final = 0x0013
REQUEST_SUB: Final = 0x0014
REQUEST_N: Final = 0x0015
CANCEL: Final = 0x0016
RESPONSE: Final = 0x0020
ERROR: Final = 0x0021
EXT: Final = 0xFFFF

NAMES: Final = {
    SETUP: "SETUP",
    REQUEST_RESPONSE: "REQUEST_RESPONSE",
    REQUEST_FNF: "REQUEST_FNF",
    REQUEST_STREAM: "REQUEST_STREAM",
    REQUEST_SUB: "REQUEST_SUB",
    REQUEST_N: "REQUEST_N",
    CANCEL: "CANCEL",
    RESPONSE: "RESPONSE",
    ERROR: "ERROR",
    EXT: "EXT",
}
REQUESTS: Final = (REQUEST_RESPONSE, REQUEST_FNF, REQUEST_STREAM, REQUEST_SUB)

I: Final = 0x80  # noqa: E741 (the draft's name of the flag)
B: Final = 0x40
E: Final = 0x20
C: Final = 0x10

WHOLE: Final = B | E
"""The flags of an element that one frame carries."""

HEADER: Final = 12
"""Bytes of a header without its length."""

UNBOUNDED: Final = 2**63 - 1


@attrs.frozen(kw_only=True)
class Frame:
    """A received frame. Nothing has been judged yet."""

    type: int
    flags: int
    stream: int
    body: bytes
    version: int = 0
    reserved: bool = False
    """The bit before the 31 bits of the length."""

    def __str__(self) -> str:
        flags = "".join(
            letter for letter, bit in (("I", I), ("B", B), ("E", E), ("C", C)) if self.flags & bit
        )
        name = NAMES.get(self.type, f"type {self.type:#06x}")
        content = f" {self.body[:40]!r}" if self.type == ERROR else f" of {len(self.body)} bytes"
        return (
            f"{name}{f'[{flags}]' if flags else ''} on {self.stream}{content if self.body else ''}"
        )

    @property
    def demand(self) -> int:
        """The demand at the beginning of the body."""
        return int.from_bytes(self.body[:8])


def encode_frame(
    kind: int, stream: int, body: bytes = b"", *, flags: int = 0, version: int = 0
) -> bytes:
    """Return a frame without its length."""
    return bytes([version, flags]) + kind.to_bytes(2) + stream.to_bytes(8) + body


def with_length(frame: bytes, *, off: int = 0) -> bytes:
    """Put the length before a frame; `off` is added to it, to make it wrong."""
    return (4 + len(frame) + off).to_bytes(4) + frame


def sized_frame(  # the fields of a frame
    kind: int,
    stream: int,
    body: bytes = b"",
    *,
    flags: int = 0,
    version: int = 0,
    length: int | None = None,
) -> bytes:
    """Return a frame with its length, or with another `length`."""
    frame = encode_frame(kind, stream, body, flags=flags, version=version)
    return with_length(frame, off=0 if length is None else length - 4 - len(frame))


def setup(data: bytes = b"", *, version: int = 0, stream: int = 0) -> bytes:
    """Return a SETUP."""
    return sized_frame(SETUP, stream, data, version=version)


def request_response(data: bytes | str, stream: int) -> bytes:
    """Return a request for one value."""
    return sized_frame(REQUEST_RESPONSE, stream, _bytes(data))


def fire_and_forget(data: bytes | str, stream: int) -> bytes:
    """Return a request without an answer."""
    return sized_frame(REQUEST_FNF, stream, _bytes(data))


def request_stream(data: bytes | str, stream: int, demand: int = 0) -> bytes:
    """Return a request for a stream."""
    return sized_frame(REQUEST_STREAM, stream, encode_demand(demand) + _bytes(data))


def request_sub(data: bytes | str, stream: int, demand: int = 0) -> bytes:
    """Return a request for a subscription."""
    return sized_frame(REQUEST_SUB, stream, encode_demand(demand) + _bytes(data))


def request_n(stream: int, n: int) -> bytes:
    """Return more demand."""
    return sized_frame(REQUEST_N, stream, encode_demand(n))


def cancel(stream: int) -> bytes:
    """Return a CANCEL."""
    return sized_frame(CANCEL, stream)


def response(stream: int, data: bytes = b"", flags: int = WHOLE) -> bytes:
    """Return a RESPONSE with one element, or with what `flags` say."""
    return sized_frame(RESPONSE, stream, data, flags=flags)


def error(stream: int, text: str = "hm") -> bytes:
    """Return an ERROR."""
    return sized_frame(ERROR, stream, text.encode())


def ext(number: int, body: bytes = b"", *, flags: int = I) -> bytes:
    """Return a frame of an extension."""
    return sized_frame(EXT, 0, number.to_bytes(4) + body, flags=flags)


def _bytes(data: bytes | str) -> bytes:
    return data.encode() if isinstance(data, str) else data


def encode_demand(n: int) -> bytes:
    """Return a demand as 8 bytes."""
    return n.to_bytes(8)


class FrameReader:
    """Decodes bytes to frames."""

    def __init__(self, *, framed: bool) -> None:
        self._framed = framed
        self._buffer = b""
        self.error: str = ""
        """Why the bytes can no longer be decoded; empty while they can."""

    def feed(self, data: bytes) -> list[Frame]:
        """Return the frames that these bytes complete."""
        if self._framed:
            return [] if len(data) < HEADER else [_frame(data, reserved=False)]
        self._buffer += data
        found = []
        while not self.error and len(self._buffer) >= 4:
            word = int.from_bytes(self._buffer[:4])
            length = word & 0x7FFFFFFF
            if length < 4 + HEADER:
                self.error = f"a frame with the length {length}, of which the header alone takes 16"
            elif len(self._buffer) < length:
                break
            else:
                found.append(_frame(self._buffer[4:length], reserved=bool(word >> 31)))
                self._buffer = self._buffer[length:]
        return found

    @property
    def incomplete_bytes(self) -> int:
        """Bytes of a frame that is not complete yet."""
        return len(self._buffer)


def _frame(data: bytes, *, reserved: bool) -> Frame:
    return Frame(
        version=data[0],
        flags=data[1],
        type=int.from_bytes(data[2:4]),
        stream=int.from_bytes(data[4:12]),
        body=data[HEADER:],
        reserved=reserved,
    )
