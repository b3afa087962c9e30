"""Optional interfaces for elements that travel together.
A subscriber may offer them beside its four signals.

They exist for speed: a call costs more than all the other work on a small element. With elements in
batches the bulk benchmarks run 1.9 to 4.3 times as fast as with one call for each.

Rules of this file:

* A batch counts as its elements: a batch of n elements uses up a demand of n (rule 1.1), and no
  element in it is None (rule 2.13).
* A sender calls an optional method only if the subscriber has it.
  Otherwise it calls `on_next` with each element, in order.
* A sender looks the method up once a batch, never once an element.
* A subscriber that passes elements on need not know these interfaces.
  If it lacks them, the sender falls back to `on_next`.
"""

from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeVar

T_contra = TypeVar("T_contra", contravariant=True)


class AcceptsMany(Protocol[T_contra]):
    """Takes elements that arrived together in one call."""

    def on_next_many(self, elements: Sequence[T_contra], /) -> None:
        """Receive `elements`, in order, as if `on_next` were called with each of them."""


class BytesList(list[bytes]):
    """Elements that are known to be objects of `bytes` exactly:
    their types need not be examined again on their way.

    A log makes it, because it examines each element when it is appended. To look at the types of a
    list costs 45 ns an element, and the pump and the sending stream each did so.
    """

    __slots__ = ()


class AcceptsPacked(Protocol):
    """Takes elements of one fixed size as one piece of memory."""

    def on_element_size(self, size: int, /) -> None:
        """Learn the size of every element in bytes. Called at most once, before the first
        element; never for streams of mixed sizes.
        """

    def on_next_packed(self, count: int, elements: bytes, /) -> None:
        """Receive `count` elements, one behind the other in `elements`."""


class SharedBatch(Protocol):
    """A list of elements to which a publisher appends,
    instead of calling `on_next` with each element.

    Each of them is a `bytes` object of at most `longest` bytes; bytes, because they cannot change
    while they wait in the list.
    An element counts as signalled as soon as it is in the list.
    """

    elements: list[bytes]
    longest: int
    """The length in bytes of the longest element that may be appended, or -1
    when the batch is closed.

    No element is as short as -1. So one comparison for each element finds that it is too long, that
    the subscriber has taken the batch away, that the stream has ended, and that it was cancelled.
    """


class BatchingSubscriber(Protocol):
    """Lends its open batch to the publisher. The publisher appends elements that fit, and
    signals the others with `on_next`.
    """

    @property
    def run(self) -> SharedBatch | None:
        """The open batch, or None.
        If there is none, the publisher calls `on_next`, and that may open one.
        """

    def on_reservation_used(self) -> None:
        """All elements that were requested have been appended or signalled."""


class ConvertingSubscriber(BatchingSubscriber, Protocol[T_contra]):
    """Lends a batch for elements that are not bytes.
    The publisher converts each element, and appends the bytes.

    An element is converted when it is signalled, and not later: the publisher may change it
    afterwards. One that cannot be converted, or whose bytes do not fit, is signalled with
    `on_next`, which converts it again and deals with a failure.
    """

    @property
    def convert(self) -> Callable[[T_contra], bytes]:
        """Returns the bytes of an element. It may raise."""


def on_next_many_of(subscriber: object) -> Callable[[Sequence[Any]], None] | None:
    """Return the `on_next_many` of `subscriber`, or None if it has none."""
    method: Callable[[Sequence[Any]], None] | None = getattr(subscriber, "on_next_many", None)
    return method


def on_element_size_of(subscriber: object) -> Callable[[int], None] | None:
    """Return the `on_element_size` of `subscriber`, or None if it has none."""
    method: Callable[[int], None] | None = getattr(subscriber, "on_element_size", None)
    return method


def on_content_of(subscriber: object) -> Callable[[str | None, str], Any] | None:
    """Return the `on_content` of `subscriber`, or None if it has none.

    It is called with the name of the publisher's serializer (None if none is announced) and of the
    type of the elements, before the first element, and returns the subscriber that takes its place.
    """
    method: Callable[[str | None, str], Any] | None = getattr(subscriber, "on_content", None)
    return method


def on_next_packed_of(subscriber: object) -> Callable[[int, bytes], None] | None:
    """Return the `on_next_packed` of `subscriber`, or None if it has none."""
    method: Callable[[int, bytes], None] | None = getattr(subscriber, "on_next_packed", None)
    return method


def split_packed(count: int, elements: bytes) -> list[bytes]:
    """Return the `count` elements of one size that stand one behind the other in `elements`.
    Count and size are at least 1.
    """
    size = len(elements) // count
    return [elements[start : start + size] for start in range(0, count * size, size)]
