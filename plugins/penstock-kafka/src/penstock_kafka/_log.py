"""A log whose elements are in a topic of Kafka."""

from collections.abc import Iterable, Sequence
from typing import Any, Final, Literal, TypeAlias

from aiokafka.codec import has_gzip, has_lz4, has_snappy, has_zstd
from aiokafka.partitioner import murmur2

from penstock.api import UsageError, partition_of, shown
from penstock.logs import Ability, BrokerLog, Retention, Transaction
from penstock_kafka._access import (
    KafkaAccess,
    check_access,
    check_brokers,
    check_timeout,
    check_topic,
)
from penstock_kafka._broker import KEY, Compression, Fetches, KafkaBroker

Keys: TypeAlias = Literal["crc32", "murmur2"]
"""How a key chooses its partition."""

NO_ACCESS: Final = KafkaAccess()

_CODECS: Final = {"gzip": has_gzip, "snappy": has_snappy, "lz4": has_lz4, "zstd": has_zstd}


class KafkaLog(BrokerLog):
    """A log whose elements are in a topic of Kafka. The topic exists: penstock makes none.

    ::

        async with KafkaLog("127.0.0.1:9092", "orders") as log:
            await log.append([b"first", b"second"], key="customer-7")

    `brokers` are addresses of some brokers. Partitions are those of the topic, named "0", "1" and
    so on, or `partitions` in their order; positions are offsets. An append is one record batch:
    the broker takes it whole or not at all, and once; when `append` returns, all replicas that are
    in sync have it.
    How long elements are kept is a setting of the topic; with `retention` opening the log raises
    UsageError if the topic keeps less.

    * `keys` says which partition a key has: ``"crc32"`` as in all of penstock (`partition_of`), and
      in librdkafka; ``"murmur2"`` as in Kafka's client for Java.
    * With `records` each element is a packed `Record`, whose key and headers are those of Kafka.
    * `transactions` is how many of the last elements of each partition are looked through, when the
      log is opened, for the ids of transactions. Without it `transaction` is refused.
    * `compression` is that of the batches: gzip; with aiokafka[all] also snappy, lz4, zstd.
    * `access` has TLS and the user. `timeout` is for how many seconds a call waits for brokers.

    Raises UsageError for arguments that are not possible. Opening it raises UsageError if there is
    no such topic, and LogError if no broker answers.
    """

    def __init__(  # noqa: PLR0913  # each is one setting
        self,
        brokers: str | Sequence[str],
        topic: str,
        *,
        partitions: Iterable[str] = ("0",),
        keys: Keys = "crc32",
        records: bool = False,
        transactions: int = 0,
        compression: Compression | None = None,
        retention: Retention | None = None,
        access: KafkaAccess = NO_ACCESS,
        timeout: float = 30.0,
    ) -> None:
        addresses, name = check_brokers(brokers), check_topic(topic)
        if keys not in ("crc32", "murmur2"):
            raise UsageError(f"KafkaLog(keys={shown(keys)}); give 'crc32' or 'murmur2'")
        if type(transactions) is not int or transactions < 0:
            raise UsageError(
                f"KafkaLog(transactions={shown(transactions)}); give how many of the last elements "
                "of each partition are looked through, or 0"
            )
        if type(records) is not bool:
            raise UsageError(f"KafkaLog(records={shown(records)}); give True or False")
        if compression is not None and not _has_codec(compression):
            raise UsageError(
                f"KafkaLog(compression={shown(compression)}); give 'gzip', 'snappy', 'lz4' or "
                "'zstd', or None. All but gzip need: pip install 'aiokafka[all]'"
            )
        self._kafka = KafkaBroker(
            addresses,
            name,
            access=check_access(access, "KafkaLog"),
            timeout=check_timeout(timeout, "KafkaLog"),
            compression=compression,
            records=records,
            transactions=transactions,
            retention=retention,
        )
        self._topic = name
        self._key_rule = keys
        self._has_records = records
        self._has_transactions = transactions > 0
        refuses: tuple[Ability, ...] = ("max_count",)
        if not transactions:
            refuses += ("transactions",)
        super().__init__(self._kafka, partitions=partitions, retention=retention, refuses=refuses)

    async def append(
        self,
        elements: Sequence[bytes],
        *,
        partition: str | None = None,
        key: bytes | str | None = None,
    ) -> range:
        if key is None or partition is not None:
            return await super().append(elements, partition=partition, key=key)
        self._check_open()
        self._kafka.check_keys()
        place = self.partition_of(key)
        # The broker is called in this task.
        token = KEY.set(key.encode() if isinstance(key, str) else key)
        try:
            return await super().append(elements, partition=place)
        finally:
            KEY.reset(token)

    def transaction(self, transaction_id: str, **bounds: Any) -> Transaction:
        if not self._has_transactions:
            raise UsageError(
                "transaction(): this KafkaLog looks through no elements for the ids of "
                "transactions; give KafkaLog(transactions=100_000), which is how many of the last "
                "elements of each partition it looks through when it is opened"
            )
        return super().transaction(transaction_id, **bounds)

    def partition_of(self, key: bytes | str) -> str:
        """Return the partition of a key, by the rule `keys`."""
        if self._key_rule == "crc32":
            return partition_of(key, self.partitions)
        partition_of(key, self.partitions)  # for its checks
        number: int = murmur2(key.encode() if isinstance(key, str) else key) & 0x7FFFFFFF
        return self.partitions[number % len(self.partitions)]

    @property
    def has_records(self) -> bool:
        """Its elements are packed records."""
        return self._has_records

    @property
    def fetches(self) -> Fetches:
        """What was fetched since the log was opened, and how many bytes of it are held."""
        return self._kafka.fetches

    def __repr__(self) -> str:
        return f"<KafkaLog {self._topic!r}: {len(self.partitions)} partitions>"


def _has_codec(name: object) -> bool:
    return isinstance(name, str) and name in _CODECS and bool(_CODECS[name]())
