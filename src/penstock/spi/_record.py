"""Records: elements with a key and headers.

Rules of this file:

* A record is a MessagePack array: the value, the key, the headers, the partition and the name of a
  log. Fields at its end that have their defaults are left out. An array with more fields is
  refused, so that no field of a later version is lost.
* A log that keeps records has them in this form, without the last two fields, which would repeat
  where the record is.
"""

from collections.abc import Sequence
from typing import Annotated, Final, TypeAlias

import msgspec

from penstock.api import UsageError, partition_of, shown

MOST_HEADERS: Final = 64
"""Headers of a record: a small one must not cost its reader much memory."""

Headers: TypeAlias = tuple[tuple[str, bytes | None], ...]


class Record(msgspec.Struct, array_like=True, frozen=True, gc=False, forbid_unknown_fields=True):
    """An element with a key and headers, as Kafka has them, and the place that it goes to."""

    value: bytes
    """The element."""
    key: bytes | None = None
    """Records with one key stay in order: a log has them in one partition."""
    headers: Annotated[Headers, msgspec.Meta(max_length=MOST_HEADERS)] = ()
    """Names and values, at most 64. A name may come twice, and a value may be missing."""
    partition: str | None = None
    """The partition of a log that it goes to. It counts more than the key."""
    name: str | None = None
    """The name of the log that it goes to, if there are several."""

    def pack(self) -> bytes:
        """Return the bytes of the record."""
        fields = [self.value, self.key, self.headers, self.partition, self.name]
        while len(fields) > 1 and not (fields[-1] or isinstance(fields[-1], bytes | str)):
            fields.pop()
        return msgspec.msgpack.encode(fields)

    @staticmethod
    def unpack(data: bytes) -> "Record":
        """Return the record with these bytes. Raises UsageError for other bytes."""
        try:
            return _decode(data)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise UsageError(
                "a record is a MessagePack array of the value, the key, the headers, the partition "
                f"and the name, and these bytes are something else: {error}"
            ) from None

    def partition_in(self, partitions: Sequence[str], otherwise: str) -> str:
        """Return the one of `partitions` that the record goes to: by its partition, by its key, or
        `otherwise`. Raises UsageError if there is no such partition.
        """
        if self.partition is None:
            return otherwise if self.key is None else partition_of(self.key, partitions)
        if self.partition not in partitions:
            raise UsageError(
                f"a record names the partition {shown(self.partition)}, and the log has "
                f"{shown(list(partitions))}"
            )
        return self.partition


_decode = msgspec.msgpack.Decoder(Record).decode
