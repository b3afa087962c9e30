"""Signals come one after the other, in the thread of the run (rules 1.3, 2.11).

Signals are plain calls. So within one thread two signals can overlap only if one is made inside the
other: a publisher that is called by one subscriber signals to another one that is in a signal.
Signals that a subscriber gets inside its own call are permitted (3.10, 3.11), and bounded (3.3).
"""

import threading
from typing import Any

from penstock_tck._capabilities import FAILED_PUBLISHER, ONE_THREAD
from penstock_tck._check import check
from penstock_tck._publisher_stage import PublisherStage


class SerialChecks(PublisherStage):
    """Checks of the order and the thread of signals."""

    abstract = True

    @check("1.3", seeds=5)
    async def signals_do_not_overlap(self) -> None:
        """Two subscribers request inside each signal, each for both, while a third one subscribes
        and cancels. Expects no signal inside another.

        If this fails, look at signals to one subscriber inside a call of another: a subscriber that
        is in a signal must get them later.
        """
        length = self.length(10)
        publisher = await self.publisher(length)
        probes: list[Any] = []

        def ask_for_all(_: Any, __: Any = None) -> None:
            for probe in probes:
                probe.request(1)

        def ask_and_subscribe_a_third(probe: Any, _: Any) -> None:
            if len(probe.elements) == 2:
                third = self.probe(when_subscribed=lambda asking: asking.request(1))
                self.subscribe(publisher, third)
                if third.subscription is not None:
                    third.cancel()
            ask_for_all(probe)

        probes.append(
            await self.open_on(
                publisher, when_subscribed=ask_for_all, when_next=ask_and_subscribe_a_third
            )
        )
        probes.append(await self.open_on(publisher, when_next=ask_for_all))
        ask_for_all(None)
        await self.settle()
        for probe in probes:
            probe.check()
        await self.finish(*probes)

    @check("2.11", needs=[ONE_THREAD])
    async def every_signal_arrives_in_the_thread_of_the_run(self) -> None:
        """Takes up to 200 elements and the end. Expects each signal in the thread of the run loop.

        If this fails, look at what calls the subscriber from a worker thread:
        it must use trio.from_thread.
        """
        threads: set[int] = set()
        length = self.length(200)
        hooks = dict.fromkeys(
            ("when_subscribed", "when_next", "when_error", "when_complete"),
            lambda *_: threads.add(threading.get_ident()),
        )
        probe = await self.open(length, **hooks)
        probe.request(length + 1)
        await self.expect_arrived(probe, length)
        await self.finish(probe)
        self.verify(
            threads == {threading.get_ident()}, f"signals arrived from {len(threads)} threads"
        )

    @check("2.11", needs=[FAILED_PUBLISHER, ONE_THREAD])
    async def an_error_arrives_in_the_thread_of_the_run(self) -> None:
        """Subscribes to a failed publisher. Expects on_error in the thread of the run loop.

        If this fails, look at what signals the failure from a worker thread:
        it must use trio.from_thread.
        """
        threads: list[int] = []
        probe = self.probe(when_error=lambda *_: threads.append(threading.get_ident()))
        self.subscribe(await self.resolve(self.create_failed_publisher()), probe)
        await self.settle()
        await probe.drain()
        probe.check()
        self.verify(set(threads) <= {threading.get_ident()}, "on_error arrived from another thread")
