"""The parameter called ``payload`` of a function: what a request has sent with its name.

A payload that does not decode is the peer's fault: the peer gets the reason, and nothing is
reported here. If the code of the payload's class raises, that is a fault of this side.
"""

import inspect
from collections.abc import Callable
from typing import Any, Final

from penstock.api import ContentTypes, ProtocolError, UsageError
from penstock.runtime.service._cannot_open import UnfitPayload, UnreadablePayload
from penstock.runtime.service._function_annotations import Annotations, open_parameters
from penstock.runtime.service._text_parameters import without_none
from penstock.spi import (
    PeerIdentity,
    Registry,
    Serializer,
    TypeCodeFailed,
    serializer_for,
)

PAYLOAD: Final = "payload"
"""The name of the parameter that gets the payload."""


class PayloadParameter:
    """Whether a function takes a payload, whether it needs one, and of which type."""

    __slots__ = ("_kind", "_pattern", "_serializer", "is_needed", "is_taken")

    def __init__(
        self,
        pattern: str,
        function: Callable[..., Any],
        where: str,
        serializer: str | Serializer | None,
    ) -> None:
        """Raises UsageError for a payload that is to be the identity of the peer."""
        given = open_parameters(function, where).get(PAYLOAD)
        self._pattern = pattern
        self._serializer = serializer
        self.is_taken: bool = given is not None
        self.is_needed: bool = given is not None and given.default is inspect.Parameter.empty
        # ``| None`` says that the payload may be left out.
        # It does not belong to the type that is sent.
        self._kind = without_none(Annotations(function, where).of(PAYLOAD))
        # Nothing else would notice the mistake:
        # the identity would be read from the bytes of the peer.
        if self._kind is PeerIdentity:
            raise UsageError(
                f"{where}: the parameter {PAYLOAD!r} gets the payload; give the one for the "
                "PeerIdentity another name"
            )

    def check(self, payload: bytes | None) -> None:
        """Raise UnfitPayload for a payload that is missing or not taken; None: none was sent."""
        # Told apart from a wrong name: the caller has found the request,
        # and must change what it sends.
        if payload is None and self.is_needed:
            raise UnfitPayload(f"{self._pattern} needs a payload, and none was sent")
        # Refused, and not dropped: an answer would look as if the payload had been used.
        if payload is not None and not self.is_taken:
            raise UnfitPayload(
                f"{self._pattern} takes no payload, and one of {len(payload)} bytes was sent"
            )

    def reader(self, registry: Registry, media_type: str | None = None) -> Serializer | None:
        """Return what reads payloads; None for bytes. Raises UsageError for a serializer that is
        not installed.
        """
        if not self.is_taken:
            return None
        return serializer_for(registry, self._serializer, self._kind, media_type)

    def load(self, reader: Serializer | None, payload: bytes) -> object:
        """Return the value of a payload. Raises UnreadablePayload."""
        if reader is None:
            return payload
        try:
            return reader.loads(payload)
        # The code of the payload's class has raised:
        # a fault of this side, which is reported as one of the handler.
        except TypeCodeFailed:
            raise
        except (ProtocolError, UsageError) as error:
            raise UnreadablePayload(
                f"the payload of {self._pattern}, {len(payload)} bytes, cannot be read by the "
                f"serializer {reader.name!r}: {error}"
            ) from error


def load_element(reader: Serializer, pattern: str, element: bytes) -> Any:
    """Return the value of an element that a peer has sent on a channel.
    Raises UnreadablePayload.
    """
    try:
        return reader.loads(element)
    except TypeCodeFailed:
        raise
    except (ProtocolError, UsageError) as error:
        raise UnreadablePayload(
            f"an element for {pattern}, {len(element)} bytes, cannot be read by the serializer "
            f"{reader.name!r}: {error}"
        ) from error


def media_type_of(types: ContentTypes | None) -> str | None:
    """Return the MIME type of the data of a request, if its protocol names one."""
    return None if types is None else types.data
