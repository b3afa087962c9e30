"""The options of this plugin, from `TransportOptions.extra`: `KNOWN` has their names."""

import re
from collections.abc import Iterable, Mapping
from typing import Final
from urllib.parse import urlsplit

import attrs

from penstock.api import UsageError
from penstock.plugins import TransportOptions
from penstock_http._proxies import WAYS, X_FORWARDED_FOR, Network, Proxies, read_networks

KNOWN: Final = (
    "http.origins", "http.hosts", "http.public", "http.hold", "http.idle", "http.trusted", "http.forwarded", "http.metrics", "http.cookie",
    "http.proxy",
)  # fmt: skip
HOLD: Final = 25.0
"""Seconds. Proxies often give up after 60 s; RFC 6202 advises 30 s."""
IDLE: Final = 60.0

_ORIGIN: Final = re.compile(r"[a-z][a-z0-9+.-]*://(?:\[[0-9a-f:.]+\]|[^\s/?#@:\[\]]+)(?::[0-9]{1,5})?", re.ASCII)
_DEFAULT_PORTS: Final = {"http": ":80", "https": ":443"}


@attrs.frozen(kw_only=True)
class Settings:
    """The options of one listener."""

    origins: frozenset[str] = frozenset()
    """Origins of pages that may send requests, beside the one of the server itself."""

    hosts: frozenset[str] = frozenset()
    """Names that a client may have in its Host header at an address of this machine, beside ``localhost``."""

    public: str = ""
    """The URL under which clients reach the server, for absolute URLs of subscriptions; empty for relative ones."""

    proxies: Proxies = attrs.field(factory=Proxies)
    """Proxies whose word on the address of a client is believed."""

    cookie: str = ""
    """The cookie whose value is the credentials of a page; empty for none."""

    metrics: tuple[Network, ...] = ()
    """The clients that may read ``/metrics``."""

    hold: float = HOLD
    """Seconds for which a poll is held while no element is there."""

    idle: float = IDLE
    """Seconds without a request after which a subscription ends, and for which it answers after its end."""

    max_elements: int = 1024
    """Elements that are kept for a client, and the elements of one batch."""

    max_bytes: int = 1 << 20
    """Bytes of elements that are kept for a client, and of one batch."""

    stream: float = 600.0
    """Seconds for one streamed batch."""


def settings_of(options: TransportOptions) -> Settings:
    """Return the options of this plugin. Raises UsageError for an option that is not known, or that has a wrong value."""
    extra = options.extra
    for name in extra:
        if name.startswith("http.") and name not in KNOWN:
            raise UsageError(f"the option {name!r} is not known; there are {', '.join(KNOWN)}")
    origins = frozenset(map(normal_origin, _texts(extra, "http.origins")))
    for origin in origins:
        if not is_origin(origin):
            raise UsageError(
                f"http.origins has {origin!r}, which is no origin; write for example https://app.example or http://localhost:8000"
            )
    public = extra.get("http.public", "")
    if not isinstance(public, str) or (public and not re.fullmatch(r"https?://[^\s/?#]+(/[^\s?#]*)?", public)):
        raise UsageError(f"http.public={public!r}; give the URL of the server, for example https://streams.example/live")
    way = extra.get("http.forwarded", X_FORWARDED_FOR)
    if way not in WAYS:
        raise UsageError(f"http.forwarded={way!r}; give {', '.join(WAYS)}")
    trusted = read_networks(_texts(extra, "http.trusted"), "http.trusted")
    if "http.forwarded" in extra and not trusted:
        raise UsageError("http.forwarded says how proxies name their clients; give their addresses with http.trusted")
    hosts = {host.lower() for host in _texts(extra, "http.hosts")}
    if public:
        # The URL that clients are told is one that they may use.
        found = urlsplit(public)
        origins |= {normal_origin(f"{found.scheme}://{found.netloc}")}
        hosts.add(found.hostname or "")
    return Settings(
        origins=origins,
        hosts=frozenset(hosts),
        public=public.rstrip("/"),
        proxies=Proxies(networks=trusted, way=str(way)),
        cookie=_cookie(extra),
        metrics=read_networks(_texts(extra, "http.metrics"), "http.metrics"),
        hold=_seconds(extra, "http.hold", HOLD),
        idle=_seconds(extra, "http.idle", IDLE),
    )


def normal_origin(text: str) -> str:
    """Return an origin as browsers write it: in small letters, without the default port."""
    origin = text.strip().lower()
    return origin.removesuffix(_DEFAULT_PORTS.get(origin.partition("://")[0], "-"))


def is_origin(text: str) -> bool:
    """Return whether `text` is a scheme and a host, with or without a port, and nothing else."""
    return _ORIGIN.fullmatch(text) is not None


def _texts(extra: Mapping[str, object], name: str) -> list[str]:
    """Return the values of an option: a text with commas, as on the command line, or several texts."""
    value = extra.get(name, ())
    if isinstance(value, str):
        return [part.strip() for part in value.split(",") if part.strip()]
    if isinstance(value, Iterable):
        values = list(value)
        if all(isinstance(each, str) for each in values):
            return values
    raise UsageError(f"{name}={value!r}; give a text, or several")


def _cookie(extra: Mapping[str, object]) -> str:
    name = extra.get("http.cookie", "")
    if not isinstance(name, str) or not re.fullmatch(r"[!#$%&'*+.^_`|~0-9A-Za-z-]*", name):
        raise UsageError(f"http.cookie={name!r}; give the name of one cookie")
    return name


def _seconds(extra: Mapping[str, object], name: str, default: float) -> float:
    value = extra.get(name, default)
    try:
        seconds = float(value)  # type: ignore[arg-type]  # anything else raises TypeError
    except (TypeError, ValueError):
        seconds = 0.0
    if not 0 < seconds < float("inf"):
        raise UsageError(f"{name}={value!r}; give seconds, more than 0")
    return seconds
