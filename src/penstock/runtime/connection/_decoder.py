"""From the bytes of a peer to elements: with the serializer that the program has chosen, or with
the publisher's announced one.

Rules of this file:

* A publisher is announced before its stream begins, if both sides have the extension *content*. So
  the choice is made once, before the first element, and a stream of bytes has no object of this
  file after its acceptance.
* A name that the peer announces selects one of the serializers that are installed here,
  and nothing else.
"""

from collections.abc import Sequence
from contextlib import suppress
from types import NoneType
from typing import Any, Final

from penstock.api import Subscriber, Subscription, UsageError, on_next_many_of
from penstock.core import ElementRelay, Relay
from penstock.spi import Registry, Serializer, load_error, loaded_none

BYTES: Final = "bytes"
"""The serializer that changes nothing."""

SHOWN_CHARACTERS: Final = 60
"""How much of an announced name an error shows."""


def _shown(name: str | None) -> str:
    # The peer's text: a terminal obeys control characters.
    return ascii((name or "")[:SHOWN_CHARACTERS])


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
        # `penstock cat` shows texts unchanged: its rules say which names stay bytes.
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


class AwaitingSerializer(Relay[Any]):
    """Stands above a subscriber until the stream is announced, or begins without that."""

    __slots__ = ("_announced",)

    def __init__(self, subscriber: Subscriber[Any], announced: AnnouncedSerializer) -> None:
        super().__init__(subscriber)
        self._announced = announced

    def on_content(self, serializer: str | None, _schema: str, /) -> Subscriber[Any]:
        """Return the subscriber that takes the place of this one."""
        # Forgotten: this object has done its work.
        upstream, subscriber = self._upstream, self._detach()
        if upstream is None or subscriber is None:
            return self  # cancelled meanwhile
        try:
            found = self._announced.find(serializer)
        except UsageError as error:
            # Upstream first: the peer is told to stop, and nothing that it sends could be read.
            upstream.cancel()
            subscriber.on_error(error)
            return subscriber
        return subscriber if found is None else Decoder.behind(upstream, subscriber, found)

    def on_subscribe(self, subscription: Subscription, /) -> None:
        self._upstream = subscription
        # The subscriber gets the subscription itself:
        # this object will not be there when it requests more.
        if self._subscriber is not None:
            self._subscriber.on_subscribe(subscription)


class Decoder(ElementRelay[bytes]):
    """Turns bytes from the peer into elements. A subscriber with `load_with` gets the bytes, and
    has them loaded when they are read.
    """

    __slots__ = ("_is_late", "_position", "_serializer")

    def __init__(self, subscriber: Subscriber[Any], serializer: Serializer) -> None:
        super().__init__(subscriber)
        self._serializer = serializer
        self._position = 0  # of the next element that is loaded
        load_with = getattr(subscriber, "load_with", None)
        self._is_late = load_with is not None
        if load_with is not None:
            load_with(self.load)

    @classmethod
    def behind(
        cls, upstream: Subscription, subscriber: Subscriber[Any], serializer: Serializer
    ) -> "Decoder":
        """Return one for a subscriber that has its subscription already: it goes on with that."""
        decoder = cls(subscriber, serializer)
        decoder._upstream = upstream  # of this class
        return decoder

    def on_content(self, serializer: str | None, _schema: str, /) -> Subscriber[Any]:
        """Compare the serializer of the program with that of the publisher; None if the
        publisher announces none. Return this object.
        """
        subscriber, chosen = self._subscriber, self._serializer.name
        # Bytes may be anything. Only two formats that both are named can contradict each other.
        if serializer not in (None, BYTES, chosen) and subscriber is not None:
            self.cancel()
            subscriber.on_error(
                UsageError(
                    f"this side reads the stream with the serializer {chosen!r}, and the "
                    f"publisher announces {_shown(serializer)}; leave "
                    "serializer= and type= out to take what is announced, or give "
                    "serializer='bytes' for the bytes as they are"
                )
            )
        return self

    def on_element_size(self, size: int, /) -> None:
        """Do nothing: it is the size of the bytes, and the subscriber gets other elements."""

    def on_next(self, element: bytes, /) -> None:
        # Elements that were under way at the cancel still arrive (rule 2.8).
        subscriber = self._subscriber
        if subscriber is None:
            return
        if self._is_late:
            subscriber.on_next(element)
            return
        loaded, error = self._load_each((element,))
        if error is not None:
            subscriber.on_error(error)
        else:
            subscriber.on_next(loaded[0])

    def on_next_many(self, elements: Sequence[bytes], /) -> None:
        """Take elements that arrived together."""
        # One call for the whole decoded run: single calls from here on would undo what the decoder
        # saved.
        on_next_many = on_next_many_of(self._subscriber)
        if on_next_many is None:
            for element in elements:
                self.on_next(element)
            return
        if self._is_late:
            on_next_many(elements)
            return
        subscriber = self._subscriber
        loaded, error = self.load(elements)
        # If one failed, the elements before it are delivered, as with single calls of on_next.
        if loaded:
            on_next_many(loaded)
        if error is not None and subscriber is not None:
            subscriber.on_error(error)

    def load(self, elements: Sequence[bytes], /) -> tuple[list[Any], Exception | None]:
        """Return the loaded elements, and None. If one cannot be loaded, cancel, and return those
        before it, and its error.
        """
        loaded: Any = None
        # boundary: the serializer may be a plugin. If it raises, or returns no list, or not one
        # value for each element, the elements are loaded one by one, to find the failing one.
        with suppress(Exception):
            loaded = self._serializer.loads_many(elements)
            # A copy, because an object of a subclass may change behind this call.
            if type(loaded) is not list and isinstance(loaded, list):
                loaded = list(loaded)
        # Types and not `None in loaded`: that compares each element,
        # and the comparison of a dataclass takes 0.2 us.
        if (
            type(loaded) is not list
            or len(loaded) != len(elements)
            or NoneType in set(map(type, loaded))
        ):
            return self._load_each(elements)
        self._position += len(loaded)
        return loaded, None

    def _load_each(self, elements: Sequence[bytes]) -> tuple[list[Any], Exception | None]:
        loads, loaded, error = self._serializer.loads, [], None
        for element in elements:
            try:
                value = loads(element)
            except Exception as failure:  # boundary: the serializer may be a plugin
                error = load_error(failure, self._serializer, self._position, len(element))
                break
            # A value that is read as None would break rule 2.13 at the subscriber. So the stream
            # fails, and names the element.
            if value is None:
                error = loaded_none(self._serializer, self._position, len(element))
                break
            self._position += 1
            loaded.append(value)
        if error is not None:
            # The peer is told to stop first: nothing that follows could be read either.
            self.cancel()
        return loaded, error
