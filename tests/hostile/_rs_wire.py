"""ReactiveSocket for attackers: an encoder and a decoder that use no code of penstock."""

from tests.hostile._rsio_wire import Message

IGNORE, BEGIN, END, COMPLETE = 0x80, 0x40, 0x20, 0x10
WHOLE = BEGIN | END
SETUP, RESPONSE_TO_ONE, FNF, STREAM, SUB, REQUEST_N, CANCEL, RESPONSE, ERROR, EXT = (
    1,
    0x11,
    0x12,
    0x13,
    0x14,
    0x15,
    0x16,
    0x20,
    0x21,
    0xFFFF,
)
GREETING = 11
"""The id of a request that an attacker sends with its SETUP.
Its answer is the only sign that the SETUP was accepted.
"""


def frame(
    kind: int,
    stream: int,
    body: bytes = b"",
    *,
    flags: int = 0,
    version: int = 0,
    length: int | None = None,
) -> bytes:
    size = 16 + len(body) if length is None else length
    return size.to_bytes(4) + bytes((version, flags)) + kind.to_bytes(2) + stream.to_bytes(8) + body


def setup(data: bytes = b"", *, version: int = 0, stream: int = 0) -> bytes:
    return frame(SETUP, stream, data, version=version)


def hello(*_: int) -> bytes:
    """Return a SETUP and a request whose answer shows that the SETUP was accepted."""
    return setup() + request_response("one", GREETING)


def _data(data: bytes | str) -> bytes:
    return data.encode() if isinstance(data, str) else data


def request_response(data: bytes | str, stream: int) -> bytes:
    return frame(RESPONSE_TO_ONE, stream, _data(data))


def fire_and_forget(data: bytes | str, stream: int) -> bytes:
    return frame(FNF, stream, _data(data))


def request_stream(data: bytes | str, stream: int, demand: int = 0) -> bytes:
    return frame(STREAM, stream, demand.to_bytes(8) + _data(data))


def request_sub(data: bytes | str, stream: int, demand: int = 0) -> bytes:
    return frame(SUB, stream, demand.to_bytes(8) + _data(data))


def request_n(stream: int, n: int) -> bytes:
    return frame(REQUEST_N, stream, n.to_bytes(8))


def cancel(stream: int) -> bytes:
    return frame(CANCEL, stream)


def response(stream: int, data: bytes = b"", flags: int = WHOLE) -> bytes:
    return frame(RESPONSE, stream, data, flags=flags)


def error(stream: int, text: str = "hm") -> bytes:
    return frame(ERROR, stream, text.encode())


def ext(number: int, body: bytes = b"", *, flags: int = IGNORE) -> bytes:
    return frame(EXT, 0, number.to_bytes(4) + body, flags=flags)


class RsDecoder:
    """Decodes to messages with the names of RS.io.
    Raises ValueError for bytes that no conforming peer sends.
    """

    def __init__(self) -> None:
        self._data = b""

    def feed(self, data: bytes) -> list[Message]:
        self._data += data
        found: list[Message] = []
        while len(self._data) >= 16 and len(self._data) >= (size := int.from_bytes(self._data[:4])):
            found += self._message(self._data[:size])
            self._data = self._data[size:]
        return found

    def _message(self, data: bytes) -> list[Message]:
        version, flags, kind, stream, body = (
            data[4],
            data[5],
            int.from_bytes(data[6:8]),
            int.from_bytes(data[8:16]),
            data[16:],
        )
        if version or len(data) < 16:
            raise ValueError(f"no frame of version 0: {data[:40]!r}")
        if kind == RESPONSE:
            return self._response(stream, flags, body)
        if kind == ERROR:
            return [("onError", stream, body.decode()) if stream else ("goodbye", body.decode())]
        if kind in (STREAM, SUB):
            return [("subscribe", body[8:].decode(), stream, int.from_bytes(body[:8]))]
        if kind in (RESPONSE_TO_ONE, FNF):
            return [("subscribe", body.decode(), stream, 1)]
        if kind == REQUEST_N:
            return [("request", stream, int.from_bytes(body))]
        names = {SETUP: "setup", CANCEL: "cancel", EXT: "ext"}
        if kind not in names:
            raise ValueError(f"a frame of type {kind:#06x}: {data[:40]!r}")
        return [(names[kind], stream)]

    @staticmethod
    def _response(stream: int, flags: int, body: bytes) -> list[Message]:
        found: list[Message] = []
        if flags & WHOLE == WHOLE:
            found.append(("onNext", stream, body))
        elif flags & WHOLE or body or not flags & COMPLETE:
            found.append(("part", stream, flags & WHOLE, len(body)))
        return [*found, ("onComplete", stream)] if flags & COMPLETE else found
