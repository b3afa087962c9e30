"""The fetch of Node.js over real sockets: a client that is written without penstock."""

import shutil
from pathlib import Path

import pytest
import trio
from _site_in_memory import service

from penstock import serve

NODE = shutil.which("node")


@pytest.mark.skipif(NODE is None, reason="Node.js is not installed")
async def test_fetch_reads_a_streamed_batch_and_cancels() -> None:
    """With positions, to the completion; a POST without a body, as sendBeacon sends it, cancels."""
    script = Path(__file__).with_name("fetch.mjs")
    async with serve(service(), "http://127.0.0.1:0") as server:
        url = f"{server.addresses[0]}/p/numbers/5"
        done = await trio.run_process(
            ["node", str(script), url], capture_stdout=True, capture_stderr=True, check=False
        )
    assert done.stderr == b""
    assert done.stdout.decode().splitlines() == [
        *("0", "1", "2", "200 at 3"),
        *("3", "4", "200 at 5"),
        "410 at 5",
        "200",
        "404 true this subscription was cancelled",
    ]
