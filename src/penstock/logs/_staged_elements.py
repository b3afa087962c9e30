"""Elements that a log on disk keeps for transactions of `penstock.receive`. They are there after a
restart, and come into the log when their transaction is published.

Rules of this file:

* The numbers of attempts are given once while a log is open, and are above those in its file.
* A deletion that failed is tried again with the next one: what no transaction will publish must not
  fill the disk.
"""

from collections.abc import Awaitable, Callable, Iterable, Sequence

from penstock.logs._work import Attempt, Result, Stage, Unstage, Work


class StagedElements:
    """The staged elements of one log. For `penstock.receive`: `StagedTransaction.take` publishes
    them.
    """

    def __init__(
        self,
        submit: Callable[[Work], Awaitable[Result]],
        put: Callable[[Unstage], None],
        now: Callable[[], float],
    ) -> None:
        self._submit = submit
        self._put = put
        self.now: Callable[[], float] = now
        """The clock of the log."""
        self._last = 0
        self._found: list[Attempt] = []
        # Numbers whose deletion failed. Bounded by the attempts in the file.
        self._failed: set[int] = set()

    def opened(self, attempts: Sequence[Attempt], last: int) -> None:
        """Note what an opened log has. For the log."""
        self._found = list(attempts)
        self._last = max(self._last, last)

    def unstaged(self, work: Unstage, *, is_done: bool) -> None:
        """Note whether a deletion was committed. For the log."""
        if not is_done:
            self._failed.update(work.numbers)

    def found(self, owner: str) -> list[Attempt]:
        """Return what an earlier run of the program has staged for `owner`. It is returned once."""
        taken = [each for each in self._found if each.owner == owner]
        self._found = [each for each in self._found if each.owner != owner]
        return taken

    def next_number(self) -> int:
        """Return a number for a new attempt."""
        self._last += 1
        return self._last

    async def add(
        self, number: int, elements: Iterable[bytes], attempt: Attempt | None = None
    ) -> None:
        """Add elements to an attempt. They are on disk when this returns. `attempt` comes with the
        last of them. Raises LogError if they cannot be kept. Checkpoints.
        """
        await self._submit(Stage(number, tuple(elements), attempt))

    def forget(self, number: int) -> None:
        """Delete the elements of an attempt, soon. No transaction may take them any more."""
        # If the log is closed, its next opening finds them again, and their age is bounded.
        self._put(Unstage((number, *self._failed)))
        self._failed.clear()
