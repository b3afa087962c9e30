"""The four interfaces of Reactive Streams, with Python names, and their promises.

They are protocols: an object conforms by having the methods, and no base class is needed.
If a class inherits from them, a forgotten method is an error when an object is made, and not
when the signal arrives.

A subscriber always gets signals in this order::

    on_subscribe  on_next*  (on_error | on_complete)?

Rules are cited as ``rule 1.9``: chapter (1 publisher, 2 subscriber, 3 subscription, 4 processor),
then number.
"""

from abc import abstractmethod
from typing import Protocol, TypeVar, runtime_checkable

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)
T_contra = TypeVar("T_contra", contravariant=True)


@runtime_checkable
class Subscription(Protocol):
    """The relation between one publisher and one subscriber.
    The subscriber requests elements and cancels through it.
    """

    __slots__ = ()

    @abstractmethod
    def request(self, n: int, /) -> None:
        """Permit the publisher to signal `n` more elements.

        Demand adds up, and saturates at 2^63-1, which means "without bound" (rules 3.8, 3.17).
        Always returns normally (rule 3.16). If `n` is not positive, the subscriber gets
        `on_error(IllegalDemand)` (rule 3.9).
        After the end it does nothing (rule 3.6).
        """

    @abstractmethod
    def cancel(self, /) -> None:
        """Ask the publisher to stop and to forget the subscriber.

        Always returns normally (rule 3.15), at once (rule 3.5),
        and may be called any number of times (rule 3.7).
        """


@runtime_checkable
class Subscriber(Protocol[T_contra]):
    """Receives the signals of one publisher, and never more elements than it requested."""

    __slots__ = ()

    @abstractmethod
    def on_subscribe(self, subscription: Subscription, /) -> None:
        """The first signal, exactly once (rules 1.9, 2.12).
        Elements come only after a `request` (rule 2.1).
        """

    @abstractmethod
    def on_next(self, element: T_contra, /) -> None:
        """One element. It is never None (rule 2.13)."""

    @abstractmethod
    def on_error(self, error: BaseException, /) -> None:
        """The publisher failed. No signal follows, and inside this one no call on the
        subscription is legal (rule 2.3).
        """

    @abstractmethod
    def on_complete(self, /) -> None:
        """The publisher completed. No signal follows, and inside this one no call on the
        subscription is legal (rule 2.3).
        """


@runtime_checkable
class Publisher(Protocol[T_co]):
    """Provides elements to each subscriber, as many as that subscriber has requested."""

    __slots__ = ()

    @abstractmethod
    def subscribe(self, subscriber: "Subscriber[T_co]", /) -> None:
        """Begin a stream for `subscriber`.

        Calls `on_subscribe` first, and returns normally.
        A refusal is an `on_error` after `on_subscribe` (rule 1.9).
        Raises TypeError if `subscriber` is None, and no other exception.
        """


@runtime_checkable
class Processor(Subscriber[T_contra], Publisher[T_co], Protocol[T_contra, T_co]):
    """A stage: a subscriber towards its upstream and a publisher towards its downstream. Obeys
    the rules of both (rule 4.1).
    """

    __slots__ = ()
