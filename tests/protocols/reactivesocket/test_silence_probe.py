"""A client without the keepalive asks a silent server for one value, and ends the connection
if nothing comes back.
"""

from penstock.api import ConnectionLost, Model, Request, Role
from penstock.extensions import Keepalive
from penstock.protocols import reactivesocket as wire
from penstock.session import ConnectionState
from tests.protocols.reactivesocket._pair import RawSocket
from tests.session._pair import RecordingSubscriber

PROBE = wire.RequestResponse(stream_id=3, data=b"")
"""The second request of a client: its first one is the stream that waits."""


def client_that_waits() -> tuple[RawSocket, RecordingSubscriber]:
    """Return a client with a stream open that the server has begun to answer at the time 0."""
    raw = RawSocket(Role.CLIENT)
    raw.receive()
    reader = RecordingSubscriber(5)
    raw.session.subscribe(Request(Model.STREAM, b"s"), reader)
    raw.send(wire.Response(stream_id=1, data=b"element"))
    raw.receive()
    assert raw.session.state is ConnectionState.OPEN
    return raw, reader


def test_a_silent_server_is_probed_after_keepalive() -> None:
    """Before that nothing is sent. The connection ends when `keepalive_timeout` has passed as
    well, 40 s after the last byte.
    """
    raw, reader = client_that_waits()
    assert raw.session.tick(0.0) == 20.0
    assert raw.session.tick(19.9) == 20.0
    assert raw.receive() == []
    woken: list[float] = []
    raw.session.outbox.wake = lambda: woken.append(20.0)
    assert raw.session.tick(20.0) == 40.0
    assert woken  # else no task would send it
    assert raw.receive() == [PROBE]
    raw.session.tick(40.0)
    assert raw.receive() == [wire.Error(stream_id=0, data=b"keepalive")]
    (lost,) = reader.ends
    assert isinstance(lost, ConnectionLost)
    assert "Limits.keepalive_timeout" in str(lost)


def test_an_answer_keeps_the_connection() -> None:
    """An ERROR, a value with its end, or a value and a separate end:
    each is an answer, and the next probe follows later.
    """
    raw, reader = client_that_waits()
    answers: list[list[wire.Frame]] = [
        [wire.Error(stream_id=3, data=b"no such service")],
        [wire.Response(stream_id=5, data=b"", complete=True)],
        [
            wire.Response(stream_id=7, data=b"value"),
            wire.Response(stream_id=7, data=b"", begin=False, end=False, complete=True),
        ],
        [],
    ]
    raw.session.tick(0.0)
    for probe, answer in enumerate(answers):
        now = 1000.0 * (probe + 1)
        raw.session.tick(now)
        assert raw.receive() == [wire.RequestResponse(stream_id=3 + 2 * probe, data=b"")]
        for frame in answer:
            raw.session.receive(wire.encode(frame), now)
        raw.session.tick(now)
    raw.session.tick(4020.0)
    assert raw.session.state.is_closing
    assert len(reader.ends) == 1


def test_any_frame_keeps_the_connection_and_a_new_probe_replaces_the_old_one() -> None:
    """A server may be slow to answer, and alive."""
    raw, _ = client_that_waits()
    raw.session.tick(0.0)
    raw.session.tick(20.0)
    raw.receive()
    raw.session.receive(wire.encode(wire.Response(stream_id=1, data=b"element")), 39.0)
    assert raw.session.tick(40.0) == 59.0
    raw.session.tick(59.0)
    assert raw.receive() == [wire.Cancel(stream_id=3), wire.RequestResponse(stream_id=5, data=b"")]


def test_a_connection_without_a_stream_is_not_probed() -> None:
    """No task waits for the server.
    The client looks again after each interval, because a stream may begin.
    """
    raw, reader = client_that_waits()
    reader.cancel()
    raw.receive()
    raw.session.tick(0.0)
    for now in range(20, 200, 20):
        raw.session.tick(float(now))
    assert raw.receive() == []
    raw.session.subscribe(Request(Model.STREAM, b"s"), RecordingSubscriber(5))
    raw.receive()
    raw.session.tick(200.0)
    assert raw.receive() == [wire.RequestResponse(stream_id=5, data=b"")]


def test_with_the_keepalive_nothing_is_probed() -> None:
    """Pings do the same for less."""
    raw = RawSocket(Role.CLIENT, extensions=[Keepalive()])
    raw.receive()
    raw.session.subscribe(Request(Model.STREAM, b"s"), RecordingSubscriber(5))
    raw.send(
        wire.Response(stream_id=1, data=b"element"),
        wire.Ext(stream_id=0, ignore=True, ext_type=0x100, data=b""),
    )
    raw.receive()
    raw.session.tick(0.0)
    raw.session.tick(20.0)
    (ping,) = raw.receive()
    assert isinstance(ping, wire.Ext)


def test_a_server_does_not_probe() -> None:
    """The draft does not say that a client answers requests."""
    raw = RawSocket(Role.SERVER).handshake()
    assert raw.session.tick(0.0) == 300.0  # idle_connection
