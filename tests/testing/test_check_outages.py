"""`check_outages` catches a log that loses elements with its server, and one that does not tell that
its server is away.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Self

import pytest
import trio

from penstock.api import LogError
from penstock.brokers import BrokerGroup, GroupRecord
from penstock.logs import BrokerLog, BrokerNews, Ends, Retention, RingLog
from penstock.testing import OutageBench, _check_outages, check_outages
from penstock.testing._check_outages import OutageBroken
from tests.brokers._memory_member import MemoryBroker, MemoryGroup, MemoryMember
from tests.logs._shelf import Shelf

PLENTY = Retention(max_count=1_000_000)
LOOK_SECONDS = 0.002


class NoServer:
    """Is never away."""

    url = "memory"

    def __init__(self) -> None:
        self.kills = 0

    def start(self) -> None:
        pass

    def kill(self) -> None:
        self.kills += 1

    def stall(self) -> None:
        pass

    def go_on(self) -> None:
        pass


class Opened(RingLog):
    """Is opened as a log on a server is."""

    async def __aenter__(self) -> Self:
        await trio.lowlevel.checkpoint()
        return self

    async def __aexit__(self, *_: object) -> None:
        await trio.lowlevel.checkpoint()


class LosesElements(Opened):
    """Keeps other elements than it was given, after a kill."""

    server = NoServer()

    async def append(self, elements: Any, **place: Any) -> range:
        kept = [b"lost"] * len(elements) if self.server.kills else elements
        return await super().append(kept, **place)


def _bench(kind: type[Opened]) -> OutageBench:
    @contextmanager
    def running() -> Iterator[NoServer]:
        LosesElements.server = NoServer()
        yield LosesElements.server

    def group(*_: object) -> MemoryGroup:
        return MemoryGroup(MemoryBroker(["0"]), acknowledge="by hand")

    return OutageBench(running, lambda *_: kind(retention=PLENTY), group)  # type: ignore[arg-type, return-value]  # no broker


class FakeServer:
    """Keeps what it has while it is away. `kill` and `start` are called in threads, so tasks look
    at it again and again.
    """

    url = "memory"

    def __init__(self) -> None:
        self.shelf: Shelf | None = None
        self.group = MemoryBroker(["0"])
        self.is_away = self.is_stalled = False

    def start(self) -> None:
        self.is_away = False

    def kill(self) -> None:
        self.is_away = True

    def stall(self) -> None:
        self.is_stalled = True

    def go_on(self) -> None:
        self.is_stalled = False

    async def answer(self, within: float) -> None:
        """Return when it is there. Raises LogError after `within` seconds."""
        with trio.move_on_after(within):
            while self.is_away or self.is_stalled:  # noqa: ASYNC110 (a thread sets them)
                await trio.sleep(LOOK_SECONDS)
            await trio.lowlevel.checkpoint()
            return
        what = "no connection to memory" if self.is_away else "memory has not answered"
        raise LogError(f"{what}: Start the server; whether it was appended is not known")


class RemoteShelf(Shelf):
    """A shelf on that server, as one program sees it."""

    def __init__(self, server: FakeServer, timeout: float) -> None:
        super().__init__()
        self._server, self._timeout = server, timeout
        if server.shelf is not None:
            self.partitions = server.shelf.partitions
        server.shelf = self

    async def open(
        self, partitions: Sequence[str], news: BrokerNews, nursery: trio.Nursery
    ) -> Mapping[str, Ends]:
        nursery.start_soon(self._watch, news)
        return await super().open(partitions, news, nursery)

    async def _watch(self, news: BrokerNews) -> None:
        while True:
            try:
                await self._server.answer(self._timeout)
            except LogError as error:
                news.lost(str(error))
            await trio.sleep(LOOK_SECONDS)

    async def append(self, partition: str, elements: Sequence[bytes]) -> int:
        first = await super().append(partition, elements)
        await self._server.group.append(partition, elements)
        return first

    async def _answer(self) -> None:
        await self._server.answer(self._timeout)


class RemoteMember(MemoryMember):
    """A member of a group on that server."""

    def __init__(self, server: FakeServer, timeout: float) -> None:
        super().__init__(server.group)
        self._server, self._timeout = server, timeout

    async def _answer(self) -> None:
        await self._server.answer(self._timeout)


class ForgetfulMember(RemoteMember):
    """The server forgets what was done."""

    async def acknowledge(self, records: Sequence[GroupRecord]) -> None:
        await self.give_back(records)


class SilentMember(RemoteMember):
    """Waits for a server that is away without an end."""

    async def _answer(self) -> None:
        while self._server.is_away or self._server.is_stalled:  # noqa: ASYNC110 (as above)
            await trio.sleep(LOOK_SECONDS)


def _remote(kind: type[RemoteMember] = RemoteMember) -> OutageBench:
    servers: list[FakeServer] = []

    @contextmanager
    def running() -> Iterator[FakeServer]:
        servers.append(FakeServer())
        yield servers[-1]

    def log(_: str, timeout: float) -> BrokerLog:
        return BrokerLog(RemoteShelf(servers[-1], timeout), retention=PLENTY)

    def group(_: str, timeout: float) -> BrokerGroup[Any]:
        return BrokerGroup(kind(servers[-1], timeout), acknowledge="by hand")

    return OutageBench(running, log, group)


async def test_a_log_and_a_group_that_keep_the_contract_pass(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Every check. A program of one's own writes such a bench for its server."""
    monkeypatch.setattr(_check_outages, "SHORT", 0.2)
    await check_outages(_remote())


async def test_a_group_that_forgets_what_was_done_is_caught() -> None:
    """The text names the sentence, and the element that came again."""
    with pytest.raises(OutageBroken, match="goes_on_after_a_kill: the next element"):
        await check_outages(_remote(ForgetfulMember))


@pytest.mark.heavy
async def test_a_group_that_waits_without_an_end_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """The bound of a check ends it."""
    monkeypatch.setattr(_check_outages, "SHORT", 0.2)
    monkeypatch.setattr(_check_outages, "WITHIN", 3.0)
    with pytest.raises(OutageBroken, match="of_a_server_that_is_away: nothing came within 3 s"):
        await check_outages(_remote(SilentMember))


async def test_a_log_that_loses_elements_is_caught() -> None:
    """The text names the sentence, and the elements."""
    with pytest.raises(OutageBroken, match="nothing_acknowledged_is_lost_or_repeated"):
        await check_outages(_bench(LosesElements))


async def test_a_log_that_does_not_tell_of_its_server_is_caught() -> None:
    """A server that stays away must be told."""
    with pytest.raises(OutageBroken, match="stays_away_is_told: append"):
        await check_outages(_bench(Opened))
