"""Pings of a server to a client that is silent. They find out that it is gone, and keep proxies
from closing the connection.

Only a server pings. With pings from both sides and bulk in both directions,
both once waited for each other.
"""

import random
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Final

import trio

JITTER: Final = 0.15
"""Pings to many clients that connected at the same time are spread by this part of the interval."""


class Pinger:
    """Pings one client, from `start` until `stop`."""

    def __init__(
        self,
        seconds: float,
        *,
        ping: Callable[[], None],
        heard_at: Callable[[], float],
        give_up: Callable[[], Awaitable[None]],
    ) -> None:
        """`heard_at` returns when bytes have arrived.
        `give_up` is called if none arrive within `seconds` after a ping.
        """
        self._seconds = seconds
        self._ping = ping
        self._heard_at = heard_at
        self._give_up = give_up
        self._scope = trio.CancelScope()

    def start(self, nursery: trio.Nursery) -> None:
        """Ping from now on."""
        nursery.start_soon(self._run, name="penstock websocket ping")

    def stop(self) -> None:
        """Ping no more."""
        self._scope.cancel()

    async def _run(self) -> None:
        # Nothing leaves this task: it runs in the nursery of the connection,
        # and an exception would end all of it.
        with self._scope, suppress(trio.BrokenResourceError, trio.ClosedResourceError):
            while True:
                interval = self._seconds * random.uniform(1 - JITTER, 1 + JITTER)  # noqa: S311 (no secret)
                await trio.sleep_until(self._heard_at() + interval)
                if self._heard_at() + interval > trio.current_time():
                    continue  # bytes have arrived meanwhile
                pinged_at = trio.current_time()
                self._ping()
                await trio.sleep(self._seconds)
                if self._heard_at() < pinged_at:
                    await self._give_up()
                    return
