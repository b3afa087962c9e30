"""The options of this transport, from `TransportOptions.extra`: ``h2.origins`` and ``h2.ping``."""

from typing import Final

import attrs

from penstock.spi import TransportOptions
from penstock_http._extra import check_names, origins_of, seconds_of

KNOWN: Final = ("h2.origins", "h2.ping")
PING: Final = 20.0
"""Seconds of silence before a server pings, and seconds that the peer has to answer:
`Limits.keepalive`, `Limits.keepalive_timeout`.
"""


@attrs.frozen(kw_only=True)
class Settings:
    """The options of one listener or client."""

    origins: frozenset[str] = frozenset()
    """Origins of pages that may open streams."""

    ping: float = PING
    """Seconds between two pings of a silent client, and seconds to answer one."""


def settings_of(options: TransportOptions) -> Settings:
    """Return the options of this transport.
    Raises UsageError for an option that is not known, or that has a wrong value.
    """
    check_names(options.extra, "h2.", KNOWN)
    return Settings(
        origins=origins_of(options.extra, "h2.origins"),
        ping=seconds_of(options.extra, "h2.ping", PING),
    )
