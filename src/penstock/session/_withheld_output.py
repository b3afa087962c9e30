"""Holds the requests of this side back while an extension still has to speak,
or negotiates how their data is encoded.

It stands in the place of the dialect, so a connection that holds nothing back pays nothing. The
calls are kept, and not their bytes: the data of a request is encoded when it is sent, perhaps
changed by an extension.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, cast

from penstock.session._channel import Channel
from penstock.session._dialect import Dialect


class WithheldOutput:
    """A dialect whose subscribes, requests and cancels are sent at `put_back`.
    All else passes on to the dialect.
    """

    __slots__ = ("_calls", "_channel", "_dialect")

    def __init__(self, channel: Channel) -> None:
        """Take the place of the dialect of `channel`."""
        self._channel = channel
        self._dialect = channel.dialect
        # Bounded by the program alone: these are its own requests,
        # which it could as well have sent.
        self._calls: list[Callable[[], bytes]] = []
        channel.dialect = cast("Dialect", self)

    # Not `release`, which is a method of the dialect.
    def put_back(self) -> None:
        """Put the dialect back, and send what was held."""
        self._channel.dialect = self._dialect
        calls, self._calls = self._calls, []
        for call in calls:
            self._channel.send(call())

    # --- the calls of the session that are held. An empty message is not sent

    def subscribe(self, stream_id: int, target: Any, demand: int) -> bytes:
        """Hold the opening of a stream."""
        return self._hold(partial(self._dialect.subscribe, stream_id, target, demand))

    def fire(self, stream_id: int, target: Any) -> bytes:
        """Hold a request that has no answer."""
        return self._hold(partial(self._dialect.fire, stream_id, target))

    def request(self, stream_id: int, n: int) -> bytes:
        """Hold more demand."""
        return self._hold(partial(self._dialect.request, stream_id, n))

    def cancel(self, stream_id: int) -> bytes:
        """Hold a cancel."""
        return self._hold(partial(self._dialect.cancel, stream_id))

    def _hold(self, call: Callable[[], bytes]) -> bytes:
        self._calls.append(call)
        return b""

    def __getattr__(self, name: str) -> Any:
        # Called for each name that this class does not have: the rest of the dialect.
        return getattr(self._dialect, name)
