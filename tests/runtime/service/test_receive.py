"""Peers write elements into a log, exactly once, or to a function, at least once."""

from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest
import trio
import trio.testing

from penstock.api import (
    Credentials,
    LogError,
    PenstockError,
    PublicError,
    PublisherFailed,
    UsageError,
)
from penstock.logs import DiskLog, Log, Retention, RingLog
from penstock.runtime import Peer, Received, Service, connect, receive, serve
from penstock.runtime.service import _receive
from penstock.runtime.service._staged_rows import pieces
from penstock.spi import PeerIdentity
from penstock.streams import collect


class Writer:
    """A peer that publishes what `rows` has at the time of the subscribe."""

    def __init__(self) -> None:
        self.service = Service()
        self.rows: Sequence[bytes] = []
        self.peer: Peer

        @self.service.publisher("rows")
        async def rows() -> AsyncIterator[bytes]:
            for row in self.rows:
                yield row

    async def stage(
        self, *rows: bytes, batch: int = 0, partition: int = 0, attempt: str = "a", more: str = ""
    ) -> Any:
        self.rows = rows
        name = f"orders/stage?query=q&run=r&batch={batch}&partition={partition}&attempt={attempt}{more}"
        return await self.peer.request(name, serializer="json")

    async def commit(self, *attempts: tuple[int, str, int], batch: int = 0, **more: str) -> Any:
        payload = {"query": "q", "batch": batch, "attempts": attempts, **more}
        return await self.peer.request("orders/commit", payload, serializer="json")


async def contents(log: Log, partition: str = "0") -> list[bytes]:
    return await collect(log.source(partition, stop="latest"))


def ring(*partitions: str) -> RingLog:
    return RingLog(retention=Retention(max_count=1_000_000), partitions=partitions or ("0",))


class Meeting:
    """A server that receives into a target, and a writer that is connected to it."""

    def __init__(self, target: Any, **options: Any) -> None:
        self.service = Service()
        receive(self.service, "orders", target, **options)
        self.writer = Writer()

    async def __aenter__(self) -> Writer:
        self.server = serve(self.service, "memory://shop")
        await self.server.__aenter__()
        self.block = connect("memory://shop", service=self.writer.service)
        self.writer.peer = await self.block.__aenter__()
        return self.writer

    async def __aexit__(self, *error: object) -> None:
        await self.block.__aexit__(*error)
        await self.server.__aexit__(*error)


async def test_a_batch_is_appended_when_it_is_committed(autojump_clock: object) -> None:
    """In the order of its partitions; nothing of it can be read before."""
    log = ring()
    async with Meeting(log) as writer:
        assert await writer.stage(b"3", b"4", partition=1) == {"elements": 2, "is_staged": True}
        assert await writer.stage(b"1", b"2") == {"elements": 2, "is_staged": True}
        assert await contents(log) == []
        assert await writer.commit((1, "a", 2), (0, "a", 2)) == {"is_first": True}
        assert await contents(log) == [b"1", b"2", b"3", b"4"]


async def test_only_the_attempt_that_is_named_counts(autojump_clock: object) -> None:
    """A task that was repeated has staged twice."""
    log = ring()
    async with Meeting(log) as writer:
        await writer.stage(b"dead", attempt="first")
        await writer.stage(b"1", attempt="second")
        await writer.commit((0, "second", 1))
        assert await contents(log) == [b"1"]


async def test_a_batch_that_is_committed_again_is_appended_once(autojump_clock: object) -> None:
    """The answer to the commit was lost, or the batch was staged again."""
    log = ring()
    async with Meeting(log) as writer:
        await writer.stage(b"1")
        assert await writer.commit((0, "a", 1)) == {"is_first": True}
        assert await writer.commit((0, "a", 1)) == {"is_first": False}
        await writer.stage(b"1", attempt="again")
        assert await writer.commit((0, "again", 1)) == {"is_first": False}
        assert await contents(log) == [b"1"]


