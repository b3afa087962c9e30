"""The handshake of a protocol whose client begins with an introduction that no message accepts.

Rules of this file:

* A server sends nothing before the introduction, and serves nothing before the service has examined
  it.
* A client need not wait. Whatever a server sends only to a client that it has accepted opens the
  client's session, and so does the end of the time for a handshake.
"""

from typing import Final

from penstock.api import ProtocolError, Role
from penstock.session._dialect import DialectHost
from penstock.session._extensions import ExtensionHost
from penstock.session._states import ConnectionState

NO_PREAUTH_BOUND: Final = 1 << 62
"""A client takes all that its server sends: the program has chosen the server."""


class IntroductionHandshake:
    """The handshake of one connection, until the introduction is accepted."""

    __slots__ = ("_channel", "_introduction", "_session", "has_begun", "is_accepted")

    def __init__(self, session: DialectHost) -> None:
        self._session = session
        self._channel = session.channel
        self.has_begun: bool = session.channel.role is Role.CLIENT
        """The client's introduction has come; always true for a client."""
        self.is_accepted: bool = session.channel.role is Role.SERVER
        """For a client: the server has answered something. Always true for a server."""
        self._introduction: bytes | None = None  # until the service gets it

    @property
    def preauth_bytes(self) -> int:
        """How many bytes may come before an introduction is complete.
        Requests right after it do not count.
        """
        # The bound changes during the handshake: a client need not wait, so its requests may
        # follow at once.
        return NO_PREAUTH_BOUND if self.has_begun else self._channel.limits.preauth_bytes

    def check_begun(self) -> None:
        """Raise ProtocolError for a message before the introduction."""
        if not self.has_begun:
            raise ProtocolError(
                "the client's first message was not its introduction", reason="protocol:setup"
            )

    def receive(self, data: bytes, extensions: ExtensionHost, shown: bytes | None = None) -> None:
        """Let the extensions and then the service examine an introduction that can be read.
        `shown` is what the extensions examine, if it is not the data.
        """
        self.has_begun = True
        if self._channel.state.is_closing:  # this side may have closed meanwhile
            return
        self._session.hello_sent()
        if not extensions.meet((), data if shown is None else shown):
            return
        self._introduction = data
        if extensions.is_holding:
            self._session.receive_introduction(data, is_held=True)
        else:
            self.on_admitted()

    def on_admitted(self) -> None:
        """Let the service examine the introduction: no extension holds the peer any more."""
        introduction, self._introduction = self._introduction, None
        # None while the extensions begin: others may still want to hold the peer.
        if introduction is not None:
            self._session.receive_introduction(introduction)

    def accept(self) -> None:
        """Open a client's session: the server has sent something that it sends only to a client
        that it has accepted.
        """
        if not self.is_accepted:
            self.is_accepted = True
            # If not, the connection is closing or over, and the late answer changes nothing.
            if self._channel.state is ConnectionState.GREETING:
                self._session.receive_hello()

    def overdue(self) -> None:
        """End the handshake. A server that has not refused by now has accepted; a client that
        has sent nothing never will.
        """
        if self._channel.role is Role.CLIENT:
            self.accept()
        else:
            error = ProtocolError(
                "no introduction came, or it was not accepted, in time", reason="limit:handshake"
            )
            self._session.close_protocol_error(error)
