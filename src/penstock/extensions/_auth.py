"""The auth extension (id 2): a side shows credentials, and a function of the other side decides
before anything is answered.

Message ``42`` has the credentials and message ``43`` is the verdict, one byte ``01``. A refusal is
the goodbye `auth` and no verdict. On ReactiveSocket the data of the SETUP has the same bytes as the
body of ``42``, and silence is the verdict.

A client shows its credentials first. A server that has some shows them after its verdict, and gets
a verdict: so a stranger never sees them. ReactiveSocket has no verdict, and so no place for
credentials of a server.

* All refusals are the same: the same reason, and the same time after the credentials arrived. So a
  client does not learn what was wrong. Only a client whose credentials were not examined at all is
  told so: the function has raised a `Rejected` that is temporary.
* A client that has credentials sends nothing else before the verdict. It sends them to no server
  that does not examine them.
* A side without credentials is examined too:
  by its certificate (`mtls`), by its user (`unix`), or with the scheme ``""``.
* A client that examines its server sends no request before the server is let in.
  One that does not lets each server in.
"""

from collections.abc import Callable
from inspect import isawaitable
from math import inf
from typing import Any, Final

from penstock.api import (
    ActiveExtension,
    AuthRefused,
    ConnectionLost,
    Credentials,
    ExtensionLink,
    NotAvailable,
    PublicError,
    Rejected,
    Role,
)
from penstock.spi import PeerIdentity, decode_credentials, encode_credentials, verdict_fault

CREDENTIALS: Final = 0x42
VERDICT: Final = 0x43
ACCEPTED: Final = b"\x01"

REFUSAL_DELAY: Final = 0.25
"""Seconds from the arrival of credentials to their refusal. A look-up that fails early must not
be told from one that fails late.
"""

Authenticate = Callable[[str, bytes, PeerIdentity], Any]
"""Returns the principal, or None or False to refuse; sync or async."""


NO_CREDENTIALS: Final = Credentials("")
"""Sent by a client that examines its server and has no credentials:
the server examines it as one without the extension.
"""


class Auth:
    """Shows `credentials`, lets `authenticate` examine those of the peer, or both."""

    id: int = 2
    name: str = "auth"
    codes: frozenset[int] = frozenset({CREDENTIALS, VERDICT})
    # A client has this extension only if it shows something or examines its server.
    # Both must come before its requests.
    no_false_start: bool = True

    def __init__(
        self, *, credentials: Credentials | None = None, authenticate: Authenticate | None = None
    ) -> None:
        self._credentials = credentials
        self._authenticate = authenticate

    def introduction(self) -> bytes:
        """Return the credentials as the data of a SETUP."""
        return b"" if self._credentials is None else encode_credentials(self._credentials)

    def open(self, link: ExtensionLink, now: float, /) -> ActiveExtension:
        """Start on a connection: the client sends its credentials, the server waits for them."""
        link.hold_peer()
        if link.role is Role.CLIENT:
            link.send(CREDENTIALS, encode_credentials(self._credentials or NO_CREDENTIALS))
        return _ActiveAuth(link, self._credentials, self._authenticate)

    def meet(
        self, link: ExtensionLink, introduction: bytes | None, now: float, /
    ) -> ActiveExtension:
        """Examine a peer that sends no message of this extension, or leave a server
        that does not examine credentials.
        """
        active = _ActiveAuth(link, None, self._authenticate)
        if link.role is Role.CLIENT and self._credentials is not None:
            text = (
                "this side has credentials, and the server does not examine any; they were not sent"
            )
            link.break_off("auth", error=AuthRefused(text, processed=False))
            return active
        link.hold_peer()
        found = decode_credentials(introduction) if introduction else (b"", b"")
        if found is None:
            active.refuse(now)
        else:
            active.examine(*found, now)
        return active


