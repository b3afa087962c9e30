"""The options of this transport, from `TransportOptions.extra`: ``h2.origins`` and ``h2.ping``."""

from collections.abc import Iterable
from typing import Final

import attrs

from penstock.api import UsageError
from penstock.plugins import TransportOptions

KNOWN: Final = ("h2.origins", "h2.ping")
PING: Final = 20.0
"""Seconds of silence before a server pings, and seconds that the peer has to answer: `Limits.keepalive`, `Limits.keepalive_timeout`."""


@attrs.frozen(kw_only=True)
class Settings:
    """The options of one listener or client."""

    origins: frozenset[str] = frozenset()
    """Origins of pages that may open streams."""

    ping: float = PING
    """Seconds between two pings of a silent client, and seconds to answer one."""


def settings_of(options: TransportOptions) -> Settings:
    """Return the options of this transport. Raises UsageError for an option that is not known, or that has a wrong value."""
    for name in options.extra:
        if name.startswith("h2.") and name not in KNOWN:
            raise UsageError(f"the option {name!r} is not known; there are {', '.join(KNOWN)}")
    return Settings(origins=_origins(options.extra.get("h2.origins", ())), ping=_seconds(options.extra.get("h2.ping", PING)))


def _origins(value: object) -> frozenset[str]:
    """Return the origins in a text with commas, as on the command line, or in several texts."""
    values = value.split(",") if isinstance(value, str) else list(value) if isinstance(value, Iterable) else [value]
    texts = [each for each in values if isinstance(each, str)]
    if len(texts) < len(values):
        raise UsageError(f"h2.origins={value!r}; give a text, or several: https://app.example")
    origins = frozenset(each.strip().lower().rstrip("/") for each in texts if each.strip())
    for origin in origins:
        if not origin.startswith(("http://", "https://")) or "/" in origin.partition("://")[2]:
            raise UsageError(f"h2.origins has {origin!r}, which is no origin; write for example https://app.example")
    return origins


def _seconds(value: object) -> float:
    try:
        seconds = float(value)  # type: ignore[arg-type]  # anything else raises TypeError
    except (TypeError, ValueError):
        seconds = 0.0
    if not 0 < seconds < float("inf"):
        raise UsageError(f"h2.ping={value!r}; give seconds, more than 0")
    return seconds
