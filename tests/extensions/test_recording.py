"""The hooks of the plugin ``extensions`` record a process if the environment asks for it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests._real_time import HANGS_AFTER
from tests.recording._record import facts_of, rows_of

pytestmark = pytest.mark.slow  # each test starts a program

PROGRAM = """
import penstock, trio

service = penstock.Service()


@service.publisher("digits", serializer="json")
async def digits():
    for number in range(10):
        yield number


async def main():
    async with penstock.serve(service, "memory://x") as server, penstock.connect(server.addresses[0]) as peer:
        async with peer.subscribe("digits") as stream:
            print(len([number async for number in stream]))


trio.run(main)
"""


def _run(environment: dict[str, str]) -> str:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=HANGS_AFTER,
        check=True,
    )
    assert done.stderr == ""
    return done.stdout


def test_a_process_is_recorded_if_the_environment_asks_for_it(tmp_path: Path) -> None:
    """Both ends of its streams, with the peers; the last rows are written when the program ends."""
    assert _run({"PENSTOCK_RECORD": str(tmp_path)}) == "10\n"
    rows = rows_of(tmp_path)
    assert {row["outbound"] for row in rows} == {True, False}
    assert sum(row["n"] for row in rows if row["kind"] == 3) == 20
    assert facts_of(tmp_path)["ended"]


def test_a_process_is_not_recorded_otherwise(tmp_path: Path) -> None:
    """The hooks do not exist then."""
    assert _run({}) == "10\n"
    assert list(tmp_path.iterdir()) == []
