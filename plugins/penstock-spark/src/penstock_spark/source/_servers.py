"""The servers of a query, as the driver asks them: each has some of the partitions.

Rules of this file:

* Of a partition that several servers have, those count that have it furthest. It is read from each
  of them.
* A server that is away is waited for. With `failOnDataLoss=false` it is left out while others
  answer, and asked again after `PAUSE` seconds, once. Its partitions keep their positions, so what
  it has is read when it is back.
"""

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from time import monotonic
from typing import Final, TypeVar

from penstock.api import ConnectionLost
from penstock_spark.source._offsets import Facts, Key
from penstock_spark.source._publisher import QueryServer, no_positions_anywhere
from penstock_spark.source._settings import SourceSettings

_log: Final = logging.getLogger("penstock.spark")

T = TypeVar("T")

PAUSE: Final = 10.0
"""Seconds after which a server that was away is asked again."""


class QueryServers:
    """All servers of a query."""

    def __init__(self, settings: SourceSettings, clock: Callable[[], float] = monotonic) -> None:
        self._settings = settings
        self._clock = clock
        skips = len(settings.uris) > 1 and not settings.fail_on_loss
        # A server that may be left out is not waited for.
        client = settings.client._replace(retries=1) if skips else settings.client
        self._skips = skips
        self._servers = {
            uri: QueryServer(uri, client, settings.subscription) for uri in settings.uris
        }
        self._away: dict[str, float] = {}
        self._owners: dict[Key, QueryServer] = {}
        self._turn = 0

    @property
    def epoch(self) -> int:
        """The number of connections that were made."""
        return sum(server.epoch for server in self._servers.values())

    @property
    def is_complete(self) -> bool:
        """Whether all servers have answered the last question."""
        return not self._away

    def names(self, pattern: str) -> tuple[str, ...]:
        """Return the names of the published logs that match `pattern`. Raises UsageError for a
        server that does not describe itself.
        """
        found = self._ask(lambda server: set(server.names(pattern)))
        return tuple(sorted(set().union(*found.values())))

    def facts(
        self, streams: Sequence[str], *, after: Mapping[Key, int] | None = None, wait: float = 0.0
    ) -> dict[Key, Facts]:
        """Return what the servers keep of all partitions of `streams`. With `after` and `wait` one
        of them waits until something is new.
        """
        if len(self._servers) == 1:
            [server] = self._servers.values()
            found = server.facts(streams, after=after, wait=wait)
            self._owners = dict.fromkeys(found, server)
            return found
        answers = self._ask(lambda server: server.facts_of_some(streams))
        merged = self._merged(answers)
        missing = set(streams) - {stream for stream, _ in merged}
        if missing and self.is_complete:
            raise no_positions_anywhere(min(missing), self._settings.uris)
        seen = {} if after is None else after
        if wait and not any(each.latest > seen.get(key, -1) for key, each in merged.items()):
            return merged | self._waited(answers, seen, wait)
        return merged

    def digests(self, places: Mapping[Key, int]) -> dict[Key, str]:
        """Return the digest of the element before each position, as `QueryServer.digests`."""
        found = dict.fromkeys(places, "")
        for server in set(self._owners.values()):
            own = {key: place for key, place in places.items() if self._owners.get(key) is server}
            if own:
                found |= server.digests(own)
        return found

    def positions_at(self, keys: Iterable[Key], time: float) -> dict[Key, int]:
        """Return the position of the first element of a time or later of each partition."""
        owned: dict[QueryServer, list[Key]] = {}
        for key in keys:
            owned.setdefault(self._owners[key], []).append(key)
        found: dict[Key, int] = {}
        for server, own in owned.items():
            places = server.positions_at(sorted({stream for stream, _ in own}), time)
            found |= {key: places[key] for key in own}
        return found

    def mean_size(self, stream: str, partition: str, start: int, stop: int) -> float:
        """Return the mean size of the first elements of a range."""
        return self._owners[stream, partition].mean_size(stream, partition, start, stop)

    def close(self) -> None:
        """Leave the connections."""
        for server in self._servers.values():
            server.close()

    # --- inside

    def _ask(self, call: Callable[[QueryServer], T]) -> dict[str, T]:
        """Call `call` with each server. Raises ConnectionLost for one that is away and may not be
        left out, or if none answers.
        """
        found: dict[str, T] = {}
        lost: ConnectionLost | None = None
        for uri, server in self._servers.items():
            if self._away.get(uri, 0.0) > self._clock():
                continue
            try:
                found[uri] = call(server)
                self._away.pop(uri, None)
            except ConnectionLost as error:
                if not self._skips:
                    raise
                lost = error
                if uri not in self._away:
                    _log.warning(
                        "%s is away: %s; going on with the other servers, because "
                        "failOnDataLoss=false. What it has is read when it is back",
                        uri,
                        error,
                    )
                self._away[uri] = self._clock() + PAUSE
        if not found:
            self._away.clear()
            raise lost or ConnectionLost(f"none of {', '.join(self._servers)} answers")
        return found

    def _merged(self, answers: Mapping[str, Mapping[Key, Facts]]) -> dict[Key, Facts]:
        merged: dict[Key, Facts] = {}
        owners: dict[Key, QueryServer] = {}
        for uri, found in answers.items():
            for key, facts in found.items():
                own = facts._replace(addresses=facts.addresses or (uri,))
                merged[key] = _both(merged[key], own) if key in merged else own
                if merged[key] is own:
                    owners[key] = self._servers[uri]
        self._owners = owners
        return merged

    def _waited(
        self, answers: Mapping[str, Mapping[Key, Facts]], after: Mapping[Key, int], wait: float
    ) -> dict[Key, Facts]:
        """Let one server hold the question. They take turns."""
        self._turn += 1
        uris = [uri for uri in answers if answers[uri]]
        uri = uris[self._turn % len(uris)]
        own = sorted({stream for stream, _ in answers[uri]})
        seen = {key: place for key, place in after.items() if key in answers[uri]}
        found = self._ask_one(uri, own, seen, wait)
        return self._merged({**answers, uri: found})

    def _ask_one(
        self, uri: str, streams: Sequence[str], after: Mapping[Key, int], wait: float
    ) -> dict[Key, Facts]:
        try:
            return self._servers[uri].facts(streams, after=after, wait=wait)
        except ConnectionLost:
            if not self._skips:
                raise
            return {}  # the next poll says it


def _both(one: Facts, other: Facts) -> Facts:
    """Return the facts of a partition that two servers have."""
    if one.latest != other.latest:
        return max(one, other, key=lambda facts: facts.latest)
    addresses = tuple(dict.fromkeys((*one.addresses, *other.addresses)))
    return Facts(max(one.earliest, other.earliest), one.latest, addresses)
