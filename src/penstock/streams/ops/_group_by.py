"""`group_by`: a stream as streams of the elements with the same key."""

from collections import deque
from collections.abc import Awaitable, Callable
from typing import Any, Final, TypeVar, overload

import attrs

from penstock.api import LimitExceeded, Subscriber, UsageError, shown
from penstock.core import Scope, name_of
from penstock.streams._slow_subscribers import SlowPolicy
from penstock.streams._source import Group, Operator, Source
from penstock.streams.ops._holding_stage import HoldingStage
from penstock.streams.ops._inner_source import InnerSource
from penstock.streams.ops._operator import OperatorBase
from penstock.streams.ops._output_queue import (
    End,
    OutputQueue,
    Overflow,
    QueueOwner,
    check_overflow,
)
from penstock.streams.ops._stage import ENDED_UPSTREAM
from penstock.streams.ops._step import WINDOW, Step, step_operator

A = TypeVar("A")
K = TypeVar("K")

MAX_GROUPS: Final = 64
"""How many groups may be open by default: with 16 elements each, 1,024 elements in all."""


@overload
def group_by(
    key: Callable[[A], K] | Callable[[A], Awaitable[K]],
    /,
    *,
    max_groups: int = MAX_GROUPS,
    evict: bool = False,
    slow: SlowPolicy = SlowPolicy.WAIT,
    buffer: int | None = None,
) -> "Operator[A, Group[K, A]]": ...
@overload
def group_by(
    key: Callable[[A], Awaitable[K]],
    /,
    *,
    max_groups: int = MAX_GROUPS,
    evict: bool = False,
    slow: SlowPolicy = SlowPolicy.WAIT,
    buffer: int | None = None,
) -> "Operator[A, Group[K, A]]": ...
def group_by(
    key: Callable[[Any], Any],
    /,
    *,
    max_groups: int = MAX_GROUPS,
    evict: bool = False,
    slow: SlowPolicy = SlowPolicy.WAIT,
    buffer: int | None = None,
) -> Operator[Any, Any]:
    """Pass on a stream for each different ``key(element)``, with the elements of that key. The
    stream is a `Group` with the key.

    At most `max_groups` groups (by default 64) are open. For a further key the stream fails with
    `LimitExceeded`; with ``evict=True`` the group that has got no element for the longest time
    completes. When a group has been evicted or cancelled, the next element of its key opens a new
    one. A group can be subscribed to once.

    `slow` declares what happens to an element whose group has `buffer` elements waiting (by default
    16). With `SlowPolicy.WAIT` all groups wait until there is room, so subscribe to every group, or
    cancel it. The other policies drop elements or fail that group, as for a `Topic`.

    >>> total = lambda group: pipe(group, ops.reduce(operator.add, 0))
    >>> await collect(pipe(range(6), ops.group_by(lambda n: n % 2), ops.flat_map(total)))
    [6, 9]

    Upstream demand: at most 16 (with `SlowPolicy.WAIT` at most `buffer`) at a time, while a group
    or an element of a group is requested. Buffer: `buffer` elements for each group, so `max_groups`
    times `buffer` in all, and twice that with ``evict=True``; up to 16 more with an async function.
    Completion reaches each group after its waiting elements.
    If the function raises, all streams end with that error.
    An error passes to all groups at once, and waiting elements are dropped. After a cancel the
    groups with a subscriber go on, and no new group opens; upstream is cancelled when none is left.
    """
    if type(max_groups) is not int or max_groups < 1:
        raise UsageError(
            f"group_by(max_groups={shown(max_groups)}): give how many groups may be open, an "
            "integer of at least 1"
        )
    limits = _GroupLimits(
        max_groups=max_groups, evict=evict, overflow=check_overflow("group_by", slow, buffer)
    )
    return _GroupBy(step_operator("group_by", key, lambda: _KeyStep(key)), limits)


class _Group(InnerSource[A], Group[K, A]):
    """A group that `group_by` fills."""

    __slots__ = ("_key",)

    def __init__(self, key: K, queue: OutputQueue[A]) -> None:
        super().__init__(queue)
        self._key = key

    @property
    def key(self) -> K:
        return self._key

    def __repr__(self) -> str:
        return f"<group {shown(self.key)}>"


class _KeyStep(Step):
    """Passes on ``(key, element)``."""

    __slots__ = ()

    def decide(self, element: Any, result: Any) -> Any:
        try:
            hash(result)  # here, where a failure ends the stream: groups are found by their keys
        except TypeError as error:
            kind = type(result)
            instead = _INSTEAD.get(kind, "a text, a number, or a tuple of these")
            raise UsageError(
                f"group_by({name_of(self.function)}): the function returned {shown(result)} of "
                f"type {kind.__name__}, which cannot be a key, because it has no hash ({error}). "
                f"Let the function return {instead}"
            ) from error
        return (result, element)


_INSTEAD: Final[dict[type, str]] = {
    list: "tuple(key) in place of the list key",
    set: "frozenset(key) in place of the set key",
    dict: "tuple(sorted(key.items())) in place of the dict key",
}
"""What can be a key in place of the types that are given most."""


@attrs.frozen(kw_only=True)
class _GroupLimits:
    """The bounds of `group_by`, and its behaviour beyond them."""

    max_groups: int
    evict: bool
    overflow: Overflow

    @property
    def most_ahead(self) -> int:
        """How many elements may be requested from upstream at a time."""
        # With WAIT nothing may be dropped, and a new group has room for `buffer` elements.
        return self.overflow.buffer if self.overflow.slow is SlowPolicy.WAIT else WINDOW


