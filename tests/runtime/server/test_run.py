"""`penstock.run`: a service as a program, which ends in good order at the first signal,
and at once at the second.
"""

import gc
import logging
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import trio
import trio.testing

from penstock.api import ConnectionLost, Limits, UsageError
from penstock.runtime import (
    Server,
    Service,
    describe_streams,
    run,
    serve,
    serve_until_signal,
    subscribe,
)
from penstock.runtime.server._collector import THRESHOLDS
from penstock.streams import Topic
from tests._real_time import HANGS_AFTER
from tests.cli._programs import interruptible, signal_until_it_ends
from tests.runtime._services import numbers_service

pytestmark = pytest.mark.slow  # each test starts a program

ROOT = Path(__file__).parents[3]
URL = "memory://run"
LATE, NEVER = 0.3, 1e6
"""Values of `Limits.drain`: one that is over soon, and one that never is."""

STUBBORN = ["shielding", "shielded", "blocking", "spinning", "threaded"]


@contextmanager
def program(drain: float) -> Iterator[tuple["subprocess.Popen[str]", str]]:
    """Run the program with publishers that do not end. Yield it and its address."""
    command = [sys.executable, "-m", "tests.runtime.server._stubborn_program", str(drain)]
    with (
        interruptible(),
        subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE, text=True) as started,
    ):
        try:
            assert started.stderr is not None
            yield started, started.stderr.readline().strip()
        finally:
            started.kill()


async def read_until_signalled(
    name: str, drain: float, first: signal.Signals, again: signal.Signals | None = None
) -> tuple[int, str, str]:
    """Subscribe to `name`, send `first`, and `again` until the program has ended.

    Return the exit status, the error of the stream, and the messages of the program.
    """
    with program(drain) as (started, address):
        error = ""
        assert started.stderr is not None
        try:
            async with subscribe(f"{address}/{name}") as stream:
                assert await trio.to_thread.run_sync(started.stderr.readline) == "is there\n"
                started.send_signal(first)
                if again is None:
                    status = await trio.to_thread.run_sync(started.wait, HANGS_AFTER)
                else:
                    status = await trio.to_thread.run_sync(signal_until_it_ends, started, again)
                async for _ in stream:
                    pass
        except ConnectionLost as lost:
            error = str(lost)
        return status, error, started.stderr.read()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT], ids=["SIGTERM", "SIGINT"])
async def test_the_first_signal_ends_the_program_in_good_order(number: signal.Signals) -> None:
    """The peer gets a goodbye with the reason, the status is 0, and nothing is written. SIGTERM
    gives the stream its time before.
    """
    status, error, messages = await read_until_signalled(
        "polite", LATE if number is signal.SIGTERM else NEVER, number
    )
    assert (status, messages) == (0, "")
    assert "'shutdown'" in error


@pytest.mark.parametrize("name", STUBBORN)
async def test_a_program_with_a_publisher_that_does_not_end_ends_after_drain(name: str) -> None:
    """The status is that of a program that the signal has killed, and one line says why."""
    status, _, messages = await read_until_signalled(name, LATE, signal.SIGTERM)
    assert status == 128 + signal.SIGTERM
    assert messages.count("\n") == 1
    assert "0.3 s (Limits.drain) after SIGTERM something still runs" in messages


@pytest.mark.parametrize("name", STUBBORN)
async def test_the_second_signal_ends_the_program_at_once(name: str) -> None:
    """The time to drain is not over. The status is that of the second signal."""
    status, _, messages = await read_until_signalled(name, NEVER, signal.SIGTERM, signal.SIGINT)
    assert status == 128 + signal.SIGINT
    assert messages == "penstock: SIGINT came again; the process was ended at once\n"


def test_a_drain_is_described_with_the_names_of_most_streams() -> None:
    """A request without a name is only counted."""
    assert describe_streams({"ticks/{symbol}": 1}) == "1 stream (1 of ticks/{symbol})"
    many = {"a": 1, "b": 5, "c": 1, "": 2, "d": 7}
    assert describe_streams(many) == "16 streams (7 of d, 5 of b, 2 of other requests, 2 of others)"


# --- in this process


def test_main_goes_on_while_the_server_drains(caplog: pytest.LogCaptureFixture) -> None:
    """Streams that run may need what it publishes. The log says what is waited for."""
    topic: Topic[bytes] = Topic()
    service, got = Service(), list[bytes]()
    service.publish("fed", topic)

    async def main(server: Server) -> None:
        async with trio.open_nursery() as nursery, subscribe(f"{URL}/fed") as stream:
            await trio.testing.wait_all_tasks_blocked()
            signal.raise_signal(signal.SIGTERM)
            while not server.peers[0]._connection.session.streams.drain.until:
                await trio.lowlevel.checkpoint()
            nursery.start_soon(topic.publish, b"late")
            got.append(await anext(stream))

    caplog.set_level(logging.INFO, logger="penstock.run")
    assert run(service, URL, main=main) == 0
    assert got == [b"late"]
    assert "waiting for 1 stream (1 of fed), at most 22 s" in caplog.messages


