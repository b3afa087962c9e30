"""`Service(lifespan=…)` opens what a service needs for as long as it is served."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
import trio

from penstock import aio
from penstock.api import ConnectionLost, UsageError
from penstock.logs import DiskLog, Retention
from penstock.runtime import Service, run, serve, subscribe

URL = "memory://lifespan"


class Steps:
    """A service that notes when its parts begin and end."""

    def __init__(self, *, fails: str = "") -> None:
        self.seen: list[str] = []
        self._fails = fails
        self.service = Service(lifespan=self.lifespan)
        self.service.publisher("endless")(self.endless)

    @asynccontextmanager
    async def lifespan(self) -> AsyncIterator[None]:
        self._step("opened")
        try:
            yield
        finally:
            self._step("closed")

    async def endless(self) -> AsyncIterator[bytes]:
        try:
            while True:
                yield b"again"
        finally:
            self.seen.append("the stream ended")

    def _step(self, name: str) -> None:
        self.seen.append(name)
        if name == self._fails:
            raise OSError(f"cannot be {name}")


async def _read_until_shutdown(started: trio.Event) -> None:
    with suppress(ConnectionLost):
        async with subscribe(f"{URL}/endless") as stream:
            async for _element in stream:
                started.set()


async def test_it_is_open_before_the_first_client_and_after_the_last_stream(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """A log in it is open under its readers."""
    steps, started = Steps(), trio.Event()
    async with trio.open_nursery() as nursery:
        async with serve(steps.service, URL):
            assert steps.seen == ["opened"]
            nursery.start_soon(_read_until_shutdown, started)
            await started.wait()
    assert steps.seen == ["opened", "the stream ended", "closed"]


async def test_one_service_is_served_twice() -> None:
    """Each server has its own."""
    steps = Steps()
    async with serve(steps.service, URL), serve(steps.service, "memory://other"):
        assert steps.seen == ["opened", "opened"]
    assert steps.seen[2:] == ["closed", "closed"]


async def test_nothing_is_served_if_it_cannot_be_opened() -> None:
    """The exception is its own."""
    steps = Steps(fails="opened")
    with pytest.raises(OSError, match="cannot be opened"):
        async with serve(steps.service, URL):
            pass
    with pytest.raises(ConnectionLost):
        async with subscribe(f"{URL}/endless") as stream:
            await anext(stream)


async def test_it_is_closed_if_no_address_can_be_opened() -> None:
    """In this order: it was open before."""
    steps = Steps()
    async with serve(Service(), URL):
        with pytest.raises(UsageError, match="memory://lifespan"):
            async with serve(steps.service, URL):
                pass
    assert steps.seen == ["opened", "closed"]


async def test_what_it_raises_at_the_end_is_raised() -> None:
    """The server has ended in good order before."""
    steps = Steps(fails="closed")
    with pytest.raises(OSError, match="cannot be closed"):
        async with serve(steps.service, URL):
            pass


def test_a_published_log_is_opened_by_the_program_that_serves_it(tmp_path: Path) -> None:
    """`run`, and ``penstock serve`` with it, has no other place for it."""
    log = DiskLog(tmp_path / "orders", retention=Retention(max_bytes=1_000_000))
    service = Service(lifespan=lambda: log)
    service.publish("orders", log)
    got: list[bytes] = []

    async def main(_: object) -> None:
        await log.append([b"one", b"two"])
        async with subscribe(f"{URL}/orders", start="earliest", stop="latest") as stream:
            got.extend([element async for element in stream])

    assert run(service, URL, main=main) == 0
    assert got == [b"one", b"two"]


def _returns_a_generator() -> Any:
    async def generator() -> AsyncIterator[None]:
        yield

    return generator()


async def test_a_function_that_returns_no_block_is_explained() -> None:
    """Its decorator was forgotten."""
    with pytest.raises(UsageError, match=r"contextlib\.asynccontextmanager"):
        async with serve(Service(lifespan=_returns_a_generator), URL):
            pass


def _with_a_parameter(_app: object) -> Any:
    raise AssertionError


@pytest.mark.parametrize(
    ("wrong", "text"),
    [
        (DiskLog, "is a class"),
        (7, "not callable"),
        (_with_a_parameter, "lifespan"),
    ],
)
def test_a_wrong_function_is_refused_at_once(wrong: Any, text: str) -> None:
    """Not when the service is served."""
    with pytest.raises(UsageError, match=text):
        Service(lifespan=wrong)


def test_a_service_of_asyncio_has_none() -> None:
    """It would run on trio; the program has a place for it."""
    with pytest.raises(UsageError, match=r"around `async with serve"):
        aio.Service(lifespan=_returns_a_generator)
