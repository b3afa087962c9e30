"""The driver's half of a connection:
which partitions the streams have, how far they go, and the digest of single elements.

Rules of this file:

* One connection for each query, made at the first use. A lost one is made again, and its publisher
  may then be another process: `epoch` counts the connections, so that the digests are examined
  again.
* A poll is one request for each stream, and one for each 512 bytes of names of partitions whose
  digests are asked for. They are sent together. If nothing is new, the server holds the request of
  one stream until there is, for `longPollMs`.
"""

import hashlib
import json
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final, TypeVar

from penstock.api import (
    AuthRefused,
    ConnectionLost,
    ProtocolError,
    PublisherFailed,
    Rejected,
    UsageError,
    shown,
)
from penstock.blocking import Peer
from penstock_spark._client import ProcessSettings
from penstock_spark._connection import ServerConnection
from penstock_spark.source._names import digests_names, positions_name, range_name, time_name
from penstock_spark.source._offsets import DIGEST_BYTES, Facts, Key

T = TypeVar("T")

DESCRIPTION: Final = "penstock/describe"
"""The name under which a service describes itself."""

MOST_LOSSES: Final = 3
"""Connections that may be lost while they are asked one question."""

SAMPLE: Final = 64
"""Elements that are read for a mean size."""


def digest_of(element: bytes) -> str:
    """Return the digest of an element:
    64 bits of its SHA-256, because the checkpoint has one for each partition.
    """
    return hashlib.sha256(element).digest()[:DIGEST_BYTES].hex()


class QueryServer:
    """The server of a query, as the driver asks it."""

    def __init__(self, uri: str, client: ProcessSettings, subscription: str | None = None) -> None:
        self._uri = uri
        self._client = client
        self._subscription = subscription
        self._connection = ServerConnection(client)
        self._turn = 0

    @property
    def epoch(self) -> int:
        """The number of connections that were made."""
        return self._connection.made

    def names(self, pattern: str) -> tuple[str, ...]:
        """Return the names of the published logs that match `pattern`, by the description of the
        server. Raises UsageError without one.
        """
        try:
            entries = self._ask(
                lambda peer: _read_all(peer, DESCRIPTION, "json", self._client.read_timeout)
            )
        except (Rejected, PublisherFailed):
            raise UsageError(
                f"option streamPattern: the server at {self._uri} does not describe itself, or "
                "not to you; it does with penstock.Service(describe=True). Or give streams="
            ) from None
        found = [
            entry.get("name")
            for entry in entries
            if isinstance(entry, dict) and entry.get("positions") is True
        ]
        return tuple(
            sorted(
                name
                for name in found
                if isinstance(name, str) and "{" not in name and re.fullmatch(pattern, name)
            )
        )

    def facts(
        self, streams: Sequence[str], *, after: Mapping[Key, int] | None = None, wait: float = 0.0
    ) -> dict[Key, Facts]:
        """Return what the server keeps of all partitions of `streams`. With `after` and `wait`
        it waits until something is new.
        """
        after = {} if after is None else after
        found = self._facts_of_all(streams) if len(streams) > 1 or not wait else {}
        if not streams or any(facts.latest > after.get(key, -1) for key, facts in found.items()):
            return found
        # The server holds the question about one stream. They take turns.
        self._turn += 1
        stream = streams[self._turn % len(streams)]
        own = {
            partition: position for (name, partition), position in after.items() if name == stream
        }
        if wait and own:
            name = positions_name(stream, own, wait, self._subscription)
            return found | self._facts_of(stream, name, wait)
        return found or self._facts_of_all(streams)

    def facts_of_some(self, streams: Sequence[str]) -> dict[Key, Facts]:
        """Return what the server keeps of those of `streams` that it has."""
        found: dict[Key, Facts] = {}
        with suppress(NoPositions):
            return self._facts_of_all(streams)
        for stream in streams:
            with suppress(NoPositions):
                found |= self._facts_of(
                    stream, positions_name(stream, subscription=self._subscription)
                )
        return found

    def has_positions(self, stream: str) -> bool:
        """True if the publisher is a log. False if it does not exist; the task that reads it
        reports that.
        """
        try:
            answer = self._ask(
                lambda peer: peer.request(positions_name(stream), timeout=self._client.read_timeout)
            )
            return bool(_facts(stream, answer))
        except (Rejected, PublisherFailed, ProtocolError):
            return False

    def digests(self, places: Mapping[Key, int]) -> dict[Key, str]:
        """Return the digest of the element before each position; an empty text if the publisher
        does not have it.
        """
        of_streams: dict[str, dict[str, int]] = {}
        for (stream, partition), position in places.items():
            of_streams.setdefault(stream, {})[partition] = position
        names = [
            (stream, name)
            for stream, own in of_streams.items()
            for name in digests_names(stream, own, self._subscription)
        ]
        found = dict.fromkeys(places, "")
        for (stream, _), answer in zip(
            names, self._ask_many([name for _, name in names]), strict=True
        ):
            found.update(
                {(stream, name): digest for name, digest in _digests(stream, answer).items()}
            )
        # A comma separates partitions in such a name.
        for (stream, partition), position in places.items():
            if "," in partition:
                found[stream, partition] = self._digest(stream, partition, position)
        return found

    def positions_at(self, streams: Sequence[str], time: float) -> dict[Key, int]:
        """Return, for all partitions of `streams`, the position of the first element of a time or
        later. Raises UsageError for a server that knows no times.
        """
        names = [time_name(stream, time, self._subscription) for stream in streams]
        found: dict[Key, int] = {}
        try:
            for stream, answer in zip(streams, self._ask_many(names), strict=True):
                value = json.loads(answer)
                found |= {(stream, partition): int(each["at"]) for partition, each in value.items()}
        except (Rejected, PublisherFailed, ValueError, TypeError, KeyError) as refused:
            raise UsageError(
                f"{self._uri} does not give positions of a time: {refused}. A penstock that knows "
                "no times of logs has to be updated; or give startingOffsets and endingOffsets"
            ) from refused
        return found

    def mean_size(self, stream: str, partition: str, start: int, stop: int) -> float:
        """Return the mean size of the first elements of a range."""
        elements = self._elements(stream, partition, start, min(stop, start + SAMPLE))
        return sum(map(len, elements)) / len(elements)

    def close(self) -> None:
        """Leave the connection."""
        self._connection.close()

    # --- inside

    def _facts_of(self, stream: str, name: str, wait: float = 0.0) -> dict[Key, Facts]:
        try:
            answer = self._ask(
                lambda peer: peer.request(name, timeout=self._client.read_timeout + wait)
            )
        except (Rejected, PublisherFailed) as refused:
            raise no_positions(stream, self._uri, refused) from refused
        return _facts(stream, answer)

    def _facts_of_all(self, streams: Sequence[str]) -> dict[Key, Facts]:
        names = [positions_name(stream, subscription=self._subscription) for stream in streams]
        try:
            answers = self._ask_many(names)
        except (Rejected, PublisherFailed):
            # One after the other: the error says which one it is.
            return {
                key: facts
                for stream, name in zip(streams, names, strict=True)
                for key, facts in self._facts_of(stream, name).items()
            }
        return {
            key: facts
            for stream, answer in zip(streams, answers, strict=True)
            for key, facts in _facts(stream, answer).items()
        }

    def _digest(self, stream: str, partition: str, position: int) -> str:
        try:
            [element] = self._elements(stream, partition, position - 1, position)
        except (Rejected, PublisherFailed, ProtocolError):
            return ""
        return digest_of(element)

    def _ask_many(self, names: Sequence[str]) -> list[bytes]:
        seconds = self._client.read_timeout
        return self._ask(lambda peer: peer.request_many(names, timeout=seconds)) if names else []

    def _elements(self, stream: str, partition: str, start: int, stop: int) -> list[bytes]:
        name = range_name(stream, partition, start, stop, self._subscription)
        elements = self._ask(lambda peer: _read_all(peer, name, None, self._client.read_timeout))
        if len(elements) != stop - start:
            raise ProtocolError(f"{self._uri} sent {len(elements)} elements for {name}")
        return elements

    def _ask(self, call: Callable[[Peer], T]) -> T:
        """Call `call` with the connection.
        Raises UsageError for credentials that the server refuses.
        """
        try:
            return self._ask_again(call)
        except AuthRefused as refused:
            raise self._client.refused(self._uri, refused) from refused

    def _ask_again(self, call: Callable[[Peer], T]) -> T:
        """Call `call`, and again with a new connection if this one was lost: it may have been idle
        for too long, and a server that is being killed may have accepted the next one.
        """
        losses = 0
        while True:
            peer = self._connection.peer(self._uri)  # its attempts are penstock.client.retries
            try:
                return call(peer)
            except ConnectionLost:
                self.close()
                losses += 1
                if losses == MOST_LOSSES:
                    raise


