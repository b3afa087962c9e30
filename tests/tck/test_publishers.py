"""The test kit over every source.

Checks run on the kit's MockClock, so sleeping here takes no real time.
"""

from contextlib import suppress

import trio
from penstock_tck import CountingPublisher

import penstock
from penstock import UNBOUNDED
from tests.tck._penstock_publisher import (
    Asynchronous,
    AsynchronousIterator,
    PenstockPublisher,
    Sized,
    Unopenable,
    Unsized,
    numbers,
    numbers_and_an_error,
    numbers_slowly,
    plain_numbers,
    plain_numbers_and_an_error,
    refuse_to_open,
)

# ---------------------------------------------------------------------- iterables


class SizedIterable(PenstockPublisher):
    """A sequence has a length, so the stream completes with its last element."""

    verifies = "from_iterable"
    eager_completion = True

    def create_publisher(self, elements):
        return self.bound(penstock.from_iterable(range(elements)))

    def create_faulty_publisher(self, elements, error):
        return self.bound(penstock.from_iterable(Sized(elements, error)))

    def create_completed_publisher(self):
        return self.bound(penstock.from_iterable([]))


class UnsizedIterable(PenstockPublisher):
    """The end of an iterable without a length is known only after one more step."""

    verifies = "from_iterable"

    def create_publisher(self, elements):
        return self.bound(penstock.from_iterable(Unsized(elements)))

    def create_faulty_publisher(self, elements, error):
        return self.bound(penstock.from_iterable(Unsized(elements, error)))

    def create_broken_publisher(self, error):
        return self.bound(penstock.from_iterable(Unopenable(0, error)))


class OneIterator(PenstockPublisher):
    """An iterator can be iterated once, so a second subscriber is refused."""

    verifies = "from_iterable"
    multicast = False

    def create_publisher(self, elements):
        return self.bound(penstock.from_iterable(iter(range(elements))))


async def in_lists(elements, size):
    """Yield 0 to `elements` in lists of `size`."""
    for start in range(0, elements, size):
        yield list(range(start, min(elements, start + size)))


async def in_lists_and_an_error(elements, size, error):
    """Fail after them."""
    async for batch in in_lists(elements, size):
        yield batch
    raise error


class Batches(PenstockPublisher):
    """Each list is longer than some demands, and shorter than others."""

    verifies = "from_batches"

    def create_publisher(self, elements):
        return self.bound(penstock.from_batches(penstock.generate(in_lists, elements, 3)))

    def create_faulty_publisher(self, elements, error):
        return self.bound(
            penstock.from_batches(penstock.generate(in_lists_and_an_error, elements, 3, error))
        )


# ------------------------------------------------------------------- async iterables and generators


class AsyncIterable(PenstockPublisher):
    """Each subscriber gets its own iterator."""

    verifies = "from_async_iterable"

    def create_publisher(self, elements):
        return self.bound(penstock.from_async_iterable(Asynchronous(numbers, elements)))

    def create_faulty_publisher(self, elements, error):
        return self.bound(
            penstock.from_async_iterable(Asynchronous(numbers_and_an_error, elements, error))
        )

    def create_broken_publisher(self, error):
        return self.bound(penstock.from_async_iterable(Asynchronous(refuse_to_open, error)))

    def create_slow_publisher(self, elements, seconds):
        return self.bound(
            penstock.from_async_iterable(Asynchronous(numbers_slowly, elements, seconds))
        )


class AsyncGenerator(PenstockPublisher):
    """An existing generator can be streamed once.
    A second subscriber gets an error that says so.
    """

    verifies = "from_async_iterable"
    multicast = False

    def create_publisher(self, elements):
        return self.bound(penstock.from_async_iterable(numbers(elements)))

    def create_faulty_publisher(self, elements, error):
        return self.bound(penstock.from_async_iterable(numbers_and_an_error(elements, error)))

    def create_slow_publisher(self, elements, seconds):
        return self.bound(penstock.from_async_iterable(numbers_slowly(elements, seconds)))


class AsyncIterator(PenstockPublisher):
    """An iterator that its owner closes."""

    verifies = "from_async_iterable"
    multicast = False

    def create_publisher(self, elements):
        return self.bound(penstock.from_async_iterable(AsynchronousIterator(elements)))


