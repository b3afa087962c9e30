"""A transaction that stages its elements in memory, and may take some that the log has staged."""

from collections.abc import Awaitable, Callable, Sequence

import trio

from penstock.api import LimitExceeded, UsageError
from penstock.logs._log import Transaction
from penstock.logs._positions import DEFAULT_PARTITION, check_bound, check_elements, check_name
from penstock.logs._work import Append, Publish, Staged


class StagedTransaction(Transaction):
    """Keeps staged elements in memory until they are published."""

    # In memory and not on disk: the program that staged elements has not been told that one of them
    # is published. After a failure it stages all of them again, and the elements of before must not
    # be published with them.

    def __init__(
        self,
        transaction_id: str,
        index: Callable[[str], int],
        publish: Callable[[Publish], Awaitable[bool]],
        *,
        max_elements: int,
        max_bytes: int,
    ) -> None:
        self._id = check_name(transaction_id, "the id of a transaction")
        self._max_elements = check_bound(max_elements, "max_elements of a transaction")
        self._max_bytes = check_bound(max_bytes, "max_bytes of a transaction")
        self._index = index
        self._publish = publish
        self._staged: dict[int, list[bytes]] = {}
        self._taken: list[Staged] = []
        self._count = 0
        self._size = 0
        self._is_publishing = False
        self._is_published = False

    async def stage(self, elements: Sequence[bytes], *, partition: str = DEFAULT_PARTITION) -> None:
        index = self._index(partition)
        copied, size = check_elements(elements)
        # Before the checks: between them and the change no other task may stage. And a cancel does
        # not change the transaction.
        await trio.lowlevel.checkpoint()
        self._check_open()
        count, size = self._count + len(copied), self._size + size
        if count > self._max_elements or size > self._max_bytes:
            bound, value = (
                ("max_elements", self._max_elements)
                if count > self._max_elements
                else ("max_bytes", self._max_bytes)
            )
            raise LimitExceeded(
                f"transaction {self._id!r} would stage {count:,} elements of {size:,} bytes, and "
                f"{self._max_elements:,} elements of "
                f"{self._max_bytes:,} bytes are allowed: publish fewer in one transaction, or "
                f"give log.transaction(..., {bound}=) more",
                limit=bound,
                value=value,
            )
        self._staged.setdefault(index, []).extend(copied)
        self._count, self._size = count, size

    def take(self, number: int, count: int, size: int, *, partition: str) -> None:
        """Add elements that the log has staged under a number (`StagedElements`)."""
        self._check_open()
        self._taken.append(Staged(number, self._index(partition), count, size))

    async def publish(self) -> bool:
        appends = tuple(
            Append(index, tuple(each), sum(map(len, each)))
            for index, each in sorted(self._staged.items())
        )
        self._is_publishing = True
        try:
            is_first = await self._publish(Publish(self._id, appends, tuple(self._taken)))
        finally:
            self._is_publishing = False
        # Only now: if the disk is full, or the task is cancelled,
        # the program may publish the same elements again.
        self._is_published = True
        self._staged.clear()
        self._taken.clear()
        return is_first

    def __repr__(self) -> str:
        state = "published" if self._is_published else f"{self._count:,} elements staged"
        return f"<transaction {self._id!r}: {state}>"

    # --- inside

    def _check_open(self) -> None:
        if self._is_published:
            raise UsageError(
                f"transaction {self._id!r} is published; stage elements in a new transaction with "
                "another id"
            )
        # The elements would not be published with the others, and would be dropped afterwards.
        if self._is_publishing:
            raise UsageError(
                f"transaction {self._id!r} is being published by another task; stage elements "
                "before that"
            )
