"""`kafka://` leads to a partition of a topic."""

import sys

import pytest
import trio
from _kafka_helpers import HANGS_AFTER, new_log, numbered

import penstock
from campaigns._kafka import LocalKafka
from penstock.api import UsageError


async def test_the_command_line_reads_a_topic(kafka: LocalKafka) -> None:
    """`penstock cat kafka://…` prints a range."""
    async with new_log(kafka) as log:
        await log.append(numbered(0, 10))
        url = f"kafka://{kafka.address}/{log._topic}?start=7&stop=latest"  # its name
        with trio.fail_after(HANGS_AFTER):
            done = await trio.run_process(
                [sys.executable, "-m", "penstock", "cat", url], capture_stdout=True
            )
    assert done.stdout == b"element 7\nelement 8\nelement 9\n"


async def test_a_url_is_followed_within_the_demand(kafka: LocalKafka) -> None:
    """Without stop it waits for the next elements."""
    async with new_log(kafka) as log:
        await log.append(numbered(0, 3))
        source = penstock.remote(f"kafka://{kafka.address}/{log._topic}?start=1")  # its name
        with trio.fail_after(HANGS_AFTER):
            async with penstock.subscribe(source, demand=1) as stream:
                assert [await anext(stream), await anext(stream)] == numbered(1, 3)
                await log.append(numbered(3, 4))
                assert await anext(stream) == b"element 3"


async def test_a_partition_that_the_topic_lacks_is_named(kafka: LocalKafka) -> None:
    """The text has the partitions that it has."""
    async with new_log(kafka) as log:
        url = f"kafka://{kafka.address}/{log._topic}?partition=4"  # its name
        with trio.fail_after(HANGS_AFTER), pytest.raises(UsageError, match=r"\['0'\]"):
            await penstock.collect(penstock.remote(url))


@pytest.mark.parametrize(
    ("url", "text"),
    [
        ("kafka://127.0.0.1:9092", "names no partition of a topic"),
        ("kafka://127.0.0.1:9092/orders?from=5", "names no partition of a topic"),
        ("kafka://127.0.0.1:9092/orders?start=soon", "names no partition of a topic"),
        ("kafka://127.0.0.1:9092/or ders", "a topic of Kafka has a name"),
        ("kafka://alice:secret@127.0.0.1:9092/orders", "must not hold a user"),
    ],
)
def test_a_url_that_leads_nowhere_is_refused(url: str, text: str) -> None:
    """Before anything is opened, and without a password in the text."""
    with pytest.raises(UsageError, match=text) as caught:
        penstock.remote(url)
    assert "secret" not in str(caught.value)
