"""The example of the page on JetStream."""

import os
import subprocess
import sys
from pathlib import Path

from _nats_server import HANGS_AFTER, NatsServer

EXAMPLES = Path(__file__).parents[1] / "examples"


def test_the_example_prints_what_the_page_shows(nats: NatsServer) -> None:
    """Twice: the second run begins after what the first one has appended."""
    for _ in range(2):
        done = subprocess.run(
            [sys.executable, "-W", "error", EXAMPLES / "shared_orders.py"],
            env={**os.environ, "NATS_URL": nats.url},
            capture_output=True,
            text=True,
            timeout=HANGS_AFTER,
            check=False,
        )
        assert done.stderr == ""
        assert done.stdout == "[b'from the shop', b'from the warehouse']\n"
