"""An async iterator that one task opens, pulls and closes.

Rules of this file:

* All three happen in the same task.
  An async generator that is pulled from two tasks corrupts its cancel scopes silently.
* No cancel scope is opened between two pulls. A generator may keep a cancel scope or a nursery open
  over a `yield`, and cancel scopes must be exited in the reverse order of entering. So the scope
  around the whole task bounds the cleanup.
* A generator that is suspended at a `yield` is closed with `aclose()` and never cancelled: nothing
  in it waits that could be cancelled.
"""

from collections.abc import AsyncIterator, Callable
from math import inf
from types import AsyncGeneratorType
from typing import Generic, TypeVar, cast

import trio

from penstock.api import CleanupTimeout
from penstock.core._iterator_lease import IteratorLease
from penstock.core._scope import Scope

T = TypeVar("T")


class PulledIterator(Generic[T]):
    """The iterator of one pump. `own_scope` in its methods is the cancel scope around the pump's
    task.
    """

    __slots__ = ("_borrowed", "_claim", "_iterator", "_open", "_scope", "is_given", "label")

    def __init__(
        self,
        open_iterator: Callable[[], AsyncIterator[T]],
        scope: Scope,
        *,
        label: str,
        is_given: bool = False,
        borrowed: bool = False,
        claim: IteratorLease | None = None,
    ) -> None:
        """`is_given`: the iterator exists already, and must be closed even if it is never pulled.
        `borrowed`: it is never closed here.

        `claim` is kept until the iterator is closed or discarded.
        """
        self._open: Callable[[], AsyncIterator[T]] | None = open_iterator
        self._iterator: AsyncIterator[T] | None = None
        self._scope = scope
        self._borrowed = borrowed
        self._claim = claim
        self.is_given: bool = is_given
        self.label: str = label

    def discard(self) -> None:
        """Drop the function that opens the iterator: it will never be called."""
        # Both: a claim that is kept would refuse the iterator to the next stream.
        self._open = self._claim = None

    def open(self) -> AsyncIterator[T] | None:
        """Open the iterator and return it; None if it was discarded."""
        # The factory is forgotten as soon as it has been called:
        # a bound method or a partial may hold large objects.
        open_iterator, self._open = self._open, None
        if open_iterator is not None:
            self._iterator = open_iterator()
        return self._iterator

    @property
    def is_running(self) -> bool:
        """Whether the iterator's own code runs or waits;
        False while it is suspended at a `yield`.
        """
        # Only async generators tell. Another kind of iterator counts as suspended,
        # so it is not cancelled but closed.
        return bool(getattr(self._iterator, "ag_running", False))

    @property
    def place(self) -> tuple[int | None, int | None]:
        """The position of the next element and what follows it in a log; None for other
        iterators.
        """
        place: tuple[int | None, int | None] = getattr(self._iterator, "place", (None, None))
        return place

    async def throw_cancellation(self, cancelled: trio.Cancelled, own_scope: trio.CancelScope) -> T:
        """Throw `cancelled` into the iterator if it began inside it, and return the element that it
        yields in answer; else raise it.

        A generator may hold a timeout or a nursery open over its `yield`. While the pump waits for
        demand, the cancellation of these arrives in the pump, because the task waits there and not
        in the generator. It belongs to the generator.
        """
        athrow = getattr(self._iterator, "athrow", None)
        if athrow is None or not _is_cancelled_inside(own_scope):
            raise cancelled
        return cast("T", await athrow(cancelled))

    async def close(self, own_scope: trio.CancelScope) -> None:
        """Close the iterator, within the scope's `cleanup_timeout`. Report what its cleanup
        raises; raise interrupts and cancellations.
        """
        # Forgotten before it is closed: the program may keep the subscription, and that must not
        # keep the generator's frame.
        iterator, self._iterator = self._iterator, None
        # A generator that ran to its end has nothing to close. Most do, and skipping aclose() saves
        # a coroutine for each stream.
        ran_to_end = isinstance(iterator, AsyncGeneratorType) and iterator.ag_frame is None
        aclose = None if self._borrowed or ran_to_end else getattr(iterator, "aclose", None)
        self._claim = None  # an iterator that is not closed here may be read on by the next stream
        if aclose is None:
            return
        # If the task is already cancelled, the cleanup must not get a shield: trio's rule is that
        # it shields itself if it has to wait.
        has_deadline = not own_scope.cancel_called
        if has_deadline:
            own_scope.deadline = trio.current_time() + self._scope.cleanup_timeout
            own_scope.shield = True
        try:
            await aclose()
        except BaseException as raised:
            # boundary: the user's cleanup. The stream is over, so its failures go to the scope.
            left = _without_generator_exit(raised)
            # Only a Cancelled shows that the deadline cut the cleanup short. Inside its own shield
            # it may have ended late, but whole.
            if has_deadline and own_scope.cancel_called and _holds_cancelled(left):
                self._scope.report_failure(self._cleanup_timeout())
            rest = None if left is None else self._scope.report_failures(left)
            if rest is not None:
                raise rest from None

    def _cleanup_timeout(self) -> CleanupTimeout:
        return CleanupTimeout(
            f"the cleanup of {self.label} did not end within {self._scope.cleanup_timeout} s and "
            "was cut short. Make its `finally` shorter, or give `cleanup_timeout=` more"
        )


def _is_cancelled_inside(own_scope: trio.CancelScope) -> bool:
    """Return whether a cancel scope inside `own_scope` is cancelled."""
    # trio does not tell which scope a Cancelled belongs to.
    # Behind a shield only the scopes inside it count.
    own_scope.shield = True
    is_inside = trio.current_effective_deadline() == -inf
    own_scope.shield = False
    return is_inside


def _without_generator_exit(raised: BaseException) -> BaseException | None:
    """Return `raised` without the GeneratorExit of aclose().
    A nursery around the `yield` puts even that into a group.
    """
    return raised.split(GeneratorExit)[1] if isinstance(raised, BaseExceptionGroup) else raised


def _holds_cancelled(raised: BaseException | None) -> bool:
    if isinstance(raised, BaseExceptionGroup):
        return raised.subgroup(trio.Cancelled) is not None
    return isinstance(raised, trio.Cancelled)
