"""Answers that come in pieces."""

import asyncio
import random
from io import BytesIO
from typing import Any

import pytest
from aiokafka.errors import KafkaConnectionError
from penstock_kafka import _receive
from penstock_kafka._receive import KEPT, LargeFetch, Receiver, receive_into_one_buffer


class _Protocol(asyncio.Protocol):
    """The protocol that aiokafka has set: it notes how the connection ended."""

    def __init__(self) -> None:
        self.ended: list[Exception | None] = []

    def connection_lost(self, exc: Exception | None) -> None:
        self.ended.append(exc)


class _Connection:
    """A connection of aiokafka, as a receiver sees it."""

    def __init__(self) -> None:
        self.answers: list[bytes] = []
        self._requests = [object()] * 99
        self.closed: list[Exception | None] = []

    def _handle_frame(self, answer: bytes) -> None:
        self.answers.append(answer)

    def close(self, exc: Exception | None = None) -> None:
        self._requests = []
        self.closed.append(exc)


def _give(receiver: Receiver, data: bytes, most: int) -> None:
    """Let the socket fill the buffer of a receiver with at most `most` bytes at once."""
    while data:
        buffer = receiver.get_buffer(-1)
        assert len(buffer), "a socket that can write no byte spins"
        count = min(len(buffer), len(data), most)
        buffer[:count] = data[:count]
        data = data[count:]
        receiver.buffer_updated(count)


def _framed(answers: list[bytes]) -> bytes:
    return b"".join(len(each).to_bytes(4, "big") + each for each in answers)


@pytest.mark.parametrize("seed", range(20))
def test_answers_come_whole_however_the_socket_cuts_them(seed: int) -> None:
    """Short ones, ones longer than the first buffer, and empty ones, in pieces of any length."""
    chance = random.Random(seed)
    sizes = [chance.choice((0, 1, 3, 100, 70_000, 200_000)) for _ in range(12)]
    answers = [chance.randbytes(size) for size in sizes]
    connection, protocol = _Connection(), _Protocol()
    receiver = Receiver(connection, protocol)
    _give(receiver, _framed(answers), chance.choice((1_000, 4_099, 65_536, 1 << 20)))
    assert connection.answers == answers
    assert not connection.closed


def test_pieces_of_one_byte_are_put_together() -> None:
    """Also those of the length of an answer."""
    connection = _Connection()
    _give(Receiver(connection, _Protocol()), _framed([b"abc", b"", b"defg"]), 1)
    assert connection.answers == [b"abc", b"", b"defg"]


def test_a_buffer_for_a_very_long_answer_is_not_kept() -> None:
    """One for an answer of the longest fetch is, because the next one needs it."""
    connection = _Connection()
    receiver = Receiver(connection, _Protocol())
    _give(receiver, _framed([bytes(KEPT - 4)]), 1 << 20)
    assert len(receiver.get_buffer(-1)) == KEPT
    _give(receiver, _framed([bytes(KEPT)]), 1 << 20)
    assert len(receiver.get_buffer(-1)) < KEPT
    assert [len(each) for each in connection.answers] == [KEPT - 4, KEPT]


@pytest.mark.parametrize("head", [b"HTTP", b"\xff\xff\xff\xff"])
def test_an_answer_of_an_impossible_length_ends_the_connection(head: bytes) -> None:
    """Something that is no broker writes at this port. No memory is taken for it."""
    connection = _Connection()
    receiver = Receiver(connection, _Protocol())
    _give(receiver, head, 4)
    [error] = connection.closed
    assert isinstance(error, KafkaConnectionError)
    assert "announced an answer of" in str(error)
    assert len(receiver.get_buffer(-1)) <= _receive.SMALL


def test_an_answer_that_nobody_waits_for_ends_the_connection() -> None:
    """Also one behind an answer that aiokafka has closed the connection for."""

    class Refusing(_Connection):
        def _handle_frame(self, answer: bytes) -> None:
            self.close()

    connection = Refusing()
    _give(Receiver(connection, _Protocol()), _framed([b"abc", b"defg"]), 100)
    [_, error] = connection.closed
    assert "sent an answer that no request waits for" in str(error)


def test_the_end_of_a_connection_is_told_to_both() -> None:
    """The requests that wait fail, and the its protocol wakes who closes."""
    connection, protocol, error = _Connection(), _Protocol(), ConnectionResetError()
    Receiver(connection, protocol).connection_lost(error)
    assert connection.closed == protocol.ended == [error]


def test_a_connection_gets_one_receiver() -> None:
    """A second call leaves it: it may hold a part of an answer."""

    class Transport:
        protocol: Any = None

        def get_protocol(self) -> Any:
            return self.protocol

        def set_protocol(self, protocol: Any) -> None:
            self.protocol = protocol

    class Part:
        transport = Transport()
        cancelled = 0

        def cancel(self) -> None:
            self.cancelled += 1

    connection: Any = _Connection()
    connection._writer, connection._read_task = Part(), Part()
    connection._protocol = _Protocol()
    receive_into_one_buffer(connection)
    first = Part.transport.protocol
    receive_into_one_buffer(connection)
    assert Part.transport.protocol is first
    assert connection._read_task.cancelled == 1


@pytest.mark.parametrize("version", [4, 5, 11])
def test_records_of_an_answer_are_views_and_the_rest_is_as_aiokafka_decodes_it(
    version: int,
) -> None:
    """So the records are copied by `decode` alone."""
    plain = LargeFetch(1, 1, 1, 1, [("topic", [(0, 0, 1)])]).prepare({1: (version, version)})
    kind = plain.RESPONSE_TYPE._kind
    records = bytes(range(256)) * 64
    place = {4: (0, 9, 9, [(7, 3)], records), 5: (0, 9, 9, 2, [(7, 3)], records)}.get(
        version, (0, 9, 9, 2, [(7, 3)], -1, records)
    )
    head = (0,) if version < 7 else (0, 0, 0)
    data = b"head" + kind(*head, [("topic", [(0, *place)])]).encode()
    stream = BytesIO(data)
    stream.seek(4)
    found = plain.RESPONSE_TYPE.decode(stream)
    [(name, [(*facts, view)])] = found.topics
    assert (name, *facts) == ("topic", 0, *place[:-1])
    assert isinstance(view, memoryview)
    assert bytes(view) == records