async def test_a_batch_is_appended_once_across_a_restart_of_the_receiver(tmp_path: Path) -> None:
    """The log knows the id of the batch."""
    for _ in range(2):
        async with (
            DiskLog(tmp_path / "orders", retention=Retention(max_count=1_000)) as log,
            Meeting(log) as writer,
        ):
            await writer.stage(b"1")
            await writer.commit((0, "a", 1))
            assert await contents(log) == [b"1"]


async def test_a_commit_after_a_restart_of_a_receiver_in_memory_fails(
    autojump_clock: object,
) -> None:
    """The staged elements are gone, so nothing is appended,
    and the text says to repeat the batch. `test_staged_rows.py` has the restarts of a `DiskLog`.
    """
    log = ring()
    async with Meeting(log) as writer:
        await writer.stage(b"1")
    async with Meeting(log) as writer:
        with pytest.raises(PublisherFailed, match="Start the query again: it repeats the batch"):
            await writer.commit((0, "a", 1))
        assert await contents(log) == []


async def test_an_aborted_batch_cannot_be_committed(autojump_clock: object) -> None:
    """And its memory is free."""
    log = ring()
    async with Meeting(log) as writer:
        await writer.stage(b"1")
        await writer.peer.request(
            "orders/abort", {"query": "q", "batch": 0, "run": "r"}, serializer="json"
        )
        with pytest.raises(PublisherFailed, match="is not staged here"):
            await writer.commit((0, "a", 1))


@pytest.mark.parametrize("ends", ["commit", "abort"])
async def test_no_writer_can_end_the_batch_of_another(ends: str, autojump_clock: object) -> None:
    """Another principal commits the same batch without elements, or drops it. Then the writer
    commits it.
    """

    def principal(_scheme: str, data: bytes, _peer: PeerIdentity) -> str:
        return data.decode()

    log, service = ring(), Service(authenticate=principal)
    receive(service, "orders", log)
    ada, eve = Writer(), Writer()
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(serve(service, "memory://shop"))
        for name, writer in (("ada", ada), ("eve", eve)):
            writer.peer = await stack.enter_async_context(
                connect(
                    "memory://shop",
                    service=writer.service,
                    credentials=Credentials("bearer", name.encode()),
                )
            )
        await ada.stage(b"1", b"2")
        if ends == "commit":
            assert await eve.commit() == {"is_first": True}
            with pytest.raises(PublisherFailed, match="is not staged here"):
                await eve.commit((0, "a", 2), batch=1)
        else:
            abort = {"query": "q", "batch": 0, "run": "r"}
            assert await eve.peer.request("orders/abort", abort, serializer="json") == {}
        assert await ada.commit((0, "a", 2)) == {"is_first": True}
        assert await ada.commit((0, "a", 2)) == {"is_first": False}
    assert await contents(log) == [b"1", b"2"]


