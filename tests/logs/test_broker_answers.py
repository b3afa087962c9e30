"""Answers of a `Broker` that cannot be: the log refuses them at once, and names the class and what was
expected. Elements would be hidden without a word.
"""

from typing import Any

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from penstock.api import LogDamaged, PluginError, PositionNotRetained
from penstock.logs import BrokerLog, Ends
from penstock.streams import collect
from tests.logs._shelf import Shelf


class Liar(Shelf):
    """Answers a call as it does, or with the answer that a test gives."""

    def __init__(self, **answers: Any) -> None:
        super().__init__()
        self.answers = answers

    async def _say(self, call: str, found: Any) -> Any:
        await trio.lowlevel.checkpoint()
        return self.answers.get(call, found)

    async def open(self, *args: Any) -> Any:
        return await self._say("open", await super().open(*args))

    async def append(self, *args: Any) -> Any:
        return await self._say("append", await super().append(*args))

    async def publish(self, *args: Any) -> Any:
        return await self._say("publish", await super().publish(*args))

    async def read(self, *args: Any) -> Any:
        return await self._say("read", await super().read(*args))

    async def position_at(self, *args: Any) -> Any:
        return await self._say("position_at", await super().position_at(*args))

    def tell(self, names: Any) -> None:
        """Tell nothing: the log knows what the calls have returned."""


NO_POSITIONS = pytest.mark.parametrize("answer", [None, "7", 1.0, True, -1, [0]])


@NO_POSITIONS
async def test_what_is_no_position_of_an_append_is_refused(answer: Any) -> None:
    """The author of the broker must act."""
    shelf = Liar(append=answer)
    async with BrokerLog(shelf) as log:
        with pytest.raises(PluginError, match=r"Liar.append\(\) returned .*a number from 0 on"):
            await log.append([b"a"])
        assert log.latest() == {"0": 0}
        shelf.answers.clear()
        assert await log.append([b"b"]) == range(1, 2)


@pytest.mark.parametrize("answer", [0, 1])
async def test_a_position_before_the_known_end_is_refused(answer: int) -> None:
    """Its elements would be taken for others, which were acknowledged."""
    shelf = Liar()
    async with BrokerLog(shelf) as log:
        await log.append([b"a", b"b"])
        shelf.answers["append"] = answer
        with pytest.raises(LogDamaged, match=r"Liar.append\(\).*from 2 on was expected"):
            await log.append([b"c"])
        with pytest.raises(LogDamaged, match=r"Liar.append\(\).*from 2 on was expected"):
            await log.append(())
        assert log.latest() == {"0": 2}


async def test_elements_of_other_writers_may_be_before_those_of_an_append() -> None:
    """A broker tells them later, or has told them already."""
    shelf = Liar(append=7)
    async with BrokerLog(shelf) as log:
        assert await log.append([b"a", b"b"]) == range(7, 9)
        shelf.logs[0].moved({"0": Ends(0, 20)})
        shelf.answers["append"] = 20
        assert await log.append([b"c"]) == range(20, 21)


async def test_appends_at_once_may_return_in_any_order(nursery: trio.Nursery) -> None:
    """The end counts that was known when an append began."""

    class Slow(Shelf):
        async def append(self, partition: str, elements: Any) -> int:
            first = await super().append(partition, elements)
            if b"first" in elements:
                await may_return.wait()
            return first

        def tell(self, names: Any) -> None:
            pass

    may_return, done = trio.Event(), []

    async def append(element: bytes) -> None:
        done.append(await log.append([element]))

    async with BrokerLog(Slow()) as log:
        nursery.start_soon(append, b"first")
        await wait_all_tasks_blocked()
        await append(b"second")
        may_return.set()
        await wait_all_tasks_blocked()
        assert done == [range(1, 2), range(1)]


@pytest.mark.parametrize("answer", [7, {"0": None}, {"0": -1}, {"other": 0}])
async def test_what_is_no_answer_to_a_publication_is_refused(answer: Any) -> None:
    """The position of the first element by the name of the partition, or None."""
    async with BrokerLog(Liar(publish=answer)) as log:
        transaction = log.transaction("a")
        await transaction.stage([b"a"])
        with pytest.raises(PluginError, match=r"Liar.publish\(\) returned"):
            await transaction.publish()


async def test_a_publication_before_the_known_end_is_refused() -> None:
    """As an append is."""
    shelf = Liar(publish={"0": 0})
    async with BrokerLog(shelf) as log:
        await log.append([b"a"])
        transaction = log.transaction("a")
        await transaction.stage([b"b"])
        with pytest.raises(LogDamaged, match=r"Liar.publish\(\).*after them was expected"):
            await transaction.publish()


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        (None, "an object of type NoneType"),
        (b"abc", "an object of type bytes"),
        ((each for each in [b"a"]), "an object of type generator"),
        (["secret"], "an element of type str"),
        ([b"secret", b"secret", b"secret"], "3 elements"),
    ],
)
async def test_what_is_no_list_of_elements_is_refused(answer: Any, text: str) -> None:
    """The text has none of what was read."""
    async with BrokerLog(Liar(read=answer)) as log:
        await log.append([b"a", b"b"])
        with pytest.raises(PluginError, match=rf"Liar.read\(\) returned {text} for") as told:
            await collect(log.source(stop="latest"))
        assert "secret" not in str(told.value)


async def test_a_read_that_returns_nothing_of_what_is_there_is_refused() -> None:
    """A broker that has dropped elements tells it first. Then the text has the ends."""
    shelf = Liar(read=[])
    async with BrokerLog(shelf) as log:
        await log.append([b"a", b"b"])
        text = r"Liar.read\(\) returned no element at position 0 .* 0 up to, and not with, 2;"
        with pytest.raises(LogDamaged, match=text):
            await collect(log.source(stop="latest"))

        async def dropped(*_: Any) -> list[bytes]:
            shelf.logs[0].moved({"0": Ends(1, 2)})
            return []

        shelf.read = dropped  # type: ignore[method-assign]  # it tells, and returns nothing
        with pytest.raises(PositionNotRetained, match="it has 1 up to, and not with, 2"):
            await collect(log.source(start=0, stop="latest"))


@pytest.mark.parametrize("answer", ["7", -1, 1.5])
async def test_what_is_no_position_of_a_time_is_refused(answer: Any) -> None:
    """None says that no element is as late."""
    async with BrokerLog(Liar(position_at=answer)) as log:
        with pytest.raises(PluginError, match=r"Liar.position_at\(\) returned .*as a position"):
            await log.position_at(0)


NO_ENDS = [None, 3, (1, None), (-1, 0), (2, 1), (0, 1, 2)]


@pytest.mark.parametrize("answer", [None, {}, *({"0": each} for each in NO_ENDS)])
async def test_ends_that_cannot_be_are_refused_when_the_log_is_opened(answer: Any) -> None:
    """Also if a partition is missing. The broker is closed."""
    shelf = Liar(open=answer)
    with pytest.raises(PluginError, match=r"Liar.*open\(\) (returned|told)"):
        await BrokerLog(shelf).__aenter__()
    assert shelf.logs == []


@pytest.mark.parametrize("answer", NO_ENDS)
async def test_ends_that_cannot_be_are_refused_when_they_are_told(answer: Any) -> None:
    """The broker gets the error, and the log keeps what it knew."""
    shelf = Shelf()
    async with BrokerLog(shelf) as log:
        with pytest.raises(PluginError, match=r"Shelf: moved\(\) told .*give Ends"):
            shelf.logs[0].moved({"0": answer})
        assert log.latest() == {"0": 0}
