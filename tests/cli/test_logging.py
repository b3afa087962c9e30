"""`-v` writes the access log to standard error."""

import json
import signal
import subprocess
import sys

import pytest

from tests._real_time import HANGS_AFTER
from tests.cli._programs import ROOT, line_of, penstock


def refused_by(address: str) -> None:
    """Ask for a name that does not exist."""
    command = [sys.executable, "-m", "penstock", "cat", f"{address}/no\x1b[2Jbody", "--quiet"]
    subprocess.run(command, capture_output=True, cwd=ROOT, timeout=HANGS_AFTER, check=False)


def test_serve_writes_a_line_for_a_refused_stream_and_one_for_its_connection() -> None:
    """With the time, the level and the logger in front."""
    with penstock("serve", "tests.cli._service:service", "tcp://127.0.0.1:0", "-v") as server:
        refused_by(line_of(server).split()[-1])
        stream, connection = line_of(server), line_of(server)
    assert ' INFO penstock.access: stream peer="127.0.0.1:' in stream
    assert (
        ' name="no\\x1b[2Jbody" outcome=refused reason="no publisher and no request has this '
        'name" elements=0 bytes=0'
    ) in stream
    assert ' INFO penstock.access: connection peer="127.0.0.1:' in connection
    assert " streams=1 elements=0 " in connection


def test_pub_writes_them_too() -> None:
    """It serves one publisher, under one name."""
    with penstock("pub", "tcp://127.0.0.1:0/lines", "--verbose") as publisher:
        refused_by(line_of(publisher).split("; ")[0].split()[-1])
        assert "outcome=refused" in line_of(publisher)
        assert "connection peer=" in line_of(publisher)


@pytest.mark.parametrize("workers", [(), ("--workers", "1")], ids=["alone", "workers"])
def test_the_lines_are_json_if_they_are_wanted_so(workers: tuple[str, ...]) -> None:
    """One object on each line, in each process."""
    with penstock(
        *("serve", "tests.cli._service:service", "tcp://127.0.0.1:0", "-v"),
        *("--log-format", "json", *workers),
    ) as server:
        refused_by(line_of(server).split()[-1])
        stream, connection = json.loads(line_of(server)), json.loads(line_of(server))
    assert (stream["logger"], stream["event"], stream["outcome"]) == (
        "penstock.access",
        "stream",
        "refused",
    )
    assert stream["name"] == "no\x1b[2Jbody"
    assert (connection["event"], connection["streams"]) == ("connection", 1)


def test_without_it_nothing_is_written() -> None:
    """The access log is for those who ask for it."""
    with penstock("serve", "tests.cli._service:service", "tcp://127.0.0.1:0") as server:
        refused_by(line_of(server).split()[-1])
        server.send_signal(signal.SIGTERM)
        assert server.stderr is not None
        assert server.stderr.read() == b"shutting down\n"
