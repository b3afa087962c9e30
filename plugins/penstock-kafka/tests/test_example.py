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


async def test_the_example_prints_what_the_page_shows(kafka: LocalKafka) -> None:
    """It appends to a topic of two partitions, and reads the end of it from a server."""
    await new_topic(kafka, 2, name="orders")
    shown = re.search(r"kafka_orders\.py.*?```text\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert shown is not None
    with trio.fail_after(HANGS_AFTER):
        done = await trio.run_process(
            [sys.executable, "-W", "error", PLUGIN / "examples/kafka_orders.py"],
            capture_stdout=True,
            env={**os.environ, "KAFKA_BROKERS": kafka.address},
        )
    assert done.stdout.decode() == shown.group(1)
