"""Living peers of RSocket 1.0, each as a server and as a client of penstock.

`python -m campaigns interop_rsocket` prints a table: a row for each feature, a column for each peer
in each role and over each transport. `_rows.py` says what the rows are. It needs rsocket-py; Java 17
and Maven for rsocket-java and Spring; Node.js and the packages of its row in campaigns/table.toml
for rsocket-js, and Chromium for a page with it. With ``--short`` only rsocket-py is asked. It exits
with 1 if a cell differs from what `EXPECTED` says.

It also cuts ``--cuts`` connections with resume to each peer that has it, in each role and over each
transport, and exits with 1 if an element was lost or repeated.

``--only TEXT`` asks only the peers whose title has the text, such as ``"Spring server"``.
"""

import argparse
import json
import sys
from dataclasses import replace
from functools import partial

import trio

import penstock
from campaigns.interop_rsocket import _resume, _rows
from campaigns.interop_rsocket._pages import spring_talks, started, talk_to_spring
from campaigns.interop_rsocket._peers import Peer, Peers, built
from campaigns.interop_rsocket._rows import ROWS
from penstock import PublisherFailed
from penstock.api import Limits
from penstock.spi import TransportOptions

EXPECTED: dict[tuple[str, str], str] = {
    (f"rsocket-js server, {scheme}", "setup"): repr(
        PublisherFailed("a server is not told the types")
    )
    for scheme in ("tcp", "ws")
}
"""The cells in which a peer lacks something or does it in another way, with what it does."""

PAGE_SECONDS = 300
"""The programs of a page are started in it, and Spring takes 20 s on a busy machine."""

LEASED = 16
"""Requests that a client with leases may send at a time."""


async def as_client(peer: Peer) -> dict[str, str]:
    """Start a server of the library, and ask it."""
    async with started([*peer.command, "server", peer.scheme]) as port:
        found = await _rows.ask(f"rsocket+{peer.scheme}://127.0.0.1:{port}", peer.rows)
    if "leases" in peer.rows:
        async with started([*peer.command, "lease-server", peer.scheme]) as port:
            url = f"rsocket+{peer.scheme}://127.0.0.1:{port}"
            found["leases"] = await _rows.judge(_rows.ask_with_leases, url)
    return found


async def as_server(peer: Peer) -> dict[str, str]:
    """Serve, and let a client of the library ask."""
    limits = replace(Limits(), max_subscriptions=LEASED)
    service = _rows.service_of(lambda: server.peers)
    url = f"rsocket+{peer.scheme}://127.0.0.1:0"
    async with penstock.serve(service, url, limits=limits) as server:
        port = str(server.addresses[0].port)
        command = [*peer.command, "client", peer.scheme, port]
        done = await trio.run_process(command, capture_stdout=True, check=False)
    lines = done.stdout.decode().splitlines()
    found = dict(line.split("\t", 1) for line in lines if "\t" in line)
    if done.returncode or not found:
        found[ROWS[0]] = f"its program ended with status {done.returncode}"
    return found


async def in_chromium(script: str) -> dict[str, str]:
    """Serve, and let a page in Chromium ask."""
    # Here, because the short form does without trio-websocket.
    from tests.browser._chromium import run_chromium
    from tests.browser._pages import serve_pages

    service = _rows.service_of(lambda: server.peers)
    async with serve_pages({"/rsocket.js": script}) as origin:
        options = TransportOptions(extra={"ws.origins": origin})
        async with (
            penstock.serve(service, "rsocket+ws://127.0.0.1:0", options=options) as server,
            run_chromium() as browser,
        ):
            page = await browser.open(f"{origin}/")
            url = f"ws://127.0.0.1:{server.addresses[0].port}/"
            found: dict[str, str] = await page.run(
                f'await import("/rsocket.js");return globalThis.ask({json.dumps(url)})'
            )
    return found


async def ask_all(peers: Peers, only: str) -> dict[str, dict[str, str]]:
    """Return what each column says, by its title."""
    columns = {
        peer.title: await (as_client if peer.role == "server" else as_server)(peer)
        for peer in peers.asked
        if only in peer.title
    }
    for library, script in peers.scripts.items():
        title = f"{library} client in Chromium, ws"
        if only in title:
            columns[title] = await in_chromium(script)
    if peers.spring:
        for title, page in (
            ("Spring server, tcp", talk_to_spring),
            ("Spring client, tcp", spring_talks),
        ):
            if title in columns:
                columns[title]["page"] = await _rows.judge(page, peers.spring, within=PAGE_SECONDS)
    return columns


def print_table(columns: dict[str, dict[str, str]]) -> int:
    """Print the table. Return how many cells differ from what is expected."""
    differ = 0
    print("|", " | ".join(["", *columns]), "|")
    print("|", " | ".join("---" for _ in range(len(columns) + 1)), "|")
    for row in ROWS:
        cells = [found.get(row, "–") for found in columns.values()]
        print("|", " | ".join([row, *cells]), "|")
        for title, cell in zip(columns, cells, strict=True):
            differ += cell not in ("ok", "–", EXPECTED.get((title, row)))
    return differ


async def run(*, short: bool, cuts: int, seed: int, only: str) -> int:
    """Ask all peers, and print the table. Return how many cells differ, and how many reports of
    cut connections are bad.
    """
    with built(short=short) as peers:
        columns = await ask_all(peers, only)
        resumed = [peer for peer in peers.resumed if cuts and only in peer.title]
        bad = sum([await _resume.run(peer, cuts, seed) for peer in resumed])
    differ = print_table(columns)
    said = f"{len(columns)} peers, {differ} cells differ from what is expected"
    print(f"{said}; {len(resumed)} cut {cuts} times each, {bad} of them bad" if resumed else said)
    return differ + bad


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Living peers of RSocket 1.0")
    parser.add_argument("--short", action="store_true", help="rsocket-py only")
    parser.add_argument("--cuts", type=int, default=1000, help="of each peer with resume")
    parser.add_argument("--seed", type=int, default=1, help="of the places of the cuts")
    parser.add_argument("--only", default="", help="a text in the titles of the peers to ask")
    given = parser.parse_args()
    wanted = partial(run, short=given.short, cuts=given.cuts, seed=given.seed, only=given.only)
    sys.exit(bool(trio.run(wanted)))
