"""A transport is closed in time, whatever it does."""

from typing import Any

import trio

from penstock.runtime.connection._goodbye import close
from penstock.testing import run_virtual


class Stubborn:
    """A transport that ends as it was told to."""

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
    """Close a transport; return what was called, what was told, and how long it took."""
    transport, told = Stubborn(how), list[Exception]()

    async def main() -> float:
        connection: Any = transport
        await close(connection, in_good_order=in_good_order, seconds=3, on_violation=told.append)
        return trio.current_time()

    async def timed() -> float:
        began = trio.current_time()
        return await main() - began

    return transport.log, told, run_virtual(timed)


def test_what_closes_well_is_not_aborted() -> None:
    """One call is enough."""
    assert closed(trio.lowlevel.checkpoint) == (["aclose"], [], 0)


def test_what_does_not_close_in_time_is_aborted() -> None:
    """After the time it has."""
    assert closed(trio.sleep_forever) == (["aclose", "abort"], [], 3)


def test_what_raises_is_told_of_and_aborted() -> None:
    """It is somebody's plugin, and its fault should not be lost."""

    async def breaks() -> None:
        raise ValueError("broken")

    log, told, _ = closed(breaks)
    assert log == ["aclose", "abort"]
    assert [str(error) for error in told] == ["broken"]


def test_where_the_peer_shall_not_hear_of_a_good_end_it_is_aborted_at_once() -> None:
    """A cut, not an end."""
    assert closed(trio.sleep_forever, in_good_order=False) == (["abort"], [], 0)
