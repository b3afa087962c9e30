"""Receives large answers through a connection of aiokafka, and copies their records once.

Rules of this file:

* The connection was opened by aiokafka, with TLS and SASL, and sends through it. Its own reader
  copies each byte of an answer into a buffer that grows, and wakes a task for each piece of it:
  three times the processor time of this one, for fetches of 1 MiB.
* The bytes of a socket go into one buffer, which is kept for the next answer. An answer that is
  longer than `KEPT` gets another buffer.
* The records of an answer stay where they are until `decode` cuts them into batches. A copy of all
  of them takes fresh pages from the system for each fetch, and so half of the time of a read.
* A broker that announces an answer which is longer than `MOST_ANSWER` loses the connection.
"""

import asyncio
from io import BytesIO
from typing import Any, Final

from aiokafka.errors import KafkaConnectionError
from aiokafka.protocol.fetch import FetchRequest

SMALL: Final = 1 << 16
"""Bytes of the first buffer of a connection."""

KEPT: Final = 4 << 20
"""Bytes of a buffer that is kept: more than an answer to the largest fetch, of 2 MiB."""

MOST_ANSWER: Final = 1 << 30
"""Bytes of an answer. The longest element of Kafka is a little shorter than 2 GiB; no topic that
penstock reads has one of 1 GiB.
"""

_HEAD: Final = 4  # an answer begins with its length


COPIED: Final = 1 << 12
"""Bytes of a part of an answer that is copied: all but records are short."""


class LargeFetch:
    """A fetch. The records of its answer are views of the received bytes."""

    def __init__(self, *args: Any) -> None:
        self._request = FetchRequest(*args)

    def prepare(self, versions: dict[int, tuple[int, int]]) -> Any:
        """Return the form of the request that the broker knows, as aiokafka calls it."""
        request = self._request.prepare(versions)
        request.RESPONSE_TYPE = _Viewing(request.RESPONSE_TYPE)
        return request


class _Viewing:
    """Decodes an answer as `kind` does."""

    def __init__(self, kind: Any) -> None:
        self._kind = kind

    def decode(self, data: BytesIO) -> Any:
        return self._kind.decode(_Views(data.getvalue(), data.tell()))


class _Views:
    """A file for the decoders of aiokafka."""

    def __init__(self, data: bytes, begin: int) -> None:
        self._data = memoryview(data)
        self._begin = begin

    def read(self, size: int) -> bytes | memoryview:
        begin, self._begin = self._begin, self._begin + size
        part = self._data[begin : self._begin]
        return part if size > COPIED else bytes(part)


def receive_into_one_buffer(connection: Any) -> None:
    """Let a `Receiver` read what comes for `connection`, which waits for no answer now."""
    transport = connection._writer.transport  # noqa: SLF001  # aiokafka has no hook for it
    if isinstance(transport.get_protocol(), Receiver):
        return
    # It waits for the first byte of an answer.
    connection._read_task.cancel()  # noqa: SLF001  # as above
    transport.set_protocol(Receiver(connection, connection._protocol))  # noqa: SLF001  # as above


class Receiver(asyncio.BufferedProtocol):
    """Cuts what comes for `connection` into answers. `before` is its protocol, which is told the
    rest: that the connection ended, and when a write has to wait.
    """

    def __init__(self, connection: Any, before: Any) -> None:
        self._connection = connection
        self._before = before
        self._buffer = memoryview(bytearray(SMALL))
        self._end = 0  # of what was received

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._buffer[self._end :]

    def buffer_updated(self, nbytes: int) -> None:
        self._end += nbytes
        begin, end, buffer = 0, self._end, self._buffer
        room = _HEAD
        while end - begin >= _HEAD:
            size = int.from_bytes(buffer[begin : begin + _HEAD], "big", signed=True)
            if not 0 <= size <= MOST_ANSWER:
                self._end_with(
                    f"the broker announced an answer of {size:,} bytes, allowed are "
                    f"{MOST_ANSWER:,}: this port is not one of Kafka, or something between "
                    "changed the bytes"
                )
                return
            room = _HEAD + size
            if end - begin < room:
                break
            if not self._connection._requests:  # noqa: SLF001  # aiokafka has no hook for it
                # Also after an answer to another request, which has closed the connection.
                self._end_with("the broker sent an answer that no request waits for")
                return
            answer = bytes(buffer[begin + _HEAD : begin + room])
            begin, room = begin + room, _HEAD
            self._connection._handle_frame(answer)  # noqa: SLF001  # aiokafka has no hook for it
        self._make_room(begin, room)

    def _make_room(self, begin: int, room: int) -> None:
        """Move the bytes from `begin` on to the front of a buffer for `room` bytes."""
        before, rest = self._buffer, self._end - begin
        if room > len(before) or (not rest and len(before) > KEPT):
            self._buffer = memoryview(bytearray(max(room, SMALL)))
        self._buffer[:rest] = before[begin : self._end]
        self._end = rest

    def _end_with(self, reason: str) -> None:
        self._connection.close(exc=KafkaConnectionError(reason))

    def pause_writing(self) -> None:
        self._before.pause_writing()

    def resume_writing(self) -> None:
        self._before.resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        self._connection.close(exc=exc)
        self._before.connection_lost(exc)
