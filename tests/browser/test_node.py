"""The JavaScript client in Node.js:
its own tests, and a server of penstock over a real WebSocket.
"""

import re

import pytest
import trio

import penstock
from tests._real_time import HANGS_AFTER
from tests.browser._cutting import serve_random_cuts
from tests.browser._programs import CLIENT, node_websocket, npm_package, run_node
from tests.browser._servers import SERVERS, serve_websocket
from tests.browser._service import service

OFFLINE = ("vectors", "streams", "keys", "requests", "connection", "reconnect", "http")
LIVE = str(CLIENT / "tests/live.test.js")
CUTS = str(CLIENT / "tests/cuts.test.js")


def _passed(output: str) -> int:
    """Return how many tests passed; none may have failed or been skipped."""
    counts = {
        word: int(number)
        for word, number in re.findall(r"^# (pass|fail|skipped) (\d+)$", output, re.MULTILINE)
    }
    assert counts["fail"] == counts["skipped"] == 0, output
    return counts["pass"]


@pytest.mark.parametrize("name", OFFLINE)
async def test_its_tests_without_a_network_pass(name: str) -> None:
    """Golden bytes, streams, requests, the connection and reconnecting: with a fake WebSocket or
    fetch and a clock that the tests move.
    """
    with trio.fail_after(HANGS_AFTER):
        output = await run_node(
            "--test", "--test-reporter=tap", str(CLIENT / f"tests/{name}.test.js")
        )
    assert _passed(output) > 0


def test_each_test_file_is_run() -> None:
    """A test file of the client that this module does not name would never run."""
    assert {
        path.name.removesuffix(".test.js") for path in (CLIENT / "tests").glob("*.test.js")
    } == {*OFFLINE, "live", "cuts"}


@pytest.mark.parametrize("kind", SERVERS)
async def test_it_reads_a_server_with_the_websocket_of_node(kind: str) -> None:
    """Streams, demand, large elements, requests and errors over the WebSocket that Node.js has."""
    options = node_websocket()
    with trio.fail_after(HANGS_AFTER):
        async with serve_websocket(kind, service) as url:
            output = await run_node(
                *options, "--test", "--test-reporter=tap", LIVE, PENSTOCK_URL=url
            )
    assert _passed(output) > 0


@pytest.mark.parametrize("kind", SERVERS)
async def test_it_reads_a_server_with_the_npm_package_ws(kind: str) -> None:
    """The same over the package `ws`, for a Node.js without a WebSocket."""
    folder = npm_package("ws")
    with trio.fail_after(HANGS_AFTER):
        async with serve_websocket(kind, service) as url:
            output = await run_node(
                "--test", "--test-reporter=tap", LIVE, PENSTOCK_URL=url, PENSTOCK_WS=folder
            )
    assert _passed(output) > 0


@pytest.mark.parametrize("seed", range(3))
async def test_a_log_arrives_once_wherever_its_connections_are_cut(seed: int) -> None:
    """400 elements over 40 connections that end after a random number of bytes, with `reconnect`.

    The client counts the positions that the server tells. Without that it began the log anew.
    """
    options, count = node_websocket(), 400
    log = penstock.RingLog(retention=penstock.Retention(max_count=count))
    for number in range(count):
        await log.append([b"%d %s" % (number, b"a" * 40)])
    logs = penstock.Service()
    logs.publish("log", log)
    with trio.fail_after(HANGS_AFTER):
        async with (
            serve_websocket("bridge", logs) as url,
            serve_random_cuts(url, seed, 40) as cut_url,
        ):
            output = await run_node(
                *options,
                *("--test", "--test-reporter=tap", CUTS),
                PENSTOCK_CUT_URL=cut_url,
                PENSTOCK_COUNT=str(count),
            )
    assert _passed(output) == 1


async def test_typescript_accepts_its_types() -> None:
    """`tsc --strict` accepts the calls of tests/types.ts, and refuses those
    that are marked there.
    """
    compiler, types = npm_package("typescript"), npm_package("@types/ws")
    with trio.fail_after(HANGS_AFTER):
        await run_node(
            f"{compiler}/bin/tsc",
            *(
                "--noEmit",
                "--strict",
                "--target",
                "es2022",
                "--lib",
                "es2022,dom",
                "--module",
                "nodenext",
            ),
            *("--typeRoots", types.removesuffix("/ws")),
            str(CLIENT / "tests/types.ts"),
        )
