"""RSocket frames as bytes: encoded for the checking side, correct or faulty, and split from the
answers of the other side.

The codec of the plugin is not used. It refuses to encode faulty frames, and a mistake in its
decoder would go unnoticed here.
"""

from typing import Final

import attrs

SETUP: Final = 0x01
LEASE: Final = 0x02
KEEPALIVE: Final = 0x03
REQUEST_RESPONSE: Final = 0x04
REQUEST_FNF: Final = 0x05
REQUEST_STREAM: Final = 0x06
REQUEST_CHANNEL: Final = 0x07
REQUEST_N: Final = 0x08
CANCEL: Final = 0x09
PAYLOAD: Final = 0x0A
ERROR: Final = 0x0B
METADATA_PUSH: Final = 0x0C
RESUME: Final = 0x0D
RESUME_OK: Final = 0x0E
EXT: Final = 0x3F

NAMES: Final = {
    SETUP: "SETUP",
    LEASE: "LEASE",
    KEEPALIVE: "KEEPALIVE",
    REQUEST_RESPONSE: "REQUEST_RESPONSE",
    REQUEST_FNF: "REQUEST_FNF",
    REQUEST_STREAM: "REQUEST_STREAM",
    REQUEST_CHANNEL: "REQUEST_CHANNEL",
    REQUEST_N: "REQUEST_N",
    CANCEL: "CANCEL",
    PAYLOAD: "PAYLOAD",
    ERROR: "ERROR",
    METADATA_PUSH: "METADATA_PUSH",
    RESUME: "RESUME",
    RESUME_OK: "RESUME_OK",
    EXT: "EXT",
}
REQUESTS: Final = (REQUEST_RESPONSE, REQUEST_FNF, REQUEST_STREAM, REQUEST_CHANNEL)
WITH_DEMAND: Final = (REQUEST_STREAM, REQUEST_CHANNEL)
OF_CONNECTION: Final = (SETUP, LEASE, KEEPALIVE, METADATA_PUSH, RESUME, RESUME_OK)

I: Final = 0x200  # noqa: E741 (the specification's name of the flag)
M: Final = 0x100
F: Final = 0x80
R: Final = 0x80
"""Respond of a KEEPALIVE, resume of a SETUP."""
C: Final = 0x40
L: Final = 0x40
"""Lease of a SETUP."""
N: Final = 0x20

LEGAL_FLAGS: Final = {
    SETUP: M | R | L,
    LEASE: M,
    KEEPALIVE: R,
    REQUEST_RESPONSE: M | F,
    REQUEST_FNF: M | F,
    REQUEST_STREAM: M | F,
    REQUEST_CHANNEL: M | F | C,
    REQUEST_N: 0,
    CANCEL: 0,
    PAYLOAD: M | F | C | N,
    ERROR: 0,
    METADATA_PUSH: M,
    RESUME: 0,
    RESUME_OK: 0,
    EXT: I | M,
}
"""The flags that a frame of each type may have."""

INVALID_SETUP: Final = 0x001
UNSUPPORTED_SETUP: Final = 0x002
REJECTED_SETUP: Final = 0x003
REJECTED_RESUME: Final = 0x004
CONNECTION_ERROR: Final = 0x101
CONNECTION_CLOSE: Final = 0x102
APPLICATION_ERROR: Final = 0x201
REJECTED: Final = 0x202
CANCELED: Final = 0x203
INVALID: Final = 0x204
SETUP_REFUSED: Final = (INVALID_SETUP, UNSUPPORTED_SETUP, REJECTED_SETUP)

UNBOUNDED: Final = 2**31 - 1
"""The largest demand of one frame, and the largest id."""

HEADER: Final = 6
COMPOSITE: Final = b"message/x.rsocket.composite-metadata.v0"
ROUTE: Final = 0xFE
"""The number of the MIME type of routes, in one byte."""
OCTETS: Final = b"application/octet-stream"
SHOWN: Final = 80


