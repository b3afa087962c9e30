"""Ask whether a server is there: connect, exchange hellos, and say goodbye. Nothing is printed.

The exit status is 0 if the server has answered, and 1 if not, with the reason on standard error. It
is a check of health for containers and supervisors: trio and plugins are not imported. The port of
an http:// or ws:// server with penstock-http answers to tcp://, too.
"""

import argparse
from dataclasses import replace

from penstock.api import Limits, UsageError
from penstock.blocking import connect
from penstock.cli._credentials import credentials_arguments, credentials_of
from penstock.cli._tls import tls_arguments, transport_options
from penstock.spi import parse_url

BLOCKS = True
"""It runs without an event loop: a check that runs each few seconds must cost little."""


def arguments(command: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    command.add_argument(
        "url", metavar="URL", help="the server: tcp://127.0.0.1:7000, tls://…, unix:///run/p.sock"
    )
    command.add_argument(
        "--timeout",
        type=float,
        default=5.0,
        metavar="SECONDS",
        help="how long it may take to answer (default: 5)",
    )
    credentials_arguments(command)
    tls_arguments(command, listens=False)


def run(options: argparse.Namespace) -> int:
    """Connect and leave."""
    url = parse_url(options.url)
    if url.publisher is not None:
        raise UsageError(
            f"{options.url!r} names a publisher; give the address of the server alone: "
            f"{url.address}"
        )
    if not options.timeout > 0:
        raise UsageError(f"--timeout {options.timeout:g}: give a number of seconds above 0")
    limits = replace(Limits(), handshake_timeout=options.timeout, tls_timeout=options.timeout)
    with connect(
        str(url.address),
        credentials=credentials_of(options),
        options=transport_options(options),
        limits=limits,
    ) as peer:
        peer.wait_accepted(timeout=options.timeout)
    return 0
