"""The interfaces of the early draft of Reactive Streams.

The draft and the modern rules differ in eight points.
`as_draft` and `as_modern` handle exactly these.
"""

from abc import abstractmethod
from typing import Protocol, TypeVar, runtime_checkable

T_co = TypeVar("T_co", covariant=True)
T_contra = TypeVar("T_contra", contravariant=True)


@runtime_checkable
class DraftSubscription(Protocol):
    """Demand and cancellation, as the draft names them."""

    __slots__ = ()

    @abstractmethod
    def request_more(self, n: int, /) -> None:
        """Permit `n` more elements.

        Raises InvalidStateError on a cancelled subscription, and ValueError for a number
        that is not positive.
        If the total exceeds 2^63-1, the stream ends with `on_error(InvalidStateError)`.
        """

    @abstractmethod
    def cancel(self, /) -> None:
        """Stop the stream. Raises InvalidStateError if it is cancelled already."""


@runtime_checkable
class DraftSubscriber(Protocol[T_contra]):
    """Receives signals. `on_subscribe` means "accepted", and does not come
    if the stream has already ended.
    """

    __slots__ = ()

    @abstractmethod
    def on_subscribe(self, subscription: DraftSubscription, /) -> None:
        """The subscription was accepted."""

    @abstractmethod
    def on_next(self, element: T_contra, /) -> None:
        """One element."""

    @abstractmethod
    def on_error(self, error: BaseException, /) -> None:
        """The stream failed, or the subscription was refused."""

    @abstractmethod
    def on_complete(self, /) -> None:
        """The stream completed, perhaps before it was accepted."""


@runtime_checkable
class DraftPublisher(Protocol[T_co]):
    """A publisher that follows the draft.
    A completed or failed one signals its end alone, without `on_subscribe`.
    """

    __slots__ = ()

    @abstractmethod
    def subscribe(self, subscriber: DraftSubscriber[T_co], /) -> None:
        """Begin a stream, or signal the end alone.
        The same object is refused while it is subscribed.
        """


@runtime_checkable
class DraftProcessor(DraftSubscriber[T_contra], DraftPublisher[T_co], Protocol[T_contra, T_co]):
    """A stage: a subscriber towards its publisher, and a publisher towards its subscribers.

    It cancels its publisher when its last subscriber has cancelled, and passes an error on at once.
    """

    __slots__ = ()
