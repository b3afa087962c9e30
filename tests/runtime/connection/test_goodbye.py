"""A transport is closed in time."""

from typing import Any

import trio

from penstock.runtime.connection._goodbye import close
from penstock.testing import run_virtual


class Stubborn:
    """A transport that closes as the test tells it to."""

    def __init__(self, aclose: Any) -> None:
        self._aclose = aclose
        self.log: list[str] = []

    async def aclose(self) -> None:
        """Close in good order."""
        self.log.append("aclose")
        await self._aclose()

    async def abort(self) -> None:
        """Close at once."""
        self.log.append("abort")


def closed(how: Any, *, in_good_order: bool = True) -> tuple[list[str], list[Exception], float]:
    """Close a transport; return the calls, the reports, and the seconds."""
    transport, told = Stubborn(how), list[Exception]()

    async def main() -> float:
        connection: Any = transport
        await close(connection, in_good_order=in_good_order, seconds=3, on_violation=told.append)
        return trio.current_time()

    async def timed() -> float:
        began = trio.current_time()
        return await main() - began

    return transport.log, told, run_virtual(timed)


def test_a_good_close_is_not_followed_by_an_abort() -> None:
    """One call is enough."""
    assert closed(trio.lowlevel.checkpoint) == (["aclose"], [], 0)


def test_a_close_that_takes_too_long_is_aborted() -> None:
    """The transport is aborted when the deadline of the close has passed."""
    assert closed(trio.sleep_forever) == (["aclose", "abort"], [], 3)


def test_a_close_that_raises_is_reported_and_aborted() -> None:
    """The transport is a plugin, and its fault must not be lost."""

    async def breaks() -> None:
        raise ValueError("broken")

    log, told, _ = closed(breaks)
    assert log == ["aclose", "abort"]
    assert [str(error) for error in told] == ["broken"]


def test_an_end_that_is_not_in_good_order_is_an_abort() -> None:
    """The peer must see a cut, and not an end."""
    assert closed(trio.sleep_forever, in_good_order=False) == (["abort"], [], 0)


def test_a_close_under_which_another_task_has_closed_the_transport_is_not_reported() -> None:
    """Nothing failed. An abort makes sure that it is closed."""

    async def already_closed() -> None:
        raise trio.ClosedResourceError("this socket was already closed")

    assert closed(already_closed) == (["aclose", "abort"], [], 0)