class AsyncGeneratorFunction(PenstockPublisher):
    """The function is called for each subscriber."""

    verifies = "generate"

    def create_publisher(self, elements):
        return self.bound(penstock.generate(numbers, elements))

    def create_faulty_publisher(self, elements, error):
        return self.bound(penstock.generate(numbers_and_an_error, elements, error))

    def create_broken_publisher(self, error):
        return self.bound(penstock.generate(refuse_to_open, error))

    def create_slow_publisher(self, elements, seconds):
        return self.bound(penstock.generate(numbers_slowly, elements, seconds))


class GeneratorFunction(PenstockPublisher):
    """The same with a plain generator."""

    verifies = "generate"

    def create_publisher(self, elements):
        return self.bound(penstock.generate(plain_numbers, elements))

    def create_faulty_publisher(self, elements, error):
        return self.bound(penstock.generate(plain_numbers_and_an_error, elements, error))


class AsSource(PenstockPublisher):
    """`as_source` of a generator function without arguments."""

    verifies = "as_source"

    def create_publisher(self, elements):
        return self.bound(penstock.as_source(lambda: numbers(elements)))


# ---------------------------------------------------------------------- channels and publishers


class FilledChannel(PenstockPublisher):
    """A memory channel that is full. Subscribers share its elements."""

    verifies = "from_channel"
    multicast = False
    max_elements = 5_000

    def create_publisher(self, elements):
        send, receive = trio.open_memory_channel(elements)
        with send:
            for number in range(elements):
                send.send_nowait(number)
        return self.bound(penstock.from_channel(receive))


class FedChannel(PenstockPublisher):
    """A memory channel that a task sends into until no receiver is left."""

    verifies = "from_channel"
    multicast = False

    def create_publisher(self, elements):
        return self._fed_channel(elements, 0)

    def create_slow_publisher(self, elements, seconds):
        return self._fed_channel(elements, seconds)

    def _fed_channel(self, elements, seconds):
        send, receive = trio.open_memory_channel(0)
        self.env.nursery.start_soon(self._feed, send, elements, seconds)
        return self.bound(penstock.from_channel(receive))

    async def _feed(self, send, elements, seconds):
        with send, suppress(trio.BrokenResourceError):  # no receiver is left
            for number in range(elements):
                await trio.sleep(seconds)
                await send.send(number)


class ForeignPublisher(PenstockPublisher):
    """A foreign publisher, which signals inside `request`."""

    verifies = "from_publisher"
    eager_completion = True
    synchronous_bound = None

    def create_publisher(self, elements):
        return self.bound(penstock.from_publisher(CountingPublisher(elements)))

    def create_faulty_publisher(self, elements, error):
        return self.bound(penstock.from_publisher(CountingPublisher(elements, error)))

    def create_failed_publisher(self):
        return self.create_faulty_publisher(0, ValueError("it failed before"))

    def create_completed_publisher(self):
        return self.create_publisher(0)


# ---------------------------------------------------------------------- clocks


class Interval(PenstockPublisher):
    """Ticks, limited by `take`, because an interval does not end by itself.
    A late subscriber gets no earlier ticks.
    """

    verifies = "interval"
    multicast = False
    min_elements = 1
    eager_completion = True
    settle_seconds = 6_000.0

    def create_publisher(self, elements):
        ticks = penstock.interval(1)
        return self.bound(
            ticks if elements == UNBOUNDED else penstock.pipe(ticks, penstock.ops.take(elements))
        )


class Timer(PenstockPublisher):
    """One element, a second after the request."""

    verifies = "timer"
    min_elements = max_elements = 1
    settle_seconds = 2.0

    def create_publisher(self, elements):
        return self.bound(penstock.timer(1))


# ----------------------------------------------------------------- empty, failed and single streams


class Empty(PenstockPublisher):
    """Completes at once."""

    verifies = "empty"
    max_elements = 0
    eager_completion = True

    def create_publisher(self, elements):
        return self.bound(penstock.empty())

    def create_completed_publisher(self):
        return self.create_publisher(0)


class Failed(PenstockPublisher):
    """Fails at once: a stream without elements that does not complete."""

    verifies = "failed"
    max_elements = 0
    completes = False

    def create_publisher(self, elements):
        return self.bound(penstock.failed(ValueError("it failed before")))

    def create_failed_publisher(self):
        return self.create_publisher(0)

    def create_refusing_publisher(self):
        return self.bound(penstock.failed(RuntimeError("no subscribers are accepted")))


class Single(PenstockPublisher):
    """One element, signalled inside the request together with the completion."""

    verifies = "single"
    min_elements = max_elements = 1
    eager_completion = True
    synchronous_bound = 1

    def create_publisher(self, elements):
        return self.bound(penstock.single("only"))
