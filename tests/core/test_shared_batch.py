"""A pump puts elements that are alike into the run of a subscriber that gathers; every other one is signalled, and every count holds."""

from typing import Any

import pytest
import trio

from penstock.api import UsageError
from penstock.core._pump import Pump
from penstock.core._shared_batch import NO_BATCH
from tests.core._foreign import Heard
from tests.core._helpers import ViolationSink, quiet


class Filled:
    """A run as a subscriber makes it."""

    def __init__(self, length: int) -> None:
        self.elements: list[bytes] = []
        self.length = length


class Gathering(Heard):
    """Signals are written down; the first `bytes` of a length begins a run of that length."""

    def __init__(self, **hooks: Any) -> None:
        super().__init__(**hooks)
        self.run: Filled | None = None
        self.gathered: list[int] = []

    def on_next(self, element: Any, /) -> None:
        super().on_next(element)
        if self.run is None and type(element) is bytes:
            self.run = Filled(len(element))

    def on_reservation_used(self) -> None:
        assert self.run is not None
        self.gathered.append(len(self.run.elements))

    def close(self) -> list[bytes]:
        """Take the run, as a writer does that comes for it."""
        run, self.run = self.run, None
        assert run is not None
        run.length = -1
        return run.elements


class Pumped:
    """A pump of a generator over a subscriber that gathers."""

    def __init__(self, nursery: trio.Nursery, generator: Any, **hooks: Any) -> None:
        self.told = ViolationSink(nursery)
        self.heard = Gathering(**hooks)
        self.pump: Pump[Any] = Pump(generator, self.heard, self.told.scope, label="letters")

    async def ask(self, n: int) -> None:
        self.pump.request(n)
        await quiet()

    @property
    def elements(self) -> list[bytes]:
        assert self.heard.run is not None
        return self.heard.run.elements

    @property
    def ends(self) -> list[str]:
        return [entry[0] for entry in self.heard.log if entry[0] != "on_next"]


def letters(*elements: Any) -> Any:
    """A function that makes a generator of these."""

    async def generator() -> Any:
        for element in elements:
            yield element

    return generator


async def test_what_is_like_the_first_one_is_put_into_the_run(nursery: trio.Nursery) -> None:
    """One call for many elements, and another when all that was requested is there."""
    pumped = Pumped(nursery, letters(b"a", b"b", b"c", b"d"))
    await pumped.ask(3)
    assert (pumped.heard.elements, pumped.elements, pumped.heard.gathered) == ([b"a"], [b"b", b"c"], [2])


async def test_no_more_is_put_there_than_was_requested(nursery: trio.Nursery) -> None:
    """Rule 1.1: the generator itself is not asked for one more."""
    pulled: list[int] = []

    async def watched() -> Any:
        for number in range(1000):
            pulled.append(number)
            yield b"%3d" % number

    pumped = Pumped(nursery, watched)
    for n in (1, 5, 60, 300):
        await pumped.ask(n)
    assert (len(pulled), len(pumped.elements)) == (366, 365)
    assert [b"%3d" % number for number in range(1, 366)] == pumped.elements


@pytest.mark.parametrize("other", [bytearray(b"x"), memoryview(b"x"), "x", b"xx", b"", type("Bytes", (bytes,), {})(b"x"), 1])
async def test_what_differs_is_signalled(nursery: trio.Nursery, other: Any) -> None:
    """Another length, another type, even one that is nearly bytes: only bytes cannot change while they wait."""
    pumped = Pumped(nursery, letters(b"a", b"b", other, b"c"))
    await pumped.ask(4)
    assert pumped.heard.elements == [b"a", other]
    assert pumped.elements == [b"b", b"c"]
    assert pumped.heard.gathered == [2]


async def test_none_is_told_with_its_place(nursery: trio.Nursery) -> None:
    """Rule 2.13; what is in the run counts."""
    pumped = Pumped(nursery, letters(b"a", b"b", b"c", None))
    await pumped.ask(10)
    error = pumped.heard.log[-1][1]
    assert isinstance(error, UsageError)
    assert "yielded None at position 3 " in str(error)
    assert pumped.elements == [b"b", b"c"]


async def test_the_end_comes_behind_what_was_gathered(nursery: trio.Nursery) -> None:
    """And nobody says before it that all has been gathered: it has not."""
    pumped = Pumped(nursery, letters(b"a", b"b", b"c"))
    await pumped.ask(10)
    assert (pumped.elements, pumped.ends, pumped.heard.gathered) == ([b"b", b"c"], ["on_complete"], [])


async def test_an_element_is_there_while_the_generator_waits_for_the_next(nursery: trio.Nursery) -> None:
    """The writer that comes meanwhile takes it, and the next one is signalled: somebody must tell the writer to come again."""
    go_on = trio.Event()

    async def waiting() -> Any:
        yield b"a"
        yield b"b"
        await go_on.wait()
        yield b"c"
        yield b"d"

    pumped = Pumped(nursery, waiting)
    await pumped.ask(10)
    assert pumped.heard.close() == [b"b"]
    go_on.set()
    await quiet()
    assert pumped.heard.elements == [b"a", b"c"]
    assert pumped.elements == [b"d"]


@pytest.mark.parametrize("stop", ["cancel", "scope"])
async def test_nothing_is_put_there_after_the_end(nursery: trio.Nursery, stop: str) -> None:
    """Rule 3.6: not even by a generator that answers a cancellation with an element."""

    async def stubborn() -> Any:
        yield b"a"
        yield b"b"
        try:
            await trio.sleep_forever()
        except trio.Cancelled:
            yield b"c"
        yield b"d"

    pumped = Pumped(nursery, stubborn)
    await pumped.ask(10)
    run = pumped.heard.run
    assert run is not None
    if stop == "cancel":
        pumped.pump.cancel()
    else:
        pumped.told.scope.cancel()
    await quiet()
    assert (run.elements, run.length, pumped.heard.elements) == ([b"b"], -1, [b"a"])
    assert NO_BATCH.length == -1


async def test_a_subscriber_that_cancels_in_a_signal_gets_nothing_more(nursery: trio.Nursery) -> None:
    """Neither way."""
    pumped = Pumped(nursery, letters(b"a", b"b", b"cc", b"d"), on_next=lambda element: element == b"cc" and pumped.pump.cancel())
    await pumped.ask(10)
    assert (pumped.heard.elements, pumped.elements) == ([b"a", b"cc"], [b"b"])


async def test_asking_where_all_has_been_gathered_goes_on(nursery: trio.Nursery) -> None:
    """A subscriber may request in `on_gathered`, as it may in `on_next`."""
    pumped = Pumped(nursery, letters(*[b"x"] * 10))
    asked: list[int] = []
    gathered = pumped.heard.on_reservation_used

    def ask_again() -> None:
        gathered()
        if len(asked) < 2:
            asked.append(3)
            pumped.pump.request(3)

    pumped.heard.on_reservation_used = ask_again  # type: ignore[method-assign]  # as a subscriber of another kind would have it
    await pumped.ask(2)
    assert (pumped.heard.gathered, len(pumped.elements)) == ([1, 4, 7], 7)
