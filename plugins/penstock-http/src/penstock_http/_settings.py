"""The options of this plugin, from `TransportOptions.extra`: `KNOWN` has their names."""

import re
from collections.abc import Mapping
from typing import Final
from urllib.parse import urlsplit

import attrs

from penstock.api import UsageError
from penstock.spi import TransportOptions
from penstock_http._extra import check_names, normal_origin, origins_of, seconds_of, texts_of
from penstock_http._proxies import WAYS, X_FORWARDED_FOR, Network, Proxies, read_networks

KNOWN: Final = (
    "http.origins", "http.hosts", "http.public", "http.hold", "http.idle", "http.trusted",
    "http.forwarded", "http.metrics", "http.cookie", "http.proxy", "http.lost", "http.files",
)  # fmt: skip
HOLD: Final = 25.0
"""Seconds. Proxies often give up after 60 s; RFC 6202 advises 30 s."""
IDLE: Final = 60.0
_FILE_PATH: Final = re.compile(r"/[A-Za-z0-9._~-]*", re.ASCII)
"""Streams have paths with two slashes and more, so no file takes the place of one."""

KEEP: Final = "keep"
END: Final = "end"


@attrs.frozen(kw_only=True)
class Settings:
    """The options of one listener."""

    origins: frozenset[str] = frozenset()
    """Origins of pages that may send requests, beside the one of the server itself."""

    hosts: frozenset[str] = frozenset()
    """Names that a client may have in its Host header at an address of this machine,
    beside ``localhost``.
    """

    public: str = ""
    """The URL under which clients reach the server, for absolute URLs of subscriptions;
    empty for relative ones.
    """

    proxies: Proxies = attrs.field(factory=Proxies)
    """Proxies whose word on the address of a client is believed."""

    cookie: str = ""
    """The cookie whose value is the credentials of a page; empty for none."""

    metrics: tuple[Network, ...] = ()
    """The clients that may read ``/metrics``."""

    files: Mapping[str, tuple[str, bytes]] = attrs.field(factory=dict)
    """The content type and the bytes of each file that is served, by path."""

    hold: float = HOLD
    """Seconds for which a poll is held while no element is there."""

    idle: float = IDLE
    """Seconds without a request after which a subscription ends, and for
    which it answers after its end.
    """

    ends_lost: bool = False
    """Whether a subscription ends with the connection that its events or its streamed batch were
    sent over.
    """

    max_elements: int = 1024
    """Elements that are kept for a client, and the elements of one batch."""

    max_bytes: int = 1 << 20
    """Bytes of elements that are kept for a client, and of one batch."""

    stream: float = 600.0
    """Seconds for one streamed batch."""


def settings_of(options: TransportOptions) -> Settings:
    """Return the options of this plugin.
    Raises UsageError for an option that is not known, or that has a wrong value.
    """
    extra = options.extra
    check_names(extra, "http.", KNOWN)
    origins = origins_of(extra, "http.origins")
    public = extra.get("http.public", "")
    if not isinstance(public, str) or (
        public and not re.fullmatch(r"https?://[^\s/?#]+(/[^\s?#]*)?", public)
    ):
        raise UsageError(
            f"http.public={public!r}; give the URL of the server, for example "
            "https://streams.example/live"
        )
    way = extra.get("http.forwarded", X_FORWARDED_FOR)
    if way not in WAYS:
        raise UsageError(f"http.forwarded={way!r}; give {', '.join(WAYS)}")
    trusted = read_networks(texts_of(extra, "http.trusted"), "http.trusted")
    if "http.forwarded" in extra and not trusted:
        raise UsageError(
            "http.forwarded says how proxies name their clients; give their addresses with "
            "http.trusted"
        )
    hosts = {host.lower() for host in texts_of(extra, "http.hosts")}
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
        metrics=read_networks(texts_of(extra, "http.metrics"), "http.metrics"),
        files=_files(extra),
        hold=seconds_of(extra, "http.hold", HOLD),
        idle=seconds_of(extra, "http.idle", IDLE),
        ends_lost=_ends_lost(extra),
    )


def _ends_lost(extra: Mapping[str, object]) -> bool:
    lost = extra.get("http.lost", KEEP)
    if lost not in (KEEP, END):
        raise UsageError(
            f"http.lost={lost!r}; give {KEEP!r}, and clients may go on over another connection, or "
            f"{END!r}, which ends a stream with the connection of its events"
        )
    return lost == END


def _files(extra: Mapping[str, object]) -> Mapping[str, tuple[str, bytes]]:
    files = extra.get("http.files", {})
    if not isinstance(files, Mapping) or not all(map(_is_file, files.items())):
        raise UsageError(
            "http.files is not as it must be; give a dict of paths, each with its content type and "
            "its bytes: {'/': ('text/html; charset=utf-8', b'...')}. A path is '/', or has no "
            "'/' but the first"
        )
    return dict(files)


def _is_file(entry: tuple[object, object]) -> bool:
    match entry:
        case str(path), (str(kind), bytes()):
            # A header of its own, and no second one.
            return bool(_FILE_PATH.fullmatch(path)) and kind.isprintable() and kind.isascii()
    return False


def _cookie(extra: Mapping[str, object]) -> str:
    name = extra.get("http.cookie", "")
    if not isinstance(name, str) or not re.fullmatch(r"[!#$%&'*+.^_`|~0-9A-Za-z-]*", name):
        raise UsageError(f"http.cookie={name!r}; give the name of one cookie")
    return name
