"""The metadata of an IPC message, as far as it tells that buffers are compressed. pyarrow does not
show that before it inflates them.

The metadata is a flatbuffer. A table begins with the distance back to its vtable, which has the
place of each field, or 0 for none.
"""

from struct import error, unpack_from
from typing import Final

DICTIONARY: Final = 2
RECORD_BATCH: Final = 3

# The numbers of fields, in the order of the schema of Arrow's messages.
VERSION, HEADER_TYPE, HEADER, CUSTOM_METADATA = 0, 1, 2, 4
DATA_OF_DICTIONARY = 1
COMPRESSION = 3


V5: Final = 4
"""The version of the metadata since which a record batch itself says that it is compressed."""


def is_compressed(metadata: memoryview) -> bool:
    """Return whether the record batch in a message, or in a dictionary, has compressed buffers, or
    may have. Raises ValueError for broken metadata.

    In messages before V5 a key of the custom metadata says it, and pyarrow obeys that key.
    """
    try:
        message = _table(metadata, 0)
        kind = _place(metadata, message, HEADER_TYPE)
        header_type = metadata[kind] if kind else 0
        if header_type not in {DICTIONARY, RECORD_BATCH}:
            return False
        version = _place(metadata, message, VERSION)
        if (unpack_from("<h", metadata, version)[0] if version else 0) < V5 and _place(
            metadata, message, CUSTOM_METADATA
        ):
            return True
        batch = _table(metadata, _place(metadata, message, HEADER))
        if header_type == DICTIONARY:
            batch = _table(metadata, _place(metadata, batch, DATA_OF_DICTIONARY))
        return bool(_place(metadata, batch, COMPRESSION))
    except (error, IndexError):
        raise ValueError("its metadata cannot be read") from None


def _table(metadata: memoryview, place: int) -> int:
    """Return the place of the table to which the offset at `place` leads."""
    offset: int = unpack_from("<I", metadata, place)[0]
    return place + offset


def _place(metadata: memoryview, table: int, field: int) -> int:
    """Return the place of a field of a table, 0 if the table does not have it."""
    vtable = table - unpack_from("<i", metadata, table)[0]
    if vtable < 0:
        raise IndexError(vtable)
    size = unpack_from("<H", metadata, vtable)[0]
    slot = 4 + 2 * field
    offset: int = unpack_from("<H", metadata, vtable + slot)[0] if slot < size else 0
    return table + offset if offset else 0