def no_positions_anywhere(stream: str, uris: Sequence[str]) -> UsageError:
    """Return the error about a publisher that no server has."""
    return UsageError(
        f"none of the servers {', '.join(uris)} gives positions of {shown(stream)}: none has a "
        "publisher of this name that you may read and that keeps its elements"
    )


class NoPositions(UsageError):
    """A publisher keeps no elements, or does not exist."""


def no_positions(stream: str, uri: str, refused: Exception) -> NoPositions:
    """Return the error about a publisher that keeps no elements, or does not exist."""
    return NoPositions(
        f"{uri} gives no positions of {shown(stream)}: {refused}. Either it has no publisher of "
        "this name that you may read, or that "
        "publisher keeps no elements, so a batch could not be read again. Let penstock.Spool "
        "write its stream to a log and read that log; or say delivery=atMostOnce if elements may "
        "be lost"
    )


def _read_all(peer: Peer, name: str, serializer: str | None, timeout: float) -> list[Any]:
    with peer.subscribe(name, serializer=serializer, timeout=timeout) as stream:
        return [*stream]


def _digests(stream: str, answer: bytes) -> dict[str, str]:
    try:
        return {
            partition: _digest(each["digest"]) for partition, each in json.loads(answer).items()
        }
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        raise ProtocolError(
            f"the server sent {shown(answer)} as digests of elements of {shown(stream)}"
        ) from None


def _digest(text: str) -> str:
    """Return the digits of a digest; the text is empty if the server has no such element. Raises
    ValueError for another text: an offset has no room for it.
    """
    digest = bytes.fromhex(text)
    if len(digest) not in (0, DIGEST_BYTES):
        raise ValueError("a digest of another length")
    return digest.hex()


def _facts(stream: str, answer: bytes) -> dict[Key, Facts]:
    try:
        value = json.loads(answer)
        found = {
            (stream, partition): Facts(
                int(each["earliest"]), int(each["latest"]), tuple(map(str, each["addresses"]))
            )
            for partition, each in value.items()
        }
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        raise ProtocolError(
            f"the server sent {shown(answer)} as the positions of {shown(stream)}"
        ) from None
    if not all(0 <= facts.earliest <= facts.latest for facts in found.values()):
        raise ProtocolError(
            f"the server sent positions of {shown(stream)} that contradict each other: "
            f"{shown(answer)}"
        )
    return found
