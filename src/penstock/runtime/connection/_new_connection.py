"""Makes the task for a transport connection, for either side."""

import random
from collections.abc import Sequence

import trio

from penstock.api import PenstockError, Role
from penstock.client import not_made
from penstock.runtime.connection._connection import ConnectionSettings, ConnectionTask
from penstock.runtime.connection._event_reporting import ConnectionEvents
from penstock.runtime.connection._resumption import Handover, Resumption
from penstock.session import (
    DialectFactory,
    DialectSettings,
    Session,
    SessionDelegate,
    protocol_detector,
)
from penstock.spi import Connection


def new_connection(  # noqa: PLR0913  # the parts of a connection, and two that only a connection with resume=True has
    connection: Connection,
    settings: ConnectionSettings,
    *,
    role: Role,
    events: ConnectionEvents,
    offers: Sequence[tuple[DialectFactory, DialectSettings]],
    unserved: Sequence[DialectFactory] = (),
    began: float | None = None,
    resumption: Resumption | None = None,
    handover: Handover | None = None,
) -> ConnectionTask:
    """Return the connection task for a transport connection.

    `offers` are the dialects with their settings: a client speaks the first, a server that which
    the client begins to speak.
    `unserved` are installed dialects that are not offered here:
    their clients are refused in their own protocol.
    `began` is when the time for the handshake started to run, now if it is not given.
    `resumption` lets the connection go on after a loss,
    `handover` lets its transport be the next link of one that was lost.
    Raises PluginError if a dialect or an extension raises while it is made.
    """
    kind, dialect_settings = offers[0]

    # A closure: the connection task makes its session itself, because it is the delegate.
    def make_session(delegate: SessionDelegate) -> Session:
        # A client speaks first, in the dialect of its URL; only a server must find out.
        choose = (
            protocol_detector(offers, framed=connection.framed, unserved=unserved)
            if role is Role.SERVER
            else None
        )
        session = Session(
            delegate,
            lambda session: kind(session, dialect_settings),
            role=role,
            limits=settings.limits,
            random=random.random,
            choose=choose,
        )
        if resumption is not None:
            resumption.attach(session)  # before the hello: it counts
        return session

    try:
        return ConnectionTask(
            connection,
            settings,
            make_session=make_session,
            events=events,
            began=trio.current_time() if began is None else began,
            resumption=resumption,
            handover=handover,
        )
    # Our own errors say who must act already.
    except PenstockError:
        raise
    except Exception as error:
        # boundary: the constructor and the start of a dialect, which may be a plugin.
        raise not_made(kind, error) from error
