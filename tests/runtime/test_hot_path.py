"""How many calls one request, and one lone element, take from transport to user, and through how
many files: each is a file to read for a person who follows it.

Time passes between two of them, as it does in a program: a deadline may then be looked at. The
counts are those of Python functions of the project, without the transport in memory of these tests.
"""

import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from contextvars import ContextVar
from pathlib import Path
from types import FrameType
from typing import Final

import pytest
import trio
import trio.testing

import penstock
from penstock.api import Limits
from penstock.runtime import Peer, Service, connect, serve
from penstock.spi import DISABLE, build_registry

SIDE: ContextVar[str] = ContextVar("side", default="")
"""Tasks inherit it, and trio steps each task in its own context; so does the inline task runner."""

PACKAGE = f"{Path(penstock.__file__).parent}/"
"""The folder of the package, in the checkout or in the installed wheel."""

TRANSPORT = {"transports/_memory_pipe.py", "spi/_transport.py"}
"""The memory transport of this test."""

RUNTIME_FILES = 12
"""The bound for files of `penstock.runtime`, in every scenario and on each side."""

WARM_UP = 30
COUNTED = 9

LIMITS = Limits(turn=1e9)
"""The real clock never ends a turn, so each run takes the same steps."""

REGISTRY = build_registry(environ={DISABLE: "all"})
"""No plugin listens, because an installed one would add its cost."""

PAUSE = 0.1
"""Seconds between two steps: a chunk that comes sooner needs no look at the clock."""

Step = Callable[[], Awaitable[None]]

START_OF_A_CALL: Final = 0
"""The argument of RESUME where a function begins; where a coroutine goes on it is another one."""


class Calls:
    """Notes the calls of the project's functions, by side."""

    def __init__(self) -> None:
        self.of: dict[str, list[tuple[str, str]]] = {"client": [], "server": []}

    def profile(self, frame: FrameType, event: str, _: object) -> None:
        side = self.of.get(SIDE.get())
        if event != "call" or side is None:
            return
        code = frame.f_code
        _, mark, file = code.co_filename.rpartition(PACKAGE)
        if (
            mark
            and file not in TRANSPORT
            and code.co_code[frame.f_lasti + 1] & 3 == START_OF_A_CALL
        ):
            side.append((file, code.co_qualname))


def _service(topic: penstock.Topic[bytes]) -> Service:
    service = Service()
    service.publish("topic", topic)

    @service.request_response
    async def reverse(data: bytes) -> bytes:
        return data[::-1]

    @service.publisher("one")
    async def one() -> AsyncIterator[bytes]:
        yield b"one"

    return service


@asynccontextmanager
async def _request(peer: Peer, _topic: penstock.Topic[bytes]) -> AsyncIterator[Step]:
    async def step() -> None:
        assert await peer.request_response(b"abc") == b"cba"

    yield step


@asynccontextmanager
async def _subscribe(peer: Peer, _topic: penstock.Topic[bytes]) -> AsyncIterator[Step]:
    async def step() -> None:
        async with peer.subscribe("one") as stream:
            assert [element async for element in stream] == [b"one"]

    yield step


@asynccontextmanager
async def _element(peer: Peer, topic: penstock.Topic[bytes]) -> AsyncIterator[Step]:
    async with peer.subscribe("topic") as stream, trio.open_nursery() as nursery:
        received: list[bytes] = []

        async def read() -> None:
            while True:
                received.append(await anext(stream))

        async def step() -> None:
            token = SIDE.set("")  # calls of the publisher's program are not counted
            try:
                await topic.publish(b"element")
            finally:
                SIDE.reset(token)
            await trio.testing.wait_all_tasks_blocked()
            assert received.pop() == b"element"

        nursery.start_soon(read)
        await trio.testing.wait_all_tasks_blocked()
        yield step
        nursery.cancel_scope.cancel()


