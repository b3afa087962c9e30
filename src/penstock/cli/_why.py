"""Say why a stream does not move: the cause in one sentence, and below it what was seen.

The service must show its map of demand: penstock serve --inspect, or serve(…, inspect=True). NAME
is the name of a publisher or its beginning; without it the stream is taken that has not moved for
the longest time. The chain is followed into other services: those of --with, and, if no credentials
are given, those that the service itself reads from. Credentials go to URL and to the services of
--with, and nowhere else.

The exit status is 0 if the line is there and each service that was named has told of its streams,
and 1 if not: the line is written also if a service of --with did not answer.
"""

import argparse
import json
import sys
from collections.abc import Mapping
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
from penstock.cli._demand_map import (
    DemandMap,
    check_timeout,
    failure_text,
    read_all,
    read_looks,
    service_urls,
    timeout_argument,
)
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
    timeout_argument(command)
    credentials_arguments(command)
    transports_argument(command)
    tls_arguments(command, listens=False)


async def run(options: argparse.Namespace) -> int:
    """Print the cause."""
    check_timeout(options)
    urls = service_urls([options.url, *options.others])
    maps, failures = await read_all(urls, options, LOOKS)
    if options.url in failures:
        if len(failures) == 1:
            raise failures[options.url]
        _tell(failures)
        return 1
    may_follow = options.bearer is None and options.basic is None
    # Those of --with that did not answer are not asked again.
    asked = {url: printable(str(error)) for url, error in failures.items()}
    most = MOST_FOLLOWED + len(asked)
    while True:
        cause = _cause(maps, options.name)
        at = cause.unknown_at
        if at is None or not may_follow or at in asked or len(asked) >= most:
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
        sys.stdout.flush()
    _tell(failures)
    return 1 if failures else 0


def _tell(failures: Mapping[str, PenstockError]) -> None:
    for url, error in failures.items():
        sys.stderr.write(f"penstock: {failure_text(url, str(error))}\n")


def _cause(maps: list[DemandMap], name: str | None) -> Cause:
    known = Maps(maps)
    if name is None:
        start = stalest(known)
        if start is None:
            raise UsageError(f"no stream is open at {maps[0].url}")
    else:
        found = known.named(name)
        if not found:
            raise _not_found(maps[0], name)
        start = slowest_of(found)
    return cause_of(known, start)


def _not_found(first: DemandMap, name: str) -> UsageError:
    told = len(first.streams)
    if told < first.total:
        return UsageError(
            f"the name {name!r}, or one that begins so, is not among the {told:,} of "
            f"{first.total:,} streams that {first.url} tells of; whether it has such a stream is "
            "not known. Ask the service at the other side of the stream, or call Server.streams() "
            "in the program: that returns all of them"
        )
    return UsageError(
        f"no stream of {first.url} has the name {name!r}, or one that begins so; "
        "`penstock top --once` lists them"
    )


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
