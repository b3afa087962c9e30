"""The rows of a task go to the partitions of their keys, in one log or in several."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from penstock.api import PublisherFailed, partition_of
from penstock.logs import Retention, RingLog
from penstock.runtime import Received
from penstock.spi import Record
from tests.runtime.service.test_receive import Meeting, contents, ring


def rows(*values: Any) -> list[bytes]:
    """Return records as a writer sends them: MessagePack arrays."""
    return [msgspec.msgpack.encode(value) for value in values]


async def test_rows_go_to_the_partition_of_their_key_in_their_order(
    autojump_clock: object,
) -> None:
    """Rows of one key are in one partition, in the order of the tasks and of their rows, and a row
    without a key goes where its task goes. A partition that a row names counts more than its key.
    """
    names = ("east", "west", "north")
    log = ring(*names)
    keys = [b"customer-%d" % number for number in range(20)]
    expected: dict[str, list[bytes]] = {name: [] for name in names}
    async with Meeting(log) as writer:
        for task in range(2):
            sent = [(b"%d %b" % (task, key), key) for key in keys]
            await writer.stage(*rows(*sent), partition=task, more="&routed=true")
            for value, key in sent:
                expected[partition_of(key, names)].append(value)
        await writer.stage(
            *rows((b"plain",), (b"named", b"k", (), "north"), (b"nil", None, (), None)),
            partition=4,
            more="&routed=true",
        )
        expected["west"] += [b"plain", b"nil"]
        expected["north"].append(b"named")
        assert await writer.commit((4, "a", 3), (0, "a", 20), (1, "a", 20)) == {"is_first": True}
        assert {name: await contents(log, name) for name in names} == expected
        assert await writer.commit((4, "a", 3), (0, "a", 20), (1, "a", 20)) == {"is_first": False}


async def test_rows_choose_among_several_logs(autojump_clock: object) -> None:
    """Each log gets its part of a batch, once; it gets an empty one as well, so that it has the
    batch before when the next one comes.
    """
    logs = {"eu": ring("0", "1"), "us": ring()}
    async with Meeting(logs) as writer:
        for batch, sent in enumerate((["eu", "us", "eu"], ["us"], ["eu"])):
            await writer.stage(
                *rows(*[(b"%d" % batch, b"k", (), None, name) for name in sent]),
                batch=batch,
                more="&routed=true",
            )
            assert await writer.commit((0, "a", len(sent)), batch=batch) == {"is_first": True}
        place = partition_of(b"k", ("0", "1"))
        assert await contents(logs["eu"], place) == [b"0", b"0", b"2"]
        assert await contents(logs["us"]) == [b"0", b"1"]


async def test_a_batch_goes_to_the_logs_that_lack_it_after_a_failure(tmp_path: Path) -> None:
    """One of two logs could not keep it. When its writer repeats the batch, the other one does not
    get it again.
    """
    small = RingLog(retention=Retention(max_bytes=100, acknowledged=True))
    logs = {"first": ring(), "small": small}
    async with Meeting(logs) as writer:
        sent = rows((b"1", None, (), None, "first"), (b"2" * 200, None, (), None, "small"))
        await writer.stage(*sent, more="&routed=true")
        with pytest.raises(PublisherFailed, match="batch 0 was not committed"):
            await writer.commit((0, "a", 2))
        await writer.stage(
            *rows((b"1", None, (), None, "first"), (b"2", None, (), None, "small")),
            more="&routed=true",
        )
        assert await writer.commit((0, "a", 2)) == {"is_first": True}
        assert (await contents(logs["first"]), await contents(small)) == ([b"1"], [b"2"])


@pytest.mark.parametrize(
    ("row", "text"),
    [
        (
            (b"x", None, (), "south", "eu"),
            "a row has another place: a record names the partition 'south', and the log has",
        ),
        ((b"x", None, (), None, "asia"), "a row has the name 'asia', and this receiver has logs"),
        ((b"x", None, (), None, ""), "a row has no name"),
        ((b"x", None, (("a", b"1"),), None, "eu"), "receive\\(..., records=True\\)"),
        ((b"x", None, (("a", b""),) * 65, None, "eu"), "array` of length <= 64"),
        ((b"x", "text"), "MessagePack array of the value, the key"),
        ((b"x", None, (), None, None, "later"), "MessagePack array"),
        ("x", "MessagePack array"),
        ((), "MessagePack array"),
    ],
)
async def test_a_row_without_a_place_here_is_refused_with_what_to_do(
    row: Any, text: str, autojump_clock: object
) -> None:
    """Nothing of its task is staged, and the next one is taken."""
    async with Meeting({"eu": ring("0", "1"), "us": ring()}) as writer:
        with pytest.raises(PublisherFailed, match=text):
            await writer.stage(*rows((b"1", None, (), None, "eu"), row), more="&routed=true")
        with pytest.raises(PublisherFailed, match="is not staged here"):
            await writer.commit((0, "a", 1))
        await writer.stage(*rows((b"1", None, (), None, "eu")), more="&routed=true")
        assert await writer.commit((0, "a", 1)) == {"is_first": True}


async def test_elements_without_names_are_refused_by_several_logs(autojump_clock: object) -> None:
    """They cannot be divided."""
    async with Meeting({"eu": ring(), "us": ring()}) as writer:
        with pytest.raises(PublisherFailed, match="give each row one of them"):
            await writer.stage(b"1")


async def test_a_task_without_rows_is_committed(autojump_clock: object) -> None:
    """Its commit names it, with no rows."""
    log = ring()
    async with Meeting(log) as writer:
        await writer.stage(more="&routed=true")
        await writer.commit((0, "a", 0))
        assert await contents(log) == []


async def test_a_log_of_records_keeps_keys_and_headers(autojump_clock: object) -> None:
    """An element that a writer sends without them is a record as well. Where a record went is not
    part of it.
    """
    log = ring("0", "1")
    async with Meeting(log, records=True) as writer:
        headers = (("a", b"1"), ("a", b""))
        await writer.stage(
            *rows((b"1", b"k", headers, "1"), (b"2", b""), (b"3",)), more="&routed=true"
        )
        await writer.stage(b"plain", partition=1)
        await writer.commit((0, "a", 3), (1, "a", 1))
        found = {name: await contents(log, name) for name in log.partitions}
        assert {name: [*map(Record.unpack, each)] for name, each in found.items()} == {
            "0": [Record(b"2", b""), Record(b"3")],
            "1": [Record(b"1", b"k", headers), Record(b"plain")],
        }


async def test_a_function_gets_the_rows(autojump_clock: object) -> None:
    """Their values are the elements, as without records."""
    seen: list[Received] = []

    async def take(received: Received) -> None:
        seen.append(received)

    async with Meeting(take) as writer:
        await writer.stage(*rows((b"1", b"k"), (b"2",)), more="&routed=true")
        await writer.stage(b"3")
    assert [value for each in seen for value in each.elements] == [b"1", b"2", b"3"]
    assert [(row.value, row.key) for each in seen for row in each.records] == [
        (b"1", b"k"),
        (b"2", None),
    ]
