"""How many calls a poll of 20 elements takes from publisher to user, on both sides together.

The counts are those of Python functions of the project, without the transport in memory of these
tests: a count is the same on a busy machine.
"""

import sys
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path
from types import FrameType
from typing import Final

import penstock_http
import pytest
import trio
import trio.testing
from _site_in_memory import world
from test_source import Plugin as Client

import penstock
from penstock import Limits, Service, subscribe

FOLDERS: Final = tuple(f"{Path(package.__file__).parent}/" for package in (penstock, penstock_http))
"""The folders of the two packages, in the checkout or in the installed wheels."""

TRANSPORT: Final = ("transports/_memory_pipe.py", "spi/_transport.py")
"""The memory transport of this test."""

ELEMENTS: Final = 20
WARM_UP: Final = 10
COUNTED: Final = 9

START_OF_A_CALL: Final = 0
"""The argument of RESUME where a function begins; where a coroutine goes on it is another one."""


class Calls:
    """Counts the calls of the project's functions."""

    def __init__(self) -> None:
        self.of: Counter[tuple[str, str]] = Counter()

    def profile(self, frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        file = code.co_filename
        if (
            event == "call"
            and file.startswith(FOLDERS)
            and not file.endswith(TRANSPORT)
            and code.co_code[frame.f_lasti + 1] & 3 == START_OF_A_CALL
        ):
            self.of[file, code.co_qualname] += 1

    @property
    def total(self) -> int:
        return self.of.total()


def _service() -> Service:
    service = Service()

    @service.publisher("generated")
    async def generated() -> AsyncIterator[bytes]:
        while True:
            yield b"an element"

    @service.publisher("typed", serializer="json")
    async def typed() -> AsyncIterator[int]:
        while True:
            yield 7

    service.publish("listed", [b"an element"] * 10_000)
    return service


async def _poll(name: str) -> Calls:
    """Return the calls of the most expensive poll of some, after a warm-up: the tasks of the two
    sides take turns in one of two orders.
    """
    counted = [Calls() for _ in range(COUNTED)]
    limits = Limits(turn=1e9)  # the real clock never ends a turn
    async with (
        world(_service(), limits=limits, hosts="site"),
        subscribe(f"http://site/p/{name}", demand=0, registry=Client().registry) as stream,
    ):

        async def step() -> None:
            stream.request(ELEMENTS)
            for _ in range(ELEMENTS):
                await anext(stream)
            await trio.testing.wait_all_tasks_blocked()

        for _ in range(WARM_UP):
            await step()
        for calls in counted:
            before = sys.getprofile()
            sys.setprofile(calls.profile)
            try:
                await step()
            finally:
                sys.setprofile(before)
    return max(counted, key=lambda calls: calls.total)


@pytest.mark.parametrize(
    ("name", "most"),
    [("generated", 200), ("listed", 200), ("typed", 230 + 3 * ELEMENTS)],
    ids=["a generator", "a list", "a generator of JSON"],
)
async def test_a_poll_of_twenty_elements_takes_few_calls(
    name: str, most: int, autojump_clock: trio.testing.MockClock
) -> None:
    """The request and its answer included. A serializer takes three calls for an element, and its
    relay 30 for a poll.
    """
    calls = await _poll(name)
    assert 0 < calls.total <= most, (calls.total, calls.of.most_common(20))
