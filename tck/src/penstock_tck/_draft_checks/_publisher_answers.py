"""The answers of subscribe() by the draft (DP1 to DP6, DP17, DP22)."""

from typing import Any, Final

from penstock.api import InvalidStateError
from penstock.draft import DraftSubscriber, DraftSubscription
from penstock.testing import ManualSubscriber
from penstock_tck._capabilities import (
    COMPLETED_PUBLISHER,
    COMPLETES,
    FAILED_PUBLISHER,
    MULTICAST,
    REFUSING_PUBLISHER,
    REMEMBERS,
)
from penstock_tck._check import check
from penstock_tck._publisher_stage import PublisherStage

_AGAIN: Final = 100


class DraftAnswerChecks(PublisherStage):
    """Checks of the draft's subscribe()."""

    abstract = True

    @check("D1.1", "D1.2", needs=[COMPLETED_PUBLISHER])
    async def a_completed_publisher_signals_only_on_complete(self) -> None:
        """DP1: subscribes to a completed publisher.
        Expects on_complete once, without on_subscribe, and nothing after it.

        If this fails, look at what subscribe() does in the completed state: on_subscribe means
        "accepted", and there is nothing to accept.
        """
        await self._draft_expect_answer(
            await self.resolve(self.create_completed_publisher()), "on_complete"
        )

    @check("D1.3", "D1.4", needs=[FAILED_PUBLISHER])
    async def a_failed_publisher_signals_only_on_error(self) -> None:
        """DP2: subscribes to a failed publisher.
        Expects on_error once, without on_subscribe, and nothing after it.

        If this fails, look at what subscribe() does in the error state:
        it must call on_error, and nothing before it.
        """
        await self._draft_expect_answer(
            await self.resolve(self.create_failed_publisher()), "on_error"
        )

    @check("D1.5", elements=1)
    async def an_active_publisher_answers_with_on_subscribe(self) -> None:
        """DP3: subscribes, and expects on_subscribe and nothing else.
        Then requests 1 and expects the element.

        If this fails, look at the order in subscribe(): on_subscribe is the first signal, it comes
        once, and elements wait for demand.
        """
        probe = self.probe()
        await self._draft_expect_answer(await self.publisher(1), "on_subscribe", probe)
        probe.request(1)
        await probe.expect_elements(1)
        await self.finish(probe)

    @check("D1.6", needs=[REFUSING_PUBLISHER])
    async def a_refused_subscriber_gets_only_on_error(self) -> None:
        """DP4: subscribes to a publisher that refuses.
        Expects on_error once, without on_subscribe, and nothing after it.

        If this fails, look at where a subscriber is refused: on_subscribe means "accepted", so it
        must not come before the refusal.
        """
        await self._draft_expect_answer(
            await self.resolve(self.create_refusing_publisher()), "on_error"
        )

    @check("D1.7", elements=3)
    async def the_same_object_is_refused_while_it_is_subscribed(self) -> None:
        """DP5: requests 1 and subscribes the same object again. Expects on_error(InvalidStateError)
        and nothing after it: no second on_subscribe, and no element that the first subscription had
        requested, because an on_error is an end.

        If this fails, look at the registry of subscribers: it compares by identity, subscribe()
        checks it first, and a refusal ends both.
        """
        publisher = await self.publisher(3)
        probe = await self.open_on(publisher)
        probe.request(1)
        if probe.elements:  # it came before request_more returned
            await probe.expect_elements(1)
        self.subscribe(publisher, probe)
        await probe.expect_error(InvalidStateError)
        await probe.expect_nothing()

    @check("D1.7", elements=2, needs=[MULTICAST])
    async def equal_subscribers_that_are_not_identical_are_both_served(self) -> None:
        """DP6: subscribes two objects that compare equal, and requests 1 for each.
        Expects an element for each.

        If this fails, look at how the registry finds a subscriber: by `is`, or by id(), never by ==
        or as the key of a dict or set.
        """
        publisher = await self.publisher(2)
        probes = [self.probe(), self.probe()]
        for probe in probes:
            probe.ledger.note("-> subscribe(), as an object that equals the others")
            publisher.subscribe(_EqualToAll(probe))
            await probe.expect_subscription()
        for probe in probes:
            probe.request(1)
        for probe in probes:
            await probe.expect_elements(1)
        await self.finish(*probes)

    @check("D3.4", elements=3, needs=[MULTICAST])
    async def a_cancelled_subscriber_may_subscribe_again_at_once(self) -> None:
        """DP17: subscribes one object 100 times, each time directly after its cancel, then
        requests 3. Expects three elements.

        If this fails, look at what cancel does later:
        the subscriber must be out of the registry when cancel returns.
        """
        publisher = await self.publisher(3)
        # A processor ends when its last subscriber has cancelled (D8.3).
        # This subscriber stays, so that it does not end.
        staying = await self.open_on(publisher)
        probe = await self.open_on(publisher)
        for _ in range(_AGAIN):
            probe.cancel()
            self.subscribe(publisher, probe)
            await probe.expect_subscription()
        staying.request(3)
        probe.request(3)
        await staying.expect_elements(3)
        await probe.expect_elements(3)
        await self.finish(staying, probe)

    @check("D4.6", elements=3, needs=[COMPLETES, MULTICAST, REMEMBERS])
    async def a_late_subscriber_starts_with_the_oldest_element(self) -> None:
        """DP22: lets one subscriber take two of three elements, then subscribes another. Expects
        all three for it, from the first on.

        If this fails, look at where a new subscriber starts:
        at the oldest element that is still kept, not at the newest.
        """
        publisher = await self.publisher(3)
        early = await self.open_on(publisher)
        early.request(2)
        await early.expect_elements(2)
        late = await self.open_on(publisher)
        late.request(3)
        early.request(1)
        await late.expect_next(*early.elements[:2])
        await late.expect_elements(1)
        await late.expect_complete()
        await self.finish(early)

    async def _draft_expect_answer(
        self, publisher: Any, signal: str, probe: ManualSubscriber | None = None
    ) -> None:
        """Subscribe, and expect this one signal, and nothing else for a minute."""
        probe = probe or self.probe()
        self.subscribe(publisher, probe)
        await self.settle()
        answer = [seen.value for seen, _ in await probe.drain()]
        self.verify(
            answer == [signal],
            (
                f"subscribe() was answered with {' and '.join(answer) or 'nothing'}; it must be "
                f"{signal} alone"
            ),
        )
        await probe.expect_nothing()


class _EqualToAll(DraftSubscriber[Any]):
    """A subscriber that equals every other one of its kind, and passes its signals to a probe."""

    def __init__(self, probe: ManualSubscriber) -> None:
        self._probe = probe

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _EqualToAll)

    def __hash__(self) -> int:
        return 0

    def on_subscribe(self, subscription: DraftSubscription, /) -> None:
        self._probe.on_subscribe(subscription)

    def on_next(self, element: Any, /) -> None:
        self._probe.on_next(element)

    def on_error(self, error: BaseException, /) -> None:
        self._probe.on_error(error)

    def on_complete(self) -> None:
        self._probe.on_complete()
