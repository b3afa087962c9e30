"""`foreach_batch`: the batches of a streaming query go to a publisher,
and its demand reaches the source of the query.
"""

from collections.abc import Awaitable, Callable
from typing import Any

import trio

from penstock.api import UsageError
from penstock_spark.publishing._rows import check_format, lists_of


def foreach_batch(
    send: Callable[[list[bytes]], Awaitable[object]], *, value_format: str = "raw"
) -> Callable[[Any, int], None]:
    """Return the function for ``writeStream.foreachBatch(...)``:
    it gives the elements of each batch to `send`, in lists.

    Call it inside of ``trio.run``. `send` is awaited there, for one list after the other, and Spark
    waits meanwhile: it computes no further partition, and begins no further batch. With a memory
    channel of size 0 the demand of subscribers reaches the source of the query::

        send, receive = trio.open_memory_channel(0)
        service.publish("orders", penstock.from_batches(receive))
        frame.writeStream.foreachBatch(foreach_batch(send.send)).start()

    If `send` raises, the query fails with that error. A batch is repeated if the query fails inside
    it, so an element comes at least once; what subscribers have not read when the program ends is
    lost. The sink ``format("penstock")`` has neither limit.
    Raises UsageError outside of a run of trio.
    """
    try:
        token = trio.lowlevel.current_trio_token()
    except RuntimeError:
        raise UsageError(
            "call foreach_batch(...) inside of trio.run: the elements go to its tasks"
        ) from None

    def feed(frame: Any, _batch: int) -> None:
        check_format(frame, value_format)
        for elements in lists_of(frame, value_format):
            trio.from_thread.run(send, elements, trio_token=token)

    return feed
