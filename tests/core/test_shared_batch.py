"""A pump appends elements that fit to the batch that its subscriber lends, and signals the
others. Every count includes both.
"""

from typing import Any, Self

import pytest
import trio

from penstock.api import UsageError
from penstock.core._pump import NO_BATCH, Pump
from tests.core._foreign import Recorder
from tests.core._helpers import Reports, quiet


class Batch:
    """A batch as a subscriber makes it."""

    def __init__(self, longest: int) -> None:
        self.elements: list[bytes] = []
        self.longest = longest


class BatchingRecorder(Recorder):
    """Records signals; the first `bytes` element opens a batch for elements up to its length."""

    def __init__(self, **hooks: Any) -> None:
        super().__init__(**hooks)
        self.run: Batch | None = None
        self.used_up: list[int] = []

    def on_next(self, element: Any, /) -> None:
        super().on_next(element)
        if self.run is None and type(element) is bytes:
            self.run = Batch(len(element))

    @property
    def lender(self) -> Self:
        return self

    def on_reservation_used(self) -> None:
        assert self.run is not None
        self.used_up.append(len(self.run.elements))

    def close(self) -> list[bytes]:
        """Take the batch, as a writer does."""
        run, self.run = self.run, None
        assert run is not None
        run.longest = -1
        return run.elements


class PumpHarness:
    """A pump of a generator, with a subscriber that lends its batch."""

    def __init__(self, nursery: trio.Nursery, generator: Any, **hooks: Any) -> None:
        self.reports = Reports(nursery)
        self.recorder = BatchingRecorder(**hooks)
        self.pump: Pump[Any] = Pump(generator, self.recorder, self.reports.scope, label="letters")

    async def ask(self, n: int) -> None:
        self.pump.request(n)
        await quiet()

    @property
    def elements(self) -> list[bytes]:
        assert self.recorder.run is not None
        return self.recorder.run.elements

    @property
    def ends(self) -> list[str]:
        return [entry[0] for entry in self.recorder.log if entry[0] != "on_next"]


def letters(*elements: Any) -> Any:
    """Return a function that makes a generator of these elements."""

    async def generator() -> Any:
        for element in elements:
            yield element

    return generator


async def test_shorter_and_empty_elements_are_appended(nursery: trio.Nursery) -> None:
    """Any length up to `longest` fits."""
    harness = PumpHarness(nursery, letters(b"four", b"two", b"", b"4444", b"12345", b"1"))
    await harness.ask(6)
    assert (harness.recorder.elements, harness.elements) == (
        [b"four", b"12345"],
        [b"two", b"", b"4444", b"1"],
    )


async def test_elements_of_the_batchs_length_are_appended(nursery: trio.Nursery) -> None:
    """One call for many elements, and another one when all that was requested has been appended."""
    harness = PumpHarness(nursery, letters(b"a", b"b", b"c", b"d"))
    await harness.ask(3)
    assert (harness.recorder.elements, harness.elements, harness.recorder.used_up) == (
        [b"a"],
        [b"b", b"c"],
        [2],
    )


async def test_no_more_than_the_demand_is_appended(nursery: trio.Nursery) -> None:
    """Rule 1.1: the generator is not pulled even once more."""
    pulled: list[int] = []

    async def watched() -> Any:
        for number in range(1000):
            pulled.append(number)
            yield b"%3d" % number

    harness = PumpHarness(nursery, watched)
    for n in (1, 5, 60, 300):
        await harness.ask(n)
    assert (len(pulled), len(harness.elements)) == (366, 365)
    assert [b"%3d" % number for number in range(1, 366)] == harness.elements


@pytest.mark.parametrize(
    "other", [bytearray(b"x"), memoryview(b"x"), "x", b"xx", type("Bytes", (bytes,), {})(b"x"), 1]
)
async def test_elements_of_another_kind_are_signalled(nursery: trio.Nursery, other: Any) -> None:
    """Longer ones or another type, even a subclass of bytes:
    only bytes cannot change while they wait.
    """
    harness = PumpHarness(nursery, letters(b"a", b"b", other, b"c"))
    await harness.ask(4)
    assert harness.recorder.elements == [b"a", other]
    assert harness.elements == [b"b", b"c"]
    assert harness.recorder.used_up == [2]


async def test_none_is_refused_with_its_position(nursery: trio.Nursery) -> None:
    """Rule 2.13; appended elements count."""
    harness = PumpHarness(nursery, letters(b"a", b"b", b"c", None))
    await harness.ask(10)
    error = harness.recorder.log[-1][1]
    assert isinstance(error, UsageError)
    assert "yielded None at position 3 " in str(error)
    assert harness.elements == [b"b", b"c"]


async def test_the_end_comes_after_appended_elements(nursery: trio.Nursery) -> None:
    """on_reservation_used is not called before it, because not all requested elements came."""
    harness = PumpHarness(nursery, letters(b"a", b"b", b"c"))
    await harness.ask(10)
    assert (harness.elements, harness.ends, harness.recorder.used_up) == (
        [b"b", b"c"],
        ["on_complete"],
        [],
    )


