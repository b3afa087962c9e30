"""The publishers of a client without trio: iterables that its peer may subscribe to.

Rules of this file:

* A publisher is made for each subscription, when its first demand has come. Only requested elements
  are pulled.
* Code of the program never runs while received bytes are acted on, because it might call anything
  there. `PublishedIterator.run` calls it.
"""

from collections.abc import AsyncIterable, Callable, Iterable, Iterator
from typing import Any, Final, cast

import attrs

from penstock.api import (
    Model,
    PublisherFailed,
    Request,
    Subscription,
    UsageError,
    add_demand,
    shown,
)
from penstock.reader import TURN_SECONDS
from penstock.session import SendingStream
from penstock.spi import Registry, Serializer, dumped_bytes, serializer_for


def name_of(target: object) -> str | None:
    """Return the name of the publisher that a peer subscribes to; None if it asks for something
    else.
    """
    # Over a protocol with routes a name comes as a request for a stream, without data.
    if isinstance(target, Request) and target.model is Model.STREAM and not target.data:
        return target.name
    return target if isinstance(target, str) else None


BURST: Final = 1024
"""Elements that are pulled before other publishers get their turn, at most."""


@attrs.frozen
class Published:
    """A publisher that the peer may subscribe to: ``Published(make, type=Quote)``.

    `make` is a function without arguments that returns an iterable, called for each subscription;
    or an iterable that can be iterated again and again, such as a list. With `penstock.aio` it may
    return an async iterable. `type` and `serializer` are those of `subscribe`; without both the
    elements are bytes.
    """

    make: Any
    type: Any = attrs.field(default=None, kw_only=True)
    serializer: str | Serializer | None = attrs.field(default=None, kw_only=True)
    dumps: Callable[[Any], bytes] | None = attrs.field(
        default=None, init=False, eq=False, repr=False
    )
    """Returns the bytes of an element; None if the elements are bytes. Set by `check_published`."""

    def open(self) -> Any:
        """Return a new iterator, or an async iterator."""
        made: object = self.make() if callable(self.make) else self.make
        if isinstance(made, AsyncIterable):
            return aiter(made)
        # A text is an iterable of characters, which no program means.
        if isinstance(made, Iterable) and not isinstance(
            made, str | bytes | bytearray | memoryview
        ):
            return iter(made)
        raise UsageError(
            f"the publisher returned {shown(made)}; return an iterable of its elements"
        )


def check_published(name: object, given: object, registry: Registry) -> Published:
    """Return what the program gave under `name`, with its serializer.
    Raises UsageError if it cannot be published.
    """
    if not isinstance(name, str) or not name:
        raise UsageError(f"publishers has {shown(name)} as a name; give a text that is not empty")
    published = given if isinstance(given, Published) else Published(given)
    make = published.make
    if isinstance(make, Iterator):
        raise UsageError(
            f"the publisher {name!r} is an iterator, which ends for good; give the function that "
            "makes it"
        )
    if not callable(make) and not isinstance(make, Iterable | AsyncIterable):
        raise UsageError(
            f"the publisher {name!r} is {shown(make)}; give an iterable, or a function that "
            "returns one"
        )
    # A copy: the program may give the same object to another connection, with another registry.
    checked = attrs.evolve(published)
    # `dumps` is not an argument, so that programs cannot set it; `evolve` cannot either.
    object.__setattr__(
        checked, "dumps", _dumps(serializer_for(registry, published.serializer, published.type))
    )
    return checked


def _dumps(serializer: Serializer | None) -> Callable[[Any], bytes] | None:
    if serializer is None:
        return None

    def dumps(element: Any) -> bytes:
        data = serializer.dumps(element)
        return data if type(data) is bytes else dumped_bytes(data, serializer, element)

    return dumps


class PublishedIterator(Subscription):
    """One subscription of the peer to an iterable."""

    __slots__ = ("_demand", "_dumps", "_is_over", "_iterator", "_published", "_stream", "_wake")

    def __init__(
        self,
        published: Published,
        stream: SendingStream,
        wake: Callable[["PublishedIterator"], None],
    ) -> None:
        """`wake` is called when `run` has something to do."""
        self._published = published
        self._dumps = published.dumps
        self._stream = stream
        self._wake = wake
        self._iterator: Any = None
        self._demand = 0
        self._is_over = False

    # --- the subscription

    def request(self, n: int, /) -> None:
        self._demand = add_demand(self._demand, n)
        self._wake(self)

    def cancel(self, /) -> None:
        # Closed by `run`: a generator that is being pulled cannot be closed,
        # and its cleanup is code of the program.
        self._is_over = True
        self._wake(self)

    # --- for the client

    def run(self, clock: Callable[[], float]) -> bool:
        """Pull elements and signal them, for one turn. Return whether there is more to do. Call
        it outside of `Session.receive`.
        """
        if not self._is_over:
            self._run(clock)
        if self._is_over:
            self.close()
        return bool(self._demand) and not self._is_over

    def close(self) -> None:
        """Close the iterator."""
        self._is_over = True
        iterator, self._iterator = self._iterator, None
        close = getattr(iterator, "close", None)
        if close is not None:
            close()

    # --- inside

    def _run(self, clock: Callable[[], float]) -> None:
        ends, stream = clock() + TURN_SECONDS, self._stream
        batch: list[bytes] = []
        failure: Exception | None = None
        is_complete = False
        try:
            if self._iterator is None:
                # Inside of the `try`: the program's function may raise,
                # and the subscriber gets its error.
                self._iterator = self._published.open()
            for _ in range(min(self._demand, BURST)):
                element = next(self._iterator)
                batch.append(bytes_of(element, self._dumps))
                # After each element, because one may take long.
                if clock() >= ends:
                    break
        except StopIteration:
            is_complete = True
        except Exception as error:
            # boundary: the program's iterable, and the serializer, which may be a plugin.
            failure = error
        # Counted before the signal: the stream may request more inside it.
        self._demand -= len(batch)
        if batch:
            stream.on_next_many(batch)
        if self._is_over:  # the stream has refused an element
            return
        if failure is not None:
            self._is_over = True
            stream.on_error(failure)
        elif is_complete:
            self._is_over = True
            stream.on_complete()


def bytes_of(element: Any, dumps: Callable[[Any], bytes] | None) -> bytes:
    """Return the bytes of an element. Raises UsageError for None."""
    if element is None:
        raise UsageError("the publisher yielded None, which is never an element (rule 2.13)")
    # An element that is not bytes, on a stream without a serializer, is refused by the stream.
    return cast("bytes", element) if dumps is None else dumps(element)


def failed_publisher(error: BaseException) -> Exception:
    """Return `error` for a hook that takes exceptions only."""
    return (
        error
        if isinstance(error, Exception)
        else PublisherFailed(f"a publisher ended with {type(error).__name__}")
    )
