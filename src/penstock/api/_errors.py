"""Every exception of penstock, and the party that must act on it.

::

    PenstockError
    ├── UsageError              you: your program calls penstock in a way that cannot work
    │   ├── IllegalDemand       you: a demand that is not a positive integer (also a ValueError)
    │   ├── InvalidStateError   you: a call on a subscription that is over, by the draft's rules (also a RuntimeError)
    │   ├── AlreadySubscribed   you: a second subscriber of an object that has one subscriber, such as an iterator
    │   └── CleanupTimeout      you: a generator's own cleanup outlived its deadline (also a TimeoutError)
    ├── RuleViolation           the author of the object that broke a rule of Reactive Streams
    ├── PublisherFailed         the remote publisher
    ├── PublisherStopped        the code that cancelled the nursery of the publisher
    ├── NoElement               no action needed: a stream ended without the element that was asked of it (also a LookupError)
    ├── PublicError             no action needed: your publisher raises it to let its text cross the wire
    ├── NotAvailable            no action needed: your publisher raises it to answer as if its name did not exist
    ├── ProtocolError           the peer: it sent what the protocol does not allow
    ├── ConnectionLost          the network
    ├── Rejected                the peer refused: authentication, authorisation, unknown publisher, no room
    │   └── AuthRefused         you, or the operator of the server: it does not accept the credentials, or examines none
    ├── LimitExceeded           a bound, with its name and value
    │   └── SlowSubscriber      a subscriber that fell behind where that is declared to be fatal
    ├── StreamTimeout           time ran out between two signals (also a TimeoutError)
    ├── LogError                you: a log cannot do what was asked of it; the message says what to do
    │   ├── PositionNotRetained you: a position that the log does not have, or has no more (also a LookupError)
    │   ├── LogDamaged          you: a file of a log is missing, changed, or of another version
    │   └── LogLocked           you: a second writer of one log
    ├── PluginError             a plugin
    └── InternalError           penstock's authors: please report it

A message says what happened, what was allowed, and what to try.
"""

from functools import partial
from typing import Any


class PenstockError(Exception):
    """The base class of all exceptions of penstock.
    Catch it to catch every error that penstock itself raises.
    """


class UsageError(PenstockError):
    """Your program must act: it called penstock in a way that cannot work.
    The message says what would work.
    """


class IllegalDemand(UsageError, ValueError):
    """A demand that is not a positive integer (rule 3.9). The subscriber gets it as `on_error`."""


class InvalidStateError(UsageError, RuntimeError):
    """A call on a subscription that is over, which the draft makes an error.
    (The modern rules ignore such a call.)
    """


class AlreadySubscribed(UsageError):
    """A second subscriber of an object that gives each element once: an iterator, a generator.
    The subscriber gets it as `on_error`.
    """


class CleanupTimeout(UsageError, TimeoutError):
    """A generator's own cleanup did not end within its deadline and was cancelled. Shorten it,
    or give more `cleanup_timeout`.
    """


class RuleViolation(PenstockError):
    """An object broke a rule of Reactive Streams. `rule` is the rule's number, `__cause__` the
    object's exception, if it raised one.

    It goes to the subscriber as `on_error`, or to the `on_violation` hook if no subscriber is left.
    """

    def __init__(self, message: str, *, rule: str) -> None:
        super().__init__(message)
        self.rule = rule

    def __reduce__(self) -> tuple[Any, ...]:
        # pickle calls the class with `args` alone, and that fails
        # if a keyword argument is required.
        return partial(type(self), *self.args, rule=self.rule), (), self.__dict__


class PublisherFailed(PenstockError):
    """The publisher on the other side of a connection failed. The text is what the peer sent.

    `code` is the number that the peer gave, in a protocol that has numbers for errors: RSocket.
    """

    def __init__(self, *args: object, code: int | None = None) -> None:
        super().__init__(*args)
        self.code = code


class PublisherStopped(PenstockError):
    """The nursery that ran a publisher was cancelled while its subscriber waited for elements."""


class NoElement(PenstockError, LookupError):
    """A stream ended without the element that was asked of it.
    Give a `default` if that may happen.
    """


