"""The base of the checks of publishers:
the factories that a user defines, and the steps that checks are made of.
"""

from collections.abc import Awaitable, Iterator
from contextlib import contextmanager
from typing import Any, ClassVar, Final

import trio

from penstock.api import UNBOUNDED, UsageError
from penstock.testing import ManualSubscriber, Signal, shown
from penstock_tck._capabilities import factory, optional_hook
from penstock_tck._verification import Verification, resolve

REQUEST_SECONDS: Final = 1.0
"""Real seconds that the requests of a check with very many take together, or little more."""

LEAST_REQUESTS: Final = 100

_ENDS: Final = (Signal.ERROR, Signal.COMPLETE)


class PublisherStage(Verification):
    """Factories and declarations of a publisher, and steps of the checks. The checks are in
    `_publisher_checks/` and `_draft_checks/`.
    """

    abstract: ClassVar[bool] = True

    factories: ClassVar[tuple[str, ...]] = ("create_publisher",)
    max_elements: ClassVar[int] = UNBOUNDED
    """The longest stream that create_publisher can give; `UNBOUNDED` means an endless one."""
    min_elements: ClassVar[int] = 0
    """The shortest stream that create_publisher can give."""
    completes: ClassVar[bool] = True
    """Whether a stream of n elements ends after them."""
    multicast: ClassVar[bool] = False
    """Whether one publisher serves several subscribers at a time with the same elements."""
    eager_completion: ClassVar[bool] = False
    """Whether on_complete comes with the last element, without a further request."""
    synchronous_bound: ClassVar[int | None] = None
    """How many elements one request may signal before it returns (rule 3.4);
    None declares no bound.
    """
    call_seconds: ClassVar[float | None] = None
    """How many real seconds request(1) and cancel() may take (rules 3.4, 3.5). None: 10 ms, or no
    bound with `other_threads`. `math.inf` declares no bound.
    """
    remembers: ClassVar[bool] = False
    """Whether a late subscriber starts with elements that were published before it subscribed."""
    errors_overtake: ClassVar[bool] = False
    """Whether on_error may overtake elements that the source gave before it failed and that the
    publisher has not signalled yet.
    """
    violations_reported: ClassVar[bool] = False
    """Whether an exception that a subscriber raises is appended to `self.reported_violations`
    (rule 2.13).
    """

    # ------------------------------------------------------------------ factories (plain or async)

    @factory
    def create_publisher(self, elements: int) -> Any:
        """Return a publisher whose stream has exactly this many elements, none of them None.
        `UNBOUNDED` means endless.
        """
        raise UsageError(f"{type(self).__name__} must define create_publisher(elements)")

    @optional_hook
    def create_failed_publisher(self) -> Any:
        """Return a publisher that has already failed: a subscriber gets on_subscribe and
        on_error without a request.
        """
        raise UsageError(f"{type(self).__name__} does not define create_failed_publisher()")

    @optional_hook
    def create_faulty_publisher(self, elements: int, error: Exception) -> Any:
        """Return a publisher whose source raises `error` after this many elements (0:
        at the first).
        """
        raise UsageError(f"{type(self).__name__} does not define create_faulty_publisher()")

    @optional_hook
    def create_broken_publisher(self, error: Exception) -> Any:
        """Return a publisher whose source raises `error` when it is opened for a subscriber: by
        its factory, or by `__iter__`.
        """
        raise UsageError(f"{type(self).__name__} does not define create_broken_publisher()")

    @optional_hook
    def create_completed_publisher(self) -> Any:
        """Return a publisher that has already completed."""
        raise UsageError(f"{type(self).__name__} does not define create_completed_publisher()")

    @optional_hook
    def create_refusing_publisher(self) -> Any:
        """Return a publisher that refuses every subscriber."""
        raise UsageError(f"{type(self).__name__} does not define create_refusing_publisher()")

    @optional_hook
    def create_slow_publisher(self, elements: int, seconds: float) -> Any:
        """Return a publisher whose every element comes this many (virtual) seconds after it is
        requested.
        """
        raise UsageError(f"{type(self).__name__} does not define create_slow_publisher()")

    @property
    def reported_violations(self) -> list[BaseException]:
        """The list to which the publisher's hook for raising subscribers appends (see
        `violations_reported`).
        """
        return self.__dict__.setdefault("_reported", [])  # type: ignore[no-any-return]  # made when first asked for

    # ------------------------------------------------------------------ steps

    def length(self, wish: int) -> int:
        """Return the length nearest to `wish` that create_publisher can give."""
        return max(self.min_elements, min(wish, self.max_elements))

    async def publisher(self, elements: int) -> Any:
        """Return a fresh publisher from the user's factory. Checkpoints if the factory does."""
        publisher = await resolve(self.create_publisher(elements))
        fine = callable(getattr(publisher, "subscribe", None))
        self.verify(
            fine,
            (
                f"create_publisher({elements}) returned {shown(publisher)}, which is no "
                "publisher: it has no subscribe()"
            ),
        )
        return publisher

    async def resolve(self, product: Any | Awaitable[Any]) -> Any:
        """Return the product of an optional factory; await it if the factory is async."""
        return await resolve(product)

    @contextmanager
    def bound_to(self, nursery: trio.Nursery) -> Iterator[None]:
        """Give factories this nursery while the block runs."""
        usual, self.env.nursery = self.env.nursery, nursery
        try:
            yield
        finally:
            self.env.nursery = usual

    def subscribe(
        self, publisher: Any, subscriber: Any, *, probe: ManualSubscriber | None = None
    ) -> None:
        """Subscribe a probe, or an object that passes its signals to `probe`. An exception breaks
        rule 1.9; it is recorded and not raised.
        """
        ledger = (probe or subscriber).ledger
        ledger.note("-> subscribe()")
        try:
            publisher.subscribe(subscriber)
        except Exception as error:
            # boundary: the publisher's code runs here; that it raised is recorded as a violation.
            ledger.violate(
                "1.9",
                f"subscribe() raised {shown(error)}; it must return normally and signal on_error",
            )

    async def open(self, elements: int, **hooks: Any) -> ManualSubscriber:
        """Return a probe that is subscribed to a fresh publisher of this many elements.
        Checkpoints.
        """
        return await self.open_on(await self.publisher(elements), **hooks)

    def may_go_on(self, made: int) -> bool:
        """Return whether a check that has made so many requests may make another one. If each takes
        long, a hundred show as much as a thousand, which would take 10 s.
        """
        return made < LEAST_REQUESTS or self.env.calls.seconds < REQUEST_SECONDS

    async def open_on(self, publisher: Any, **hooks: Any) -> ManualSubscriber:
        """Return a fresh probe that is subscribed to this publisher. Checkpoints."""
        probe = self.probe(**hooks)
        self.subscribe(publisher, probe)
        await probe.expect_subscription()
        return probe

    async def finish(self, *probes: ManualSubscriber) -> None:
        """Cancel the open subscriptions and settle, so that a check leaves none behind.
        Checkpoints.
        """
        for probe in probes:
            if probe.ledger.is_open:
                probe.cancel()
        await self.settle()

    # ------------------------------------------------------------------ expectations

    async def expect_arrived(self, probe: ManualSubscriber, count: int) -> None:
        """Expect that exactly `count` elements have arrived, read or not, and no on_error.
        Unread elements are read. Checkpoints.
        """
        await self.settle_all(lambda: len(probe.elements))
        await probe.drain()
        probe.check()
        fine = probe.error is None or not self.completes
        self.verify(
            fine,
            (
                f"{probe.name}: {count} elements and no on_error were expected, but "
                f"on_error({probe.error!r}) came"
            ),
        )
        arrived = len(probe.elements)
        self.verify(
            arrived == count,
            f"{probe.name}: {count} elements were expected by now, but {arrived} arrived",
        )

    async def expect_pause(self, probe: ManualSubscriber, *, last: bool) -> None:
        """Expect no signal without a further request. If the element before was the `last` one,
        the end may come. Checkpoints.
        """
        if not last:
            await probe.expect_nothing()
            return
        await self.settle()
        wrong = [signal.value for signal, _ in await probe.drain() if signal not in _ENDS]
        probe.check()
        self.verify(
            not wrong, f"{probe.name}: only the end may come now, but {', '.join(wrong)} came"
        )

    async def expect_end(self, probe: ManualSubscriber) -> None:
        """Expect on_complete, after at most one further request:
        a lazy publisher sees its end only then. Checkpoints.
        """
        await self.settle()
        if not probe.ended:
            probe.request(1)
        await probe.expect_complete()

    async def expect_failure(
        self, probe: ManualSubscriber, after: int, error: type[Exception] | Exception = Exception
    ) -> None:
        """Expect `after` elements and then on_error.
        If errors overtake elements, fewer elements may come. Checkpoints.
        """
        if not (self.errors_overtake or getattr(self, "reads_ahead", False)):
            await probe.expect_elements(after)
        else:
            await self.settle()
            await probe.expect_elements(min(after, len(probe.elements)))
        await probe.expect_error(error)

    async def expect_silence(self, probe: ManualSubscriber, *, requests_again: bool = True) -> None:
        """Settle, so that late signals can come. Expect no signal after that, for an hour of
        virtual time, although the probe `requests_again`. Checkpoints.
        """
        await self.settle()
        probe.check()
        over = not probe.ledger.is_open
        self.verify(
            over,
            (
                f"{probe.name}: its subscription should have ended by now; the signal that ends "
                "it, or in which it cancels, did not come"
            ),
        )
        probe.silence()
        await probe.drain()
        await probe.expect_nothing()
        if (
            requests_again
            and self.profile.request_when_over_raises is None
            and probe.subscription is not None
        ):
            probe.request(1)  # rule 3.6: it does nothing, unless the subscription still lives
        await probe.expect_nothing(3600)  # virtual seconds, which pass at once
