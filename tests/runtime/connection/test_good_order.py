"""A peer that leaves in good order over ReactiveSocket closes the transport, and no error is
reported. One that leaves a stream is lost.
"""

import pytest
import trio
import trio.testing

from penstock.api import ConnectionLost
from penstock.protocols import reactivesocket as rs
from penstock.runtime import connect, serve
from tests.protocols.reactivesocket._pair import RawSocket
from tests.runtime._observer import Observer
from tests.runtime._services import numbers_service, raw_connection

URL = "reactivesocket+memory://test"
SETUP = rs.encode(rs.Setup())


async def closed_after(said: bytes) -> tuple[str, BaseException | None]:
    """Connect, send `said`, leave, and return the reason
    and the error of the event on the server's side.
    """
    observer = Observer()
    async with (
        trio.open_nursery() as nursery,
        serve(numbers_service(), "memory://test", registry=observer.registry()),
    ):
        raw = await raw_connection(nursery)
        await raw.send(said)
        await trio.testing.wait_all_tasks_blocked()
        await raw.aclose()
        await trio.sleep(5)
        (event,) = observer.closed
    return event.reason, event.error


async def test_a_client_that_leaves_is_reported_as_closed_on_both_sides(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """Also while a stream that it has opened runs: it has stopped reading."""
    observer = Observer()
    async with serve(numbers_service(), URL, registry=observer.registry()) as server:
        async with connect(server.addresses[0], registry=observer.registry()) as peer:
            async with peer.subscribe("numbers/3", serializer="json") as stream:
                assert [number async for number in stream] == [0, 1, 2]
        await trio.sleep(5)
        async with connect(server.addresses[0], registry=observer.registry()) as peer:
            stream = await peer.subscribe("endless").__aenter__()
            await anext(stream)
        await trio.sleep(5)
    assert [(event.reason, event.error) for event in observer.closed] == [("closed", None)] * 4


async def test_an_end_between_two_frames_is_a_goodbye(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """It is all that the draft has."""
    assert await closed_after(SETUP) == ("closed", None)


async def test_an_end_within_a_frame_is_a_loss(autojump_clock: trio.testing.MockClock) -> None:
    """The event has the error."""
    reason, error = await closed_after(SETUP + rs.encode(rs.Cancel(stream_id=1))[:-1])
    assert reason == "lost"
    assert isinstance(error, ConnectionLost)


def test_a_reset_is_a_loss() -> None:
    """The session is told whether the peer has closed its side or the transport has failed."""
    for is_clean, reason in ((True, "closed"), (False, "lost")):
        raw = RawSocket().handshake()
        raw.session.end_of_input(is_clean=is_clean)
        assert raw.session.close_reason[0] == reason


async def test_a_publisher_that_leaves_its_stream_is_lost(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """Its subscriber waits for elements, or for an end of the stream."""
    observer = Observer()
    async with (
        trio.open_nursery() as nursery,
        serve(numbers_service(), "memory://test", registry=observer.registry()) as server,
    ):
        raw = await raw_connection(nursery)
        await raw.send(SETUP)
        await trio.testing.wait_all_tasks_blocked()
        (peer,) = server.peers
        async with peer.subscribe("numbers") as stream:
            await trio.testing.wait_all_tasks_blocked()
            await raw.aclose()
            with pytest.raises(ConnectionLost, match="without a goodbye"):
                await anext(stream)
        await trio.sleep(5)
        assert [event.reason for event in observer.closed] == ["lost"]
