"""Keys: which partition of a log the elements with a key belong to.

Rules of this file:

* The elements of one key are in one partition, so their readers see them in order.
* The rule is fixed and public: the CRC-32 of the key, modulo the number of partitions. Spark has
  `crc32`, every language has one, and clients that compute it agree with the log.
* A log with more partitions than before has other partitions for its keys.
"""

from collections.abc import Sequence
from zlib import crc32

from penstock.api._errors import UsageError
from penstock.api._shown import shown


def partition_of(key: bytes | str, partitions: Sequence[str]) -> str:
    """Return the one of `partitions` that has the elements with this key: the partition whose index
    is the CRC-32 of the key modulo the number of partitions. The bytes of a text are its UTF-8.

    `Log.append(key=...)`, `penstock.receive` and the client for JavaScript choose by the same rule.
    Raises UsageError for a key that is neither bytes nor text, and without partitions.
    """
    if not partitions:
        raise UsageError("partition_of() was given no partitions; give log.partitions")
    return partitions[crc32(key_bytes(key)) % len(partitions)]


def key_bytes(key: object) -> bytes:
    """Return the bytes of a key. Raises UsageError."""
    if isinstance(key, bytes):
        return key
    if isinstance(key, str):
        try:
            return key.encode()
        # Half of a surrogate pair has no UTF-8. The error below says it.
        except UnicodeEncodeError:
            pass
    raise UsageError(f"a key is bytes, or a text that UTF-8 has, not {shown(key)}")
