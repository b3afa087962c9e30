"""The memory budget of a server is what the parts of a connection take for shared memory."""

from penstock.api import LimitExceeded
from penstock.runtime.connection import MemoryBudget, MemoryHolder, SharedMemory


class Holder:
    """Holds 100 bytes until it is closed."""

    def __init__(self) -> None:
        self.closed: list[LimitExceeded] = []

    goes_first = False

    def held(self) -> int:
        return 0 if self.closed else 100

    def close_for_memory(self, why: LimitExceeded, told: str, /) -> None:
        self.closed.append(why)


def test_a_budget_and_a_holder_fit_together() -> None:
    """As the protocols say: a holder above the budget is closed, and told why."""
    holder = Holder()
    memory: SharedMemory = MemoryBudget(90)
    known: MemoryHolder = holder
    memory.add(known)
    memory.note_bytes(90)
    assert [(why.limit, why.value) for why in holder.closed] == [("memory_budget", 90)]
    memory.remove(known)
    memory.note_bytes(90)
    assert [(why.limit, why.value) for why in holder.closed] == [("memory_budget", 90)]
