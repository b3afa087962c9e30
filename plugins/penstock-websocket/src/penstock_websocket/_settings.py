"""The options of this plugin, from `TransportOptions.extra`:
``ws.origins``, ``ws.hosts`` and ``ws.ping``.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Final

import attrs

from penstock.api import UsageError
from penstock.spi import TransportOptions

KNOWN: Final = ("ws.origins", "ws.hosts", "ws.ping")
PING: Final = 20.0
"""Seconds of silence before a server pings, and seconds that the peer has to answer:
`Limits.keepalive`, `Limits.keepalive_timeout`.
"""

_ORIGIN: Final = re.compile(
    r"[a-z][a-z0-9+.-]*://(?:\[[0-9a-f:.]+\]|[^\s/?#@:\[\]]+)(?::[0-9]{1,5})?", re.ASCII
)
_DEFAULT_PORTS: Final = {"http": ":80", "https": ":443"}


@attrs.frozen(kw_only=True)
class Settings:
    """The options of one listener or client."""

    origins: frozenset[str] = frozenset()
    """Origins of pages that may connect, beside the one of the server itself."""

    hosts: frozenset[str] = frozenset()
    """Names that a client may have in its Host header at an address of this machine,
    beside ``localhost``.
    """

    ping: float = PING
    """Seconds between two pings of a silent client, and seconds to answer one."""


def settings_of(options: TransportOptions) -> Settings:
    """Return the options of this plugin.
    Raises UsageError for an option that is not known, or that has a wrong value.
    """
    extra = options.extra
    for name in extra:
        if name.startswith("ws.") and name not in KNOWN:
            raise UsageError(f"the option {name!r} is not known; there are {', '.join(KNOWN)}")
    origins = frozenset(map(normal_origin, _texts(extra, "ws.origins")))
    for origin in origins:
        if not _ORIGIN.fullmatch(origin):
            raise UsageError(
                f"ws.origins has {origin!r}, which is no origin; write for example "
                "https://app.example or http://localhost:8000"
            )
    return Settings(
        origins=origins,
        hosts=frozenset(host.lower() for host in _texts(extra, "ws.hosts")),
        ping=_seconds(extra, "ws.ping"),
    )


def normal_origin(text: str) -> str:
    """Return an origin as browsers write it: in small letters, without the default port."""
    origin = text.strip().lower()
    scheme = origin.partition("://")[0]
    return origin.removesuffix(_DEFAULT_PORTS.get(scheme, "-"))


def is_origin(text: str) -> bool:
    """Return whether `text` is a scheme and a host, with or without a port, and nothing else."""
    return _ORIGIN.fullmatch(text) is not None


def _texts(extra: Mapping[str, object], name: str) -> list[str]:
    """Return the values of an option:
    a text with commas, as on the command line, or several texts.
    """
    value = extra.get(name, ())
    if isinstance(value, str):
        return [part.strip() for part in value.split(",") if part.strip()]
    if isinstance(value, Iterable):
        values = list(value)
        if all(isinstance(each, str) for each in values):
            return values
    raise UsageError(f"{name}={value!r}; give a text, or several")


def _seconds(extra: Mapping[str, object], name: str) -> float:
    value = extra.get(name, PING)
    try:
        seconds = float(value)  # type: ignore[arg-type]  # anything else raises TypeError
    except (TypeError, ValueError):
        seconds = 0.0
    if not 0 < seconds < float("inf"):
        raise UsageError(f"{name}={value!r}; give seconds, more than 0")
    return seconds
