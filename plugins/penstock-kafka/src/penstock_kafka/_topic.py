"""The requests for one topic, on asyncio: its partitions and their ends, fetches by position,
batches to append.

Rules of this file:

* aiokafka does not document these requests, and has a consumer and a producer in their place. Its
  consumer has one position for each partition, and a log has one for each of its readers. Its
  producer tries an append again without an end, and does not say why it fails.
* Kafka answers the requests of a connection one after the other. So a request that waits at the
  broker has another connection: `group`.
* A request that failed for a time is sent again until `timeout` has passed. Each request can be
  repeated: a batch has a number (`Producer`).
* A topic that was deleted and made anew has other elements at the same positions. Before a request
  is sent again the id of the topic is compared. Once it has changed no request is sent any more.
"""

import asyncio
import errno
import ssl
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import suppress
from typing import Any, Final, NamedTuple, TypeVar

from aiokafka import TopicPartition
from aiokafka import errors as kafka
from aiokafka.client import AIOKafkaClient
from aiokafka.conn import collect_hosts, create_conn
from aiokafka.protocol.admin import DescribeConfigsRequest
from aiokafka.protocol.metadata import MetadataRequest
from aiokafka.protocol.offset import OffsetRequest
from aiokafka.protocol.produce import ProduceRequest
from aiokafka.protocol.transaction import InitProducerIdRequest

from penstock.api import LogDamaged
from penstock.logs import Ends
from penstock_kafka._access import KafkaAccess
from penstock_kafka._decode import Aborted
from penstock_kafka._errors import HungUpError, explained, is_temporary
from penstock_kafka._identity import NO_ID, IdentityRequest, identity_of, partitions_in
from penstock_kafka._receive import LargeFetch, receive_into_one_buffer

T = TypeVar("T")

PAUSE: Final = 0.1
"""Seconds before a request that failed is sent again."""

LONGEST_LOOK: Final = 2.0
"""Seconds to find out why a broker was not reached."""

METADATA_AGE: Final = 15_000
"""Milliseconds after which the partitions of a topic are looked up again."""

DEFAULT_BATCH_BYTES: Final = 1_048_588
"""The default of max.message.bytes, for a user who may not read the settings of a topic."""

SETTINGS: Final = ("max.message.bytes", "retention.bytes", "retention.ms", "cleanup.policy")
"""The settings of a topic that a log looks at."""

COMMITTED: Final = 1
"""Isolation: elements of transactions that are open or aborted are not sent."""

WRITTEN: Final = 0
"""Isolation: elements of all transactions count."""

READING: Final = "read"
"""The connections whose answers are large."""

EARLIEST: Final = -2
LATEST: Final = -1

_TOPIC: Final = 2  # the kind of a resource
_NO_LEADER: Final = (None, -1)
_WRITERS: Final = 4  # connections for appends to one broker
_FAILED: Final = (kafka.KafkaError, OSError)


class Answer(NamedTuple):
    """The answer of a broker to a fetch. `ends` are those of the partition."""

    data: bytes | memoryview
    aborted: Aborted
    ends: Ends


