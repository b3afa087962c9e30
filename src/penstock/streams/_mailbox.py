"""A subscriber whose signals only put mail into a mailbox.
A task takes the mail out and calls the user's functions.

Rules of this file:

* A signal appends and returns. It calls neither the subscription nor the user's functions, so
  signals cannot nest, and the publisher never waits (rule 2.2, D5.1, D5.2, D6.1, D6.2). Elements
  that the task requests come back as signals, into the same mailbox.
* The mailbox holds elements that were requested and are not yet handled, one beginning and one end:
  at most the demand plus 2. An element that was not requested ends the stream, so no publisher can
  fill the mailbox further.
* The task runs from the first signal to the end, in the nursery that was given.
* After an end or `shutdown` the subscription is forgotten, and no method of it is called (rule 2.4,
  D6.3, D7.3, D7.4).
* Mail is handled in the order in which it came, an error too.
  To let an error overtake elements is up to the publisher.
"""

import enum
import inspect
from collections import deque
from collections.abc import Awaitable, Callable
from time import monotonic
from typing import Any, Final, Generic, Protocol, TypeVar, runtime_checkable

import attrs
import trio

from penstock.api import (
    UNBOUNDED,
    RuleViolation,
    Subscriber,
    Subscription,
    UsageError,
    add_demand,
    check_demand,
    shown,
)
from penstock.core import (
    ParkedTask,
    Report,
    Scope,
    check_function,
    check_hook,
    has_methods_of,
    log_violation,
    name_of,
    report,
)
from penstock.reader import DEFAULT_DEMAND, TURN_SECONDS

T = TypeVar("T")


@runtime_checkable
class MailboxRules(Protocol):
    """The differences between the generations of the rules for a mailbox.
    `penstock.draft.MailboxPolicy` lists the generations.
    """

    @property
    def name(self) -> str:
        """The name of the generation."""

    def number_of(self, rule: str, /) -> str:
        """Return the number that this generation gives to a modern `rule`: 1.1, 3.15 or 3.16."""

    def request(self, subscription: Any, n: int, /) -> None:
        """Request `n` elements of a subscription of this generation."""

    def second_subscription_error(self) -> Exception | None:
        """Return what `on_subscribe` raises for a second subscription;
        None if that subscription is cancelled instead.
        """


class ModernRules:
    """The modern rules: demand goes to `request`,
    and a second subscription is cancelled (rule 2.5).
    """

    name = "MODERN"

    def number_of(self, rule: str, /) -> str:
        """Return `rule` itself."""
        return rule

    def request(self, subscription: Subscription, n: int, /) -> None:
        """Call `request`."""
        subscription.request(n)

    def second_subscription_error(self) -> Exception | None:
        """Return None."""
        return None


MODERN_RULES: Final = ModernRules()