class PublicError(PenstockError):
    """Raise it in a publisher to let its text cross the wire.
    The texts of other exceptions are not sent.

    `code` is a number for programs, which crosses in a protocol that has numbers for errors: the
    codes of streams in RSocket, and those of applications from 0x301 to 0xFFFFFFFE. Other
    protocols, and other codes, send the text alone.
    """

    def __init__(self, *args: object, code: int | None = None) -> None:
        super().__init__(*args)
        if code is not None and (type(code) is not int or not 0 < code < 1 << 32):
            raise UsageError(f"code={code!r}; the code of an error is an int of 1 to 0xFFFFFFFE")
        self.code = code


class NotAvailable(PenstockError):
    """Raise it in a publisher or a handler before its first element:
    the peer gets the answer to a name that does not exist.

    The text stays on this side: the log ``penstock.access`` has it.
    """


class ProtocolError(PenstockError):
    """The peer must act: it sent what the protocol does not allow.

    `reason` is what the peer gets: a fixed token, perhaps with numbers,
    and never a text of an application.
    """

    def __init__(self, message: str, *, reason: str = "protocol") -> None:
        super().__init__(message)
        self.reason = reason


class ConnectionLost(PenstockError):
    """The connection ended without a goodbye: the network failed, or the peer's process ended.

    `resumable` is False if both sides had agreed to go on after a loss (``resume=True``), and that
    was not possible: the time was over, or the server did not know the connection any more.
    Elements may be missing then. It is None on any other connection.
    """

    def __init__(self, message: str, *, resumable: bool | None = None) -> None:
        super().__init__(message)
        self.resumable = resumable


class Rejected(PenstockError):
    """The peer refused. The message for an unknown publisher and for a forbidden one is the same,
    so that names cannot be probed.

    `processed` is False if the peer cannot have acted on the request, so that a retry is safe.
    `temporary` is True if a server has no room for this client now. The message says what to try,
    and `Reconnect` tries again. `code` is the number that the peer gave, as for `PublisherFailed`.
    """

    def __init__(
        self,
        message: str,
        *,
        processed: bool = True,
        temporary: bool = False,
        code: int | None = None,
    ) -> None:
        super().__init__(message)
        self.processed = processed
        self.temporary = temporary
        self.code = code


class AuthRefused(Rejected):
    """The server refused the credentials of this side, or does not examine any; or this side
    refused the server. No text has a secret.
    """


class LimitExceeded(PenstockError):
    """A bound was reached: `limit` is its name, `value` its value."""

    def __init__(self, message: str, *, limit: str, value: float) -> None:
        super().__init__(message)
        self.limit = limit
        self.value = value

    def __reduce__(self) -> tuple[Any, ...]:
        return (
            partial(type(self), *self.args, limit=self.limit, value=self.value),
            (),
            self.__dict__,
        )


class SlowSubscriber(LimitExceeded):
    """A subscriber fell further behind than its publisher allows (`SlowPolicy.FAIL`), or held it
    up for too long (`SlowPolicy.WAIT`).
    """


class StreamTimeout(PenstockError, TimeoutError):
    """No signal arrived within the time that was allowed between two signals."""


class LogError(PenstockError):
    """A log cannot do what was asked of it, for example because its disk is full.
    The message says what to do.
    """


class PositionNotRetained(LogError, LookupError):
    """A position that the log has dropped, or does not have yet.

    `partition` and `position` were asked for.
    The log has the positions from `earliest` up to, and not with, `latest`.
    """

    def __init__(
        self, message: str, *, partition: str, position: int, earliest: int, latest: int
    ) -> None:
        super().__init__(message)
        self.partition = partition
        self.position = position
        self.earliest = earliest
        self.latest = latest

    def __reduce__(self) -> tuple[Any, ...]:
        make = partial(
            type(self),
            *self.args,
            partition=self.partition,
            position=self.position,
            earliest=self.earliest,
            latest=self.latest,
        )
        return make, (), self.__dict__


class LogDamaged(LogError):
    """A file of a log is missing, was changed by another program, or was written by another
    version. The message names the file.
    """


class LogLocked(LogError):
    """A log is open for writing already. A log has one writer at a time, in one process."""


class PluginError(PenstockError):
    """A plugin's author must act: the plugin broke its contract, and was not used."""


class InternalError(PenstockError):
    """Penstock's authors must act: an invariant of penstock itself is broken.
    Please report it with the message.
    """