class Topic:
    """One topic of a cluster. Used in the loop of asyncio only."""

    def __init__(
        self, brokers: Sequence[str], name: str, access: KafkaAccess, timeout: float
    ) -> None:
        self.name = name
        self.where: str = f"topic {name!r} at {','.join(brokers)}"
        self.timeout = timeout
        self.batch_bytes: int = DEFAULT_BATCH_BYTES
        """Bytes of a record batch, at most: max.message.bytes of the topic."""
        self.settings: dict[str, str] = {}
        """Those of the topic that are named in `SETTINGS`, as far as the user may read them."""
        self._brokers = brokers
        self._access = access
        self._client: AIOKafkaClient | None = None
        self._producer: tuple[int, int] | None = None
        self._producer_turn = asyncio.Lock()
        self.producers: int = 0
        """How many ids of a producer there were. Batches are numbered anew for each."""
        self.damage: str = ""
        """Why the topic has other elements than the ones that were read and appended."""
        self._id = NO_ID
        self._is_missing = False

    async def open(self) -> int:
        """Connect, and return the number of partitions. Raises LogError and UsageError."""
        self._client = client = AIOKafkaClient(
            bootstrap_servers=list(self._brokers),
            request_timeout_ms=int(self.timeout * 1_000),
            metadata_max_age_ms=METADATA_AGE,
            **self._access.options(),
        )
        try:
            async with asyncio.timeout(self.timeout):
                await client.bootstrap()
                # All topics, and not this one: to ask for one by name creates it at a broker with
                # auto.create.topics.enable.
                known = await client.fetch_all_metadata()
                count = len(known.partitions_for_topic(self.name) or ())
                if self.name in known.unauthorized_topics:
                    raise kafka.TopicAuthorizationFailedError(self.name)
                if not count:
                    # Of all topics a broker leaves out those that it does not show.
                    await self._find_id()
                    raise kafka.UnknownTopicOrPartitionError(self.name)
                await client.set_topics([self.name])
                await self._look_at_settings()
                self._id = await self._find_id()
        except _FAILED as error:
            reason = await self._reason() or error
            raise explained(reason, self.where, self.timeout) from error
        return count

    async def _reason(self) -> Exception | None:
        """Return why there is no connection to a broker. The client logs it, and raises that no
        broker answers.
        """
        reason: Exception | None = None
        for host, port, _ in collect_hosts(list(self._brokers)):
            try:
                async with asyncio.timeout(min(self.timeout, LONGEST_LOOK)):
                    connection = await create_conn(host, port, **self._access.options())
                    try:
                        await connection.send(MetadataRequest([]))
                    finally:
                        await connection.close()
            except (kafka.KafkaConnectionError, ConnectionResetError, EOFError) as error:
                reason = HungUpError(*error.args)
            except kafka.KafkaError as error:
                refusal: Exception = error
                if not is_temporary(refusal):
                    return refusal
            except ssl.SSLError as error:
                return error
            except OSError as error:
                # asyncio joins the errors of all addresses of a name into one text.
                is_refused = f"[Errno {errno.ECONNREFUSED}]" in str(error)
                reason = ConnectionRefusedError(*error.args) if is_refused else reason or error
        return None if isinstance(reason, TimeoutError) else reason

    async def aclose(self) -> None:
        """Close the connections."""
        client, self._client = self._client, None
        if client is not None:
            await client.close()

    @property
    def partitions(self) -> int:
        """The number of partitions that is known now."""
        return len(self._connected().cluster.partitions_for_topic(self.name) or ())

    # --- reading

    async def ends(self, partitions: Iterable[int]) -> dict[int, Ends]:
        """Return the ends of partitions."""
        wanted = list(partitions)
        earliest = await self.offsets(dict.fromkeys(wanted, EARLIEST))
        latest = await self.offsets(dict.fromkeys(wanted, LATEST))
        # The earliest may have moved between the two requests.
        return {each: Ends(min(earliest[each], latest[each]), latest[each]) for each in wanted}

    async def written(self, partitions: Iterable[int]) -> dict[int, int]:
        """Return the latest end of partitions, with what belongs to open transactions."""
        return await self._retried(self._offsets, dict.fromkeys(partitions, LATEST), WRITTEN)

    async def offsets(self, times: dict[int, int]) -> dict[int, int]:
        """Return, for each partition, the offset of the first element of a time in milliseconds, or
        of an end; -1 if no element is as late.
        """
        return await self._retried(self._offsets, times)

    async def fetch(
        self, partition: int, position: int, max_bytes: int, *, wait: int = 0
    ) -> Answer:
        """Return what a partition has from `position` on, at least one batch; nothing if it has
        nothing after `wait` milliseconds. Raises OffsetOutOfRangeError of aiokafka.
        """
        return await self._retried(self._fetch, partition, position, max_bytes, wait)

    async def _fetch(self, partition: int, position: int, max_bytes: int, wait: int) -> Answer:
        found = await self.fetch_at(
            self.leader(partition), {partition: position}, max_bytes, wait=wait, group=READING
        )
        return found[partition]

    async def fetch_at(
        self, node: int, positions: dict[int, int], max_bytes: int, *, wait: int, group: str
    ) -> dict[int, Answer]:
        """Return what one broker has of some partitions. Raises the errors of aiokafka."""
        wanted = [(each, position, max_bytes) for each, position in positions.items()]
        request = LargeFetch(wait, 1, max_bytes, COMMITTED, [(self.name, wanted)])
        response = await self._send(node, request, group)
        found = {}
        for partition, code, _, stable, *rest in response.topics[0][1]:
            _raise_for(code)
            # Version 4 has no begin of the log; 11 has a replica before the data.
            earliest = rest[0] if response.API_VERSION >= 5 else 0
            aborted = rest[1] if response.API_VERSION >= 5 else rest[0]
            found[partition] = Answer(rest[-1] or b"", aborted or (), Ends(earliest, stable))
        return found

    def leader(self, partition: int) -> int:
        """Return the broker that has a partition. Raises LeaderNotAvailableError of aiokafka."""
        client = self._connected()
        if self._is_missing:
            raise kafka.UnknownTopicOrPartitionError(self.name)
        node = client.cluster.leader_for_partition(TopicPartition(self.name, partition))
        if node in _NO_LEADER:
            client.force_metadata_update()
            raise kafka.LeaderNotAvailableError(f"partition {partition}")
        return int(node)

    async def _offsets(self, times: dict[int, int], isolation: int = COMMITTED) -> dict[int, int]:
        by_leader: dict[int, list[tuple[int, int]]] = defaultdict(list)
        for partition, time in times.items():
            by_leader[self.leader(partition)].append((partition, time))
        found: dict[int, int] = {}
        for node, wanted in by_leader.items():
            request = OffsetRequest(-1, isolation, [(self.name, wanted)])
            response = await self._send(node, request, READING)
            for partition, code, _, offset in response.topics[0][1]:
                _raise_for(code)
                found[partition] = offset
        return found

    # --- appending

    async def producer(self) -> tuple[int, int]:
        """Return the id and the epoch of the producer: a broker takes each of its batches once."""
        async with self._producer_turn:
            if self._producer is None:
                self._producer = await self._retried(self._new_producer)
                self.producers += 1
            return self._producer

    def forget_producer(self) -> None:
        """Take another id for the next batch."""
        self._producer = None

    async def append(self, partition: int, batch: bytes) -> int:
        """Append a batch, with all replicas that are in sync, and return the position of its first
        element. Raises the errors of aiokafka.
        """
        request = ProduceRequest(
            transactional_id=None,
            required_acks=-1,
            timeout=int(self.timeout * 1_000),
            topics=[(self.name, [(partition, batch)])],
        )
        response = await self._send(
            self.leader(partition), request, f"append {partition % _WRITERS}"
        )
        _, code, offset, *_ = response.topics[0][1][0]
        _raise_for(code)
        return int(offset)

    async def _new_producer(self) -> tuple[int, int]:
        node = self._connected().get_random_node()
        if node is None:
            raise kafka.KafkaConnectionError("no broker is known")
        response = await self._send(node, InitProducerIdRequest(None, 0), READING)
        _raise_for(response.error_code)
        return response.producer_id, response.producer_epoch

    # --- inside

    async def _retried(self, attempt: Callable[..., Awaitable[T]], *args: Any) -> T:
        """Return what `attempt` returns, within `timeout`. Raises LogError and UsageError, and
        OffsetOutOfRangeError of aiokafka.
        """
        clock = asyncio.get_running_loop().time
        deadline = clock() + self.timeout
        while True:
            try:
                async with asyncio.timeout_at(deadline):
                    return await attempt(*args)
            except kafka.OffsetOutOfRangeError:
                raise
            except _FAILED as error:
                if not is_temporary(error) or clock() + PAUSE >= deadline:
                    raise explained(error, self.where, self.timeout) from error
            await self.pause(deadline)

    # --- a topic that was made anew

    async def pause(self, deadline: float | None = None) -> None:
        """Wait before a request that failed is sent again. Raises LogDamaged if the topic was made
        anew: the request would go to the new one.
        """
        self.look_again()
        await asyncio.sleep(PAUSE)
        with suppress(*_FAILED):
            async with asyncio.timeout_at(deadline):
                await self.check_id()

    async def check_id(self) -> None:
        """Raise LogDamaged if the topic was made anew. Raises the errors of aiokafka."""
        found = await self._find_id()
        self._is_missing = found == NO_ID != self._id
        if NO_ID not in (found, self._id) and found != self._id:
            raise self.note_damage("it was deleted, and made anew")
        self.check_damage()

    def note_damage(self, reason: str) -> LogDamaged:
        """Send no request any more. Return the error for it."""
        self.damage = (
            f"{self.where}: {reason}. Its elements are others than before. Open it again to go on "
            "with what it has now"
        )
        return LogDamaged(self.damage)

    def check_damage(self) -> None:
        """Raise LogDamaged if the topic was made anew, or has lost elements."""
        if self.damage:
            raise LogDamaged(self.damage)

    async def _find_id(self) -> tuple[int, int]:
        """Return the id of the topic, or `NO_ID` of a broker before Kafka 2.8."""
        client = self._connected()
        node = client.get_random_node()
        if node is None:
            raise kafka.KafkaConnectionError("no broker is known")
        try:
            response = await client.send(node, IdentityRequest(self.name))
        except kafka.IncompatibleBrokerVersion:
            return NO_ID
        except RuntimeError as error:
            # So aiokafka says that the broker does not know the request. All of its errors are
            # RuntimeErrors.
            if isinstance(error, kafka.KafkaError):
                raise
            return NO_ID
        if response.topics[0][0] == kafka.TopicAuthorizationFailedError.errno:
            raise kafka.TopicAuthorizationFailedError(self.name)
        if self._id != NO_ID and partitions_in(response) != self.partitions:
            # Keys have other partitions now, and a log refuses them when it knows.
            self.look_again()
        return identity_of(response)

    def look_again(self) -> None:
        """Look up the leaders of the partitions."""
        if self._client is not None:
            self._client.force_metadata_update()

    async def _send(self, node: int, request: Any, group: str) -> Any:
        client = self._connected()
        self.check_damage()
        if group == READING and await client.ready(node, group=group):
            receive_into_one_buffer(client._conns[node, group])  # noqa: SLF001  # no hook for it
        return await client.send(node, request, group=group)

    def _connected(self) -> AIOKafkaClient:
        if self._client is None:
            raise kafka.KafkaConnectionError("the log was closed")
        return self._client

    async def _look_at_settings(self) -> None:
        """Take over the settings of the topic, if the user may read them."""
        client = self._connected()
        request = DescribeConfigsRequest([(_TOPIC, self.name, list(SETTINGS))])
        with suppress(kafka.IncompatibleBrokerVersion):
            response = await client.send(client.get_random_node(), request)
            for code, _, _, _, entries in response.resources:
                if not code:
                    self.settings.update((name, value) for name, value, *_ in entries)
        self.batch_bytes = int(self.settings.get("max.message.bytes", DEFAULT_BATCH_BYTES))


def _raise_for(code: int) -> None:
    error = kafka.for_code(code)
    if error is kafka.UnknownError and code != error.errno:
        # A broker knows more errors than aiokafka has classes.
        raise error(f"number {code} among the errors of Kafka")
    if error is not kafka.NoError:
        raise error()
