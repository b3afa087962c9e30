"""Servers of RSocket by several libraries, each checked against the requirements.

`python -m campaigns wire_rsocket` prints a table: a row for each requirement that some server does
not pass, a column for each server. It needs rsocket-py; Java 17 and Maven for rsocket-java; Node.js
and the packages of its row in campaigns/table.toml for rsocket-js. With ``--short`` only penstock
and rsocket-py are checked. It exits with 1 if a result differs from `EXPECTED`.
"""

import argparse
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import trio
from penstock_rsocket.checks import TABLE
from penstock_tck.wire import Result, Target, Verdict, check_target

HERE = Path(__file__).parent
POM = HERE.parent / "interop_rsocket/java/pom.xml"
WITH_LEASES = ("lease-granted", "lease-exceeded")
"""The requirements that rsocket-java is asked for once more, with leases."""
MARKS = {Verdict.PASS: "ok", Verdict.FAIL: "fails", Verdict.NOT_SUPPORTED: "–"}
EXPECTED: dict[str, set[str]] = {
    "penstock": set(),
    "rsocket-py": {
        "channel-first-counts",
        "channel-follows-complete",
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
        "connection-close",
        "ext-ignored",
        "id-live-again",
        "id-of-server",
        "metadata-length",
        "metadata-push-stream",
        "resume-after-setup",
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


@contextmanager
def commands(*, short: bool) -> Iterator[dict[str, list[str]]]:
    """Yield how each server is started. It prints its port."""
    found = {
        "penstock": [sys.executable, str(HERE / "_penstock_server.py")],
        "rsocket-py": [sys.executable, str(HERE / "_python_server.py")],
    }
    if short:
        yield found
        return
    maven = shutil.which("mvn")
    if maven is None:
        sys.exit("mvn is not on the PATH: install Maven and Java 17")
    with tempfile.TemporaryDirectory() as name:
        shutil.copy(POM, name)
        copy = [maven, "-q", "-B", "dependency:copy-dependencies", "-DoutputDirectory=lib"]
        subprocess.run(copy, cwd=name, check=True)
        libraries = f"{name}/lib/*"
        source = str(HERE / "Checked.java")
        subprocess.run(["javac", "-cp", libraries, "-d", name, source], check=True)
        java = ["java", "-cp", f"{libraries}:{name}", "Checked"]
        found["rsocket-java"] = java
        found["rsocket-java, leases"] = [*java, "leases"]
        found["rsocket-js"] = [shutil.which("node") or "node", str(HERE / "server.cjs")]
        yield found


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


async def run(*, short: bool) -> int:
    """Check all servers, and print the table. Return how many results differ."""
    differ = 0
    columns: dict[str, dict[str, Result]] = {}
    with commands(short=short) as servers:
        for title, command in servers.items():
            columns[title] = {each.name: each for each in await check(title, command)}
    print("|", " | ".join(["", *columns]), "|")
    print("|", " | ".join("---" for _ in range(len(columns) + 1)), "|")
    for row in TABLE.rows:
        found = [column.get(row.name) for column in columns.values()]
        cells = ["" if each is None else MARKS[each.verdict] for each in found]
        if not set(cells) <= {"ok", ""}:
            print("|", " | ".join([f"`{row.name}`", *cells]), "|")
    for title, column in columns.items():
        failed = {name for name, each in column.items() if each.verdict is Verdict.FAIL}
        changed = failed ^ EXPECTED[title]
        differ += len(changed)
        print(f"{title}: {len(column)} requirements, {len(failed)} failed")
        for name in sorted(changed):
            print(f"  differs: {name}: {column[name].seen}")
    print(f"{len(columns)} servers, {differ} results differ from what is expected")
    return differ


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Servers of RSocket, checked")
    parser.add_argument("--short", action="store_true", help="penstock and rsocket-py only")
    sys.exit(bool(trio.run(partial(run, short=parser.parse_args().short))))
