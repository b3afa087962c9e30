"""A publisher of this client: one task for each subscription of the peer.
It pulls an iterable or an async iterable.

Rules of this file:

* An element is pulled when it was requested, and not before. The task waits until there is demand.
* After `TURN_SECONDS` other tasks get a turn, also if the iterable never waits.
* A cancel of the peer cancels the task where it waits.
  The iterator is closed in any case, in its own task.
"""

import asyncio
from typing import Any

from penstock.api import Subscription, add_demand
from penstock.client import BURST, Published, Report, bytes_of, report
from penstock.reader import TURN_SECONDS
from penstock.session import SendingStream


class TaskPublisher(Subscription):
    """One subscription of the peer."""

    def __init__(self, published: Published, stream: SendingStream, on_violation: Report) -> None:
        self._published = published
        self._stream = stream
        self._on_violation = on_violation
        self._demand = 0
        self._is_over = False
        self._asked: asyncio.Future[None] | None = None
        self.task: asyncio.Task[None] = asyncio.get_running_loop().create_task(
            self._run(), name=f"penstock publisher {stream.target}"
        )
        """The task, which ends with the subscription."""

    # --- the subscription

    def request(self, n: int, /) -> None:
        self._demand = add_demand(self._demand, n)
        asked, self._asked = self._asked, None
        if asked is not None and not asked.done():
            asked.set_result(None)

    def cancel(self, /) -> None:
        self._is_over = True
        # The stream may cancel inside of a signal: then the task looks at `_is_over` itself.
        if asyncio.current_task() is not self.task:
            self.task.cancel()

    # --- the task

    async def _run(self) -> None:
        try:
            await self._wait_for_demand()
            iterator: Any = self._published.open()
            try:
                if hasattr(iterator, "__anext__"):
                    await self._pull_async(iterator)
                else:
                    await self._pull(iterator)
            finally:
                await _close(iterator)
        except Exception as error:  # boundary: the program's iterable
            if self._is_over:
                report(self._on_violation, error)
            else:
                self._is_over = True
                self._stream.on_error(error)

    async def _pull_async(self, iterator: Any) -> None:
        loop, dumps, stream = asyncio.get_running_loop(), self._published.dumps, self._stream
        ends = loop.time() + TURN_SECONDS
        async for element in iterator:
            self._demand -= 1
            stream.on_next(bytes_of(element, dumps))
            if self._is_over:  # the stream has refused the element
                return
            if loop.time() >= ends:
                await asyncio.sleep(0)
                ends = loop.time() + TURN_SECONDS
            await self._wait_for_demand()
        self._complete()

    async def _pull(self, iterator: Any) -> None:
        loop, dumps, stream = asyncio.get_running_loop(), self._published.dumps, self._stream
        is_complete = False
        while not is_complete:
            batch: list[bytes] = []
            ends = loop.time() + TURN_SECONDS
            try:
                while len(batch) < min(self._demand, BURST) and (not batch or loop.time() < ends):
                    batch.append(bytes_of(next(iterator), dumps))
            except StopIteration:
                is_complete = True
            finally:
                # Done also if the iterator fails: the elements before that are sent.
                self._demand -= len(batch)
                if batch:
                    stream.on_next_many(batch)
            if self._is_over:
                return
            await asyncio.sleep(0)
            if not is_complete:
                await self._wait_for_demand()
        self._complete()

    def _complete(self) -> None:
        self._is_over = True
        self._stream.on_complete()

    async def _wait_for_demand(self) -> None:
        while not self._demand:
            self._asked = asyncio.get_running_loop().create_future()
            await self._asked


async def _close(iterator: Any) -> None:
    aclose, close = getattr(iterator, "aclose", None), getattr(iterator, "close", None)
    if aclose is not None:
        await aclose()
    elif close is not None:
        close()
