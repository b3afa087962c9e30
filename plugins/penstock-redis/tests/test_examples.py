"""The example of the page on Redis."""

import os
import subprocess
import sys
from pathlib import Path

from _redis_server import HANGS_AFTER, RedisServer

EXAMPLES = Path(__file__).parents[1] / "examples"


def test_the_example_prints_what_the_page_shows(redis: RedisServer) -> None:
    """Twice: the second run begins after what the first one has appended."""
    for _ in range(2):
        done = subprocess.run(
            [sys.executable, "-W", "error", EXAMPLES / "shared_orders.py"],
            env={**os.environ, "REDIS_URL": redis.url},
            capture_output=True,
            text=True,
            timeout=HANGS_AFTER,
            check=False,
        )
        assert done.stderr == ""
        assert done.stdout == "[b'from the shop', b'from the warehouse']\n"
