"""Asks the user's function `may_open` before a peer opens anything.
Every failure of that function is a refusal.

Rules of this file:

* The function gets a name in its canonical spelling, so that a peer cannot pass it by with an
  escape: ``s%65cret`` is ``secret``.
* A refusal is `Forbidden`, which a protocol answers like a missing name.
  Its text is for the log of this side.
"""

from inspect import isawaitable, iscoroutine
from typing import Final

from penstock.api import NotAvailable, PublicError, Request, UsageError, text_of
from penstock.core import Report, report
from penstock.runtime.service._cannot_open import Forbidden, MayOpen
from penstock.runtime.service._service import Service
from penstock.spi import PeerIdentity, verdict_fault

REFUSED_BY_HOOK: Final = "may_open refused it"


class Authorisation:
    """`may_open` of one service, with its failures turned into refusals. It is called as
    `may_open` is, and raises Forbidden.
    """

    __slots__ = ("_may_open", "_on_violation", "_service")

    def __init__(self, service: Service, may_open: MayOpen, on_violation: Report) -> None:
        self._service = service
        self._may_open = may_open
        self._on_violation = on_violation

    def __call__(self, target: str | Request, peer: PeerIdentity) -> bool:
        """Return True, or raise Forbidden."""
        try:
            verdict: object = self._may_open(self._service.name_of(target), peer)
        # The function has decided, with an exception. That is not reported: a peer that asks again
        # and again would fill the log.
        except (NotAvailable, PublicError) as error:
            raise Forbidden(f"may_open raised {type(error).__name__}: {text_of(error)}") from None
        except Exception as error:
            # boundary: the user's function. A failure must not let the peer in.
            report(self._on_violation, error)
            raise Forbidden(f"may_open raised {type(error).__name__}") from None
        # A coroutine is true: without this line an async function would let every peer in.
        if isawaitable(verdict):
            if iscoroutine(verdict):
                verdict.close()
            report(
                self._on_violation,
                UsageError(
                    "may_open returned an awaitable, so nothing is opened; make it a plain function"
                ),
            )
            raise Forbidden("may_open returned an awaitable")
        # A generator and a function are true as well.
        fault = verdict_fault(verdict, "may_open")
        if fault is not None:
            report(self._on_violation, fault)
            raise Forbidden("may_open returned no verdict")
        # Unlike `authorize`, whose verdict must be True itself:
        # any true value lets the peer in here.
        if not verdict:
            raise Forbidden(REFUSED_BY_HOOK)
        return True
