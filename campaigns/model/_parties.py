"""The programs at both ends of a stream: a subscriber and a publisher that follow a script, and
refuse a signal that breaks a rule.
"""

from collections.abc import Sequence
from typing import Any

from campaigns.model._scenarios import Ending, Script
from penstock.api import ByteWindow, Rejected, Subscriber, Subscription


class Broken(AssertionError):
    """A rule was broken, in the state that the steps have led to."""


class Failure(Exception):
    """The error of a publisher that fails."""


def element(number: int, size: int) -> bytes:
    """Return the element of that number: its bytes tell it from every other, in each part of it."""
    return bytes([number + 1]) * size


class Reader(Subscriber[Any]):
    """A subscriber, and its program."""

    def __init__(self, index: int, script: Script) -> None:
        self.index = index
        self.script = script
        self.is_subscribed = False
        self.subscription: Subscription | None = None
        self.requested = 0
        self.made = 0
        """How many of the script's requests were made."""
        self.made_inside = 0
        self.received = 0
        self.is_cancelled = False
        self.ended = ""
        """The name of the error's class, or "complete"."""
        self.is_unprocessed = False
        """The error says that the peer has not acted on the request."""
        largest = max(script.sizes, default=script.size)
        self.window = ByteWindow(script.window, largest) if script.window else None
        self.unread = 0
        """Elements that wait in the window."""
        self.bytes = 0
        """Bytes of the elements that have come."""

    def steps(self) -> list[str]:
        """Return what this subscriber may do next."""
        if not self.is_subscribed:
            return ["subscribe"]
        if self.subscription is None or self.is_cancelled or self.ended:
            return []
        found = ["request"] if self.made < len(self.script.requests) else []
        if self.unread:
            found.append("read")
        return [*found, "cancel"] if self.script.cancels else found

    # --- the steps

    def request(self) -> None:
        """Make the next request of the script."""
        self.made += 1
        self._ask(self.script.requests[self.made - 1])

    def cancel(self) -> None:
        """Cancel."""
        assert self.subscription is not None
        self.is_cancelled = True
        self.subscription.cancel()

    def read(self) -> None:
        """Take an element out of the window, and request what it permits."""
        self.unread -= 1
        self._fill()

    def _fill(self) -> None:
        window, script = self.window, self.script
        if window is None:
            return
        permitted = window.demand(script.elements, self.received, self.unread)
        wanted = permitted - self.unread - (self.requested - self.received)
        if wanted > 0:
            self._ask(wanted)

    def _ask(self, n: int) -> None:
        assert self.subscription is not None
        # Counted first: a publisher may signal inside the request.
        self.requested += n
        self.subscription.request(n)

    # --- the signals

    def on_subscribe(self, subscription: Subscription, /) -> None:
        if self.subscription is not None:
            raise Broken("a second on_subscribe (rule 2.12)")
        self.subscription = subscription
        if self.script.at_once:
            self._ask(self.script.at_once)
        self._fill()

    def on_next(self, value: Any, /) -> None:
        self._refuse_late("on_next")
        size = self.script.size_of(self.received)
        if not self.script.forged and bytes(value) != element(self.received, size):
            raise Broken(
                f"element {self.received} was due, and another one came: lost, doubled or out of "
                "order"
            )
        self.received += 1
        self.bytes += len(value)
        self.unread += self.window is not None
        if self.received > self.requested:
            raise Broken(
                f"{self.received} elements, and {self.requested} were requested (rule 1.1)"
            )
        if self.script.cancels_inside == self.received:
            self.cancel()
        elif self.made_inside < len(self.script.inside):
            self.made_inside += 1
            self._ask(self.script.inside[self.made_inside - 1])

    def on_error(self, error: BaseException, /) -> None:
        self._refuse_late("on_error")
        self.ended = type(error).__name__
        self.is_unprocessed = isinstance(error, Rejected) and not error.processed

    def on_complete(self, /) -> None:
        self._refuse_late("on_complete")
        self.ended = "complete"

    def _refuse_late(self, signal: str) -> None:
        if self.ended:
            raise Broken(f"{signal} behind the end, which was {self.ended!r} (rule 1.7)")
        if self.is_cancelled:
            raise Broken(f"{signal} behind the cancel (rule 1.8)")
        if self.subscription is None and not self.script.is_call:
            raise Broken(f"{signal} before on_subscribe (rule 1.9)")


class RunReader(Reader):
    """A subscriber that takes several elements in one call."""

    def on_next_many(self, elements: Sequence[Any], /) -> None:
        """Take each of them."""
        for value in elements:
            self.on_next(value)


def reader_of(index: int, script: Script) -> Reader:
    """Return the subscriber of a script."""
    return (RunReader if script.in_runs else Reader)(index, script)


class Publisher(Subscription):
    """A publisher with one subscriber, the stream of the session, and its program."""

    def __init__(self, index: int, script: Script) -> None:
        self.index = index
        self.script = script
        self.subscriber: Any = None
        self.has_begun = False
        """The stream has its subscription."""
        self.requested = 0
        self.emitted = 0
        self.is_signalling = False
        self.is_cancelled = False
        self.is_refused = False
        self.ended = ""
        """The end that the publisher has signalled: "complete" or "fail"."""
        self.forged = 0
        """Elements that were sent whatever the demand."""

    def attach(self, subscriber: Any) -> None:
        """Subscribe a stream, now or in a later step."""
        if self.subscriber is not None:
            raise Broken("a stream was attached to its publisher twice")
        self.subscriber = subscriber
        if not self.script.attaches_late:
            self.begin()

    def begin(self) -> None:
        """Give the stream its subscription."""
        self.has_begun = True
        self.subscriber.on_subscribe(self)

    def answer_to(self, stream: Any) -> None:
        """Serve a request for one value."""
        self.subscriber = stream
        self.has_begun = True
        stream.accept_call(self)

    # --- the subscription

    def request(self, n: int, /) -> None:
        if n <= 0:
            raise Broken(f"the session requested {n} elements (rule 3.9)")
        if self.is_cancelled or self.ended:
            raise Broken("the session requested elements behind its cancel, or behind the end")
        self.requested += n
        if self.script.is_synchronous and not self.is_signalling:
            self.is_signalling = True
            while names := self._signals():
                getattr(self, names[0])()
            self.is_signalling = False

    def cancel(self, /) -> None:
        if self.is_cancelled:
            raise Broken("the session cancelled its publisher twice")
        self.is_cancelled = True

    # --- the steps

    def steps(self) -> list[str]:
        """Return what this publisher may do next."""
        return [] if self.script.is_synchronous else self._signals()

    def _signals(self) -> list[str]:
        if self.subscriber is None or self.is_cancelled or self.ended:
            return []
        if not self.has_begun:
            return ["begin"]
        script = self.script
        if self.emitted < script.elements:
            return (
                [] if self.emitted >= self.requested else ["answer" if script.is_call else "emit"]
            )
        return {Ending.COMPLETES: ["complete"], Ending.FAILS: ["fail"]}.get(script.ending, [])

    def emit(self) -> None:
        """Signal the next element."""
        self.emitted += 1
        self.subscriber.on_next(element(self.emitted - 1, self.script.size_of(self.emitted - 1)))

    def answer(self) -> None:
        """Signal the only element, and the end with it."""
        self.emitted, self.ended = 1, "complete"
        self.subscriber.answer(element(0, self.script.size))

    def complete(self) -> None:
        """Signal the end."""
        self.ended = "complete"
        self.subscriber.on_complete()

    def fail(self) -> None:
        """Signal an error."""
        self.ended = "fail"
        self.subscriber.on_error(Failure("the publisher failed"))
