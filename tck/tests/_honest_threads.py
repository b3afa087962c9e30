"""Publishers and subscribers with threads that keep the rules. No check may fail for them.

Each is an ordinary kind: elements that a worker thread makes one by one (files, databases), a
worker thread that waits for demand in a queue, and threads of their own that signal one after the
other.
"""

import queue
import threading
from typing import Any

import trio

from tck.tests._honest_publishers import HonestPublisher, HonestSubscription, TaskSubscription
from tck.tests._honest_subscribers import ManualHonestSubscriber
from tck.tests._honest_verifications import (
    HonestSubscriberStage,
    HonestSynchronousPublisher,
    HonestTaskPublisher,
)

tck_verifies_nothing = "these are run by run_checks"


class ThreadSubscription(TaskSubscription):
    """A worker thread makes each element."""

    async def run(self) -> None:
        while self.due():
            await trio.to_thread.run_sync(self.read)
            await trio.sleep(self.publisher.seconds)
            if self.due():
                self.step()
        self.busy = False
        self.finish()

    def read(self) -> None:
        """Take a moment of real time now and then, as a source does that blocks."""
        if self.position % 16 == 1:
            threading.Event().wait(0.0002)


class Threaded(HonestTaskPublisher):
    """The elements come from worker threads."""

    subscription_class = ThreadSubscription
    max_elements = 400
    model_seeds = 60


class TimedSubscription(ThreadSubscription):
    """Gives a worker thread five virtual seconds.
    Virtual time must not pass while the thread works.
    """

    async def run(self) -> None:
        while self.due():
            with trio.move_on_after(5) as scope:
                await trio.to_thread.run_sync(self.read)
            if scope.cancelled_caught:
                self.fail(TimeoutError("the thread took five seconds"))
                return
            await trio.sleep(self.publisher.seconds)
            if self.due():
                self.step()
        self.busy = False
        self.finish()


class Timed(Threaded):
    """The elements come from worker threads that have a time limit."""

    subscription_class = TimedSubscription
    model_seeds = 20


_BEGIN = 0
_STOP = None


class OwnThreadSubscription(HonestSubscription):
    """Starts a thread, which makes every signal after on_subscribe.
    Demand reaches it through a queue.
    """

    publisher: "OwnThreadPublisher"

    def begin(self) -> None:
        self.mail: queue.Queue[int | None] = queue.Queue()  # bounded by the calls of the kit
        self.publisher.mails.append(self.mail)
        self.signal("on_subscribe", self)
        self.mail.put(_BEGIN)
        threading.Thread(target=self.serve, daemon=True).start()

    def request(self, n: int, /) -> None:
        if self.subscriber is not None:
            self.mail.put(-1 if n == _BEGIN else n)

    def forget(self) -> None:
        if self.subscriber is not None:
            super().forget()
            self.mail.put(_STOP)

    def serve(self) -> None:
        while (n := self.mail.get()) is not _STOP:
            if n != _BEGIN:
                super().request(n)
            else:
                self.busy = False
                self.open()
                self.pump()
            self.mail.task_done()
        self.mail.task_done()
        while not self.mail.empty():
            self.mail.get()
            self.mail.task_done()

    def deliver(self, subscriber: Any, name: str, *arguments: Any) -> None:
        if subscriber is not None:  # a cancel may come between two lines of this thread
            super().deliver(subscriber, name, *arguments)


class OwnThreadPublisher(HonestPublisher):
    """Keeps the mail of its subscriptions, so that a test can wait until it is read."""

    subscription_class = OwnThreadSubscription

    def __init__(self, *arguments: Any, **more: Any) -> None:
        super().__init__(*arguments, **more)
        self.mails: list[queue.Queue[int | None]] = []


class OwnThread(HonestSynchronousPublisher):
    """Its signals come from a thread that it starts, one after the other."""

    subscription_class = OwnThreadSubscription
    publisher_class = OwnThreadPublisher
    other_threads = True
    max_elements = 400
    model_seeds = 20

    def with_line(self, publisher: HonestPublisher) -> HonestPublisher:
        self.__dict__.setdefault("publishers", []).append(publisher)
        return super().with_line(publisher)

    async def until_threads_idle(self) -> None:
        mails = [
            mail for publisher in self.__dict__.get("publishers", ()) for mail in publisher.mails
        ]
        while any(mail.unfinished_tasks for mail in mails):
            for mail in mails:
                await trio.to_thread.run_sync(mail.join)


class CallsFromThread(HonestSubscriberStage):
    """Its hooks call the subscription from a thread, one after the other."""

    subscriber_class = ManualHonestSubscriber
    other_threads = True
    quiet_seconds = 0.0
    model_seeds = 20

    async def trigger_request(self, n: int) -> None:
        await trio.to_thread.run_sync(self.subscriber.request, n)

    async def trigger_cancel(self) -> None:
        await trio.to_thread.run_sync(self.subscriber.shut_down)


class QueueSubscription(TaskSubscription):
    """A worker thread reads the source, and waits in a queue until an element is wanted."""

    def begin(self) -> None:
        self.wanted: queue.SimpleQueue[int] = queue.SimpleQueue()  # bounded by the calls of the kit
        self.publisher.nursery.start_soon(self.read_in_thread)
        super().begin()

    async def read_in_thread(self) -> None:
        await trio.to_thread.run_sync(self.read, abandon_on_cancel=True)

    def read(self) -> None:
        while self.wanted.get():
            threading.Event().wait(0)

    def forget(self) -> None:
        super().forget()
        self.wanted.put(0)

    def step(self) -> None:
        self.wanted.put(1)
        super().step()


class WaitsInQueue(HonestTaskPublisher):
    """A thread of each subscription waits in a queue: after `thread_seconds` it counts as idle."""

    subscription_class = QueueSubscription
    thread_seconds = 0.01
    watchdog_seconds = 60.0
    max_elements = 60
    model_seeds = 3
