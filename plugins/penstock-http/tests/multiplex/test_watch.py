"""The clock of a connection: a plain function of the time."""

import pytest
import trio
from penstock_http.multiplex._floods import Floods
from penstock_http.multiplex._frame_filter import FrameFilter
from penstock_http.multiplex._watch import IDLE_SECONDS, UNFINISHED_SECONDS, Due, Watch


class Gate(FrameFilter):
    """A gate whose unfinished frame is set by the test."""

    unfinished: int | None = None  # type: ignore[assignment]  # a property of the class above

    def __init__(self) -> None:
        super().__init__(Floods(), is_server=True, max_frame=16384)


def _watch(*, is_server: bool = True, streams: int = 1) -> tuple[Gate, Watch]:
    gate = Gate()
    watch = Watch(gate, ping=20.0, is_server=is_server, now=100.0)
    watch.on_streams(streams, 100.0)
    return gate, watch


def test_a_silent_client_is_pinged_once_and_given_up() -> None:
    """A ping is sent after 20 s of silence. The client is given up 20 s later."""
    _, watch = _watch()
    assert watch.look(119.9) is Due.NOTHING
    assert watch.look(120.0) is Due.PING
    assert watch.look(139.9) is Due.NOTHING
    assert watch.look(140.0) == "the peer did not answer a ping within 20 s"


def test_any_bytes_are_an_answer() -> None:
    """The silence is counted from them."""
    _, watch = _watch()
    assert watch.look(120.0) is Due.PING
    watch.on_bytes(125.0)
    assert watch.look(144.9) is Due.NOTHING
    assert watch.look(145.0) is Due.PING


def test_a_client_does_not_ping() -> None:
    """One side is enough."""
    _, watch = _watch(is_server=False)
    assert watch.look(10_000.0) is Due.NOTHING


def test_a_frame_without_an_end_has_a_deadline() -> None:
    """Bytes that do not end it move nothing; another frame without an end has its own time."""
    gate, watch = _watch(is_server=False)
    gate.unfinished = 1
    watch.on_bytes(100.0)
    watch.on_bytes(100.0 + UNFINISHED_SECONDS - 1)
    assert watch.look(100.0 + UNFINISHED_SECONDS - 0.1) is Due.NOTHING
    assert (
        watch.look(100.0 + UNFINISHED_SECONDS) == "a frame or its headers did not end within 30 s"
    )
    gate.unfinished = 2
    watch.on_bytes(200.0)
    assert watch.look(200.0 + UNFINISHED_SECONDS - 0.1) is Due.NOTHING
    gate.unfinished = None
    watch.on_bytes(210.0)
    assert watch.look(1000.0) is Due.NOTHING


def test_a_connection_without_streams_has_a_deadline() -> None:
    """Counted from the end of the last one."""
    _, watch = _watch(streams=0)
    watch.on_bytes(159.0)
    assert watch.look(100.0 + IDLE_SECONDS - 0.1) is Due.NOTHING
    assert watch.look(100.0 + IDLE_SECONDS) == "no stream for 60 s"
    watch.on_streams(1, 160.0)
    watch.on_bytes(165.0)
    assert watch.look(170.0) is Due.NOTHING


@pytest.mark.parametrize("seconds", [20.0, 600.0])
async def test_the_task_looks_twice_in_an_interval_or_more_often(
    autojump_clock: trio.testing.MockClock, seconds: float
) -> None:
    """A ping goes out at most half an interval late.
    Long intervals do not delay the deadline of a frame.
    """
    gate = Gate()
    watch = Watch(gate, ping=seconds, is_server=True, now=trio.current_time())
    watch.on_streams(1, trio.current_time())
    began, pings, given_up = trio.current_time(), [], []
    gate.unfinished = 1 if seconds > 100 else None
    watch.on_bytes(began)
    await watch.run(lambda: pings.append(trio.current_time() - began), given_up.append)
    ended = trio.current_time() - began
    if seconds > 100:
        assert given_up == ["a frame or its headers did not end within 30 s"]
        assert UNFINISHED_SECONDS <= ended <= 1.5 * UNFINISHED_SECONDS
    else:
        assert len(pings) == 1
        assert seconds <= pings[0] <= 1.5 * seconds
        assert 2 * seconds <= ended <= 3 * seconds