class _ActiveAuth:
    """Authentication on one connection."""

    def __init__(
        self,
        link: ExtensionLink,
        credentials: Credentials | None,
        authenticate: Authenticate | None,
    ) -> None:
        self._link = link
        self._credentials = credentials
        self._authenticate = authenticate
        # The message that this side waits for. A client waits for the verdict, then for credentials
        # of the server; a server the other way.
        self._due: int | None = VERDICT if link.role is Role.CLIENT else CREDENTIALS
        self._answers = False  # credentials came in a message, which gets a verdict
        # The principal of a client that was let in, and has not let this server in yet.
        self._principal: Any = None

    def received(self, type: int, body: bytes, now: float, /) -> None:  # noqa: A002  # the protocol's word
        """Take the credentials, or the verdict."""
        due, self._due = self._due, None
        if type != due or (type == VERDICT and body != ACCEPTED):
            self._link.break_off("protocol:auth")
        elif type == CREDENTIALS:
            self._take_credentials(body, now)
        elif self._link.role is Role.SERVER:
            self._link.admit(self._principal)
        else:
            self._await_server()

    def check_length(self, type: int, length: int, /) -> None:  # noqa: A002  # the protocol's word
        """Refuse credentials for their length, before they are there."""
        most = self._link.limits.preauth_bytes
        if length > most:
            self._link.break_off(f"limit:auth {length} > {most}")

    def examine(self, scheme: bytes, data: bytes, now: float) -> None:
        """Let the program's function examine credentials that came at the time `now`."""
        if self._authenticate is None:
            self.refuse(now)
            return
        if not scheme and not data:
            scheme = _scheme_of(self._link.peer).encode()
        try:
            verdict = self._authenticate(scheme.decode(), data, self._link.peer)
        except Exception as error:
            # boundary: the program's function. UnicodeDecodeError is one of its refusals.
            self._apply(None, error, now)
            return
        if isawaitable(verdict):
            self._link.await_result(verdict, lambda result, error: self._apply(result, error, now))
        else:
            self._apply(verdict, None, now)

    def refuse(self, now: float, reason: str = "auth") -> None:
        """Refuse the peer, `REFUSAL_DELAY` after `now`."""
        self._link.break_off(
            reason,
            at=now + REFUSAL_DELAY,
            error=self._refusal("this side refused the credentials of the other side"),
        )

    def _refusal(self, text: str) -> Exception:
        # A client's requests were held back until now.
        return (
            ConnectionLost(text)
            if self._link.role is Role.SERVER
            else AuthRefused(text, processed=False)
        )

    def _await_server(self) -> None:
        """Let the server in, or wait for its credentials: this client was let in."""
        self._due = CREDENTIALS
        if self._authenticate is None:
            self._link.admit()
        else:
            # The end of the handshake's time ends the wait.
            self._link.break_off(
                "auth",
                at=inf,
                error=self._refusal(
                    "the server showed no credentials, and this side examines them"
                ),
            )

    def _take_credentials(self, body: bytes, now: float) -> None:
        self.check_length(CREDENTIALS, len(body))
        found = decode_credentials(body)
        if found is None:
            self._link.break_off("protocol:auth")
        elif self._link.role is Role.CLIENT and self._authenticate is None:
            self._link.send(VERDICT, ACCEPTED)  # each server is let in, and was before
        else:
            self._answers = True
            self.examine(*found, now)

    def _apply(self, principal: Any, error: Exception | None, now: float) -> None:
        if error is None:
            error = verdict_fault(principal, "authenticate")
        if error is not None or principal is None or principal is False:
            if error is not None and not isinstance(
                error, NotAvailable | PublicError | Rejected | UnicodeDecodeError
            ):
                self._link.report(error)
            is_temporary = isinstance(error, Rejected) and error.temporary
            self.refuse(now, "limit:attempts" if is_temporary else "auth")
            return
        if self._answers:
            self._link.send(VERDICT, ACCEPTED)
            if self._credentials is not None and self._link.role is Role.SERVER:
                self._link.send(CREDENTIALS, encode_credentials(self._credentials))
                self._due, self._principal = VERDICT, principal
                return
        self._link.admit(principal)


def _scheme_of(peer: PeerIdentity) -> str:
    """Return the scheme of a peer that shows no credentials."""
    if peer.certificate is not None:
        return "mtls"
    return "" if peer.credentials is None else "unix"
