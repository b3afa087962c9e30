"""One worker process: how it starts, and how it ends."""

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

import penstock.blocking
from penstock.api import Limits, UsageError
from penstock.spi import Tls, TransportOptions
from penstock.workers._settings import WorkerSettings, unpickled
from tests._real_time import HANGS_AFTER
from tests.workers._program import program

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="it looks into /proc")


def test_a_worker_whose_parent_has_gone_does_not_start() -> None:
    """It has nothing to serve, and says nothing."""
    own, theirs = socket.socketpair()
    own.close()
    worker = subprocess.run(
        [sys.executable, "-P", "-m", "penstock.workers", *[str(theirs.fileno())] * 2],
        pass_fds=[theirs.fileno()],
        capture_output=True,
        timeout=HANGS_AFTER,
        check=False,
    )
    theirs.close()
    assert (worker.returncode, worker.stdout, worker.stderr) == (1, b"", b"")


def test_one_worker_that_is_told_to_drain_is_replaced(tmp_path: Path) -> None:
    """Its clients that are not served yet, and all new ones, go to others."""
    with program(tmp_path) as running:
        address = running.address
        first, _ = before = running.workers()
        os.kill(first, signal.SIGTERM)
        running.wait_for("ended with status 0; another one starts")
        found: set[int] = set()
        while not found - set(before):
            with penstock.blocking.connect(address) as peer:
                found.add(int(peer.request("who")))
        assert first not in found
        assert running.end() == 0


def test_settings_are_the_same_in_another_process() -> None:
    """Also the options of a plugin, which are a view of a mapping."""
    settings = WorkerSettings(
        service="a:b",
        urls=("tcp://127.0.0.1:0",),
        limits=Limits(drain=3.0),
        options=TransportOptions(extra={"http.idle": "20"}, tls=Tls(certificate="a.pem")),
        main="a:main",
    )
    assert unpickled(settings.pickled()) == settings


def test_an_argument_that_cannot_be_sent_is_refused() -> None:
    """With what to write in its place."""
    import ssl  # noqa: PLC0415 (only here)

    tls = Tls(context=ssl.create_default_context())
    settings = WorkerSettings(
        service="a:b", urls=(), limits=Limits(), options=TransportOptions(tls=tls)
    )
    with pytest.raises(UsageError, match="certificate="):
        settings.pickled()
