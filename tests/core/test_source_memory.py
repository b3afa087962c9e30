"""The bytes that the sources of one peer hold."""

from penstock.core._source_memory import SourceMemory


def test_the_budget_hears_of_more_bytes_and_of_no_fewer() -> None:
    """The account holds what was read and not signalled."""
    noted: list[int] = []
    memory = SourceMemory("a peer", noted.append)
    assert (memory.owner, memory.held) == ("a peer", 0)
    memory.change(1)
    memory.change(500)
    memory.change(-200)
    memory.change(0)
    assert (memory.held, noted) == (301, [1, 500])


def test_without_a_budget_bytes_are_only_counted() -> None:
    """In a pipe within one program."""
    memory = SourceMemory("a peer", None)
    memory.change(7)
    memory.change(-3)
    assert memory.held == 4