@pytest.fixture(autouse=True)
def _restored_collector() -> Iterator[None]:
    before = gc.get_threshold()
    yield
    gc.set_threshold(*before)


def test_the_collector_is_set_when_the_server_listens() -> None:
    """`run` is the whole program: a full collection would hold up its connections."""
    found: list[tuple[int, int, int]] = []

    async def look(_: Server) -> None:
        found.append(gc.get_threshold())

    assert run(numbers_service(), URL, main=look) == 0
    assert found == [THRESHOLDS]


async def raise_signal(_: Server) -> None:
    signal.raise_signal(signal.SIGTERM)
    await trio.sleep_forever()


def test_addresses_and_signals_are_logged(caplog: pytest.LogCaptureFixture) -> None:
    """At level INFO, so that a program without a configuration of its log writes nothing."""
    caplog.set_level(logging.INFO, logger="penstock.run")
    assert run(numbers_service(), URL, main=raise_signal) == 0
    assert caplog.messages == [f"serving at {URL}", "SIGTERM: shutting down", "stopped"]


def test_the_signal_handlers_of_before_are_restored() -> None:
    """Another part of the program may have set them."""
    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    assert run(numbers_service(), URL, main=raise_signal) == 0
    assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)] == before


def test_the_end_of_main_ends_the_program_in_good_order(caplog: pytest.LogCaptureFixture) -> None:
    """The status is 0, and nothing listens any more."""
    servers: list[Server] = []

    async def main(server: Server) -> None:
        async with subscribe(f"{URL}/numbers/3", serializer="json") as stream:
            assert [element async for element in stream] == [0, 1, 2]
        servers.append(server)

    caplog.set_level(logging.INFO, logger="penstock.run")
    assert run(numbers_service(), URL, main=main) == 0
    assert caplog.messages == [f"serving at {URL}", "stopped"]
    assert [server.peers for server in servers] == [()]


def test_an_exception_of_main_is_raised_as_it_is() -> None:
    """Not in a group: the nurseries are those of penstock."""

    async def main(_: Server) -> None:
        raise ValueError("in main")

    with pytest.raises(ValueError, match="in main"):
        run(numbers_service(), URL, main=main)


def test_an_error_of_serve_is_raised_as_it_is() -> None:
    """No address could be opened, and `main` was not called."""

    async def main(_: Server) -> None:
        raise AssertionError("called")

    with pytest.raises(UsageError, match="pigeon"):
        run(numbers_service(), "pigeon://a", main=main)
    with pytest.raises(UsageError, match="cannot listen"):
        run(numbers_service(), "tcp://192.0.2.1:1", main=main, insecure=True)


async def test_run_inside_trio_is_an_error_that_names_serve() -> None:
    """It would block the run loop."""
    with pytest.raises(UsageError, match=r"penstock\.serve"):
        run(numbers_service(), URL)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_main_is_cancelled_when_the_streams_have_ended(number: signal.Signals) -> None:
    """A log that it has opened is open until the last stream that reads it has ended."""
    service, ended = Service(), list[str]()

    @service.publisher("endless")
    async def endless() -> AsyncIterator[bytes]:
        try:
            while True:
                yield b"again"
        finally:
            ended.append("the stream")

    async def read() -> None:
        with pytest.raises(ConnectionLost, match="shutdown"):
            async with subscribe(f"{URL}/endless") as stream:
                async for _element in stream:
                    if not ended:
                        signal.raise_signal(number)
                        ended.append("the signal")

    async def main(_: Server) -> None:
        trio.lowlevel.spawn_system_task(read)  # not a part of `main`
        try:
            await trio.sleep_forever()
        finally:
            ended.append("main")

    limits = Limits(drain=3.0, linger=0.1, goodbye_timeout=0.5)
    assert run(service, URL, main=main, limits=limits) == 0
    assert ended == ["the signal", "the stream", "main"]


async def test_serving_ends_without_a_signal_when_no_client_can_come() -> None:
    """As `Server.wait_over` says. The function for the signal is not called."""

    class Over(Server):
        async def wait_over(self) -> None:
            await trio.lowlevel.checkpoint()

    server = serve(numbers_service(), URL)
    assert isinstance(server, Server)
    server.__class__ = Over
    seen: list[object] = []
    assert (
        await serve_until_signal(server, drain=1.0, on_serving=seen.append, on_signal=seen.append)
        == 0
    )
    assert seen == [server]
