"""Elements that are records become the columns key and headers, and those of the value."""

from collections.abc import Sequence
from typing import Final

import numpy as np
import pyarrow as pa

from penstock.api import UsageError
from penstock.spi import Record
from penstock_spark.source._decode import ColumnDecoder, Decoded, Undecodable

HEADER: Final = pa.struct([("key", pa.string()), ("value", pa.binary())])


class RecordDecoder:
    """Takes records apart, and gives their values to the decoder of the format."""

    def __init__(self, values: ColumnDecoder) -> None:
        self._values = values

    def decode(self, elements: Sequence[bytes]) -> Decoded:
        """Return the columns. An element that is not a record has a row of nulls."""
        records: list[Record] = []
        places: list[int] = []
        bad: list[Undecodable] = []
        for place, element in enumerate(elements):
            try:
                records.append(Record.unpack(element))
                places.append(place)
            except UsageError as error:
                bad.append(Undecodable(place, str(error)))
        values = self._values.decode([each.value for each in records])
        counts = values.rows
        columns = [*_own_columns(records, counts), *values.columns]
        bad += [Undecodable(places[each.place], each.why) for each in values.bad]
        if len(records) < len(elements):
            rows, counts = _with_gaps(places, counts, len(elements))
            columns = [column.take(rows) for column in columns]
        return Decoded(columns, sorted(bad), counts)


def _own_columns(records: Sequence[Record], counts: Sequence[int] | None) -> list[pa.Array]:
    keys = pa.array([each.key for each in records], pa.binary())
    headers = pa.array(
        [[{"key": name, "value": value} for name, value in each.headers] for each in records],
        pa.list_(HEADER),
    )
    if counts is None:
        return [keys, headers]
    rows = pa.array(np.repeat(np.arange(len(records)), counts))
    return [keys.take(rows), headers.take(rows)]


def _with_gaps(
    places: Sequence[int], counts: Sequence[int] | None, count: int
) -> tuple[pa.Array, Sequence[int] | None]:
    """Return, for each row of `count` elements, the row of those at `places`, or null; and the
    rows of each element, if they are given.
    """
    each = [1] * len(places) if counts is None else counts
    starts = dict(zip(places, np.cumsum([0, *each]).tolist(), strict=False))
    rows_of = dict(zip(places, each, strict=True))
    rows = [
        row
        for place in range(count)
        for row in (
            range(starts[place], starts[place] + rows_of[place]) if place in starts else (None,)
        )
    ]
    found = None if counts is None else [rows_of.get(place, 1) for place in range(count)]
    return pa.array(rows, pa.int64()), found
