"""The serializer ``arrow``.

Rules of this file:

* pyarrow is imported with the first element: it takes 40 MiB and a tenth of a second, and a program
  that has this plugin installed may send no record batch.
"""

import sys
from typing import Any

from penstock.spi import Serializer


class ArrowSerializer(Serializer):
    """Elements are `pyarrow.RecordBatch`.
    `loads` raises ProtocolError for anything that is not one whole batch.
    """

    name = "arrow"

    def dumps(self, element: object, /) -> bytes:
        from penstock_arrow._batch_bytes import written  # noqa: PLC0415  # imports pyarrow

        return written(element)

    def loads(self, data: bytes, /) -> object:
        from penstock_arrow._batch_bytes import read  # noqa: PLC0415  # imports pyarrow

        return read(data)

    def for_type(self, kind: Any, /) -> Serializer:
        # Whoever has the type has imported pyarrow.
        arrow = sys.modules.get("pyarrow")
        return self if arrow is not None and kind is arrow.RecordBatch else super().for_type(kind)
