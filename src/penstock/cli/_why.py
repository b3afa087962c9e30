"""Say why a stream does not move: the cause in one sentence, and below it what was seen.

The service must show its map of demand: penstock serve --inspect, or serve(…, inspect=True). NAME
is the name of a publisher or its beginning; without it the stream is taken that has not moved for
the longest time. The chain is followed into other services: those of --with, and, if no credentials
are given, those that the service itself reads from. Credentials go to URL and to the services of
--with, and nowhere else.
"""

import argparse
import json
import sys
from typing import Any, Final

from penstock.api import PenstockError, UsageError
from penstock.cli._cause import (
    Cause,
    Maps,
    Step,
    cause_of,
    seconds_text,
    slowest_of,
    stalest,
    who_text,
)
from penstock.cli._credentials import credentials_arguments
from penstock.cli._demand_map import DemandMap, read_all, read_looks, service_urls
from penstock.cli._printable import printable
from penstock.cli._tls import tls_arguments
from penstock.cli._transports import transports_argument

LOOKS: Final = 2
"""Complete looks before the cause is told: the second one tells a stream that moves from one that
stands.
"""

MOST_FOLLOWED: Final = 8
"""Services that are asked because another one reads from them."""


def arguments(command: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    command.add_argument("url", metavar="URL", help="the server: tcp://127.0.0.1:7000, …")
    command.add_argument(
        "name", metavar="NAME", nargs="?", help="the publisher, as orders/eu (default: the worst)"
    )
    command.add_argument(
        "--with",
        dest="others",
        metavar="URL",
        action="append",
        default=[],
        help="another service that the chain may lead to; may be given again",
    )
    command.add_argument("--json", action="store_true", help="print one object of JSON")
    credentials_arguments(command)
    transports_argument(command)
    tls_arguments(command, listens=False)


async def run(options: argparse.Namespace) -> int:
    """Print the cause."""
    maps = await read_all(service_urls([options.url, *options.others]), options, LOOKS)
    may_follow = options.bearer is None and options.basic is None
    asked: dict[str, str] = {}
    while True:
        cause = _cause(maps, options.name)
        at = cause.unknown_at
        if at is None or not may_follow or at in asked or len(asked) >= MOST_FOLLOWED:
            break
        try:
            maps.append(await read_looks(at, options, LOOKS))
            asked[at] = ""
        except PenstockError as error:
            # The chain ends there: the sentence says what is known.
            asked[at] = printable(str(error))
    if options.json:
        sys.stdout.write(f"{json.dumps(as_json(cause, asked))}\n")
    else:
        sys.stdout.write("".join(f"{line}\n" for line in lines_of(cause, asked, may_follow)))
    return 0


def _cause(maps: list[DemandMap], name: str | None) -> Cause:
    known = Maps(maps)
    if name is None:
        start = stalest(known)
        if start is None:
            raise UsageError(f"no stream is open at {maps[0].url}")
    else:
        found = known.named(name)
        if not found:
            raise UsageError(
                f"no stream of {maps[0].url} has the name {name!r}, or one that begins so; "
                "`penstock top --once` lists them"
            )
        start = slowest_of(found)
    return cause_of(known, start)


def lines_of(cause: Cause, asked: dict[str, str], may_follow: bool) -> list[str]:  # noqa: FBT001  # three facts for one text
    """Return the lines for a person."""
    lines = [f"{cause.sentence}.", ""]
    lines += [f"  {number}. {evidence_of(step)}" for number, step in enumerate(cause.steps, 1)]
    if cause.unknown_at is not None:
        why = asked.get(cause.unknown_at)
        at = printable(cause.unknown_at)
        if why:
            lines.append(f"  {at} could not be asked: {why}")
        elif not may_follow:
            lines.append(f"  credentials are not sent to it by itself; give --with {at}")
    return lines


def evidence_of(step: Step) -> str:
    """Return what was seen of one stream, in one line."""
    where, record = step.map, step.record
    moved = record["delivered"]
    arrow = "to" if record["out"] else "from"
    name = printable(record["name"]) or "(no name)"
    how = f"{printable(record['protocol'])}, {printable(record['state'])}"
    texts = [
        f"{printable(where.url)}: {name} {arrow} {who_text(record)} over {how}",
        f"{record['demand']:,} requested and not there",
    ]
    if moved is not None:
        texts.append(f"{moved:,} moved, {where.rates.get(record['key'], 0.0):,.1f}/s")
    if record["held"]:
        texts.append(f"{record['held']:,} bytes wait")
    if record["lag"]:
        texts.append(f"{record['lag']:,} behind")
    texts.append(f"still {seconds_text(where.still(record))}")
    texts.append(f"waits for {printable(record['waits'])}")
    held = [f"{printable(label)} holds {count:,}" for label, count in record["parts"] if count]
    return ", ".join(texts + held)


def as_json(cause: Cause, asked: dict[str, str]) -> dict[str, Any]:
    """Return the cause as plain values."""
    return {
        "cause": cause.sentence,
        "chain": [
            {
                "url": step.map.url,
                "says": step.clause,
                "still": round(step.map.still(step.record), 3),
                "rate": round(step.map.rates.get(step.record["key"], 0.0), 3),
                "stream": step.record,
            }
            for step in cause.steps
        ],
        "unknown_at": cause.unknown_at,
        "not_asked": {url: why for url, why in asked.items() if why},
    }
