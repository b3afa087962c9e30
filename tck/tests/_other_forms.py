"""Publishers of four forms, each with switches for faults:
the same faults, written in another way than in `saboteurs/`.

The forms differ in the place of the demand and in the task that signals:

| form | demand | signals come from |
|---|---|---|
| `Trampoline` | a number | inside request(), in a loop |
| `Generator` | a number and an event | one task, which pulls an async generator |
| `Channel` | a memory channel with the requests | one task, which receives the requests |
| `Batches` | a number, and elements read ahead | inside request() while there are elements, and a task that reads eight more |

Without a switch, each of them keeps the rules.
"""

import math
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from typing import Any, Final

import trio

from penstock.api import UNBOUNDED, IllegalDemand, check_demand


class Form:
    """A publisher of 0, 1, ... count-1 and one end,
    which serves each subscriber from the first element on.
    """

    def __init__(
        self,
        nursery: trio.Nursery,
        count: int,
        faults: frozenset[str],
        error: Exception | None = None,
    ) -> None:
        self.nursery = nursery
        self.count = count
        self.error = error
        self.faults = faults
        self.kept: list[Any] = []
        self.pause = 0.0  # the seconds that `Generator` needs for an element

    def subscribe(self, subscriber: Any, /) -> None:
        if subscriber is None:
            if "none-accepted" in self.faults:
                return
            raise TypeError("rule 1.9: a subscriber is not None")
        self.lines(self, subscriber).begin()

    lines: Callable[..., "Line"]


