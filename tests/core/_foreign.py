"""Foreign objects for the tests: a recording subscriber, a recording subscription, and
publishers made of one function.
"""

from collections.abc import Callable
from typing import Any

Hook = Callable[..., object]


class Recorder:
    """A subscriber of either generation.
    Records each signal as a tuple, and then calls the hook for that signal.
    """

    def __init__(self, **hooks: Hook) -> None:
        self.log: list[tuple[Any, ...]] = []
        self.subscription: Any = None
        self.depth = self.deepest = 0
        self._hooks = hooks

    def on_subscribe(self, subscription: Any, /) -> None:
        self.subscription = subscription
        self._record("on_subscribe")

    def on_next(self, element: Any, /) -> None:
        self._record("on_next", element)

    def on_error(self, error: Any, /) -> None:
        self._record("on_error", error)

    def on_complete(self) -> None:
        self._record("on_complete")

    def _record(self, signal: str, *value: Any) -> None:
        self.log.append((signal, *value))
        self.depth += 1
        self.deepest = max(self.deepest, self.depth)
        try:
            if signal in self._hooks:
                self._hooks[signal](*value)
        finally:
            self.depth -= 1

    @property
    def elements(self) -> list[Any]:
        return [entry[1] for entry in self.log if entry[0] == "on_next"]

    @property
    def error(self) -> Any:
        """The error of the last signal, which is on_error."""
        signal, error = self.log[-1]
        assert signal == "on_error"
        return error


class ScriptedPublisher:
    """A publisher of either generation that is one function of its subscriber.
    Keeps its last subscriber.
    """

    def __init__(self, subscribe: Hook = lambda subscriber: None) -> None:
        self._subscribe = subscribe
        self.subscriber: Any = None

    def subscribe(self, subscriber: Any, /) -> None:
        self.subscriber = subscriber
        self._subscribe(subscriber)


class CallRecorder:
    """A subscription of either generation.
    Records its calls, and then calls the hook for that call.
    """

    def __init__(self, **hooks: Hook) -> None:
        self.log: list[Any] = []
        self._hooks = hooks

    def request(self, n: int, /) -> None:
        self._called("request", n)

    def request_more(self, n: int, /) -> None:
        self._called("request_more", n)

    def cancel(self) -> None:
        self._called("cancel")

    def _called(self, name: str, *n: int) -> None:
        self.log.append((name, *n))
        if name in self._hooks:
            self._hooks[name](*n)


def boom(*_: object) -> None:
    """Raise ValueError."""
    raise ValueError("boom")


class CountingPublisher:
    """A publisher of 0, 1, 2, … that signals inside each request, of either generation,
    and does not prevent nesting.
    """

    def __init__(self, length: int) -> None:
        self._length = length
        self._next = 0
        self._subscriber: Any = None

    def subscribe(self, subscriber: Any, /) -> None:
        self._subscriber = subscriber
        subscriber.on_subscribe(self)

    def request(self, n: int, /) -> None:
        for _ in range(n):
            if self._subscriber is None or self._next == self._length:
                break
            self._next += 1
            self._subscriber.on_next(self._next - 1)
        if self._subscriber is not None and self._next == self._length:
            subscriber, self._subscriber = self._subscriber, None
            subscriber.on_complete()

    request_more = request

    def cancel(self) -> None:
        self._subscriber = None
