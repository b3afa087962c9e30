"""A stream or a request by name that a client opens on its peer:
checked and prepared without I/O.
"""

from typing import Any, Final, Unpack

import attrs

from penstock.api import Limits, Model, PositionedName, UsageError, shown
from penstock.client._answer import AnswerBuffer
from penstock.client._client_peer import PeerEndpoint
from penstock.client._options import StreamOptions
from penstock.client._settings import ClientSettings, EndpointSettings
from penstock.client._unknown_options import refuse_unknown
from penstock.reader import StreamBuffer
from penstock.session import target_of
from penstock.spi import Serializer, encode_payload, load_answer, resolve_serializer

STREAM_OPTIONS: Final = frozenset({"type", "demand", *StreamOptions.__annotations__})
"""The keywords of `subscribe`."""


@attrs.frozen
class StreamOpening:
    """A subscription that is not opened yet. Its arguments are checked."""

    name: str
    demand: int
    loader: Serializer | None
    window_bytes: int
    max_element: int
    goes_on: bool
    """The stream goes on over the next connection, if its publisher has positions."""

    def bound_bytes(self, reader: StreamBuffer[Any]) -> None:
        """Let bytes bound the demand of `reader`.

        Before on_subscribe, in which it requests its first elements: it asks for a few while it
        knows no size.
        """
        reader.count_bytes(self.window_bytes, self.max_element)


@attrs.frozen
class RequestOpening:
    """A request by name that is not sent yet. Its arguments are checked."""

    name: str
    payload: bytes | None
    loader: Serializer | None

    def needs_hello(self, endpoint: PeerEndpoint) -> bool:
        """Return whether the form of the request depends on the extensions of the peer,
        which are not known yet.
        """
        return (
            self.payload is not None
            and Model.RESPONSE not in endpoint.session.channel.dialect.models
            and endpoint.opened_at is None
        )

    def open(self, endpoint: PeerEndpoint, answer: AnswerBuffer) -> None:
        """Send the request. Call it when the outbox has room. Raises UsageError if the peer
        lacks the extension *requests*.
        """
        endpoint.subscribe(target_of(endpoint.session.channel, self.name, self.payload), answer)

    def value(self, data: bytes) -> Any:
        """Return the value of the answer."""
        return data if self.loader is None else load_answer(self.loader, self.name, data)


def stream_opening(
    settings: ClientSettings,
    name: str,
    *,
    kind: Any = None,
    demand: int,
    **options: Unpack[StreamOptions],
) -> StreamOpening:
    """Check the arguments of `subscribe`. Raises UsageError."""
    limits = settings.limits
    target, window_bytes = checked_stream(name, limits, options)
    loader = resolve_serializer(settings.registry, options.get("serializer"), kind)
    return StreamOpening(
        target,
        demand,
        loader,
        window_bytes,
        limits.max_element,
        goes_on=settings.reconnect is not None,
    )


def checked_stream(
    name: str, limits: Limits, options: StreamOptions, *, call: str = "subscribe()"
) -> tuple[str, int]:
    """Return the name with its places, and how many bytes may be asked for and unread.

    Checked at the call, whose traceback shows the line of the mistake. Raises UsageError.
    """
    if options:
        refuse_unknown(call, options, STREAM_OPTIONS)
    check_name(name, limits)
    start, stop = options.get("start"), options.get("stop")
    if not start is stop is None:
        name = PositionedName(name, start, stop)
        check_name(name, limits)
    return name, check_window(options.get("window_bytes"), limits)


def request_opening(
    settings: EndpointSettings,
    name: str,
    payload: object,
    *,
    kind: Any,
    serializer: str | Serializer | None,
) -> RequestOpening:
    """Check the arguments of `request`. Raises UsageError."""
    loader = resolve_serializer(settings.registry, serializer, kind)
    data = encode_payload(settings.registry, serializer, payload)
    check_name(name, settings.limits)
    return RequestOpening(name, data, loader)


def check_name(name: object, limits: Limits) -> None:
    """Raise UsageError for a name that the peer would refuse: there it costs the whole
    connection, here only the call.
    """
    if not isinstance(name, str):
        raise UsageError(f"{shown(name)} cannot be a publisher's name: give a str")
    if not name:
        raise UsageError("the name is empty; give the publisher's name")
    try:
        size = len(name.encode())
    except UnicodeEncodeError:
        raise UsageError(
            f"{name!a} cannot be a publisher's name: it holds half a character, which has no UTF-8"
        ) from None
    if size > limits.max_name:
        raise UsageError(
            f"a publisher's name of {size} bytes; {limits.max_name} is the most (Limits.max_name)"
        )


def check_window(window_bytes: int | None, limits: Limits) -> int:
    """Return the bytes that a stream may have asked for and unread.
    Raises UsageError for a number below 1.
    """
    if window_bytes is None:
        return limits.window_bytes
    # `type`, and not isinstance: True is an int for Python, and would be a window of one byte.
    if type(window_bytes) is not int or window_bytes < 1:
        raise UsageError(
            f"window_bytes={shown(window_bytes)}; give how many bytes of elements may be asked for "
            "and unread at a time, at least 1"
        )
    return window_bytes
