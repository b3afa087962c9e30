"""The option `--encoding`: the encoding of the messages of RS.io."""

import argparse

import attrs

from penstock.api import UsageError
from penstock.spi import parse_url


def encoding_argument(command: argparse.ArgumentParser, *, listens: bool) -> None:
    """Declare the argument, for a command that connects, or for one that listens."""
    what = (
        "clients must speak this encoding from the first byte, as with ?encoding=NAME in URL"
        if listens
        else "ask for this encoding"
    )
    command.add_argument("--encoding", metavar="NAME", help=f"RS.io: {what}: msgpack, protobuf, …")


def in_encoding(url: str, name: str | None) -> str:
    """Return a URL to listen at with ``?encoding=NAME``. Raises UsageError if it names another
    one, or has no place for one.
    """
    if name is None:
        return url
    parsed = parse_url(url)
    if parsed.encoding not in (None, name):
        raise UsageError(
            f"--encoding {name}, and {url!r} asks for {parsed.encoding!r}; leave one of them out"
        )
    if parsed.host is None:
        raise UsageError(
            f"--encoding {name}: {url!r} has no place for an encoding; leave the option out"
        )
    return str(attrs.evolve(parsed, encoding=name))