async def test_a_batch_is_refused_if_the_log_lacks_the_one_before(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The receiver was put back from a backup, as here, or the log is new. Nothing of the batch is
    appended until the operator allows it.
    """
    first, backup = tmp_path / "first", tmp_path / "backup"
    async with DiskLog(first, retention=Retention(max_count=1_000)) as log, Meeting(log) as writer:
        for batch in range(4):
            await writer.stage(b"%d" % batch, batch=batch)
            await writer.commit((0, "a", 1), batch=batch)
            if batch == 1:
                await log.backup(backup)
    async with DiskLog(backup, retention=Retention(max_count=1_000)) as log, Meeting(log) as writer:
        await writer.stage(b"4", batch=4)
        with pytest.raises(PublisherFailed) as refused:
            await writer.commit((0, "a", 1), batch=4)
        text = str(refused.value)
        assert "batch 4 of query 'q' was not committed" in text
        assert "does not have batches 2 to 3 of this query" in text
        assert "put back from a backup" in text
        assert "let the query go back to batch 2" in text
        assert "option missingBatches" in text
        assert await contents(log) == [b"0", b"1"]
        # It is still staged.
        assert await writer.commit((0, "a", 1), batch=4, missing_batches="accept") == {
            "is_first": True
        }
        assert "does not have batches 2 to 3 before it" in caplog.text
        await writer.stage(b"5", batch=5)
        await writer.commit((0, "a", 1), batch=5)
        assert await contents(log) == [b"0", b"1", b"4", b"5"]


async def test_the_first_batch_of_a_query_is_0(autojump_clock: object) -> None:
    """A new log below an old checkpoint lacks what came before. The receiver may accept that."""
    log = ring()
    async with Meeting(log) as writer:
        await writer.stage(b"2", batch=2)
        with pytest.raises(PublisherFailed, match="does not have batches 0 to 1 of"):
            await writer.commit((0, "a", 1), batch=2)
    async with Meeting(log, missing_batches="accept") as writer:
        await writer.stage(b"2", batch=2)
        assert await writer.commit((0, "a", 1), batch=2) == {"is_first": True}


async def test_an_empty_batch_counts(autojump_clock: object) -> None:
    """It has no attempts."""
    log = ring()
    async with Meeting(log) as writer:
        assert await writer.commit() == {"is_first": True}
        assert await writer.commit() == {"is_first": False}
        await writer.stage(b"1", batch=1)
        assert await writer.commit((0, "a", 1), batch=1) == {"is_first": True}


async def test_a_writer_that_has_gone_back_is_refused_if_it_asks_for_that(
    tmp_path: Path,
) -> None:
    """Its checkpoint was put back from an older copy: batch 1 would have other elements than the
    log has. Also after a restart of the receiver. The newest batch may be repeated.
    """
    path, refuse = tmp_path / "orders", {"changed_batches": "refuse"}
    async with DiskLog(path, retention=Retention(max_count=1_000)) as log, Meeting(log) as writer:
        for batch in range(3):
            await writer.stage(b"%d" % batch, batch=batch)
            await writer.commit((0, "a", 1), batch=batch, **refuse)
        # The answer was lost.
        assert await writer.commit((0, "a", 1), batch=2, **refuse) == {"is_first": False}
    async with DiskLog(path, retention=Retention(max_count=1_000)) as log, Meeting(log) as writer:
        await writer.stage(b"1", b"2", b"3", batch=1)
        with pytest.raises(PublisherFailed) as refused:
            await writer.commit((0, "a", 3), batch=1, **refuse)
        text = str(refused.value)
        assert "has a batch of this number already, and batch 2 after it" in text
        assert "give the query its newest checkpoint" in text
        assert "option changedBatches" in text
        assert await writer.commit((0, "a", 3), batch=1) == {"is_first": False}
        assert await contents(log) == [b"0", b"1", b"2"]


async def test_a_newest_batch_with_other_elements_is_refused(autojump_clock: object) -> None:
    """By their number, as long as the receiver runs: of two queries with copies of one checkpoint,
    or of a copy that is one batch old.
    """
    log = ring()
    async with Meeting(log) as writer:
        await writer.stage(b"1", b"2")
        await writer.commit((0, "a", 2), changed_batches="refuse")
        await writer.stage(b"1", b"2", b"3", attempt="b")
        with pytest.raises(PublisherFailed, match="elements: 2, and this commit has 3"):
            await writer.commit((0, "b", 3), changed_batches="refuse")
        accepted = await writer.commit((0, "b", 3), changed_batches="accept")
        assert accepted == {"is_first": False}
        assert await contents(log) == [b"1", b"2"]


async def test_of_two_commits_at_once_the_one_with_other_elements_is_refused(
    autojump_clock: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second one comes while the first is being written. One of the same number of elements is
    a commit whose answer was lost.
    """
    log, go_on = ring(), trio.Event()
    transaction = log.transaction

    def slow(transaction_id: str, **bounds: int) -> Any:
        made = transaction(transaction_id, **bounds)
        publish = made.publish

        async def publish_later() -> bool:
            await go_on.wait()
            return await publish()

        made.publish = publish_later  # type: ignore[method-assign]  # to hold it up
        return made

    monkeypatch.setattr(log, "transaction", slow)
    answers = []
    async with Meeting(log) as writer, trio.open_nursery() as nursery:
        await writer.stage(b"1", b"2")
        await writer.stage(b"3", attempt="b")

        async def commit() -> None:
            answers.append(await writer.commit((0, "a", 2), changed_batches="refuse"))

        nursery.start_soon(commit)
        await trio.testing.wait_all_tasks_blocked()
        with pytest.raises(PublisherFailed, match="elements: 2, and this commit has 1"):
            await writer.commit((0, "b", 1), changed_batches="refuse")
        nursery.start_soon(commit)
        await trio.testing.wait_all_tasks_blocked()
        go_on.set()
    assert sorted(each["is_first"] for each in answers) == [False, True]
    assert await contents(log) == [b"1", b"2"]


async def test_a_batch_that_failed_may_come_with_other_elements(
    autojump_clock: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing of it was appended."""
    log = ring()
    transaction = log.transaction

    def failing(transaction_id: str, **bounds: int) -> Any:
        monkeypatch.undo()
        made = transaction(transaction_id, **bounds)

        async def publish() -> bool:
            raise LogError("no room")

        made.publish = publish  # type: ignore[method-assign]  # as on a full disk
        return made

    monkeypatch.setattr(log, "transaction", failing)
    async with Meeting(log) as writer:
        await writer.stage(b"1", b"2")
        with pytest.raises(PublisherFailed, match="no room"):
            await writer.commit((0, "a", 2), changed_batches="refuse")
        await writer.stage(b"3", attempt="b")
        assert await writer.commit((0, "b", 1), changed_batches="refuse") == {"is_first": True}
        assert await contents(log) == [b"3"]


async def test_the_numbers_of_elements_of_many_queries_are_bounded(
    autojump_clock: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The queries that have committed last are remembered."""
    monkeypatch.setattr(_receive, "MOST_COUNTED", 2)
    async with Meeting(ring()) as writer:
        for query in ("one", "two", "three"):
            payload = {"query": query, "batch": 0, "attempts": [], "changed_batches": "refuse"}
            await writer.peer.request("orders/commit", payload, serializer="json")
        for query, is_known in (("one", False), ("three", True)):
            payload = {"query": query, "batch": 0, "attempts": [(0, "a", 1)]}
            payload["changed_batches"] = "refuse"
            if is_known:
                with pytest.raises(PublisherFailed, match="elements: 0, and this commit has 1"):
                    await writer.peer.request("orders/commit", payload, serializer="json")
            else:
                await writer.peer.request("orders/commit", payload, serializer="json")


async def test_an_error_names_a_bounded_number_of_missing_batches(autojump_clock: object) -> None:
    """A writer may claim any number of a batch, and the search must not hold the loop."""
    async with Meeting(ring()) as writer:
        with pytest.raises(
            PublisherFailed,
            match=f"the 1,000 batches from {2**62 - 1000} to {2**62 - 1}, and maybe others",
        ):
            await writer.commit(batch=2**62)


async def test_a_writer_says_what_happens_to_missing_batches_in_two_words(
    autojump_clock: object,
) -> None:
    """Another word is refused on both sides."""
    async with Meeting(ring()) as writer:
        with pytest.raises(PenstockError):
            await writer.commit(missing_batches="maybe")
    with pytest.raises(UsageError, match="give 'refuse' or 'accept'"):
        receive(Service(), "orders", ring(), missing_batches="maybe")  # type: ignore[arg-type]  # on purpose


async def test_partitions_of_the_writer_are_spread_over_those_of_the_log(
    autojump_clock: object,
) -> None:
    """If the writer names one, all elements go there."""
    log = ring("east", "west")
    async with Meeting(log) as writer:
        for partition in range(3):
            await writer.stage(b"%d" % partition, partition=partition)
        await writer.commit((0, "a", 1), (1, "a", 1), (2, "a", 1))
        await writer.stage(b"named", batch=1, more="&into=west")
        await writer.commit((0, "a", 1), batch=1)
        assert (await contents(log, "east"), await contents(log, "west")) == (
            [b"0", b"2"],
            [b"1", b"named"],
        )
        with pytest.raises(PublisherFailed, match="has no partition"):
            await writer.stage(b"x", more="&into=north")


async def test_staged_elements_are_bounded(autojump_clock: object) -> None:
    """The writer gets the bound, and the part that was staged is dropped."""
    log = ring()
    async with Meeting(log, max_staged_bytes=50_000) as writer:
        with pytest.raises(PublisherFailed, match=r"max_staged_bytes=50,000"):
            await writer.stage(*[bytes(1_000)] * 100)
        assert await writer.stage(*[bytes(1_000)] * 40) == {"elements": 40, "is_staged": True}


async def test_a_batch_may_be_larger_than_one_append(tmp_path: Path) -> None:
    """65 MiB, in one transaction of the log. Its bound is that of the receiver."""
    rows = [bytes(2**20) for _ in range(65)]
    async with (
        DiskLog(tmp_path / "orders", retention=Retention(max_count=1_000)) as log,
        Meeting(log) as writer,
    ):
        await writer.stage(*rows)
        assert await writer.commit((0, "a", 65)) == {"is_first": True}
        assert log.latest() == {"0": 65}


def test_elements_are_given_to_a_transaction_in_pieces_that_it_takes() -> None:
    """By count, and by bytes if they are large."""
    small, large = [b"x"] * 10_001, [bytes(2**20)] * 65
    assert [len(piece) for piece in pieces(small)] == [10_000, 1]
    assert [len(piece) for piece in pieces(large)] == [16, 16, 16, 16, 1]
    assert [len(piece) for piece in pieces(large[:64])] == [64]
    assert list(pieces([])) == []


async def test_a_batch_that_the_log_cannot_keep_is_refused_with_what_to_do(
    autojump_clock: object,
) -> None:
    """Its retention is lower than the batch."""
    async with Meeting(RingLog(retention=Retention(max_count=2))) as writer:
        await writer.stage(b"1", b"2", b"3")
        with pytest.raises(
            PublisherFailed,
            match=r"Retention\(max_count=2\).*open the log with a higher bound.*maxElementsPerTrigger",
        ):
            await writer.commit((0, "a", 3))


async def test_the_demand_of_the_receiver_sets_the_pace_of_the_writer(
    autojump_clock: object,
) -> None:
    """A function that does not return holds the writer up."""
    pulled = 0
    go_on = trio.Event()
    got: list[Received] = []

    async def take(received: Received) -> None:
        got.append(received)
        await go_on.wait()

    meeting = Meeting(take)

    async with meeting as writer, trio.open_nursery() as nursery:
        rows = [b"x"] * 100_000

        class Counted(list[bytes]):
            """Counts the elements that are pulled."""

            def __iter__(self) -> Any:
                nonlocal pulled
                for pulled, row in enumerate(rows, 1):  # noqa: B007  # read by the test
                    yield row

        async def stage() -> None:
            writer.rows = Counted()
            name = "orders/stage?query=q&run=r&batch=3&partition=2&attempt=a"
            assert await writer.peer.request(name, serializer="json") == {
                "elements": 100_000,
                "is_staged": False,
            }

        nursery.start_soon(stage)
        await trio.sleep(30)
        assert 0 < pulled < 30_000
        go_on.set()
    assert [(each.query, each.batch, each.partition) for each in got] == [("q", 3, 2)] * len(got)
    assert [each.first for each in got[:2]] == [0, len(got[0].elements)]
    assert sum(len(each.elements) for each in got) == 100_000


async def test_a_function_takes_elements_of_any_principal(autojump_clock: object) -> None:
    """It keeps no batch that another writer could end."""
    got: list[bytes] = []

    async def take(received: Received) -> None:
        got.extend(received.elements)

    writer, service = Writer(), Service(authenticate=lambda *_: object())
    receive(service, "orders", take)
    async with (
        serve(service, "memory://shop"),
        connect(
            "memory://shop", service=writer.service, credentials=Credentials("bearer", b"x")
        ) as writer.peer,
    ):
        assert await writer.stage(b"1") == {"elements": 1, "is_staged": False}
        assert await writer.commit((0, "a", 1)) == {"is_first": True}
    assert got == [b"1"]


async def test_a_failing_function_fails_the_writer(autojump_clock: object) -> None:
    """The batch is then repeated."""

    async def take(received: Received) -> None:
        raise LogError("secret")

    async with Meeting(take) as writer:
        with pytest.raises(PublisherFailed):
            await writer.stage(b"1")
        assert await writer.commit((0, "a", 1)) == {"is_first": True}


async def take_all(_: Received) -> None:
    """A function that receives."""


@pytest.mark.parametrize("target", [ring(), take_all], ids=["log", "function"])
async def test_a_writer_learns_what_is_wrong_with_its_rows(
    autojump_clock: object, target: Any
) -> None:
    """It publishes none, or they fail."""
    stage = "orders/stage?query=q&run=r&batch=0&partition=0&attempt=a"
    failing = Service()

    @failing.publisher("rows")
    async def rows() -> AsyncIterator[bytes]:
        yield b"1"
        raise PublicError("the disk is gone")

    async with Meeting(target):
        for service, text in (
            (None, "for its publisher 'rows', and it refused: .*no such publisher.*on the conn"),
            (Service(), "with a publisher 'rows'"),
            (failing, "the publisher 'rows' of the writer failed: the disk is gone"),
        ):
            async with connect("memory://shop", service=service) as peer:
                with pytest.raises(PublisherFailed, match=text):
                    await peer.request(stage)


async def test_a_full_log_fails_the_commit_with_its_text(autojump_clock: object) -> None:
    """And the batch can be committed when there is room: it is still staged."""
    log = ring()
    async with Meeting(log) as writer:
        await writer.stage(b"1")
        real, fails = log._submit, True

        async def submit(work: Any) -> Any:
            if fails:
                raise LogError("there is no room on the disk")
            return await real(work)

        log._submit = submit  # type: ignore[method-assign]  # a disk that is full for one call
        with pytest.raises(
            PublisherFailed, match="batch 0 was not committed: there is no room on the disk"
        ):
            await writer.commit((0, "a", 1))
        fails = False
        assert await writer.commit((0, "a", 1)) == {"is_first": True}
        assert await contents(log) == [b"1"]


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("query=&run=r&batch=0&partition=0&attempt=a", "an id has 1 to 200 bytes"),
        (f"query={'q' * 201}&run=r&batch=0&partition=0&attempt=a", "an id has 1 to 200 bytes"),
        ("query=q&run=r&batch=-1&partition=0&attempt=a", "the number of a batch"),
    ],
)
async def test_ids_that_cannot_be_kept_are_refused(
    query: str, text: str, autojump_clock: object
) -> None:
    """With what is allowed."""
    async with Meeting(ring()) as writer:
        with pytest.raises(PublisherFailed, match=text):
            await writer.peer.request(f"orders/stage?{query}", serializer="json")


