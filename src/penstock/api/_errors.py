"""Every exception of penstock, by who must act.

::

    PenstockError
    ├── UsageError              you: the program calls us in a way that cannot work
    │   ├── IllegalDemand       you: a demand that is not a positive integer (also a ValueError)
    │   ├── InvalidStateError   you: a call on something that is over, after the draft's rules (also a RuntimeError)
    │   └── CleanupTimeout      you: a generator's own cleanup outlived its deadline (also a TimeoutError)
    ├── RuleViolation           whoever wrote the object that broke a rule of Reactive Streams
    ├── PublisherFailed         the remote publisher
    ├── PublisherStopped        whoever cancelled the nursery that ran the publisher
    ├── NoElement               nobody: a stream ended without the element that was asked of it (also a LookupError)
    ├── PublicError             nobody: raise it yourself to let its text cross the wire
    ├── ProtocolError           the peer: it sent what the protocol does not allow
    ├── ConnectionLost          the network
    ├── Rejected                the peer refused: authentication, authorisation, unknown publisher
    ├── LimitExceeded           a bound, with its name and value
    │   └── SlowSubscriber      a subscriber that fell behind where that is declared to be fatal
    ├── StreamTimeout           time ran out between two signals (also a TimeoutError)
    ├── PluginError             a plugin
    └── InternalError           us: please report it

A message says what happened, what was allowed, and what to try.
"""

from functools import partial
from typing import Any


class PenstockError(Exception):
    """The root of all our exceptions. Catch it to catch whatever penstock raises by itself."""


class UsageError(PenstockError):
    """Your program must act: it called penstock in a way that cannot work. The message says which way can."""


class IllegalDemand(UsageError, ValueError):
    """A demand that is not a positive integer (rule 3.9). The subscriber gets it as `on_error`."""


class InvalidStateError(UsageError, RuntimeError):
    """A call on a subscription that is over, where the draft's rules make that an error (modern rules ignore it)."""


class CleanupTimeout(UsageError, TimeoutError):
    """A generator's own cleanup did not end within its deadline and was abandoned. Shorten it, or raise `cleanup_timeout`."""


class RuleViolation(PenstockError):
    """An object broke a rule of Reactive Streams; `rule` is its number, and `__cause__` the exception, where there is one.

    It goes to the `on_violation` hook, because there is nobody else left to tell.
    """

    def __init__(self, message: str, *, rule: str) -> None:
        super().__init__(message)
        self.rule = rule

    def __reduce__(self) -> tuple[Any, ...]:
        # Exceptions are pickled by calling the class with `args` alone, which a required keyword makes impossible.
        return partial(type(self), *self.args, rule=self.rule), (), self.__dict__


class PublisherFailed(PenstockError):
    """The publisher on the other side of a connection failed; the text is all that it chose to tell."""


class PublisherStopped(PenstockError):
    """The nursery that ran a publisher was cancelled while a subscriber still listened."""


class NoElement(PenstockError, LookupError):
    """A stream ended without the element that was asked of it. Give a `default`, if that may happen."""


class PublicError(PenstockError):
    """Raise it in a publisher to let its text cross the wire; other exceptions' texts stay at home."""


class ProtocolError(PenstockError):
    """The peer must act: it sent what the protocol does not allow."""


class ConnectionLost(PenstockError):
    """The network, or the peer's process, is gone; nobody said goodbye."""


class Rejected(PenstockError):
    """The peer refused. An unknown publisher and a forbidden one read the same, so that nobody can probe for names."""


class LimitExceeded(PenstockError):
    """A bound was reached: `limit` is its name, `value` what it stands at."""

    def __init__(self, message: str, *, limit: str, value: float) -> None:
        super().__init__(message)
        self.limit = limit
        self.value = value

    def __reduce__(self) -> tuple[Any, ...]:
        return partial(type(self), *self.args, limit=self.limit, value=self.value), (), self.__dict__


class SlowSubscriber(LimitExceeded):
    """A subscriber fell further behind than its topic allows, and the topic was told to fail it rather than to wait or drop."""


class StreamTimeout(PenstockError, TimeoutError):
    """No signal arrived within the time that was allowed between two of them."""


class PluginError(PenstockError):
    """A plugin must act: it broke its contract, and was left out."""


class InternalError(PenstockError):
    """We must act: an invariant of penstock itself is broken. Please report it with the message."""
