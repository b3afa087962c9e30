"""The encodings that a connection may change to, and the agreement on one of them.

Rules of this file:

* The agreed encoding is the first one of the client's hello
  that the server's hello lists too (wire §Encodings).
* Each side changes its own direction once, with a switchEncoding.
  The bytes after it are in the agreed encoding.
* Any other switchEncoding ends the connection: ``protocol:switch``.
"""

from collections.abc import Sequence

from penstock.api import PluginError, ProtocolError
from penstock.protocols.rsio._encoding import Encoding
from penstock.session import EncodingOffer


def make_encoding(offer: EncodingOffer) -> Encoding:
    """Return the encoding that is offered.
    Raises PluginError if a plugin raises, or makes something else.
    """
    try:
        encoding = offer.make()
    except Exception as error:  # boundary: a plugin
        raise PluginError(
            f"the encoding {offer.name!r} raised when it was made: {error!r}"
        ) from error
    if not isinstance(encoding, Encoding):
        raise PluginError(
            f"the encoding {offer.name!r} was made as {encoding!r}; return a "
            "penstock.protocols.rsio.Encoding"
        )
    return encoding


def refuse_switch(extension_id: int) -> ProtocolError:
    """Return the error for a switchEncoding that is not allowed."""
    # The same for all cases: a peer that asks for one it may not have need not be told
    # which rule it broke.
    return ProtocolError(
        (
            f"a change to the encoding {extension_id}, which was not agreed on, or is the second "
            "change"
        ),
        reason=f"protocol:switch {extension_id}",
    )


class EncodingSwitch:
    """The change of encoding on one connection."""

    __slots__ = ("_agreed", "_agreed_id", "_offers")

    def __init__(self, offers: Sequence[EncodingOffer]) -> None:
        """`offers` have ids; this side's hello lists them in this order."""
        self._offers = offers
        self._agreed: Encoding | None = None
        self._agreed_id = -1

    @property
    def ids(self) -> tuple[int, ...]:
        """The ids for this side's hello."""
        return tuple(offer.id for offer in self._offers if offer.id is not None)

    def agree(
        self, of_client: Sequence[int], of_server: Sequence[int]
    ) -> tuple[int, Encoding] | None:
        """Choose by the ids of both hellos, and return the id and the encoding, or None. Raises
        PluginError as `make_encoding` does.
        """
        mine = {offer.id: offer for offer in self._offers if offer.id is not None}
        chosen = next((each for each in of_client if each in mine and each in of_server), None)
        if chosen is None:
            return None
        # Kept until the peer switches: its bytes before that are in the encoding of the start.
        self._agreed, self._agreed_id = make_encoding(mine[chosen]), chosen
        return chosen, self._agreed

    def receive(self, extension_id: int) -> Encoding:
        """Return the encoding of the bytes behind the peer's switchEncoding. Raises
        ProtocolError for one that is not allowed.
        """
        encoding, self._agreed = self._agreed, None  # the second one finds None
        if encoding is None or extension_id != self._agreed_id:
            raise refuse_switch(extension_id)
        return encoding