class _GroupBy(OperatorBase[Any, Any]):
    """A step that finds the key, and after it the stage that distributes the elements."""

    __slots__ = ("_keys", "_limits")

    def __init__(self, keys: OperatorBase[Any, Any], limits: _GroupLimits) -> None:
        self._keys = keys
        self._limits = limits

    def attach(self, source: Source[Any], subscriber: Subscriber[Any], scope: Scope) -> None:
        self._keys.attach(source, _GroupStage(subscriber, self._limits), scope)

    def __repr__(self) -> str:
        return repr(self._keys)


class _GroupQueue(OutputQueue[Any]):
    """The queue of a group, with its key."""

    __slots__ = ("key",)

    def __init__(self, owner: QueueOwner, overflow: Overflow, key: Any) -> None:
        super().__init__(owner, overflow)
        self.key = key


class _GroupStage(HoldingStage[tuple[Any, Any], Group[Any, Any]], QueueOwner):
    """Gives each element to the queue of its group.
    New groups are held until they are requested.
    """

    __slots__ = ("_groups", "_limits", "_outstanding", "_unannounced")

    def __init__(self, downstream: Subscriber[Group[Any, Any]], limits: _GroupLimits) -> None:
        super().__init__(downstream)
        self._limits = limits
        # With `evict`, the group with the oldest last element is the first.
        self._groups: dict[Any, _GroupQueue] = {}
        # Not requested yet; bounded by max_groups.
        self._unannounced: deque[_Group[Any, Any]] = deque()
        self._outstanding = 0  # requested from upstream and not yet arrived

    # --- called by upstream

    def on_next(self, element: tuple[Any, Any], /) -> None:
        self._outstanding -= 1
        queue = self._groups.get(element[0]) or self._open_group(element[0])
        if queue is not None:
            if self._limits.evict:
                self._groups[queue.key] = self._groups.pop(queue.key)
            # A request inside push goes up after it.
            self._is_passing_on, was_passing_on = True, self._is_passing_on
            try:
                queue.push(element[1])
            finally:
                self._is_passing_on = was_passing_on
        self._update()

    def on_complete(self, /) -> None:
        self._upstream = ENDED_UPSTREAM
        self._end_groups(End(None))
        super().on_complete()

    def on_error(self, error: BaseException, /) -> None:
        self._upstream = ENDED_UPSTREAM
        self._end_groups(End(error))
        super().on_error(error)

    # --- called by downstream, and by the groups

    def cancel(self, /) -> None:
        if self._mark_over():
            self._demand = 0
            self._detach_downstream()
            for queue in tuple(self._groups.values()):
                if not queue.has_subscriber:
                    queue.cancel()
            self._cancel_upstream_if_unused()

    def on_queue_demand(self, queue: OutputQueue[Any]) -> None:
        self._update()

    def on_queue_closed(self, queue: OutputQueue[Any]) -> None:
        if isinstance(queue, _GroupQueue) and self._groups.get(queue.key) is queue:
            del self._groups[queue.key]
            if self._is_over:
                self._cancel_upstream_if_unused()
            else:
                self._pass_on()  # it may have been the one without room

    # --- the groups

    def _update(self) -> None:
        """Pass on new groups, and request what the groups need."""
        self._pass_on()
        # _pass_on requests nothing when the outer stream is over.
        if self._is_over and not self._is_passing_on:
            self._request_upstream()

    def _open_group(self, key: Any) -> _GroupQueue | None:
        """Return the queue of a new group, or None if the outer stream is over."""
        if self._is_over:
            return None
        if len(self._groups) == self._limits.max_groups:
            if not self._limits.evict:
                self._fail(self._too_many(key))
                return None
            self._groups.pop(next(iter(self._groups))).end(End(None))
        queue = self._groups[key] = _GroupQueue(self, self._limits.overflow, key)
        self._unannounced.append(_Group(key, queue))
        return queue

    def _end_groups(self, end: End) -> None:
        groups, self._groups = self._groups, {}
        for queue in groups.values():
            queue.end(end)

    def _cancel_upstream_if_unused(self) -> None:
        if not self._groups:
            self._cancel_upstream()

    def _fail(self, error: BaseException) -> None:
        groups, self._groups = self._groups, {}
        super()._fail(error)
        for queue in groups.values():
            queue.end(End(error))

    def _too_many(self, key: Any) -> LimitExceeded:
        most = self._limits.max_groups
        return LimitExceeded(
            f"group_by() has {most} open groups, and the key {shown(key)} needs another one. "
            "Choose a larger max_groups, cancel the groups that are not needed any more, or let "
            "the oldest complete with evict=True",
            limit="max_groups",
            value=most,
        )

    # --- for the base class

    def _has_held(self) -> bool:
        return bool(self._unannounced)

    def _next_due(self) -> Group[Any, Any] | None:
        return self._unannounced.popleft() if self._unannounced else None

    def _request_upstream(self) -> None:
        most = self._limits.most_ahead
        if self._outstanding * 2 > most or not (
            self._demand or any(queue.demand for queue in self._groups.values())
        ):
            return  # half of `most` at a time: one call for each element would be slower
        wanted = most
        if self._limits.overflow.slow is SlowPolicy.WAIT:
            wanted = min([most, *(queue.room for queue in self._groups.values())])
        # Each element may open a group, and evict one that was not requested yet.
        if self._limits.evict:
            wanted = min(wanted, self._limits.max_groups - len(self._unannounced))
        missing = wanted - self._outstanding
        if missing > 0:
            self._outstanding += missing
            self._upstream.request(missing)

    def _release(self) -> None:
        unannounced, self._unannounced = self._unannounced, deque()
        for group in unannounced:
            group.discard()
