"""Asks the program's function `authorize` before a peer opens a stream or sends a message. It may
be async: the stream waits meanwhile.

Rules of this file:

* The function gets the principal of the peer, and the name in its canonical spelling.
* Every failure is a refusal, and the peer gets the answer to a name that does not exist.
"""

from collections.abc import Awaitable, Callable
from inspect import isawaitable
from typing import Any, TypeAlias

from penstock.api import NotAvailable, PublicError, Request
from penstock.core import Report, report
from penstock.runtime.service import Service
from penstock.spi import PeerIdentity

Wait: TypeAlias = Callable[[Awaitable[Any], Callable[[Any, Exception | None], None]], None]
"""Awaits in a task of the connection, and calls the function with the outcome."""


class Authorizer:
    """`authorize` of one service, for one connection."""

    __slots__ = ("_authorize", "_on_violation", "_service")

    def __init__(
        self, service: Service, authorize: Callable[..., Any], on_violation: Report
    ) -> None:
        self._service = service
        self._authorize = authorize
        self._on_violation = on_violation

    def decide(
        self, target: str | Request, peer: PeerIdentity, wait: Wait, then: Callable[[str], None]
    ) -> None:
        """Call `then` with "" if the peer may have `target`,
        or with the reason for the log of this side; now or later.
        """
        try:
            verdict = self._authorize(peer.principal, self._service.name_of(target))
        except Exception as error:
            # boundary: the user's function. A failure must not let the peer in.
            then(self._reason(None, error))
            return
        if isawaitable(verdict):
            wait(verdict, lambda result, error: then(self._reason(result, error)))
        else:
            then(self._reason(verdict, None))

    async def ask(self, target: str | Request, peer: PeerIdentity) -> str:
        """Return "" if the peer may have `target`, or the reason for the log of this side.
        May checkpoint.
        """
        try:
            verdict = self._authorize(peer.principal, self._service.name_of(target))
            if isawaitable(verdict):
                verdict = await verdict
        except Exception as error:  # boundary: as in `decide`
            return self._reason(None, error)
        return self._reason(verdict, None)

    def _reason(self, verdict: object, error: Exception | None) -> str:
        if error is not None:
            # These two refuse. Another exception is a fault of the program.
            if not isinstance(error, NotAvailable | PublicError):
                report(self._on_violation, error)
            return f"authorize raised {type(error).__name__}"
        # True and nothing else: a function that forgets to return lets no peer in.
        return "" if verdict is True else "authorize refused it"
