"""One thread at a time, one process, and no call from inside of a publisher."""

import subprocess
import sys
import threading
import time
from collections.abc import Iterator

import pytest

from penstock import blocking
from penstock.api import (
    PublisherFailed,
    StreamTimeout,
    UsageError,
)
from tests._real_time import HANGS_AFTER
from tests.contracts._trio_server import Served

SECONDS = HANGS_AFTER
"""No test reaches it; with it a fault fails and does not hang."""


def test_two_threads_at_once_are_refused(peer: blocking.Peer) -> None:
    """The second thread gets UsageError, and the first one its element."""
    refused: list[BaseException] = []
    with peer.subscribe("silent", timeout=2.0) as stream:
        elements = iter(stream)
        assert next(elements) == b"first"

        def intrude() -> None:
            while peer._keeper.guard._lock.acquire(
                blocking=False
            ):  # the first thread does not wait yet
                peer._keeper.guard._lock.release()
                time.sleep(0)
            try:
                peer.request("echo")
            except BaseException as error:  # judged below
                refused.append(error)

        intruder = threading.Thread(target=intrude)
        intruder.start()
        with pytest.raises(StreamTimeout):
            next(elements)
        intruder.join(SECONDS)
    assert [type(error) for error in refused] == [UsageError]
    assert "one thread at a time" in str(refused[0])


def test_a_peer_may_go_to_another_thread(served: Served) -> None:
    """One thread after another uses it."""
    answers: list[bytes] = []
    with blocking.connect(served.url) as peer:
        thread = threading.Thread(
            target=lambda: answers.append(peer.request("echo", b"there", timeout=SECONDS))
        )
        thread.start()
        thread.join(SECONDS)
        answers.append(peer.request("echo", b"here", timeout=SECONDS))
    assert answers == [b"there", b"here"]


def test_a_forked_process_is_refused(served: Served) -> None:
    """Two processes that read one socket would each get a part."""
    program = f"""
import os
from penstock import blocking
from penstock.api import UsageError
with blocking.connect({served.url!r}) as peer:
    child = os.fork()
    if not child:
        try:
            peer.request("echo")
        except UsageError as error:
            os._exit(0 if "forked" in str(error) else 2)
        os._exit(1)
    assert os.waitpid(child, 0)[1] == 0
    assert peer.request("echo", timeout=20) == b"nothing"
"""
    subprocess.run([sys.executable, "-W", "error", "-c", program], check=True, timeout=60)


def test_a_publisher_may_not_use_its_own_peer(served: Served) -> None:
    """The call inside of the publisher is refused, and fails that stream only."""
    peers: list[blocking.Peer] = []

    def asking() -> Iterator[bytes]:
        yield peers[0].request("echo")

    heard: list[Exception] = []
    with blocking.connect(
        served.url, publishers={"asking": asking}, on_violation=heard.append
    ) as peer:
        peers.append(peer)
        with pytest.raises(PublisherFailed):
            peer.request("collect?name=asking", timeout=SECONDS)
    assert [type(error) for error in heard] == [UsageError]