@pytest.mark.parametrize("target", [None, "orders", Received, lambda received: None])
def test_a_target_is_a_log_or_an_async_function(target: Any) -> None:
    """Other things are refused when the program starts."""
    with pytest.raises(UsageError, match="a log, a dict of logs by name, or an async function"):
        receive(Service(), "orders", target)


@pytest.mark.parametrize(
    "options", [{"max_staged_bytes": 0}, {"max_staged_bytes": 1.5}, {"max_staged_seconds": 0}]
)
def test_bounds_are_positive(options: dict[str, Any]) -> None:
    """Zero would refuse everything."""
    with pytest.raises(UsageError, match="max_staged"):
        receive(Service(), "orders", ring(), **options)


async def test_a_handler_subscribes_to_the_peer_that_asks(autojump_clock: object) -> None:
    """With the identity that it gets; one that came without a connection says so."""
    service = Service()

    @service.request("count")
    async def count(peer: PeerIdentity) -> str:
        async with peer.connected().subscribe("rows") as stream:
            return str(len([row async for row in stream]))

    first, second = Writer(), Writer()
    first.rows, second.rows = [b"1"], [b"1", b"2"]
    async with (
        serve(service, "memory://shop"),
        connect("memory://shop", service=first.service) as one,
        connect("memory://shop", service=second.service) as two,
    ):
        assert (await one.request("count", type=str), await two.request("count", type=str)) == (
            "1",
            "2",
        )
    with pytest.raises(UsageError, match="cannot be subscribed to"):
        PeerIdentity(address="test").connected()