class Line(ABC):
    """One subscription: the parts that all forms share."""

    def __init__(self, publisher: Form, subscriber: Any) -> None:
        self.publisher = publisher
        self.subscriber: Any = subscriber
        self.place = 0
        self.served = 0
        self.asked = 0
        self.inside = False
        self.opened = False
        self.was: Any = subscriber if self.has("goes-on-after-the-end") else None

    def has(self, fault: str) -> bool:
        return fault in self.publisher.faults

    # ------------------------------------------------------------------ what a form defines

    @abstractmethod
    def grant(self, n: float) -> None:
        """Add to the demand."""

    @abstractmethod
    def replace(self, n: float) -> None:
        """Forget the demand, and take this one."""

    @abstractmethod
    def outstanding(self) -> float:
        """Return the demand."""

    @abstractmethod
    def wake(self) -> None:
        """Signal, or have a task signal."""

    def stop(self) -> None:
        """End what the form has started: nothing, unless a form says more."""
        return

    # ------------------------------------------------------------------ calls

    def begin(self) -> None:
        if self.has("element-first"):
            self.subscriber.on_next(0)
        self.call("on_subscribe", self)
        if self.has("on-subscribe-twice"):
            self.call("on_subscribe", self)
        self.opened = True
        if self.has("pushes-one"):
            self.grant(1)
        if self.has("keeps-subscribers"):
            self.publisher.kept.append(self.subscriber)
        self.wake()

    def request(self, n: Any, /) -> None:
        if self.subscriber is None:
            if (
                self.has("refuses-after-cancel")
                and isinstance(n, int)
                and n <= 0
                and self.was_cancelled is not None
            ):
                self.was_cancelled.on_error(IllegalDemand("rule 3.9"))
            if self.was is not None and self.asked >= self.publisher.count:
                self.was.on_next(self.place)
            return
        try:
            n = check_demand(n)
        except IllegalDemand as error:
            self.refuse(error)
            return
        self.asked += 1
        self.take(n)

    was_cancelled: Any = None

    def refuse(self, error: IllegalDemand) -> None:
        if self.has("zero-ignored"):
            return
        if self.has("zero-raises"):
            raise error
        if self.has("zero-inside-ignored") and self.inside:
            return
        if self.has("goes-on-after-refusal"):
            self.subscriber.on_error(error)
            self.grant(1)
            self.wake()
            return
        self.end(error)

    def take(self, n: int) -> None:
        wanted: float = math.inf if n == UNBOUNDED else n
        if self.has("request-inside-on-next-forgotten") and self.inside and self.place:
            return
        if self.has("request-in-on-subscribe-forgotten") and not self.opened:
            return
        if self.has("unbounded-ends-at-4096"):
            wanted = min(wanted, 4096)
        if self.has("rounds-above-100") and 100 < wanted < math.inf:
            wanted = wanted // 100 * 100
        if self.has("dries-up-after-25") and self.served >= 25 and wanted != math.inf:
            return
        if (
            self.has("sums-in-63-bits")
            and wanted + self.outstanding() >= 2**63 - 1
            and self.outstanding() > 0
        ):
            self.replace(0)
            return
        if self.has("overflow-refused") and n < UNBOUNDED and n + self.outstanding() > UNBOUNDED:
            self.end(OverflowError("demand"))
            return
        if self.has("one-less-of-three") and wanted == 3:
            wanted = 2
        if self.has("request-inside-on-next-twice") and self.inside and self.place:
            self.grant(wanted)
        if self.has("request-replaces"):
            self.replace(wanted)
        else:
            self.grant(wanted)
        self.wake()

    def cancel(self) -> None:
        if self.has("second-cancel-raises") and self.subscriber is None:
            raise RuntimeError("cancelled already")
        if self.has("cancel-inside-on-next-ignored") and self.inside and self.place:
            return
        if self.has("cancel-in-on-subscribe-ignored") and not self.opened:
            return
        if self.has("cancel-before-a-request-ignored") and not self.asked:
            return
        if self.has("cancel-behind-a-request-ignored") and self.asked == 1 and not self.place:
            return
        if self.has("cancel-after-30-ignored") and self.place >= 30:
            return
        if self.has("completes-after-cancel") and self.subscriber is not None:
            self.publisher.nursery.start_soon(self.complete_later, self.subscriber)
        if self.has("refuses-after-cancel"):
            self.was_cancelled = self.subscriber
        if self.has("cancel-ignored"):
            return
        self.forget()

    async def complete_later(self, subscriber: Any) -> None:
        await trio.sleep(3)
        subscriber.on_complete()

    # ------------------------------------------------------------------ signals

    def call(self, name: str, *arguments: Any) -> None:
        self.inside = True
        try:
            getattr(self.subscriber, name)(*arguments)
        except Exception:
            if not self.has("a-raise-changes-nothing"):
                self.forget()
        finally:
            self.inside = False

    def due(self) -> bool:
        return self.subscriber is not None and self.place < self.publisher.count

    def give(self) -> None:
        self.place += 1
        self.served += 1
        self.call("on_next", self.place - 1)
        if self.has("the-tenth-comes-twice") and self.place == 10 and self.subscriber is not None:
            self.call("on_next", self.place - 1)

    def finish(self) -> None:
        if self.subscriber is None or self.place < self.publisher.count:
            return
        if self.has("never-completes") and self.publisher.error is None:
            return
        if self.publisher.error is None or self.has("failure-completes"):
            self.end(None)
        elif not self.has("failure-is-silent"):
            self.end(
                ExceptionGroup("", [self.publisher.error])
                if self.has("failure-in-a-group")
                else self.publisher.error
            )

    def end(self, error: Exception | None) -> None:
        subscriber = self.subscriber
        if not self.has("keeps-the-ended"):
            self.forget()
        for _ in range(2 if self.has("ends-twice") else 1):
            try:
                subscriber.on_complete() if error is None else subscriber.on_error(error)
            except Exception:
                self.forget()
        if self.has("keeps-the-ended"):
            self.publisher.kept.append(subscriber)
            self.forget()

    def forget(self) -> None:
        self.subscriber = None
        self.stop()


class TrampolineLine(Line):
    """Signals inside request()."""

    demand: float = 0
    busy = False

    def grant(self, n: float) -> None:
        self.demand += n

    def replace(self, n: float) -> None:
        self.demand = n

    def outstanding(self) -> float:
        return self.demand

    def wake(self) -> None:
        if self.busy or not self.opened:
            return
        self.busy = True
        try:
            while self.due() and self.demand > 0:
                self.demand -= 1
                self.give()
        finally:
            self.busy = False
        self.finish()


class Trampoline(Form):
    """Signals inside request(), in a loop."""

    lines = TrampolineLine


