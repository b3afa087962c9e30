"""Servers and clients of RSocket by several libraries, each checked against the requirements.

`python -m campaigns wire_rsocket` prints two tables, of servers and of clients: a row for each
requirement that some of them does not pass, a column for each of them. It needs rsocket-py; Java 17 and Maven for rsocket-java; Node.js
and the packages of its row in campaigns/table.toml for rsocket-js. With ``--short`` only penstock
and rsocket-py are checked. It exits with 1 if a result differs from `EXPECTED`.
"""

import argparse
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TypeAlias

import trio
from penstock_rsocket.checks import TABLE
from penstock_tck.wire import (
    Requirement,
    Result,
    Target,
    Verdict,
    check_client,
    check_target,
)

from campaigns._maven import COMMON_JAVA, rsocket_java
from penstock.spi import parse_url

HERE = Path(__file__).parent
WITH_LEASES = ("lease-granted", "lease-exceeded")
"""The requirements that rsocket-java is asked for once more, with leases."""
MARKS = {Verdict.PASS: "ok", Verdict.FAIL: "fails", Verdict.NOT_SUPPORTED: "–"}
EXPECTED: dict[str, set[str]] = {
    "penstock": set(),
    "rsocket-py": {
        "channel-first-counts",
        "channel-follows-complete",
        "channel-fragments-complete",
        "channel-fragments-complete-alone",
        "fragments-cancelled",
        "id-of-server",
        "id-zero",
        "lease-exceeded",
        "lease-granted",
        "metadata-length",
        "response",
        "resume-after-setup",
        "setup-cut",
        "setup-first",
        "setup-first-keepalive",
        "setup-refused",
        "setup-refused-requests",
        "setup-resume",
        "setup-stream-zero",
        "setup-version",
        "stream-cancelled-first",
    },
    "rsocket-java": {
        "channel-fragments-complete-alone",
        "channel-goes-on",
        "ext-ignored",
        "ext-refused",
        "fragments-small",
        "id-zero",
        "metadata-length",
        "resume-after-setup",
        "setup-cut",
        "setup-once",
        "setup-resume",
        "setup-stream-zero",
        "type-ignored",
        "unknown-cancel",
        "unknown-error",
        "unknown-payload",
        "unknown-request-n",
    },
    "rsocket-java, leases": set(),
    "rsocket-js": {
        "channel-complete-first",
        "channel-fragments-complete",
        "channel-fragments-complete-alone",
        "connection-close",
        "ext-ignored",
        "id-live-again",
        "id-of-server",
        "metadata-length",
        "metadata-push-stream",
        "resume-after-setup",
        "resume-goes-on",
        "setup-cut",
        "setup-error-ignored",
        "setup-first",
        "setup-first-keepalive",
        "setup-lifetime-zero",
        "setup-stream-zero",
        "setup-version",
        "type-ignored",
        "unknown-cancel",
        "unknown-payload",
        "unknown-request-n",
    },
}
"""The requirements that each server fails."""

EXPECTED_OF_CLIENTS: dict[str, set[str]] = {
    "penstock": set(),
    "rsocket-py": {"channel-error", "connection-error", "metadata-length"},
    "rsocket-java": {
        "connection-close",
        "ext-ignored",
        "metadata-length",
        "type-ignored",
        "unknown-cancel",
        "unknown-error",
        "unknown-payload",
        "unknown-request-n",
    },
    "rsocket-js": {
        "channel-error",
        "connection-close",
        "ext-ignored",
        "metadata-length",
        "metadata-push",
        "response-empty",
        "type-ignored",
    },
}
"""The requirements that each client fails."""

Commands: TypeAlias = dict[str, list[str]]


