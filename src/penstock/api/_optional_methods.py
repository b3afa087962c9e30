"""The optional methods of a subscriber beside its four signals: one list of all, and their
look-ups.

They exist for speed: a call costs more than all the other work on a small element. With elements
in batches the bulk benchmarks run 1.9 to 4.3 times as fast as with one call for each.

Rules of this file:

* A batch counts as its elements: a batch of n elements uses up a demand of n (rule 1.1), and no
  element in it is None (rule 2.13).
* A sender calls an optional method only if the subscriber has it. Otherwise it calls `on_next`
  with each element, in order.
* A sender looks a method up once a batch, never once an element.
* A subscriber that passes elements on need not know these methods. `penstock.core.Relay` has all
  of them, and answers for the subscriber after it.
"""

from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeVar

T_contra = TypeVar("T_contra", contravariant=True)


class OptionalMethods(Protocol[T_contra]):
    """Everything that a subscriber may offer beside its four signals. It may have any of these,
    or none.
    """

    def on_next_many(self, elements: Sequence[T_contra], /) -> None:
        """Receive elements that arrived together, in order, as if `on_next` were called with
        each of them.
        """

    def on_next_sized(self, elements: Sequence[T_contra], size: int, /) -> None:
        """Do as `on_next_many`. The elements have `size` bytes together, so they need not be
        added up.
        """

    def on_element_size(self, size: int, /) -> None:
        """Learn the size of every element in bytes.

        Called at most once, before the first element, and never for streams of mixed sizes.
        """

    def on_next_packed(self, count: int, elements: bytes, /) -> None:
        """Receive `count` elements of one size as one piece of memory, each right after the one
        before it.
        """

    @property
    def takes_runs(self) -> bool:
        """True if `on_next_many` may get an `EqualRun` or a `ShortRun`: elements that are no
        objects yet.
        """

    def on_content(self, serializer: str | None, schema: str, /) -> Any:
        """Learn the publisher's serializer, None if none is announced, and the type of the
        elements.

        Called before the first element. Returns the subscriber that takes the place of this one.
        """

    def on_fact(self, fact: object, /) -> None:
        """Take a fact that an extension or a source knows of the stream, such as `Positions`.

        Facts of unknown types are ignored. Called at any time before the end of the stream.
        """

    def held(self) -> int:
        """Return the bytes of the elements that wait here and that the program has not taken.

        The memory budget of a connection asks for it now and then, and never for an element.
        """

    @property
    def lender(self) -> "BatchingSubscriber | None":
        """The object that lends its open batch to the publisher, or None. Asked for once for each
        run of a publisher.

        It is this subscriber, or one after it: the elements in the batch pass by all that stand
        between.
        """


class BytesList(list[bytes]):
    """Elements that are known to be objects of `bytes` exactly: their types need not be examined
    again on their way.

    A log makes it, because it examines each element when it is appended. To look at the types of a
    list costs 45 ns an element, and the pump and the sending stream each did so.
    """

    __slots__ = ()


class SharedBatch(Protocol):
    """A list of elements to which a publisher appends, instead of calling `on_next` with each
    element.

    Each of them is a `bytes` object of at most `longest` bytes; bytes, because they cannot change
    while they wait in the list. An element counts as signalled when it is in the list.
    """

    elements: list[bytes]
    longest: int
    """The length in bytes of the longest element that may be appended, or -1 when the batch is
    closed.

    No element is as short as -1. So one comparison for each element finds that it is too long, that
    the subscriber has taken the batch away, that the stream has ended, and that it was cancelled.
    """


class BatchingSubscriber(Protocol):
    """Lends its open batch to the publisher, which appends elements that fit, and signals the
    others with `on_next`.
    """

    @property
    def run(self) -> SharedBatch | None:
        """The open batch, or None. Without an open batch the publisher calls `on_next`, and that
        may open one.
        """

    def on_reservation_used(self) -> None:
        """All elements that were requested have been appended or signalled."""


class ConvertingSubscriber(BatchingSubscriber, Protocol[T_contra]):
    """Lends a batch for elements that are not bytes. The publisher converts each element, and
    appends the bytes.

    An element is converted when it is signalled, and not later: the publisher may change it
    afterwards. One that cannot be converted, or whose bytes do not fit, is signalled with
    `on_next`,
    which converts it again and deals with a failure.
    """

    @property
    def convert(self) -> Callable[[T_contra], bytes]:
        """Returns the bytes of an element. It may raise."""

    def on_converted(self, elements: Sequence[bytes], /) -> None:
        """Receive elements that `convert` has made, and that are in no batch."""


# One function a method: `getattr` with a default knows no types, and a misspelt name would be a
# method that no subscriber has.


def on_next_many_of(subscriber: object) -> Callable[[Sequence[Any]], None] | None:
    """Return the `on_next_many` of `subscriber`, or None without that method."""
    method: Callable[[Sequence[Any]], None] | None = getattr(subscriber, "on_next_many", None)
    return method


def on_next_sized_of(subscriber: object) -> Callable[[Sequence[Any], int], None] | None:
    """Return the `on_next_sized` of `subscriber`, or None without that method."""
    method: Callable[[Sequence[Any], int], None] | None = getattr(subscriber, "on_next_sized", None)
    return method


def on_element_size_of(subscriber: object) -> Callable[[int], None] | None:
    """Return the `on_element_size` of `subscriber`, or None without that method."""
    method: Callable[[int], None] | None = getattr(subscriber, "on_element_size", None)
    return method


def on_next_packed_of(subscriber: object) -> Callable[[int, bytes], None] | None:
    """Return the `on_next_packed` of `subscriber`, or None without that method."""
    method: Callable[[int, bytes], None] | None = getattr(subscriber, "on_next_packed", None)
    return method


def takes_runs_of(subscriber: object) -> bool:
    """Return whether `subscriber` takes runs of elements that are not objects yet."""
    takes_runs: bool = getattr(subscriber, "takes_runs", False)
    return takes_runs


def on_content_of(subscriber: object) -> Callable[[str | None, str], Any] | None:
    """Return the `on_content` of `subscriber`, or None without that method."""
    method: Callable[[str | None, str], Any] | None = getattr(subscriber, "on_content", None)
    return method


def on_fact_of(subscriber: object) -> Callable[[object], None] | None:
    """Return the `on_fact` of `subscriber`, or None without that method."""
    method: Callable[[object], None] | None = getattr(subscriber, "on_fact", None)
    return method


def held_of(subscriber: object) -> Callable[[], int] | None:
    """Return the `held` of `subscriber`, or None without that method."""
    method: Callable[[], int] | None = getattr(subscriber, "held", None)
    return method


def lender_of(subscriber: object) -> BatchingSubscriber | None:
    """Return the object that lends its open batch for `subscriber`, or None without one."""
    lender: BatchingSubscriber | None = getattr(subscriber, "lender", None)
    return lender


def split_packed(count: int, elements: bytes) -> list[bytes]:
    """Return the `count` elements of one size that stand one after the other in `elements`.

    Count and size are at least 1.
    """
    size = len(elements) // count
    return [elements[start : start + size] for start in range(0, count * size, size)]
