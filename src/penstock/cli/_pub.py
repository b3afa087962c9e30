"""Publish the lines of standard input to whoever subscribes.

URL says where to listen and under which name: tcp://127.0.0.1:7001/lines. It speaks RS.io
and ReactiveSocket; one that begins with rsio+ or reactivesocket+ speaks that one alone. Lines are read no faster than the
slowest subscriber takes them, and not at all before there is one. When the input ends, every subscriber gets what is left, and
the program ends.
"""

import argparse
import os
import sys

import trio

from penstock.api import Limits, UsageError
from penstock.cli._tls import tls_arguments, transport_options
from penstock.core import Topic
from penstock.plugins import parse_url
from penstock.runtime import Service, serve

CHUNK = 64 << 10
"""Bytes to read at a time: what is there now, if that is less."""

LONGEST = Limits().max_element
"""Bytes of a line: no more is held while its end is looked for."""

HELP = "publish the lines of standard input"


def arguments(command: argparse.ArgumentParser) -> None:
    """Say what can be given."""
    command.add_argument("url", metavar="URL", help="where to listen, and the publisher's name: tcp://127.0.0.1:7001/lines")
    command.add_argument("--quiet", action="store_true", help="say nothing on standard error")
    tls_arguments(command, listens=True)


def _read(size: int) -> bytes:
    return os.read(sys.stdin.fileno(), size)


async def run(options: argparse.Namespace) -> int:
    """Publish until the input ends."""
    if sys.stdin is None:
        raise UsageError("standard input is closed; there is nothing to publish")
    url = parse_url(options.url)
    if not url.publisher:
        raise UsageError(f"{options.url!r} names no publisher; write it behind the authority: tcp://127.0.0.1:7001/lines")
    topic: Topic[bytes] = Topic()
    service = Service()
    service.publish(url.publisher, topic)
    count = 0
    async with serve(service, str(url.address), options=transport_options(options, listen_at=[options.url])) as server:
        if not options.quiet:
            sys.stderr.write(f"publishing {url.publisher!r} at {', '.join(server.addresses)}; waiting for a subscriber\n")
            sys.stderr.flush()
        await topic.wait_subscribers()
        rest = b""
        while chunk := await trio.to_thread.run_sync(_read, CHUNK, abandon_on_cancel=True):
            *lines, rest = (rest + chunk).split(b"\n")
            if len(rest) > LONGEST:
                raise UsageError(f"a line of more than {LONGEST:,} bytes, which is the most that an element may have; break it up")
            for line in lines:
                await topic.publish(line)
            count += len(lines)
        if rest:
            await topic.publish(rest)
            count += 1
        topic.complete()
        await topic.wait_alone()
    if not options.quiet:
        sys.stderr.write(f"{count:,} lines published\n")
    return 0
