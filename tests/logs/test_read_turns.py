"""Turns at the connection that reads a file: owners take turns, tasks of one owner keep their order."""

import trio
import trio.testing

from penstock.logs._read_turns import ReadTurns


async def test_owners_take_turns(nursery: trio.Nursery) -> None:
    """An owner with many tasks delays each of the others by one turn."""
    turns, order = ReadTurns(), list[str]()

    async def read(owner: str) -> None:
        await turns.take(owner)
        order.append(owner)
        turns.pass_on()

    await turns.take("first")
    for owner in "aaaabbc":
        nursery.start_soon(read, owner)
        await trio.testing.wait_all_tasks_blocked()
    turns.pass_on()
    await trio.testing.wait_all_tasks_blocked()
    assert "".join(order) == "abcabaa"


async def test_a_task_that_is_cancelled_waits_no_longer(nursery: trio.Nursery) -> None:
    """Its owner is forgotten with its last task."""
    turns, order = ReadTurns(), list[str]()

    async def read(owner: str, scope: trio.CancelScope) -> None:
        with scope:
            await turns.take(owner)
            order.append(owner)
            turns.pass_on()

    scopes = [trio.CancelScope() for _ in range(3)]
    await turns.take("first")
    for owner, scope in zip("aab", scopes, strict=True):
        nursery.start_soon(read, owner, scope)
        await trio.testing.wait_all_tasks_blocked()
    scopes[0].cancel()
    scopes[2].cancel()
    await trio.testing.wait_all_tasks_blocked()
    assert list(turns._waiting) == ["a"]
    turns.pass_on()
    await trio.testing.wait_all_tasks_blocked()
    assert order == ["a"]
    assert not turns._is_taken
