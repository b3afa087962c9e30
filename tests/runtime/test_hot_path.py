"""How many files of the project one request and its response pass, on each side: each is a file
to read for a person who follows it.
"""

import sys
from collections.abc import AsyncIterator, Callable
from contextvars import ContextVar
from pathlib import Path
from types import FrameType

import pytest
import trio
import trio.testing

import penstock
from penstock.api import Limits
from penstock.runtime import Peer, Service, connect, serve

SIDE: ContextVar[str] = ContextVar("side", default="")
"""Tasks inherit it, and trio steps each task in its own context; so does the inline task runner."""

PACKAGE = f"{Path(penstock.__file__).parent}/"
"""The folder of the package, in the checkout or in the installed wheel."""

TRANSPORT = {"transports/_memory_pipe.py", "spi/_transport.py"}
"""The memory transport of this test."""

RUNTIME_FILES = 12
"""The bound for files of `penstock.runtime`, in every scenario and on each side."""

WARM_UP = 30

LIMITS = Limits(turn=1e9)
"""The real clock never ends a turn, so each run takes the same steps."""


class Files:
    """Notes the files of the project in which a function is called, by side."""

    def __init__(self) -> None:
        self.of: dict[str, set[str]] = {"client": set(), "server": set()}

    def profile(self, frame: FrameType, event: str, _: object) -> None:
        if event == "call":
            _, mark, file = frame.f_code.co_filename.rpartition(PACKAGE)
            if mark and SIDE.get():
                self.of[SIDE.get()].add(file)


def _service() -> Service:
    service = Service()

    @service.request_response
    async def reverse(data: bytes) -> bytes:
        return data[::-1]

    @service.publisher("one")
    async def one() -> AsyncIterator[bytes]:
        yield b"one"

    return service


async def _request(peer: Peer) -> None:
    assert await peer.request_response(b"abc") == b"cba"


async def _subscribe(peer: Peer) -> None:
    async with peer.subscribe("one") as stream:
        assert [element async for element in stream] == [b"one"]


@pytest.mark.parametrize(
    ("protocol", "act", "client", "server"),
    [
        ("reactivesocket", _request, 12, 12),
        # One of them is the window of bytes, which a request for one value does not have, and three
        # are the choice of what reads elements: one is the relay from which it derives.
        ("reactivesocket", _subscribe, 19, 25),
        # The stream is announced, by an extension:
        # that is seven files at the client, and four at the server.
        ("rsio", _subscribe, 27, 32),
    ],
    ids=["request", "stream of one", "stream of one, RS.io"],
)
async def test_a_request_passes_few_files(
    protocol: str,
    act: Callable[[Peer], object],
    client: int,
    server: int,
    mock_clock: trio.testing.MockClock,
) -> None:
    """`client` and `server` are bounds for all layers together, without the transport. Time
    stands still: no timer is due.
    """
    files = Files()

    async def run_server(task_status: trio.TaskStatus[str]) -> None:
        SIDE.set("server")
        async with serve(_service(), f"{protocol}+memory://hot", limits=LIMITS) as serving:
            task_status.started(serving.addresses[0])
            await trio.sleep_forever()

    async def run_client(url: str) -> None:
        SIDE.set("client")
        async with connect(url, limits=LIMITS) as peer:
            for _ in range(WARM_UP):
                await act(peer)  # type: ignore[misc]  # each is an async function
            await trio.testing.wait_all_tasks_blocked()
            before = sys.getprofile()
            sys.setprofile(files.profile)
            try:
                await act(peer)  # type: ignore[misc]  # as above
                await trio.testing.wait_all_tasks_blocked()
            finally:
                sys.setprofile(before)

    async with trio.open_nursery() as nursery:
        await run_client(await nursery.start(run_server))
        nursery.cancel_scope.cancel()
    for side, bound in (("client", client), ("server", server)):
        passed = files.of[side] - TRANSPORT
        assert len(passed) <= bound, sorted(passed)
        assert 0 < len([file for file in passed if file.startswith("runtime/")]) <= RUNTIME_FILES, (
            sorted(passed)
        )
