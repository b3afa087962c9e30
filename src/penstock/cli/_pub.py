"""Publish the lines of standard input to every subscriber.

URL is the address to listen at, with the publisher's name: tcp://127.0.0.1:7001/lines. It speaks
RS.io and ReactiveSocket, and RSocket if penstock-rsocket is installed; a URL that begins with
rsio+, reactivesocket+ or rsocket+ speaks that protocol only.
Reading begins when the first subscriber arrives, and continues at the pace of the slowest
subscriber. A subscriber that requests nothing for 10 seconds while a line waits for it is
disconnected from the lines, so that it does not stop the others. When the input ends, the program
ends after every subscriber has received all lines.
"""

import argparse
import sys
from contextlib import aclosing

from penstock.api import Limits, UsageError
from penstock.cli._encoding import encoding_argument, in_encoding
from penstock.cli._input import check_input, lines_of_input
from penstock.cli._logging import log_arguments, start_logs
from penstock.cli._tls import tls_arguments, transport_options
from penstock.runtime import Service, serve, tune_collector
from penstock.spi import parse_url
from penstock.streams import Topic

MAX_LINE = Limits().max_element
"""Bytes of a line: a line is an element."""


def arguments(command: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    command.add_argument(
        "url",
        metavar="URL",
        help="where to listen, and the publisher's name: tcp://127.0.0.1:7001/lines",
    )
    encoding_argument(command, listens=True)
    command.add_argument("--quiet", action="store_true", help="write no messages to standard error")
    log_arguments(command)
    tls_arguments(command, listens=True)


async def run(options: argparse.Namespace) -> int:
    """Publish lines until the input ends."""
    start_logs(options)
    check_input()
    url = parse_url(options.url)
    if not url.publisher:
        raise UsageError(
            f"{options.url!r} names no publisher; write it after the authority: "
            "tcp://127.0.0.1:7001/lines"
        )
    topic: Topic[bytes] = Topic()
    service = Service()
    service.publish(url.publisher, topic)
    count = 0
    transport = transport_options(options, listen_at=[options.url])
    async with serve(
        service,
        in_encoding(str(url.address), options.encoding),
        options=transport,
        insecure=options.insecure,
    ) as server:
        tune_collector()
        if not options.quiet:
            addresses = ", ".join(map(str, server.addresses))
            sys.stderr.write(
                f"publishing {url.publisher!r} at {addresses}; waiting for a subscriber\n"
            )
            sys.stderr.flush()
        await topic.wait_subscribers()
        async with aclosing(lines_of_input(MAX_LINE)) as batches:
            async for lines in batches:
                await topic.publish_many(lines)
                count += len(lines)
        topic.complete()
        await topic.wait_alone()  # until every subscriber has received the last line
    if not options.quiet:
        sys.stderr.write(f"{count:,} lines published\n")
    return 0
