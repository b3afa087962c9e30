"""The drain of a connection that runs:
its message goes out at once, and a connection is quiet when nothing runs on it.
"""

from collections.abc import AsyncIterator

import trio
import trio.testing

import penstock
from penstock.runtime.connection._draining import drain_connection, is_quiet


async def test_the_message_goes_out_without_a_task_of_the_writer(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """The peer notes it, and nothing else is sent."""
    async with (
        penstock.serve(penstock.Service(), "memory://a") as server,
        penstock.connect("memory://a") as peer,
    ):
        await peer.wait_accepted()
        await trio.testing.wait_all_tasks_blocked()
        (connection,) = server._connections.running
        before = peer.statistics().received_bytes
        drain_connection(connection, trio.current_time() + 25.0)
        await trio.testing.wait_all_tasks_blocked()
        assert peer._connection.session.streams.drain.is_peer_draining
        assert peer.statistics().received_bytes - before == 5  # 45 03 a8 c3 01


async def test_a_connection_is_quiet_when_nothing_runs(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """Neither a stream, nor the cleanup of its publisher."""
    service, done = penstock.Service(), trio.Event()

    @service.publisher("slow-to-end")
    async def slow_to_end() -> AsyncIterator[bytes]:
        try:
            yield b"element"
            await trio.sleep_forever()
        finally:
            with trio.CancelScope(shield=True):
                await trio.sleep(3)
            done.set()

    async with (
        penstock.serve(service, "memory://a") as server,
        penstock.connect("memory://a") as peer,
    ):
        await peer.wait_accepted()
        await trio.testing.wait_all_tasks_blocked()
        (connection,) = server._connections.running
        assert is_quiet(connection)
        async with peer.subscribe("slow-to-end") as stream:
            await anext(stream)
            assert not is_quiet(connection)
        await trio.sleep(1)
        assert not is_quiet(connection)
        await done.wait()
        await trio.testing.wait_all_tasks_blocked()
        assert is_quiet(connection)