class MailboxSubscriber(Subscriber[T], Generic[T]):
    """Calls `next` with each element, and `error` or `complete` at the end,
    from its own task in `nursery`.

    The functions are plain or async, and run one at a time. While one waits, at most `demand`
    elements gather in the mailbox.
    ``demand=n`` is renewed in halves as elements are handled;
    with ``demand=0`` you call `request` yourself.
    If a function raises, the subscription is cancelled
    and the exception goes to `on_violation` (rule 2.13).

    It subscribes once. `policy`, a `MailboxPolicy`,
    says whether its publisher follows the modern rules or the early draft.
    """

    __slots__ = (
        "__weakref__",
        "_demand",
        "_due",
        "_functions",
        "_granted",
        "_mail",
        "_on_violation",
        "_parked",
        "_policy",
        "_scope",
        "_state",
        "_subscription",
        "_task",
        "_unrenewed",
        "_wanted",
    )

    def __init__(
        self,
        nursery: trio.Nursery,
        next: Callable[[T], Any] | Callable[[T], Awaitable[Any]],  # noqa: A002  # named after the signal
        *,
        error: Callable[[BaseException], Any] | None = None,
        complete: Callable[[], Any] | None = None,
        demand: int = DEFAULT_DEMAND,
        policy: MailboxRules = MODERN_RULES,
        on_violation: Report = log_violation,
    ) -> None:
        if type(demand) is not int or demand < 0:
            raise UsageError(
                f"demand={shown(demand)}; give how many elements may be under way at a time "
                "(renewed as they are handled), or 0 to call request() yourself"
            )
        if not has_methods_of(policy, MailboxRules):
            raise UsageError(
                f"policy={shown(policy)}; choose one of MailboxPolicy.MODERN, MailboxPolicy.DRAFT"
            )
        if not isinstance(nursery, trio.Nursery):
            raise UsageError(
                f"a mailbox subscriber was given {shown(nursery)}; give the nursery that shall run "
                "its task"
            )
        self._scope = Scope(nursery, on_violation=check_hook(on_violation))
        self._functions = _Functions(
            next=check_function(next, "`next`", "one argument, the element"),
            error=None
            if error is None
            else check_function(error, "`error`", "one argument, the exception"),
            complete=None
            if complete is None
            else check_function(complete, "`complete`", "no argument"),
        )
        self._demand = min(demand, UNBOUNDED)
        self._policy = policy
        self._on_violation = on_violation
        # elements, _OPENED and _End; bounded by the requested demand plus 2.
        self._mail: deque[Any] = deque()
        self._subscription: Any = None  # of the generation that the policy names
        self._state = _State.NEW
        self._wanted = self._demand  # to be requested once there is a subscription
        self._granted = 0  # requested, in all
        self._due = 0  # requested and not yet received
        self._unrenewed = 0  # handled and not yet requested anew
        self._task: trio.CancelScope | None = None
        self._parked = ParkedTask()

    # --- steering

    def request(self, n: int) -> None:
        """Request `n` more elements, with ``demand=0``. Before there is a subscription it is
        remembered; after the end it does nothing.

        Raises IllegalDemand; or UsageError if the demand is automatic.
        """
        if self._demand:
            raise UsageError(
                f"request({shown(n)}) on a subscriber with demand={self._demand}, which renews it "
                "by itself. Make it with demand=0 to ask for each element yourself"
            )
        n = check_demand(n)
        if self._state < _State.OPEN:
            self._wanted = add_demand(self._wanted, n)
        else:
            self._request(n)

    def shutdown(self) -> None:
        """Stop: cancel the subscription if there still is one, and drop the mail.
        May be called any number of times.

        A function that is running is not interrupted, and none is called after it. Must not be
        called from inside a signal.
        """
        # Over before the cancel: the publisher may answer it with a signal, and its mail must not
        # be kept.
        self._state = _OVER
        self._mail.clear()
        self._cancel_subscription()
        # The task ends by itself: to cancel it would interrupt a function that is running.
        self._parked.wake()

    # --- the subscriber: called by the publisher

    def on_subscribe(self, subscription: Any, /) -> None:
        if subscription is None:
            raise TypeError("on_subscribe(None): a subscription is needed (rule 2.13)")
        if self._state is not _State.NEW:
            self._refuse(subscription)
            return
        self._state = _State.SUBSCRIBED
        self._subscription = subscription
        self._post(_OPENED)

    def on_next(self, element: T, /) -> None:
        if element is None:
            raise TypeError("on_next(None): None is never an element (rule 2.13)")
        if self._state >= _ENDED:
            return  # rule 2.8, D7.5
        if not self._due:
            self._end_with_violation("1.1", "signalled an element that was not requested")
            return
        self._due -= 1  # at the signal, not when it is handled: so `_due` bounds the mailbox
        self._post(element)

    def on_error(self, error: BaseException, /) -> None:
        if not isinstance(error, BaseException):
            raise TypeError(f"on_error({shown(error)}): an exception is needed (rule 2.13)")
        self._end(error)

    def on_complete(self, /) -> None:
        self._end(None)

    def _end(self, error: BaseException | None) -> None:
        if self._state >= _ENDED:
            return
        self._subscription = None  # rule 2.4, D6.3: from here on it counts as cancelled
        self._state = _ENDED  # also from NEW: the draft's publishers may signal an end alone (D1.1)
        self._post(_End(error))

    def _refuse(self, subscription: Any) -> None:
        error = self._policy.second_subscription_error()
        if error is not None:
            raise error
        try:
            subscription.cancel()  # rule 2.5
        except Exception as raised:  # boundary: a foreign subscription (rule 3.15)
            self._report("3.15", f"raised {shown(raised)} in cancel()", raised)

    # --- the mailbox

    def _post(self, mail: object) -> None:
        self._mail.append(mail)
        if self._task is not None:
            self._parked.wake()
            return
        try:
            self._task = self._scope.spawn(
                self._run, name=f"penstock mailbox of {name_of(self._functions.next)}"
            )
        except UsageError as closed:
            # Without a task, only this call can cancel the subscription. D5.2 forbids that inside a
            # signal, D7.2 demands it; a subscription that stays open would be worse.
            self.shutdown()
            report(self._on_violation, closed)

    async def _run(self) -> None:
        try:
            while self._state is not _OVER:
                # No checkpoint comes between this look at the mailbox and park(), so no mail can be
                # posted unseen.
                if self._mail:
                    await trio.lowlevel.checkpoint()
                else:
                    await self._parked.park()
                turn_ends = monotonic() + TURN_SECONDS  # then other tasks get a scheduler pass
                while self._mail and monotonic() < turn_ends:
                    await self._handle(self._mail.popleft())
        finally:
            self.shutdown()  # D7.2, if the nursery was cancelled

    async def _handle(self, mail: Any) -> None:
        if mail is _OPENED:
            self._state = max(self._state, _State.OPEN)
            self._request(self._wanted)
        elif isinstance(mail, _End):
            await self._handle_end(mail.error)
        else:
            await self._call("next", self._functions.next, mail)
            # Requested anew after the function has returned:
            # while it waits, at most `demand` elements gather.
            self._unrenewed += 1
            if self._demand and self._unrenewed >= max(1, self._demand // 2):
                count, self._unrenewed = self._unrenewed, 0
                self._request(count)

    async def _handle_end(self, error: BaseException | None) -> None:
        self._state = _OVER
        self._cancel_subscription()  # there still is one if the end came from _end_with_violation
        functions = self._functions
        if error is None:
            if functions.complete is not None:
                await self._call("complete", functions.complete)
        elif functions.error is not None:
            await self._call("error", functions.error, error)
        elif isinstance(error, RuleViolation):
            report(self._on_violation, error)

    async def _call(self, name: str, function: Callable[..., Any], *args: object) -> None:
        try:
            result = function(*args)
            # The result decides: a partial hides whether its function is async.
            if inspect.isawaitable(result):
                await result
        except Exception as error:  # boundary: the user's function (rule 2.13)
            self.shutdown()
            violation = RuleViolation(
                f"the `{name}` function raised {shown(error)}; its subscription was cancelled. "
                "Handle the error inside the function, or use `async for`, where it is yours to "
                "catch",
                rule="2.13",
            )
            violation.__cause__ = error
            report(self._on_violation, violation)

    # --- the subscription

    def _request(self, n: int) -> None:
        """Request `n` more; at most 2^63-1 in all, because above that the draft sees an overflow
        (D2.3), and rule 3.17 no bound at all.
        """
        n = min(n, UNBOUNDED - self._granted)
        subscription = self._subscription
        if subscription is None or not n:
            return
        # Counted before the call: the publisher may signal the elements inside it (rule 3.10).
        self._granted += n
        self._due += n
        try:
            # A subscription of the other generation lacks the method. That is handled like any
            # other fault of a foreign object.
            self._policy.request(subscription, n)
        except Exception as error:  # boundary: a foreign subscription
            self._end_with_violation(
                "3.16", f"raised {shown(error)} when {n} elements were requested", error
            )

    def _cancel_subscription(self) -> None:
        """Cancel the subscription, once, and forget it (rule 2.6, D7.2, D7.4)."""
        subscription, self._subscription = self._subscription, None
        if subscription is None:
            return
        try:
            subscription.cancel()
        except Exception as error:  # boundary: a foreign subscription
            self._report("3.15", f"raised {shown(error)} in cancel()", error)

    def _end_with_violation(self, rule: str, what: str, cause: Exception | None = None) -> None:
        """End the stream because its publisher broke a rule. The task cancels the subscription,
        and calls `error` after earlier mail.
        """
        if self._state >= _ENDED:
            self._report(rule, what, cause)
            return
        self._state = _ENDED
        self._post(_End(self._violation(rule, what, cause)))

    def _report(self, rule: str, what: str, cause: Exception | None) -> None:
        report(self._on_violation, self._violation(rule, what, cause))

    def _violation(self, rule: str, what: str, cause: Exception | None) -> RuleViolation:
        number = self._policy.number_of(rule)
        violation = RuleViolation(
            (
                f"the publisher {what}; that breaks rule {number}. The author of the publisher "
                "must act: the test kit shows where"
            ),
            rule=number,
        )
        violation.__cause__ = cause
        return violation

    def __repr__(self) -> str:
        state = {_State.NEW: "new", _OVER: "over"}.get(self._state, "live")
        return (
            f"<mailbox subscriber ({self._policy.name.lower()}) {state}: {len(self._mail)} "
            f"waiting, {self._due} due>"
        )


class _State(enum.IntEnum):
    """The states of a mailbox; they only go up."""

    NEW = 0
    SUBSCRIBED = 1
    """on_subscribe is in the mailbox. Demand waits until the task has handled it."""
    OPEN = 2
    ENDED = 3
    """The end is in the mailbox. Mail before it is still handled."""
    OVER = 4


# On Python 3.11 a name of the module is found ten times as fast as a member of an Enum.
_ENDED: Final = _State.ENDED
_OVER: Final = _State.OVER


@attrs.frozen
class _Functions:
    next: Callable[[Any], Any]
    error: Callable[[BaseException], Any] | None
    complete: Callable[[], Any] | None


_OPENED: Final = object()
"""The first mail: there is a subscription, and it may be asked for elements."""


@attrs.frozen
class _End:
    """The last mail: the stream failed with `error`, or completed."""

    error: BaseException | None
