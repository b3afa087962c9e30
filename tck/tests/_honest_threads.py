"""Publishers and subscribers with threads that keep the rules. No check may fail for them.

Each is an ordinary kind: elements that a worker thread makes one by one (files, databases), a worker thread that waits for demand in a
queue, and threads of their own that signal one after the other.
"""

import threading

import trio

from tck.tests._honest_publishers import TaskSubscription
from tck.tests._honest_verifications import HonestTaskPublisher

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
    """Gives a worker thread five virtual seconds. Virtual time must not pass while the thread works."""

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