async def test_an_appended_element_can_be_taken_while_the_generator_waits(
    nursery: trio.Nursery,
) -> None:
    """A writer takes the batch meanwhile.
    The next element is signalled, so that the subscriber learns of it.
    """
    go_on = trio.Event()

    async def waiting() -> Any:
        yield b"a"
        yield b"b"
        await go_on.wait()
        yield b"c"
        yield b"d"

    harness = PumpHarness(nursery, waiting)
    await harness.ask(10)
    assert harness.recorder.close() == [b"b"]
    go_on.set()
    await quiet()
    assert harness.recorder.elements == [b"a", b"c"]
    assert harness.elements == [b"d"]


@pytest.mark.parametrize("stop", ["cancel", "scope"])
async def test_nothing_is_appended_after_the_end(nursery: trio.Nursery, stop: str) -> None:
    """Rule 3.6; also if a generator answers its cancellation with an element."""

    async def stubborn() -> Any:
        yield b"a"
        yield b"b"
        try:
            await trio.sleep_forever()
        except trio.Cancelled:
            yield b"c"
        yield b"d"

    harness = PumpHarness(nursery, stubborn)
    await harness.ask(10)
    run = harness.recorder.run
    assert run is not None
    if stop == "cancel":
        harness.pump.cancel()
    else:
        harness.reports.scope.cancel()
    await quiet()
    assert (run.elements, run.longest, harness.recorder.elements) == ([b"b"], -1, [b"a"])
    assert NO_BATCH.longest == -1


async def test_a_subscriber_that_cancels_in_a_signal_gets_nothing_more(
    nursery: trio.Nursery,
) -> None:
    """Neither a signal nor an appended element."""
    harness = PumpHarness(
        nursery,
        letters(b"a", b"b", b"cc", b"d"),
        on_next=lambda element: element == b"cc" and harness.pump.cancel(),
    )
    await harness.ask(10)
    assert (harness.recorder.elements, harness.elements) == ([b"a", b"cc"], [b"b"])


async def test_a_request_inside_on_reservation_used_is_served(nursery: trio.Nursery) -> None:
    """As one inside `on_next` is."""
    harness = PumpHarness(nursery, letters(*[b"x"] * 10))
    asked: list[int] = []
    used_up = harness.recorder.on_reservation_used

    def ask_again() -> None:
        used_up()
        if len(asked) < 2:
            asked.append(3)
            harness.pump.request(3)

    harness.recorder.on_reservation_used = ask_again  # type: ignore[method-assign]  # another subscriber's method
    await harness.ask(2)
    assert (harness.recorder.used_up, len(harness.elements)) == ([1, 4, 7], 7)


class ConvertingRecorder(BatchingRecorder):
    """Also converts: texts become bytes, and other elements fail."""

    def __init__(self, **hooks: Any) -> None:
        super().__init__(**hooks)
        self.run = Batch(4)

    def convert(self, element: Any) -> bytes:
        data: bytes = element.encode()
        return data


class ConvertingHarness(PumpHarness):
    """A pump of a generator, with a subscriber that converts."""

    def __init__(self, nursery: trio.Nursery, generator: Any, **hooks: Any) -> None:
        super().__init__(nursery, generator)
        self.recorder = ConvertingRecorder(**hooks)
        self.pump = Pump(generator, self.recorder, self.reports.scope, label="letters")


async def test_converted_elements_are_appended(nursery: trio.Nursery) -> None:
    """One that fails, or whose bytes are too long, is signalled unconverted."""
    harness = ConvertingHarness(nursery, letters("a", "bb", "", 5, "fivefive", "c"))
    await harness.ask(6)
    assert harness.elements == [b"a", b"bb", b"", b"c"]
    assert harness.recorder.elements == [5, "fivefive"]
    assert harness.recorder.used_up == [4]


async def test_an_element_is_converted_when_it_is_yielded(nursery: trio.Nursery) -> None:
    """The generator may change it afterwards."""

    class Changing:
        text = "a"

        def encode(self) -> bytes:
            return self.text.encode()

    async def reusing() -> Any:
        changing = Changing()
        for changing.text in "abc":
            yield changing

    harness = ConvertingHarness(nursery, reusing)
    await harness.ask(3)
    assert harness.elements == [b"a", b"b", b"c"]


@pytest.mark.parametrize("is_open", [True, False])
async def test_none_is_refused_before_it_is_converted(
    nursery: trio.Nursery, *, is_open: bool
) -> None:
    """Rule 2.13, with its position."""
    harness = ConvertingHarness(nursery, letters("a", None))
    if not is_open:
        harness.recorder.close()
    await harness.ask(10)
    assert "yielded None at position 1 " in str(harness.recorder.log[-1][1])


async def test_a_closed_batch_gets_nothing_converted(nursery: trio.Nursery) -> None:
    """Each element is signalled then; after a cancel none is."""
    go_on = trio.Event()

    async def waiting() -> Any:
        yield "a"
        await go_on.wait()
        yield "b"
        yield "c"

    harness = ConvertingHarness(nursery, waiting)
    await harness.ask(10)
    assert harness.recorder.close() == [b"a"]
    go_on.set()
    await quiet()
    assert harness.recorder.elements == ["b", "c"]


async def test_a_subscriber_that_cancels_gets_nothing_converted(nursery: trio.Nursery) -> None:
    """The cancel closes the batch."""
    harness = ConvertingHarness(
        nursery, letters("a", 5, "b"), on_next=lambda _: harness.pump.cancel()
    )
    await harness.ask(10)
    assert harness.elements == [b"a"]
    assert harness.recorder.elements == [5]