@contextmanager
def commands(*, short: bool) -> Iterator[tuple[Commands, Commands]]:
    """Yield how each server is started, which prints its port, and how each client, which gets the
    port.
    """
    python = sys.executable
    servers = {
        "penstock": [python, str(HERE / "_penstock_server.py")],
        "rsocket-py": [python, str(HERE / "_python_server.py")],
    }
    clients = {
        "penstock": [python, str(HERE / "_penstock_client.py")],
        "rsocket-py": [python, str(HERE / "_python_client.py")],
    }
    if short:
        yield servers, clients
        return
    with tempfile.TemporaryDirectory() as name:
        sources = [HERE / file for file in ("Checked.java", "CheckedClient.java")]
        sources.append(COMMON_JAVA / "Routed.java")
        java = rsocket_java(Path(name), sources)
        servers["rsocket-java"] = [*java, "Checked"]
        servers["rsocket-java, leases"] = [*java, "Checked", "leases"]
        clients["rsocket-java"] = [*java, "CheckedClient"]
        node = shutil.which("node") or "node"
        servers["rsocket-js"] = [node, str(HERE / "server.cjs")]
        clients["rsocket-js"] = [node, str(HERE / "client.cjs")]
        yield servers, clients


async def check(title: str, command: list[str]) -> list[Result]:
    """Start a server, and check it."""
    async with trio.open_nursery() as nursery:
        process: trio.Process = await nursery.start(
            partial(trio.run_process, command, stdout=subprocess.PIPE, check=False)
        )
        assert process.stdout is not None
        line = b""
        while not line.strip().isdigit():
            line = await process.stdout.receive_some()
            if not line:
                sys.exit(f"{title}: its server has ended")
        target = Target(refused="" if title == "rsocket-js" else "refuse me")
        only = WITH_LEASES if title.endswith("leases") else ()
        results = await check_target(
            f"rsocket+tcp://127.0.0.1:{int(line)}", target, only=only, table=TABLE
        )
        process.kill()
    return results


async def check_one_client(command: list[str]) -> list[Result]:
    """Listen, start a client, and check it."""
    async with trio.open_nursery() as nursery:

        def start(url: str) -> None:
            port = str(parse_url(url).port)
            nursery.start_soon(
                partial(trio.run_process, [*command, port], stderr=subprocess.DEVNULL, check=False)
            )

        results = await check_client(
            "rsocket+tcp://127.0.0.1:0", Target(), table=TABLE, on_listening=start
        )
        nursery.cancel_scope.cancel()
    return results


async def run(*, short: bool) -> int:
    """Check all servers and clients, and print the tables. Return how many results differ."""
    with commands(short=short) as (servers, clients):
        of_servers = {title: await check(title, command) for title, command in servers.items()}
        of_clients = {title: await check_one_client(each) for title, each in clients.items()}
    return judge("servers", TABLE.rows, of_servers, EXPECTED) + judge(
        "clients", TABLE.clients, of_clients, EXPECTED_OF_CLIENTS
    )


def judge(
    what: str,
    rows: Sequence[Requirement],
    results: Mapping[str, list[Result]],
    expected: Mapping[str, set[str]],
) -> int:
    """Print the table of servers, or of clients. Return how many results differ."""
    differ = 0
    columns = {title: {each.name: each for each in found} for title, found in results.items()}
    print("|", " | ".join(["", *columns]), "|")
    print("|", " | ".join("---" for _ in range(len(columns) + 1)), "|")
    for row in rows:
        found = [column.get(row.name) for column in columns.values()]
        cells = ["" if each is None else MARKS[each.verdict] for each in found]
        if not set(cells) <= {"ok", ""}:
            print("|", " | ".join([f"`{row.name}`", *cells]), "|")
    for title, column in columns.items():
        failed = {name for name, each in column.items() if each.verdict is Verdict.FAIL}
        changed = failed ^ expected[title]
        differ += len(changed)
        print(f"{title}: {len(column)} requirements, {len(failed)} failed")
        for name in sorted(changed):
            print(f"  differs: {name}: {column[name].seen}")
    print(f"{len(columns)} {what}, {differ} results differ from what is expected")
    return differ


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Servers and clients of RSocket, checked")
    parser.add_argument("--short", action="store_true", help="penstock and rsocket-py only")
    sys.exit(bool(trio.run(partial(run, short=parser.parse_args().short))))
