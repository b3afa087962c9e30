"""A subscriber whose signals only drop something into a mailbox; a task of its own takes it out and calls the user's functions.

Rules of this file:

* A signal appends and returns. It calls nothing of the stream's and nothing of the user's, so nothing can nest, and nobody waits
  (rule 2.2, D5.1, D5.2, D6.1, D6.2). What the task requests comes back as a signal, into the same mailbox.
* The mailbox holds what was requested and is not handled yet, one beginning and one end: the demand and 2. An element that was not
  requested ends the stream, so no publisher can fill it further.
* The task runs from the first signal to the end, in the nursery that was given.
* Once an end was received, or `shutdown` was called, the subscription is forgotten; nothing is called on it any more
  (rule 2.4, D6.3, D7.3, D7.4).
* Signals are handled in the order in which they came, an error too: it is the publisher who lets errors overtake.
"""

import enum
import inspect
from collections import deque
from collections.abc import Awaitable, Callable
from time import monotonic
from typing import Any, Final, Generic, TypeVar

import attrs
import trio

from penstock.api import (
    UNBOUNDED,
    DraftSubscription,
    InvalidStateError,
    RuleViolation,
    Subscriber,
    Subscription,
    UsageError,
    add_demand,
    check_demand,
    shown,
)
from penstock.core._arguments import check_function, name_of
from penstock.core._scope import Report, Scope, check_hook, log_violation, tell
from penstock.core._stream import DEFAULT_DEMAND, TURN_SECONDS

T = TypeVar("T")


class MailboxPolicy(enum.Enum):
    """Which generation of the rules a `MailboxSubscriber` follows where the two differ."""

    MODERN = "modern"
    """Demand goes to `request`, and a second subscription is cancelled (rule 2.5)."""

    DRAFT = "draft"
    """Demand goes to `request_more`; a second subscription is left alone, and its `on_subscribe` raises InvalidStateError (D7.1)."""


