"""Recorders between a session and its subscribers:
they record the signals of each subscription and count its ends.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

from penstock.api import ByteWindow, Subscriber, Subscription
from penstock.session._stream_tables import StreamTables


class SignalRecorder(Subscriber[Any], Subscription):
    """Forwards signals to a subscriber and records them.
    Also records whether the subscriber has cancelled.
    """

    def __init__(self, inner: Any, label: str) -> None:
        self._inner = inner
        self._upstream: Subscription | None = None
        self._label = label
        self._subscribed = 0
        self._ends: list[str] = []
        self._signals_after_end: list[str] = []

    def faults(self) -> list[str]:
        """Return the broken rules of this subscription. Call it after the end of the run."""
        faults = list(self._signals_after_end)
        if self._subscribed != 1:
            faults.append(f"{self._subscribed} times on_subscribe")
        if len(self._ends) != 1:
            faults.append(f"{len(self._ends)} ends: {', '.join(self._ends) or 'none at all'}")
        return [f"the subscription to {self._label} had {fault}" for fault in faults]

    # --- as the session's subscriber

    def on_subscribe(self, subscription: Subscription, /) -> None:
        self._subscribed += 1
        self._upstream = subscription
        self._inner.on_subscribe(self)

    def on_next(self, element: Any, /) -> None:
        if self._check_open("on_next"):
            self._inner.on_next(element)

    def on_error(self, error: BaseException, /) -> None:
        inner = self._end(f"on_error({type(error).__name__})")
        if inner is not None:
            inner.on_error(error)

    def on_complete(self, /) -> None:
        inner = self._end("on_complete")
        if inner is not None:
            inner.on_complete()

    def on_content(self, serializer: str | None, schema: str, /) -> "SignalRecorder":
        """Let the subscriber choose how its elements are read,
        and stay before the chosen subscriber.
        """
        choose = getattr(self._inner, "on_content", None)
        if choose is not None:
            inner = choose(serializer, schema)
            self._inner = inner if self._inner is not None else None
        return self

    def __getattr__(self, name: str) -> Any:
        """Return a forwarding method for an optional batch method, if the subscriber has it."""
        if name not in {"on_next_many", "on_next_packed", "on_element_size"}:
            raise AttributeError(name)
        inner = getattr(self._inner, name)

        def forward(*arguments: Any) -> None:
            if self._check_open(name):
                inner(*arguments)

        return forward

    def _check_open(self, name: str) -> bool:
        """Return False, and record the signal `name`, if the subscription has ended."""
        if self._ends:
            self._signals_after_end.append(f"{name} after {self._ends[-1]}")
        return not self._ends

    def _end(self, name: str) -> Any:
        """Record an end, drop both references, and return the subscriber
        if this is the first end.
        """
        inner, self._inner, self._upstream = self._inner, None, None
        self._ends.append(name)
        return inner

    # --- as the subscriber's subscription

    def request(self, n: int, /) -> None:
        if self._upstream is not None:
            self._upstream.request(n)

    def cancel(self, /) -> None:
        upstream = self._upstream
        if not self._ends:
            self._end("cancel")
        if upstream is not None:
            upstream.cancel()


@contextmanager
def recording_signals(recorders: list[SignalRecorder]) -> Iterator[None]:
    """Put a recorder before each subscriber that a session gets."""
    subscribe = StreamTables.subscribe

    def subscribe_recorded(
        self: StreamTables,
        target: Any,
        subscriber: Subscriber[Any],
        window: ByteWindow | None = None,
    ) -> Any:
        recorder = SignalRecorder(subscriber, f"{target!r}")
        recorders.append(recorder)
        return subscribe(self, target, recorder, window)

    with patch.object(StreamTables, "subscribe", subscribe_recorded):
        yield
