"""The common base of the verifications of penstock's publishers, and the iterables
that they stream.

Checks run on the kit's MockClock, so sleeping here takes no real time.
"""

from typing import ClassVar

import trio
from penstock_tck import PublisherVerification

tck_verifies_nothing = "it is the base of the verifications in the other files"


# ---------------------------------------------------------------------- iterables


async def numbers(length):
    for number in range(length):
        yield number


async def numbers_slowly(length, seconds):
    for number in range(length):
        await trio.sleep(seconds)
        yield number


async def numbers_and_an_error(length, error):
    for number in range(length):
        yield number
    raise error


def plain_numbers(length):
    yield from range(length)


def plain_numbers_and_an_error(length, error):
    yield from range(length)
    raise error


def refuse_to_open(error):
    raise error


class Unsized:
    """An iterable without a length that can be iterated many times."""

    def __init__(self, length, error=None):
        self._length = length
        self._error = error

    def __iter__(self):
        return (
            plain_numbers(self._length)
            if self._error is None
            else plain_numbers_and_an_error(self._length, self._error)
        )


class Sized(Unsized):
    """An iterable with a length. One that fails reports a longer length than it has elements."""

    def __len__(self):
        return self._length + (self._error is not None)

    def __contains__(self, number):
        return number in range(self._length)


class Unopenable(Unsized):
    """An iterable whose `__iter__` raises."""

    def __iter__(self):
        raise self._error


class Asynchronous:
    """An async iterable that can be iterated many times."""

    def __init__(self, function, *args):
        self._function = function
        self._args = args

    def __aiter__(self):
        return self._function(*self._args)


class AsynchronousIterator:
    """An async iterator that is not a generator, such as a socket: its owner closes it."""

    def __init__(self, length):
        self._numbers = iter(range(length))

    def __aiter__(self):
        return self

    async def __anext__(self):
        await trio.lowlevel.checkpoint()
        for number in self._numbers:
            return number
        raise StopAsyncIteration


# ---------------------------------------------------------------------- the verification


class PenstockPublisher(PublisherVerification):
    """A task serves every publisher of penstock, so no signal arrives before `request` returns.
    Exceptions set `synchronous_bound`.
    """

    abstract = True
    multicast = True
    violations_reported = True
    synchronous_bound = 0
    verifies: ClassVar[str]
    """The public name that this class verifies."""

    def bound(self, source):
        return source.publisher(self.env.nursery, on_violation=self.reported_violations.append)