class MailboxSubscriber(Subscriber[T], Generic[T]):
    """Calls `next` with each element, and `error` or `complete` at the end, from a task of its own in `nursery`.

    The functions are plain or async, and run one at a time; while one waits, at most `demand` elements gather.
    ``demand=n`` is renewed in halves as elements are handled; with ``demand=0`` you call `request` yourself.
    What a function raises cancels the subscription and goes to `on_violation` (rule 2.13).

    It is a subscriber of today's rules, or of the early draft's, as `policy` says; for one stream, in both cases.
    """

    __slots__ = (
        "__weakref__",
        "_complete",
        "_demand",
        "_due",
        "_ended",
        "_error",
        "_granted",
        "_mail",
        "_next",
        "_on_violation",
        "_opened",
        "_over",
        "_owed",
        "_parked",
        "_policy",
        "_scope",
        "_subscription",
        "_taken",
        "_task",
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
        policy: MailboxPolicy = MailboxPolicy.MODERN,
        on_violation: Report = log_violation,
    ) -> None:
        if type(demand) is not int or demand < 0:
            raise UsageError(
                f"demand={shown(demand)}; give how many elements may be under way at a time (renewed as they are handled), "
                "or 0 to call request() yourself"
            )
        if not isinstance(policy, MailboxPolicy):
            raise UsageError(f"policy={shown(policy)}; choose one of {', '.join(f'MailboxPolicy.{each.name}' for each in MailboxPolicy)}")
        if not isinstance(nursery, trio.Nursery):
            raise UsageError(f"a mailbox subscriber was given {shown(nursery)}; give the nursery that shall run its task")
        self._scope = Scope(nursery, on_violation=check_hook(on_violation))
        self._next = check_function(next, "`next`", "one argument, the element")
        self._error = None if error is None else check_function(error, "`error`", "one argument, the exception")
        self._complete = None if complete is None else check_function(complete, "`complete`", "no argument")
        self._demand = min(demand, UNBOUNDED)
        self._policy = policy
        self._on_violation = on_violation
        self._mail: deque[Any] = deque()  # elements, _OPENED and _End; bounded by what was requested, and 2
        self._subscription: Subscription | DraftSubscription | None = None
        self._taken = False  # was subscribed, has ended, or was shut down: no further subscription is accepted
        self._opened = False  # demand may go to the subscription
        self._ended = False  # the end is in the mailbox, or was
        self._over = False  # nothing is handled any more
        self._wanted = self._demand  # to be requested once there is a subscription
        self._granted = 0  # requested, in all
        self._due = 0  # requested, and not yet received
        self._owed = 0  # handled, and not yet requested anew
        self._task: trio.CancelScope | None = None
        self._parked: trio.lowlevel.Task | None = None

    # --- steering

    def request(self, n: int) -> None:
        """Ask for `n` more elements, with ``demand=0``. Before there is a subscription it is remembered; after the end it is nothing.

        Raises IllegalDemand, or UsageError where demand is automatic.
        """
        if self._demand:
            raise UsageError(
                f"request({shown(n)}) on a subscriber with demand={self._demand}, which renews it by itself. "
                "Make it with demand=0 to ask for each element yourself"
            )
        n = check_demand(n)
        if self._opened:
            self._ask(n)
        else:
            self._wanted = add_demand(self._wanted, n)

    def shutdown(self) -> None:
        """Stop: cancel the subscription if it is still there, and drop what waits. It may be called any number of times.

        A function that runs just now is not interrupted; none is called after it. Not to be called from inside a signal.
        """
        self._over = self._taken = True
        self._mail.clear()
        self._release()
        self._wake()

    # --- the subscriber: called by the publisher

    def on_subscribe(self, subscription: Subscription | DraftSubscription, /) -> None:
        if subscription is None:
            raise TypeError("on_subscribe(None): a subscription is needed (rule 2.13)")
        if self._taken:
            self._refuse(subscription)
            return
        self._taken = True
        self._subscription = subscription
        self._post(_OPENED)

    def on_next(self, element: T, /) -> None:
        if element is None:
            raise TypeError("on_next(None): None is never an element (rule 2.13)")
        if self._ended or self._over:
            return  # rule 2.8, D7.5
        if not self._due:
            self._broken("1.1", "D4.1", "signalled an element that was not requested")
            return
        self._due -= 1
        self._post(element)

    def on_error(self, error: BaseException, /) -> None:
        if not isinstance(error, BaseException):
            raise TypeError(f"on_error({shown(error)}): an exception is needed (rule 2.13)")
        self._end(error)

    def on_complete(self, /) -> None:
        self._end(None)

    def _end(self, error: BaseException | None) -> None:
        if self._ended or self._over:
            return
        self._subscription = None  # rule 2.4, D6.3: from here it counts as cancelled
        self._ended = self._taken = True  # the draft's publishers may signal an end alone (D1.1)
        self._post(_End(error))

    def _refuse(self, subscription: Subscription | DraftSubscription) -> None:
        if self._policy is MailboxPolicy.DRAFT:
            # The draft wants an error (D7.1) and forbids to touch the subscription here (D5.2). Raised to the caller the error reaches
            # the one who must act, and leaves the first stream as it is; `as_draft` answers it by cancelling the second.
            raise InvalidStateError(
                "on_subscribe() on a subscriber that has a subscription, or had one; the draft wants an error for that (D7.1), and the new "
                "subscription was left alone. Make a subscriber for each stream"
            )
        try:
            subscription.cancel()  # rule 2.5
        except Exception as error:  # boundary: a foreign subscription (rule 3.15)
            self._tell("3.15", "D3.2", f"raised {shown(error)} in cancel()", error)

    # --- the mailbox

    def _post(self, mail: object) -> None:
        self._mail.append(mail)
        if self._task is not None:
            self._wake()
            return
        try:
            self._task = self._scope.spawn(self._run, name=f"penstock mailbox of {name_of(self._next)}")
        except UsageError as closed:
            # There is no other place left to cancel from: of D5.2 and D7.2 the second counts more.
            self.shutdown()
            tell(self._on_violation, closed)

    def _wake(self) -> None:
        parked, self._parked = self._parked, None
        if parked is not None:
            trio.lowlevel.reschedule(parked)

    async def _run(self) -> None:
        try:
            while not self._over:
                await self._wait_mail()
                turn_ends = monotonic() + TURN_SECONDS  # nobody's neighbours wait longer
                while self._mail and monotonic() < turn_ends:
                    await self._handle(self._mail.popleft())
        finally:
            self.shutdown()  # D7.2, where the nursery was cancelled

    async def _wait_mail(self) -> None:
        if self._mail:
            await trio.lowlevel.checkpoint()
            return
        self._parked = trio.lowlevel.current_task()
        await trio.lowlevel.wait_task_rescheduled(self._unpark)

    def _unpark(self, _: Any) -> trio.lowlevel.Abort:
        self._parked = None
        return trio.lowlevel.Abort.SUCCEEDED

    async def _handle(self, mail: Any) -> None:
        if mail is _OPENED:
            self._opened = True
            self._ask(self._wanted)
        elif isinstance(mail, _End):
            await self._handle_end(mail.error)
        else:
            await self._call("next", self._next, mail)
            self._owed += 1
            if self._demand and self._owed >= max(1, self._demand // 2):
                owed, self._owed = self._owed, 0
                self._ask(owed)

    async def _handle_end(self, error: BaseException | None) -> None:
        self._over = True
        self._release()  # where the end is our own: the publisher broke a rule
        if error is None:
            if self._complete is not None:
                await self._call("complete", self._complete)
        elif self._error is not None:
            await self._call("error", self._error, error)
        elif isinstance(error, RuleViolation):
            tell(self._on_violation, error)

    async def _call(self, name: str, function: Callable[..., Any], *args: object) -> None:
        try:
            result = function(*args)
            if inspect.isawaitable(result):
                await result
        except Exception as error:  # boundary: the user's function (rule 2.13)
            self.shutdown()
            violation = RuleViolation(
                f"the `{name}` function raised {shown(error)}; its subscription was cancelled. "
                "Handle the error inside the function, or use `async for`, where it is yours to catch",
                rule="2.13",
            )
            violation.__cause__ = error
            tell(self._on_violation, violation)

    # --- the subscription

    def _ask(self, n: int) -> None:
        """Request `n` more; never more than 2^63-1 in all, which the draft would call an overflow (D2.3), and rule 3.17 unbounded."""
        n = min(n, UNBOUNDED - self._granted)
        subscription = self._subscription
        if subscription is None or not n:
            return
        self._granted += n
        self._due += n
        try:
            # A subscription of the other generation lacks the method; that is a fault like any other of a foreign object.
            getattr(subscription, "request" if self._policy is MailboxPolicy.MODERN else "request_more")(n)
        except Exception as error:  # boundary: a foreign subscription
            self._broken("3.16", "D2.2", f"raised {shown(error)} when {n} elements were requested", error)

    def _release(self) -> None:
        """Cancel the subscription, once, and forget it (rule 2.6, D7.2, D7.4)."""
        subscription, self._subscription = self._subscription, None
        if subscription is None:
            return
        try:
            subscription.cancel()
        except Exception as error:  # boundary: a foreign subscription
            self._tell("3.15", "D3.2", f"raised {shown(error)} in cancel()", error)

    def _broken(self, modern: str, draft: str, what: str, cause: Exception | None = None) -> None:
        """End the stream because its publisher broke a rule; the task cancels it, and tells the user in the order of signals."""
        if self._ended or self._over:
            self._tell(modern, draft, what, cause)
            return
        self._ended = self._taken = True
        self._post(_End(self._violation(modern, draft, what, cause)))

    def _tell(self, modern: str, draft: str, what: str, cause: Exception | None) -> None:
        tell(self._on_violation, self._violation(modern, draft, what, cause))

    def _violation(self, modern: str, draft: str, what: str, cause: Exception | None) -> RuleViolation:
        rule = modern if self._policy is MailboxPolicy.MODERN else draft
        violation = RuleViolation(
            f"the publisher {what}; that breaks rule {rule}. Whoever wrote it must act: the test kit shows where", rule=rule
        )
        violation.__cause__ = cause
        return violation

    def __repr__(self) -> str:
        state = "over" if self._over else "live" if self._taken else "new"
        return f"<mailbox subscriber ({self._policy.value}) {state}: {len(self._mail)} waiting, {self._due} due>"


_OPENED: Final = object()
"""The first mail: there is a subscription, and demand may go to it."""


@attrs.frozen
class _End:
    """The last mail: the stream ended with an error, or well."""

    error: BaseException | None
