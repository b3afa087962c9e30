"""From the bytes of a peer to elements: with the serializer that the program has chosen, or with
the one that the publisher announces.

Rules of this file:

* A publisher is announced before its stream begins, if both sides have the extension *content*. So
  the choice is made once, before the first element.
* A stream loads its elements itself, when they are read. So no object of this file stands between
  it and its peer after the choice.
* A name that the peer announces selects one of the serializers that are installed here,
  and nothing else.
"""

from collections.abc import Sequence
from functools import partial
from typing import Any, Final

from penstock.api import Subscriber, Subscription, UsageError, on_next_many_of
from penstock.core import ElementRelay, Relay
from penstock.spi import Registry, Serializer, load_elements

BYTES: Final = "bytes"
"""The serializer that changes nothing."""

SHOWN_CHARACTERS: Final = 60
"""How much of an announced name an error shows."""


def _shown(name: str | None) -> str:
    # The peer's text: a terminal obeys control characters.
    return ascii((name or "")[:SHOWN_CHARACTERS])


def check_announced(chosen: str, announced: str | None) -> None:
    """Raise UsageError if the publisher announces another serializer than this side has chosen.
    None: it announces none.
    """
    # Bytes may be anything. Only two formats that both are named can contradict each other.
    if announced not in (None, BYTES, chosen):
        raise UsageError(
            f"this side reads the stream with the serializer {chosen!r}, and the publisher "
            f"announces {_shown(announced)}; leave serializer= and type= out to take what is "
            "announced, or give serializer='bytes' for the bytes as they are"
        )


class AnnouncedSerializer(Serializer):
    """In the place of a serializer: the elements are read as their publisher announces, or with
    `otherwise` if it announces nothing.

    Elements whose serializer is in `raw` stay bytes.
    """

    name = "announced"

    def __init__(
        self,
        registry: Registry,
        *,
        otherwise: Serializer | None = None,
        raw: frozenset[str] = frozenset({BYTES}),
    ) -> None:
        self.registry: Registry = registry
        self.otherwise: Serializer | None = otherwise
        self.raw: frozenset[str] = raw

    def find(self, name: str | None) -> Serializer | None:
        """Return the serializer for elements that are announced as `name`, or None
        if they stay bytes. Raises UsageError.
        """
        # Bytes say nothing about their format, so the program's own choice stays.
        if name is None or (name == BYTES and self.otherwise is not None):
            return self.otherwise
        # `penstock cat` shows texts as they are: its rules say which names stay bytes.
        if name in self.raw:
            return None
        try:
            return self.registry.serializer(name)
        except UsageError:
            known = ", ".join(sorted(self.registry.serializers))
            raise UsageError(
                f"the publisher announces the serializer {_shown(name)}, which is not installed "
                f"here; there is: {known}. Install its plugin, or give serializer='bytes' for the "
                "bytes as they are"
            ) from None

    def dumps(self, element: object, /) -> bytes:
        raise UsageError("a publisher is not announced to itself; name its serializer")

    def loads(self, data: bytes, /) -> object:
        return data if self.otherwise is None else self.otherwise.loads(data)


def decoded(
    subscriber: Subscriber[Any], serializer: Serializer, upstream: Subscription | None = None
) -> Subscriber[Any]:
    """Return what takes the bytes of elements for `subscriber`: a stream itself, which loads them
    when they are read, or a `Decoder`.

    `upstream` is the subscription that the subscriber has already.
    """
    load_with = getattr(subscriber, "load_with", None)
    if load_with is not None:
        load_with(partial(load_elements, serializer))
        return subscriber
    return Decoder(subscriber, serializer, upstream)


class AwaitingSerializer(Relay[Any]):
    """Placeholder until the serializer is known.
    Then the subscriber itself, or a `Decoder` above it, takes its place.
    """

    __slots__ = ("_serializer",)

    def __init__(self, subscriber: Subscriber[Any], serializer: Serializer) -> None:
        """`serializer` is the one that the program has chosen, or an `AnnouncedSerializer`."""
        if not isinstance(serializer, AnnouncedSerializer):
            subscriber = decoded(subscriber, serializer)
        super().__init__(subscriber)
        self._serializer = serializer

    def on_content(self, serializer: str | None, _schema: str, /) -> Subscriber[Any]:
        """Learn the serializer of the publisher, None if it announces none.
        Return the subscriber that takes the place of this one.
        """
        # Forgotten: this object has done its work.
        upstream, subscriber = self._upstream, self._detach()
        if upstream is None or subscriber is None:
            return self  # cancelled meanwhile
        chosen = self._serializer
        try:
            if isinstance(chosen, AnnouncedSerializer):
                found = chosen.find(serializer)
                return subscriber if found is None else decoded(subscriber, found, upstream)
            check_announced(chosen.name, serializer)
        except UsageError as error:
            # Upstream first: the peer is told to stop, and nothing that it sends could be read.
            upstream.cancel()
            subscriber.on_error(error)
        return subscriber

    def on_subscribe(self, subscription: Subscription, /) -> None:
        self._upstream = subscription
        # The subscriber gets the subscription itself:
        # this object will not be there when it requests more.
        if self._subscriber is not None:
            self._subscriber.on_subscribe(subscription)


class Decoder(ElementRelay[bytes]):
    """Turns bytes from the peer into elements when they arrive,
    for a subscriber that does not load them when they are read.
    """

    __slots__ = ("_position", "_serializer")

    def __init__(
        self,
        subscriber: Subscriber[Any],
        serializer: Serializer,
        upstream: Subscription | None = None,
    ) -> None:
        """`upstream` is the subscription that the subscriber has already."""
        super().__init__(subscriber)
        self._upstream = upstream
        self._serializer = serializer
        self._position = 0  # of the next element

    def on_element_size(self, size: int, /) -> None:
        """Do nothing: it is the size of the bytes, and the subscriber gets other elements."""

    def on_next(self, element: bytes, /) -> None:
        # Elements that were under way at the cancel still arrive (rule 2.8).
        subscriber = self._subscriber
        if subscriber is None:
            return
        loaded, error = self._load((element,))
        if error is not None:
            subscriber.on_error(error)
        else:
            subscriber.on_next(loaded[0])

    def on_next_many(self, elements: Sequence[bytes], /) -> None:
        """Take elements that arrived together."""
        # One call for the whole run, as it was decoded:
        # single calls from here on would undo what the decoder saved.
        subscriber, on_next_many = self._subscriber, on_next_many_of(self._subscriber)
        if on_next_many is None or subscriber is None:
            for element in elements:
                self.on_next(element)
            return
        loaded, error = self._load(elements)
        # The elements before one that fails are delivered, as with single calls of on_next.
        if loaded:
            on_next_many(loaded)
        if error is not None:
            subscriber.on_error(error)

    def _load(self, elements: Sequence[bytes]) -> tuple[list[Any], Exception | None]:
        loaded, error = load_elements(self._serializer, elements, self._position)
        self._position += len(loaded)
        if error is not None:
            # The peer is told to stop first: nothing that follows could be read either.
            self.cancel()
        return loaded, error