@attrs.frozen(kw_only=True)
class Frame:
    """A received frame. Nothing has been judged yet."""

    type: int
    flags: int
    stream: int
    """With the reserved first bit, which makes it 2^31 or more."""
    body: bytes

    def __str__(self) -> str:
        name = NAMES.get(self.type, f"type {self.type:#04x}")
        flags = f"[{self.flags:03x}]" if self.flags else ""
        if self.type == ERROR:
            content = f" {self.number:#05x} {self.body[4 : 4 + SHOWN]!r}"
        elif self.type == REQUEST_N:
            content = f" {self.number}"
        else:
            content = f" of {len(self.body)} bytes" if self.body else ""
        return f"{name}{flags} on {self.stream}{content}"

    @property
    def number(self) -> int:
        """The first four bytes: a demand, the code of an ERROR, the time of a LEASE."""
        return int.from_bytes(self.body[:4])

    @property
    def metadata(self) -> bytes:
        """The metadata of a request or a PAYLOAD; empty without any."""
        start = self._start
        size = int.from_bytes(self.body[start : start + 3]) if self.flags & M else 0
        return self.body[start + 3 : start + 3 + size]

    @property
    def data(self) -> bytes:
        """The data of a request or a PAYLOAD, without the metadata."""
        return self.body[self._start + (3 + len(self.metadata) if self.flags & M else 0) :]

    @property
    def route(self) -> str | None:
        """The first tag of the route in composite metadata; None without one."""
        left = self.metadata
        while left:
            named = 1 if left[0] & 0x80 else 2 + left[0]
            end = named + 3 + int.from_bytes(left[named : named + 3])
            content = left[named + 3 : end]
            if left[0] == ROUTE:
                return content[1 : 1 + content[0]].decode(errors="replace")
            left = left[end:]
        return None

    @property
    def _start(self) -> int:
        # A demand comes first.
        return 4 if self.type in WITH_DEMAND else 0


def encode(kind: int, stream: int, body: bytes = b"", *, flags: int = 0) -> bytes:
    """Return a frame without its length."""
    return stream.to_bytes(4) + (kind << 10 | flags).to_bytes(2) + body


def with_length(frame: bytes) -> bytes:
    """Put the length before a frame."""
    return len(frame).to_bytes(3) + frame


def number(n: int) -> bytes:
    """Return a demand, a code or a time as 4 bytes."""
    return n.to_bytes(4)


def with_metadata(metadata: bytes, data: bytes = b"") -> bytes:
    """Return metadata after its length, and data."""
    return len(metadata).to_bytes(3) + metadata + data


def route(name: str) -> bytes:
    """Return composite metadata whose one entry is a route."""
    tag = bytes([len(name.encode())]) + name.encode()
    return bytes([ROUTE]) + len(tag).to_bytes(3) + tag


def setup_body(
    data: bytes = b"",
    *,
    major: int = 1,
    minor: int = 0,
    interval: int = 20_000,
    lifetime: int = 90_000,
    token: bytes | None = None,
) -> bytes:
    """Return the body of a SETUP: the two times in milliseconds, with composite metadata and
    plain bytes as its types.
    """
    resume = b"" if token is None else len(token).to_bytes(2) + token
    types = b"".join(bytes([len(name)]) + name for name in (COMPOSITE, OCTETS))
    return (
        major.to_bytes(2)
        + minor.to_bytes(2)
        + number(interval)
        + number(lifetime)
        + resume
        + types
        + data
    )


def resume_body(token: bytes, *, received: int = 0, available: int = 0) -> bytes:
    """Return the body of a RESUME of version 1.0."""
    version = (1).to_bytes(2) + (0).to_bytes(2)
    positions = received.to_bytes(8) + available.to_bytes(8)
    return version + len(token).to_bytes(2) + token + positions


class FrameReader:
    """Splits bytes into frames."""

    def __init__(self, *, framed: bool) -> None:
        self._framed = framed
        self._buffer = b""
        self.error: str = ""
        """Why the bytes can no longer be split; empty while they can."""

    def feed(self, data: bytes) -> list[Frame]:
        """Return the frames that these bytes complete."""
        if self._framed:
            return self._frames([data])
        self._buffer += data
        at, whole = 0, []
        while len(self._buffer) - at >= 3:
            end = at + 3 + int.from_bytes(self._buffer[at : at + 3])
            if end > len(self._buffer):
                break
            whole.append(self._buffer[at + 3 : end])
            at = end
        self._buffer = self._buffer[at:]
        return self._frames(whole)

    def _frames(self, whole: list[bytes]) -> list[Frame]:
        found = []
        for data in whole:
            if len(data) < HEADER:
                self.error = f"a frame of {len(data)} bytes; its header has {HEADER}"
                break
            word = int.from_bytes(data[4:6])
            found.append(
                Frame(
                    type=word >> 10,
                    flags=word & 0x3FF,
                    stream=int.from_bytes(data[:4]),
                    body=data[HEADER:],
                )
            )
        return found

    @property
    def incomplete_bytes(self) -> int:
        """Bytes of a frame that is not complete yet."""
        return len(self._buffer)
