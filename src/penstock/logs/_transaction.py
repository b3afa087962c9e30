"""A transaction that stages its elements in memory."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Final

import trio

from penstock.api import LimitExceeded, UsageError
from penstock.logs._log import Transaction
from penstock.logs._positions import DEFAULT_PARTITION, MOST_BYTES_AT_ONCE, check_elements
from penstock.logs._work import Append, Publish

MOST_STAGED: Final = 1_000_000
"""Elements that one transaction stages: with `MOST_BYTES_AT_ONCE`, the bound of its memory."""


class StagedTransaction(Transaction):
    """Keeps staged elements in memory until they are published."""

    # In memory and not on disk: the program that staged elements has been told of none of them that it is published. After a failure it
    # stages all of them again, and what it staged before must not be published with them.

    def __init__(self, transaction_id: str, index: Callable[[str], int], publish: Callable[[Publish], Awaitable[bool]]) -> None:
        self._id = transaction_id
        self._index = index
        self._publish = publish
        self._staged: dict[int, list[bytes]] = {}
        self._count = 0
        self._size = 0
        self._is_publishing = False
        self._is_published = False

    async def stage(self, elements: Sequence[bytes], *, partition: str = DEFAULT_PARTITION) -> None:
        index = self._index(partition)
        copied, size = check_elements(elements)
        # Before the checks: between them and the change no other task may stage. And a cancel leaves the transaction as it was.
        await trio.lowlevel.checkpoint()
        self._check_open()
        if self._count + len(copied) > MOST_STAGED or self._size + size > MOST_BYTES_AT_ONCE:
            raise LimitExceeded(
                f"transaction {self._id!r} would stage {self._count + len(copied):,} elements of {self._size + size:,} bytes, and "
                f"{MOST_STAGED:,} elements of {MOST_BYTES_AT_ONCE:,} bytes are allowed: publish fewer in one transaction",
                limit="MOST_STAGED",
                value=MOST_STAGED,
            )
        self._staged.setdefault(index, []).extend(copied)
        self._count += len(copied)
        self._size += size

    async def publish(self) -> bool:
        appends = tuple(Append(index, tuple(each), sum(map(len, each))) for index, each in sorted(self._staged.items()))
        self._is_publishing = True
        try:
            is_first = await self._publish(Publish(self._id, appends))
        finally:
            self._is_publishing = False
        # Only now: if the disk is full, or the task is cancelled, the program may publish the same elements again.
        self._is_published = True
        self._staged.clear()
        return is_first

    def __repr__(self) -> str:
        state = "published" if self._is_published else f"{self._count:,} elements staged"
        return f"<transaction {self._id!r}: {state}>"

    # --- inside

    def _check_open(self) -> None:
        if self._is_published:
            raise UsageError(f"transaction {self._id!r} is published; stage elements in a new transaction with another id")
        # The elements would not be published with the others, and would be dropped afterwards.
        if self._is_publishing:
            raise UsageError(f"transaction {self._id!r} is being published by another task; stage elements before that")
