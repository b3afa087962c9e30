"""One signal after the other, in the run's thread (rules 1.3, 2.11).

Signals are plain calls, so within one thread two of them can only overlap where one is made from inside the other: by a publisher that
is called about another subscriber and signals this one too. What a subscriber gets inside a call of its own is permitted (3.10, 3.11),
and bounded (3.3).
"""

import threading
from typing import Any

from penstock_tck._capabilities import FAILED_PUBLISHER
from penstock_tck._check import check
from penstock_tck._publisher_stage import PublisherStage


class SerialChecks(PublisherStage):
    """Checks of the order and the thread of signals."""

    abstract = True

    @check("1.3", seeds=5)
    async def signals_do_not_overlap(self) -> None:
        """Two subscribers request inside each signal, each for both, while a third comes and goes: no signal begins inside another.

        If this fails, look at what is signalled to one subscriber inside a call of another: who is in a signal just now comes later.
        """
        length = self.length(10)
        publisher = await self.publisher(length)
        probes: list[Any] = []

        def ask_for_all(_: Any, __: Any = None) -> None:
            for probe in probes:
                probe.request(1)

        def also_let_a_third_come_and_go(probe: Any, _: Any) -> None:
            if len(probe.elements) == 2:
                third = self.probe(when_subscribed=lambda asking: asking.request(1))
                self.subscribe(publisher, third)
                if third.subscription is not None:
                    third.cancel()
            ask_for_all(probe)

        probes.append(await self.open_on(publisher, when_subscribed=ask_for_all, when_next=also_let_a_third_come_and_go))
        probes.append(await self.open_on(publisher, when_next=ask_for_all))
        ask_for_all(None)
        await self.settle()
        for probe in probes:
            probe.check()
        await self.finish(*probes)

    @check("2.11")
    async def every_signal_arrives_in_the_thread_of_the_run(self) -> None:
        """Takes up to 200 elements and the end, and expects that each signal arrives in the thread that runs the run loop.

        If this fails, look at what calls the subscriber from a worker thread: it must go through trio.from_thread.
        """
        threads: set[int] = set()
        length = self.length(200)
        hooks = dict.fromkeys(
            ("when_subscribed", "when_next", "when_error", "when_complete"), lambda *_: threads.add(threading.get_ident())
        )
        probe = await self.open(length, **hooks)
        probe.request(length + 1)
        await self.expect_arrived(probe, length)
        await self.finish(probe)
        self.verify(threads == {threading.get_ident()}, f"signals arrived from {len(threads)} threads")

    @check("2.11", needs=[FAILED_PUBLISHER])
    async def an_error_arrives_in_the_thread_of_the_run(self) -> None:
        """Subscribes to a failed publisher and expects on_error in the thread that runs the run loop.

        If this fails, look at what tells of the failure from a worker thread: it must go through trio.from_thread.
        """
        threads: list[int] = []
        probe = self.probe(when_error=lambda *_: threads.append(threading.get_ident()))
        self.subscribe(await self.resolve(self.create_failed_publisher()), probe)
        await self.settle()
        await probe.drain()
        probe.check()
        self.verify(set(threads) <= {threading.get_ident()}, "on_error arrived from another thread")