class GeneratorLine(Line):
    """One task pulls an async generator while there is demand."""

    demand: float = 0

    def begin(self) -> None:
        self.called = trio.Event()
        self.scope = trio.CancelScope()
        self.publisher.nursery.start_soon(self.run)
        super().begin()

    def grant(self, n: float) -> None:
        self.demand += n

    def replace(self, n: float) -> None:
        self.demand = n

    def outstanding(self) -> float:
        return self.demand

    def wake(self) -> None:
        self.called.set()

    def stop(self) -> None:
        self.scope.cancel()

    async def numbers(self) -> AsyncGenerator[int, None]:
        for number in range(self.publisher.count):
            await trio.sleep(self.publisher.pause)
            yield number

    async def run(self) -> None:
        with self.scope:
            async with aclosing(self.numbers()) as numbers:
                while self.due():
                    await self.until_called()
                    seen = self.demand
                    await anext(numbers)
                    self.demand = (
                        seen - 1
                        if self.has("request-in-a-checkpoint-forgotten")
                        else self.demand - 1
                    )
                    if self.subscriber is None:
                        return
                    self.give()
        self.finish()

    async def until_called(self) -> None:
        while self.demand <= 0:
            self.called = trio.Event()
            await self.called.wait()


class Generator(Form):
    """One task pulls an async generator."""

    lines = GeneratorLine


class ChannelLine(Line):
    """The demand is the sum of the requests that wait in a channel, and of the rest of the last one
    that was received.
    """

    left: float = 0

    def begin(self) -> None:
        self.send, self.receive = trio.open_memory_channel[float](math.inf)
        self.waiting = 0.0
        self.publisher.nursery.start_soon(self.run)
        super().begin()

    def grant(self, n: float) -> None:
        self.waiting += n
        try:
            self.send.send_nowait(n)
        except trio.BrokenResourceError:
            # The nursery was cancelled, and the task with it (rule 3.16).
            self.forget()

    def replace(self, n: float) -> None:
        while self.receive.statistics().current_buffer_used:
            self.receive.receive_nowait()
        self.waiting = self.left = 0
        self.grant(n)

    def outstanding(self) -> float:
        return self.waiting + self.left

    def wake(self) -> None:
        """Do nothing: the task waits for the channel."""

    def stop(self) -> None:
        self.send.close()

    async def run(self) -> None:
        self.finish()
        with self.receive:
            async for n in self.receive:
                self.waiting -= n
                self.left += n
                while self.left > 0 and self.due():
                    self.left -= 1
                    await trio.lowlevel.checkpoint()
                    if self.subscriber is not None:
                        self.give()
                    if (
                        self.has("request-in-a-checkpoint-forgotten")
                        and self.receive.statistics().current_buffer_used
                    ):
                        self.receive.receive_nowait()
                if not self.due():
                    break
        self.finish()


class Channel(Form):
    """One task receives the requests from a memory channel."""

    lines = ChannelLine


class BatchesLine(Line):
    """Elements are read ahead, eight at a time.
    A request is served inside request() as long as there are such elements.
    """

    demand: float = 0
    busy = False
    reading = False

    def begin(self) -> None:
        self.ahead: deque[int] = deque()
        self.read = 0
        super().begin()

    def grant(self, n: float) -> None:
        self.demand += n

    def replace(self, n: float) -> None:
        self.demand = n

    def outstanding(self) -> float:
        return self.demand

    def wake(self) -> None:
        if self.busy or not self.opened:
            return
        self.busy = True
        try:
            while self.due() and self.demand > 0 and self.ahead:
                self.ahead.popleft()
                self.demand -= 1
                self.give()
        finally:
            self.busy = False
        self.finish()
        if self.due() and self.demand > 0 and not self.reading:
            self.reading = True
            try:
                self.publisher.nursery.start_soon(self.fetch)
            except RuntimeError as closed:
                self.end(closed)

    async def fetch(self) -> None:
        seen = self.demand
        await trio.lowlevel.checkpoint()
        if self.has("request-in-a-checkpoint-forgotten"):
            self.demand = min(seen, self.demand)
        batch = range(self.read, int(min(self.read + 8, self.publisher.count)))
        self.ahead.extend(batch)
        self.read += len(batch)
        self.reading = False
        self.wake()


class Batches(Form):
    """Signals inside request() what a task has read ahead."""

    lines = BatchesLine


FORMS: Final = {
    "trampoline": Trampoline,
    "generator": Generator,
    "channel": Channel,
    "batches": Batches,
}
