"""The examples of the page on Redis."""

import os
import subprocess
import sys
from pathlib import Path

from _redis_server import HANGS_AFTER, RedisServer

EXAMPLES = Path(__file__).parents[1] / "examples"
PAGE = EXAMPLES.parents[2] / "docs/how-to/redis.md"


def _printed(server: RedisServer, example: str) -> str:
    done = subprocess.run(
        [sys.executable, "-W", "error", EXAMPLES / f"{example}.py"],
        env={**os.environ, "REDIS_URL": server.url},
        capture_output=True,
        text=True,
        timeout=HANGS_AFTER,
        check=False,
    )
    assert done.stderr == ""
    return done.stdout


def test_the_example_of_a_log_prints_what_the_page_shows(redis: RedisServer) -> None:
    """Twice: the second run begins after what the first one has appended."""
    for _ in range(2):
        assert _printed(redis, "shared_orders") == "[b'from the shop', b'from the warehouse']\n"


def test_the_example_of_a_group_prints_what_the_page_shows(redis: RedisServer) -> None:
    """The orders of a customer are billed in order, and a broken one becomes a dead letter."""
    printed = _printed(redis, "redis_billing").splitlines()
    shown = PAGE.read_text().partition("```text\n3 orders\n")[2].partition("```")[0].splitlines()
    # The workers of the two customers are independent.
    assert sorted(printed) == sorted(["3 orders", *shown])
