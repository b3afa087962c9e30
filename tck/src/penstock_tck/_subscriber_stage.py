"""The base of the checks of subscribers: the factory and the hooks that a user defines, and the
steps that checks are made of.

The kit is upstream of the subscriber, as a `ManualPublisher`. Without hooks a subscriber is a black
box: the kit sees only its calls. With each hook that is overridden, and with `reports`, more checks
apply.
"""

from typing import Any, ClassVar

import trio

from penstock.api import UsageError
from penstock.testing import ManualPublisher, shown
from penstock_tck._capabilities import factory, optional_hook
from penstock_tck._verification import Verification, resolve


class SubscriberStage(Verification):
    """Factory, hooks and declarations of a subscriber, and steps of the checks. The checks are in
    `_subscriber_checks/` and `_draft_checks/`.
    """

    abstract: ClassVar[bool] = True

    factories: ClassVar[tuple[str, ...]] = ("create_subscriber", "attach")
    reports: ClassVar[bool] = False
    """Whether the subscriber's handlers call self.saw_next, self.saw_error
    and self.saw_complete.
    """
    dispatches: ClassVar[bool] = False
    """Whether handlers run later than the signals that they handle (rule 2.2)."""

    renews_demand: ClassVar[bool | None] = None
    """Whether the subscriber takes a whole stream by itself: it requests further elements when it
    has got some, and nobody must tell it to. None: it does if it has no `trigger_request` hook.
    """

    recovers: ClassVar[bool] = False
    """Whether the subscriber answers an on_error from upstream with another signal:
    a processor may (rule 4.2).
    """

    subscriber: Any = None
    """The subscriber under test, for the hooks."""

    # ----------------------------------------------------------- factory and hooks (plain or async)

    @factory
    def create_subscriber(self) -> Any:
        """Return a fresh subscriber."""
        raise UsageError(f"{type(self).__name__} must define create_subscriber()")

    def create_element(self, index: int) -> Any:
        """Return an element that the subscriber can handle; the default is the index itself."""
        return index

    @optional_hook
    def create_raising_subscriber(self, error: Exception) -> Any:
        """Return a subscriber whose user's on_next handler raises `error`."""
        raise UsageError(f"{type(self).__name__} does not define create_raising_subscriber()")

    @optional_hook
    def trigger_request(self, n: int) -> Any:
        """Make `self.subscriber` request `n`. Without this hook the kit expects that the
        subscriber requests by itself.
        """

    @optional_hook
    def trigger_cancel(self) -> Any:
        """Make `self.subscriber` cancel its subscription."""

    @optional_hook
    def trigger_shutdown(self) -> Any:
        """Tell `self.subscriber` that it is no longer needed:
        it must cancel if it still has a subscription.
        """

    # ------------------------------------------------------------------ what handlers report

    @property
    def seen(self) -> list[tuple[str, Any]]:
        """The signals that the handlers of the subscriber got: ("on_next", element),
        ("on_error", error) and ("on_complete", None).
        """
        return self.__dict__.setdefault("_seen", [])  # type: ignore[no-any-return]  # made when first asked for

    def saw_next(self, element: Any) -> None:
        """Record that a handler got an element."""
        self._saw("on_next", element)

    def saw_error(self, error: Any) -> None:
        """Record that a handler got the error."""
        self._saw("on_error", error)

    def saw_complete(self) -> None:
        """Record that a handler got the completion."""
        self._saw("on_complete", None)

    def _saw(self, signal: str, value: Any) -> None:
        self.note(f"the subscriber's handler saw {signal}")
        if not (self.other_threads or trio.lowlevel.in_trio_run()):
            text = f"the handler saw {signal} in another thread than the run's"
            self.env.transcript.violate(self.profile.dialect.rule("2.11"), text, actor="tck")
        self.seen.append((signal, value))

    @property
    def seen_elements(self) -> list[Any]:
        """The elements that the handlers got."""
        return [value for signal, value in self.seen if signal == "on_next"]

    # ------------------------------------------------------------------ steps

    @factory
    async def attach(self, upstream: ManualPublisher) -> None:
        """Make a fresh subscriber and subscribe it to `upstream`. Checkpoints."""
        self.subscriber = await resolve(self.create_subscriber())
        fine = callable(getattr(self.subscriber, "on_subscribe", None))
        self.verify(
            fine,
            (
                f"create_subscriber() returned {shown(self.subscriber)}, which is no subscriber: "
                "it has no on_subscribe()"
            ),
        )
        upstream.subscribe(self.subscriber)
        await self.settle()

    async def attach_fresh(self) -> ManualPublisher:
        """Return a fresh manual publisher to which a fresh subscriber is subscribed.
        Checkpoints.
        """
        upstream = self.manual_publisher()
        await self.attach(upstream)
        return upstream

    async def make_request(self, n: int) -> None:
        """Make the subscriber request, with its hook if it has one. Checkpoints."""
        await resolve(self.trigger_request(n))
        await self.settle()

    async def attach_with_request(self, n: int = 1) -> ManualPublisher:
        """Return a manual publisher whose fresh subscriber has requested something (`n`
        elements, if it has the hook). Checkpoints.
        """
        upstream = await self.attach_fresh()
        await self.make_request(n)
        await upstream.expect_request()
        return upstream

    def discard_calls(self, upstream: ManualPublisher) -> None:
        """Discard the calls that were not read yet, so
        that a check can expect no calls from here on.
        """
        while upstream.subscription.has_call():
            upstream.subscription.next_call()

    async def feed(self, upstream: ManualPublisher, most: int) -> list[Any]:
        """Send elements while they are requested, at most `most`; return those that were sent.
        Checkpoints.
        """
        sent: list[Any] = []
        await self.settle()
        while len(sent) < most and upstream.outstanding and not upstream.cancelled:
            sent.append(self.create_element(upstream.subscription.emitted))
            upstream.emit(sent[-1])
            await self.settle()
        return sent

    async def finish_upstream(self, upstream: ManualPublisher) -> None:
        """Complete the stream if it is still open, so that a check leaves none behind.
        Checkpoints.
        """
        if not (upstream.cancelled or upstream.subscription.over):
            upstream.complete()
        await self.settle()

    def signal_target(self, upstream: ManualPublisher) -> Any:
        """Return the object that `upstream` signals to."""
        return upstream.subscription.subscriber
