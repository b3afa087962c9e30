"""The price of observers: the same elements and requests with a plugin that listens to streams
on both sides, and with none.
"""

from functools import partial
from time import perf_counter
from typing import Final

from campaigns.bench._bulk import nanoseconds_each, over_trio, read_elements, time_subscription
from campaigns.bench._measure import Bar, Group, Opening
from penstock.spi import Registry, StreamEnded, StreamOpened, build_registry, hookimpl

_OBSERVED: Final = "with observers of streams on both sides"
_PLAIN: Final = "without observers"


class Observer:
    """Listens to streams, and does nothing with them: the work of an observer is its own price."""

    @hookimpl
    def penstock_stream_opened(self, event: StreamOpened) -> None:
        """Do nothing."""

    @hookimpl
    def penstock_stream_ended(self, event: StreamEnded) -> None:
        """Do nothing."""


def observed_registry() -> Registry:
    """Return the installed plugins and an observer."""
    return build_registry([Observer()])


async def read_observed(port: int, size: int, count: int) -> float:
    """Connect with an observer, and read one stream with `async for`."""
    from penstock.runtime import connect

    async with connect(f"tcp://127.0.0.1:{port}", registry=observed_registry()) as remote:
        await remote.wait_accepted()
        return await time_subscription(remote, size, count)


async def ask(port: int, _size: int, count: int, *, is_observed: bool) -> float:
    """Connect, and ask for one value again and again."""
    from penstock.runtime import connect

    registry = observed_registry() if is_observed else build_registry()
    async with connect(f"tcp://127.0.0.1:{port}", registry=registry) as remote:
        await remote.wait_accepted()
        began = perf_counter()
        for _ in range(count):
            await remote.request("one")
        return nanoseconds_each(began, count)


def _elements(short: bool) -> dict[str, Opening]:
    count = 100_000 if short else 400_000
    return {
        _PLAIN: partial(over_trio, "penstock", read_elements, 64, count),
        _OBSERVED: partial(over_trio, "penstock_observed", read_observed, 64, count),
    }


def _requests(short: bool) -> dict[str, Opening]:
    count = 500 if short else 2_000
    return {
        _PLAIN: partial(over_trio, "penstock_raised", partial(ask, is_observed=False), 64, count),
        _OBSERVED: partial(
            over_trio, "penstock_observed", partial(ask, is_observed=True), 64, count
        ),
    }


GROUPS: Final[tuple[Group, ...]] = (
    Group(
        "observed",
        "Elements of 64 bytes with and without observers",
        "element",
        _PLAIN,
        _elements,
        (Bar("64 B by element, observed", _OBSERVED, _PLAIN, at_most=1.25),),
    ),
    Group(
        "watched-trips",
        "Requests for one value with and without observers",
        "request",
        _PLAIN,
        _requests,
        (Bar("a request, observed", _OBSERVED, _PLAIN, at_most=1.5),),
    ),
)
