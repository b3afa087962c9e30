"""The description of a service, as a command reads it: the entries of ``penstock/describe``."""

import argparse
from collections.abc import Mapping
from typing import Any, Final

from penstock.api import ProtocolError, PublisherFailed, Rejected, UsageError
from penstock.cli._credentials import credentials_of
from penstock.cli._tls import transport_options
from penstock.cli._transports import permitted_transports
from penstock.runtime import DESCRIPTION, subscribe
from penstock.spi import Url, parse_url

MOST: Final = 10_000
"""Entries that are read, at most: a server could send them without end."""


def service_url(text: str) -> Url:
    """Return the URL of a whole service. Raises UsageError if it names a publisher."""
    url = parse_url(text)
    if url.publisher is not None:
        raise UsageError(
            f"{text!r} names a publisher; give the address of the server alone: {url.address}"
        )
    return url


async def read_description(url: Url, options: argparse.Namespace) -> list[Mapping[str, Any]]:
    """Return the entries that the service at `url` describes to this client, by name. Raises
    UsageError if it describes none.
    """
    opening = subscribe(
        str(url.address),
        publisher=DESCRIPTION,
        serializer="json",
        credentials=credentials_of(options),
        options=transport_options(options),
        transports=permitted_transports(options),
    )
    entries: list[Mapping[str, Any]] = []
    try:
        async with opening as stream:
            async for entry in stream:
                entries.append(checked(entry))
                if len(entries) > MOST:
                    raise UsageError(f"the server lists more than {MOST:,} publishers and requests")
    except (Rejected, PublisherFailed) as refused:
        if "no such publisher" not in str(refused):
            raise
        raise UsageError(
            "the server does not describe itself, or not to you; it does with "
            "penstock.Service(describe=True)"
        ) from None
    return entries


def checked(entry: Any) -> Mapping[str, Any]:
    """Return an entry that has the values which a command shows.
    Raises ProtocolError for another one.
    """
    is_sound = isinstance(entry, dict) and all(
        isinstance(entry.get(key), str) for key in ("name", "kind", "summary")
    )
    parameters = entry.get("parameters") if is_sound else None
    if not isinstance(parameters, list) or not all(isinstance(each, dict) for each in parameters):
        raise ProtocolError("the server sent a description that this version cannot read")
    return dict(entry)


def fits(pattern: str, name: str) -> bool:
    """Return whether a name is one of a pattern: a parameter stands for one segment."""
    parts, given = pattern.split("/"), name.split("/")
    return len(parts) == len(given) and all(
        part == text or (part.startswith("{") and part.endswith("}"))
        for part, text in zip(parts, given, strict=True)
    )
