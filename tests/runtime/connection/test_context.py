"""The memory budget of a server is what the parts of a connection take for shared memory."""

from penstock.runtime.connection import MemoryBudget, MemoryHolder, SharedMemory


class Holder:
    """Holds 100 bytes until it is closed."""

    def __init__(self) -> None:
        self.closed: list[tuple[int, int]] = []

    goes_first = False

    def held(self) -> int:
        return 0 if self.closed else 100

    def close_for_memory(self, held: int, budget: int, /) -> None:
        self.closed.append((held, budget))


def test_a_budget_and_a_holder_fit_together() -> None:
    """As the protocols say: a holder above the budget is closed, with its bytes and the budget."""
    holder = Holder()
    memory: SharedMemory = MemoryBudget(90)
    known: MemoryHolder = holder
    memory.add(known)
    memory.note_bytes(90)
    assert holder.closed == [(100, 90)]
    memory.remove(known)
    memory.note_bytes(90)
    assert holder.closed == [(100, 90)]
