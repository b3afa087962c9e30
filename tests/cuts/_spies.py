"""Listening between a session and its subscribers: each subscription of a run, its signals, and how often it ended."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

from penstock.api import Subscriber, Subscription
from penstock.session._stream_tables import StreamTables


class Spy(Subscriber[Any], Subscription):
    """Stands before a subscriber; writes down what is signalled to it, and whether it has cancelled."""

    def __init__(self, inner: Any, label: str) -> None:
        self._inner = inner
        self._upstream: Subscription | None = None
        self._label = label
        self._began = 0
        self._ends: list[str] = []
        self.odd: list[str] = []

    def faults(self) -> list[str]:
        """Return what was not as it must be, once all is over."""
        faults = list(self.odd)
        if self._began != 1:
            faults.append(f"{self._began} times on_subscribe")
        if len(self._ends) != 1:
            faults.append(f"{len(self._ends)} ends: {', '.join(self._ends) or 'none at all'}")
        return [f"the subscription to {self._label} had {fault}" for fault in faults]

    # --- the session's subscriber

    def on_subscribe(self, subscription: Subscription, /) -> None:
        self._began += 1
        self._upstream = subscription
        self._inner.on_subscribe(self)

    def on_next(self, element: Any, /) -> None:
        if self._is_due("on_next"):
            self._inner.on_next(element)

    def on_error(self, error: BaseException, /) -> None:
        inner = self._end(f"on_error({type(error).__name__})")
        if inner is not None:
            inner.on_error(error)

    def on_complete(self, /) -> None:
        inner = self._end("on_complete")
        if inner is not None:
            inner.on_complete()

    def __getattr__(self, name: str) -> Any:
        """What only some subscribers have: the ways to take several elements at once."""
        if name not in {"on_next_many", "on_next_packed", "on_element_size"}:
            raise AttributeError(name)
        inner = getattr(self._inner, name)

        def passed_on(*arguments: Any) -> None:
            if self._is_due(name):
                inner(*arguments)

        return passed_on

    def _is_due(self, name: str) -> bool:
        if self._ends:
            self.odd.append(f"{name} after {self._ends[-1]}")
        return not self._ends

    def _end(self, name: str) -> Any:
        """Write down an end; return who is to be told of it. From here on nothing is held."""
        inner, self._inner, self._upstream = self._inner, None, None
        self._ends.append(name)
        return inner

    # --- the subscriber's subscription

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
def overheard(spies: list[Spy]) -> Iterator[None]:
    """Put a spy before every subscriber that a session gets."""
    subscribe = StreamTables.subscribe

    def spied(self: StreamTables, target: Any, subscriber: Subscriber[Any]) -> Any:
        spy = Spy(subscriber, f"{target!r}")
        spies.append(spy)
        return subscribe(self, target, spy)

    with patch.object(StreamTables, "subscribe", spied):
        yield
