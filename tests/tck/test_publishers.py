"""The test kit over every source.

Checks run on the kit's MockClock: what sleeps here sleeps in virtual time.
"""

from contextlib import suppress

import trio
from penstock_tck import CountingPublisher

import penstock
from penstock import UNBOUNDED
from tests.tck._ours import (
    Asynchronous,
    AsynchronousIterator,
    OurPublisher,
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


class SizedIterable(OurPublisher):
    """A sequence knows its length, so it completes with its last element."""

    verifies = "from_iterable"
    eager_completion = True

    def create_publisher(self, elements):
        return self.bound(penstock.from_iterable(range(elements)))

    def create_faulty_publisher(self, elements, error):
        return self.bound(penstock.from_iterable(Sized(elements, error)))

    def create_completed_publisher(self):
        return self.bound(penstock.from_iterable([]))


class UnsizedIterable(OurPublisher):
    """What does not know its length completes at one pull more."""

    verifies = "from_iterable"

    def create_publisher(self, elements):
        return self.bound(penstock.from_iterable(Unsized(elements)))

    def create_faulty_publisher(self, elements, error):
        return self.bound(penstock.from_iterable(Unsized(elements, error)))

    def create_broken_publisher(self, error):
        return self.bound(penstock.from_iterable(Unopenable(0, error)))


class OneIterator(OurPublisher):
    """An iterator exists once: a second subscriber gets what the first has left."""

    verifies = "from_iterable"
    multicast = False

    def create_publisher(self, elements):
        return self.bound(penstock.from_iterable(iter(range(elements))))


# ---------------------------------------------------------------------- async iterables and generators


class AsyncIterable(OurPublisher):
    """Each subscriber gets an iterator of its own."""

    verifies = "from_async_iterable"

    def create_publisher(self, elements):
        return self.bound(penstock.from_async_iterable(Asynchronous(numbers, elements)))

    def create_faulty_publisher(self, elements, error):
        return self.bound(penstock.from_async_iterable(Asynchronous(numbers_and_an_error, elements, error)))

    def create_broken_publisher(self, error):
        return self.bound(penstock.from_async_iterable(Asynchronous(refuse_to_open, error)))

    def create_slow_publisher(self, elements, seconds):
        return self.bound(penstock.from_async_iterable(Asynchronous(numbers_slowly, elements, seconds)))


class AsyncGenerator(OurPublisher):
    """A generator that exists already can be streamed once; a second subscriber is told so."""

    verifies = "from_async_iterable"
    multicast = False

    def create_publisher(self, elements):
        return self.bound(penstock.from_async_iterable(numbers(elements)))

    def create_faulty_publisher(self, elements, error):
        return self.bound(penstock.from_async_iterable(numbers_and_an_error(elements, error)))

    def create_slow_publisher(self, elements, seconds):
        return self.bound(penstock.from_async_iterable(numbers_slowly(elements, seconds)))


class AsyncIterator(OurPublisher):
    """An iterator that somebody else closes."""

    verifies = "from_async_iterable"
    multicast = False

    def create_publisher(self, elements):
        return self.bound(penstock.from_async_iterable(AsynchronousIterator(elements)))


class AsyncGeneratorFunction(OurPublisher):
    """The function is called anew for each subscriber."""

    verifies = "generate"

    def create_publisher(self, elements):
        return self.bound(penstock.generate(numbers, elements))

    def create_faulty_publisher(self, elements, error):
        return self.bound(penstock.generate(numbers_and_an_error, elements, error))

    def create_broken_publisher(self, error):
        return self.bound(penstock.generate(refuse_to_open, error))

    def create_slow_publisher(self, elements, seconds):
        return self.bound(penstock.generate(numbers_slowly, elements, seconds))


class GeneratorFunction(OurPublisher):
    """The same with a plain generator."""

    verifies = "generate"

    def create_publisher(self, elements):
        return self.bound(penstock.generate(plain_numbers, elements))

    def create_faulty_publisher(self, elements, error):
        return self.bound(penstock.generate(plain_numbers_and_an_error, elements, error))


class AnythingThatStreams(OurPublisher):
    """What `as_source` makes of a generator function without arguments."""

    verifies = "as_source"

    def create_publisher(self, elements):
        return self.bound(penstock.as_source(lambda: numbers(elements)))


# ---------------------------------------------------------------------- channels and publishers


class FilledChannel(OurPublisher):
    """A memory channel in which all is waiting; subscribers compete for it."""

    verifies = "from_channel"
    multicast = False
    max_elements = 5_000

    def create_publisher(self, elements):
        send, receive = trio.open_memory_channel(elements)
        with send:
            for number in range(elements):
                send.send_nowait(number)
        return self.bound(penstock.from_channel(receive))


class FedChannel(OurPublisher):
    """A memory channel that a task sends into as long as anybody receives."""

    verifies = "from_channel"
    multicast = False

    def create_publisher(self, elements):
        return self._fed(elements, 0)

    def create_slow_publisher(self, elements, seconds):
        return self._fed(elements, seconds)

    def _fed(self, elements, seconds):
        send, receive = trio.open_memory_channel(0)
        self.env.nursery.start_soon(self._feed, send, elements, seconds)
        return self.bound(penstock.from_channel(receive))

    async def _feed(self, send, elements, seconds):
        with send, suppress(trio.BrokenResourceError):  # nobody receives any more
            for number in range(elements):
                await trio.sleep(seconds)
                await send.send(number)


class ForeignPublisher(OurPublisher):
    """A publisher of somebody's, which signals on the stack of a request."""

    verifies = "from_publisher"
    eager_completion = True
    synchronous_bound = None

    def create_publisher(self, elements):
        return self.bound(penstock.from_publisher(CountingPublisher(elements)))

    def create_faulty_publisher(self, elements, error):
        return self.bound(penstock.from_publisher(CountingPublisher(elements, error)))

    def create_failed_publisher(self):
        return self.create_faulty_publisher(0, ValueError("it failed long ago"))

    def create_completed_publisher(self):
        return self.create_publisher(0)


# ---------------------------------------------------------------------- clocks


class Interval(OurPublisher):
    """Ticks, of which `take` passes on so many as the kit wants: by itself an interval has no end. Nobody gets a tick late."""

    verifies = "interval"
    multicast = False
    min_elements = 1
    eager_completion = True
    settle_seconds = 6_000.0

    def create_publisher(self, elements):
        ticks = penstock.interval(1)
        return self.bound(ticks if elements == UNBOUNDED else penstock.pipe(ticks, penstock.ops.take(elements)))


class Timer(OurPublisher):
    """One element, a second after it was asked for."""

    verifies = "timer"
    min_elements = max_elements = 1
    settle_seconds = 2.0

    def create_publisher(self, elements):
        return self.bound(penstock.timer(1))


# ---------------------------------------------------------------------- what has ended, or nearly


class Empty(OurPublisher):
    """Completes at once."""

    verifies = "empty"
    max_elements = 0
    eager_completion = True

    def create_publisher(self, elements):
        return self.bound(penstock.empty())

    def create_completed_publisher(self):
        return self.create_publisher(0)


class Failed(OurPublisher):
    """Fails at once: it is a stream of no element that does not complete."""

    verifies = "failed"
    max_elements = 0
    completes = False

    def create_publisher(self, elements):
        return self.bound(penstock.failed(ValueError("it failed long ago")))

    def create_failed_publisher(self):
        return self.create_publisher(0)

    def create_refusing_publisher(self):
        return self.bound(penstock.failed(RuntimeError("nobody may subscribe")))


class Single(OurPublisher):
    """One element, signalled inside the request, and completion with it."""

    verifies = "single"
    min_elements = max_elements = 1
    eager_completion = True
    synchronous_bound = 1

    def create_publisher(self, elements):
        return self.bound(penstock.single("only"))
