"""The example of the page runs on a broker, and prints what the page shows."""

import os
import re
import sys
from pathlib import Path

import trio
from _kafka_helpers import HANGS_AFTER, new_topic

from campaigns._kafka import LocalKafka

PLUGIN = Path(__file__).parents[1]
PAGE = PLUGIN.parents[1] / "docs/how-to/kafka.md"


def _shown(example: str) -> str:
    """Return what the page shows under an example."""
    found = re.search(rf"{example}\.py\n```.*?```text\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert found is not None
    return found.group(1)


async def _printed(kafka: LocalKafka, example: str) -> str:
    with trio.fail_after(HANGS_AFTER):
        done = await trio.run_process(
            [sys.executable, "-W", "error", PLUGIN / f"examples/{example}.py"],
            capture_stdout=True,
            env={**os.environ, "KAFKA_BROKERS": kafka.address},
        )
    return done.stdout.decode()


async def test_the_example_of_a_log_prints_what_the_page_shows(kafka: LocalKafka) -> None:
    """It appends to a topic of two partitions, and reads the end of it from a server."""
    await new_topic(kafka, 2, name="orders")
    assert await _printed(kafka, "kafka_orders") == _shown("kafka_orders")


async def test_the_example_of_a_group_prints_what_the_page_shows(kafka: LocalKafka) -> None:
    """The orders of a customer are billed in order, and a broken one becomes a dead letter."""
    for name in ("billing.orders", "billing.dead"):
        await new_topic(kafka, 1, name=name)
    printed = await _printed(kafka, "kafka_billing")
    # The workers of the two customers are independent.
    assert sorted(printed.splitlines()) == sorted(_shown("kafka_billing").splitlines())