async def _count(
    protocol: str,
    scenario: Callable[..., AbstractAsyncContextManager[Step]],
    clock: trio.testing.MockClock,
    pause: float,
) -> dict[str, list[tuple[str, str]]]:
    """Return the calls on each side of the usual step: the median of some, after a warm-up.

    In some steps a deadline is looked at as well: once in a second, as long as there are requests.
    """
    counted, topic = [Calls() for _ in range(COUNTED)], penstock.Topic[bytes]()

    async def run_server(task_status: trio.TaskStatus[str]) -> None:
        SIDE.set("server")
        url = f"{protocol}+memory://hot"
        async with serve(_service(topic), url, limits=LIMITS, registry=REGISTRY) as serving:
            task_status.started(serving.addresses[0])
            await trio.sleep_forever()

    async def run_client(url: str) -> None:
        SIDE.set("client")
        async with (
            connect(url, limits=LIMITS, registry=REGISTRY) as peer,
            scenario(peer, topic) as step,
        ):
            for _ in range(WARM_UP):
                clock.jump(pause)
                await step()
            for calls in counted:
                await trio.testing.wait_all_tasks_blocked()
                clock.jump(pause)
                before = sys.getprofile()
                sys.setprofile(calls.profile)
                try:
                    await step()
                    await trio.testing.wait_all_tasks_blocked()
                finally:
                    sys.setprofile(before)

    async with trio.open_nursery() as nursery:
        await run_client(await nursery.start(run_server))
        nursery.cancel_scope.cancel()
    return {
        side: sorted((calls.of[side] for calls in counted), key=len)[COUNTED // 2]
        for side in ("client", "server")
    }


@pytest.mark.parametrize(
    ("protocol", "scenario", "client", "server"),
    [
        ("reactivesocket", _request, (60, 15), (60, 15)),
        ("reactivesocket", _element, (45, 16), (45, 16)),
        ("rsio", _element, (45, 16), (45, 16)),
    ],
    ids=["request", "element", "element, RS.io"],
)
async def test_a_lone_message_takes_few_calls_through_few_files(
    protocol: str,
    scenario: Callable[..., AbstractAsyncContextManager[Step]],
    client: tuple[int, int],
    server: tuple[int, int],
    mock_clock: trio.testing.MockClock,
) -> None:
    """`client` and `server` are the most calls, and the most files. The last message was some
    time ago. So a look at all deadlines with each message would be counted.
    """
    of = await _count(protocol, scenario, mock_clock, PAUSE)
    for side, (most_calls, most_files) in (("client", client), ("server", server)):
        files = {file for file, _ in of[side]}
        assert 0 < len(of[side]) <= most_calls, of[side]
        assert 0 < len(files) <= most_files, sorted(files)


@pytest.mark.parametrize(
    ("protocol", "scenario", "client", "server"),
    [
        ("reactivesocket", _request, 12, 12),
        # One of them is the window of bytes, which a request for one value does not have, and three
        # are the choice of what reads elements: one is the relay from which it derives.
        # One file has the options of a stream, which all clients share, and one the outbox.
        ("reactivesocket", _subscribe, 21, 25),
        # The stream is announced, by an extension:
        # that is seven files at the client, and four at the server.
        ("rsio", _subscribe, 27, 32),
    ],
    ids=["request", "stream of one", "stream of one, RS.io"],
)
async def test_a_request_passes_few_files(
    protocol: str,
    scenario: Callable[..., AbstractAsyncContextManager[Step]],
    client: int,
    server: int,
    mock_clock: trio.testing.MockClock,
) -> None:
    """`client` and `server` are bounds for all layers together, without the transport.
    Time stands still.
    """
    of = await _count(protocol, scenario, mock_clock, 0.0)
    for side, bound in (("client", client), ("server", server)):
        passed = {file for file, _ in of[side]}
        assert len(passed) <= bound, sorted(passed)
        own = [file for file in passed if file.startswith("runtime/")]
        assert 0 < len(own) <= RUNTIME_FILES, sorted(passed)
