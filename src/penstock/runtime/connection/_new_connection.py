"""Make a connection for either side: which transport and which dialects a URL names, and the connection task for a transport connection."""

import random
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, cast

import trio

from penstock.api import Limits, Role, UsageError
from penstock.core import Report
from penstock.plugins import Connection, Registry, Url
from penstock.runtime.connection._connection import ConnectionTask
from penstock.runtime.connection._event_reporting import ConnectionEvents
from penstock.runtime.connection._extensions_for import NegotiableExtensions
from penstock.runtime.service._published_streams import PublishedStreams
from penstock.session import DialectFactory, DialectSettings, Session, SessionDelegate, protocol_detector

DEFAULT_DIALECT: Final = "rsio"
"""What a URL without a '+' means to a client; a server speaks all."""


def check_transport(registry: Registry, url: Url) -> None:
    """Raise UsageError for a transport that is not there, before anything is opened."""
    try:
        registry.transport(url.transport)
    except UsageError as error:
        if url.host is None and re.match(r"[0-9]+(/|$)", url.path):  # localhost:7000 reads as a scheme and a path
            raise UsageError(f"{str(url)!r} lacks the transport; write for example tcp://{url}") from None
        if url.transport in registry.dialects:
            raise UsageError(f"{str(url)!r} names a protocol and no transport; write for example {url.transport}+tcp://…") from None
        raise UsageError(f"{str(url)!r} cannot be reached: {error} Plugins bring more; `penstock plugins` lists them") from None


def dialect_factory(registry: Registry, name: str) -> DialectFactory:
    """Return what makes the dialect of that name. Raises UsageError where nobody offers it."""
    return cast("DialectFactory", registry.dialect(name).make)


def dialects_at(registry: Registry, url: Url) -> list[DialectFactory]:
    """Return what is spoken where a server listens: the dialect that the URL names, or every one. Raises UsageError as above."""
    if url.dialect is not None:
        return [dialect_factory(registry, url.dialect)]
    names = sorted(registry.dialects, key=lambda name: (name != DEFAULT_DIALECT, name))
    return [dialect_factory(registry, name) for name in names or [DEFAULT_DIALECT]]


def protocols_of(kinds: Iterable[DialectFactory]) -> Iterator[str]:
    """Yield what stands for each where a transport agrees on what is going to be spoken. One without a name goes without."""
    for kind in kinds:
        if name := getattr(kind, "alpn", ""):  # somebody's plugin may lack it, and this is no reason to serve nobody
            yield name


def unserved_at(registry: Registry, served: Sequence[DialectFactory]) -> list[DialectFactory]:
    """Return the dialects that this program knows, that are not among `served`, and that can refuse a client in their own protocol."""
    known = [dialect_factory(registry, name) for name in sorted(registry.dialects)]
    return [factory for factory in known if factory not in served and hasattr(factory, "refusal")]


def settings_for(kind: DialectFactory, connection: Connection, extensions: NegotiableExtensions, setup: bytes = b"") -> DialectSettings:
    """Return what a connection tells its dialect."""
    return DialectSettings(extensions=extensions.of(takes=kind.takes_extensions), setup=setup, framed=connection.framed)


def new_connection(  # noqa: PLR0913  # each is a fact about one connection, given once, by name
    connection: Connection,
    *,
    role: Role,
    exports: PublishedStreams,
    watch: ConnectionEvents,
    limits: Limits,
    offers: Sequence[tuple[DialectFactory, DialectSettings]],
    unserved: Sequence[DialectFactory] = (),
    on_violation: Report,
    began: float | None = None,
) -> ConnectionTask:
    """Return the conversation for a connection, in the one of the dialects in `offers` that the client begins to speak.

    `unserved` are known dialects that are not offered here: their clients are refused in their own protocol.
    `began` is when the time for its handshake started to run, now if it is not given.
    """
    kind, settings = offers[0]

    def make_session(owner: SessionDelegate) -> Session:
        choose = protocol_detector(offers, framed=connection.framed, unserved=unserved) if role is Role.SERVER else None
        return Session(owner, lambda session: kind(session, settings), role=role, limits=limits, random=random.random, choose=choose)

    return ConnectionTask(
        connection,
        exports,
        make_session=make_session,
        limits=limits,
        on_violation=on_violation,
        watch=watch,
        began=trio.current_time() if began is None else began,
    )
