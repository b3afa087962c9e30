"""`connect`: it checks its arguments, and returns the block in which the program has the peer."""

from contextlib import AbstractAsyncContextManager
from typing import Unpack, cast

from penstock.api import UsageError
from penstock.client import (
    check_transport,
    check_whole,
    client_settings,
    refuse_unknown,
    registry_of,
)
from penstock.core import log_violation
from penstock.runtime.client._open_connection import OpenConnection
from penstock.runtime.client._options import TrioClientOptions, TrioConnectOptions
from penstock.runtime.client._reconnecting import ReconnectingConnection
from penstock.runtime.client._url_sources import check_connectable
from penstock.runtime.connection import Peer
from penstock.runtime.service import Service
from penstock.spi import Registry, Url, build_registry, check_permitted, parse_url


def connect(
    url: str | Url, **options: Unpack[TrioConnectOptions]
) -> AbstractAsyncContextManager[Peer]:
    """Connect to a peer for the length of an ``async with`` block.

    `url` says how and where: ``tcp://host:port``, ``tls://…``, ``unix:///path``, ``exec:command``,
    ``pipe:``, ``memory://name``, or one of `Server.addresses`;
    a protocol other than RS.io stands before a ``+``: ``reactivesocket+tcp://…``.
    `setup` is the data that a ReactiveSocket client sends when it connects. If a server refuses it,
    `Rejected` is raised from the requests and at the end of the block. `credentials` go to the
    server before any request; if it refuses them, requests raise `AuthRefused`. `authenticate`
    examines the server in the same way as `Service(authenticate=…)` examines clients, before any
    request is sent. `service` is what the peer may subscribe to; either side publishes.
    `extensions` are negotiated with the peer. By default RS.io has all that plugins offer, and
    ReactiveSocket the keepalive and *drain*; with ``()`` there are none (strict version 0).
    `transports` are the names of the transports that `url` may use, ``("tcp", "tls")`` for example;
    any other is refused. Give it for a URL from a configuration: ``exec:`` starts a program.
    `encoding` names an encoding that a plugin brings (``"msgpack"``): the messages of RS.io are in
    it if the server has it. Elements stay. With `reconnect` a lost connection is made again, and
    entering waits for the first one. Streams and requests of a lost connection end with
    ConnectionLost, because the peer may have acted on them. New ones wait.
    With `resume`, if the server has it too, a lost connection goes on with all of its streams:
    nothing is lost, nothing comes twice.
    Raises UsageError for a malformed URL and for an unknown option, ConnectionLost if no server
    answers there, and PluginError if a transport, a dialect or an extension raises. Entering and
    leaving checkpoint.
    """
    refuse_unknown("connect()", options, TrioConnectOptions.__annotations__)
    # All checks are made at the call, and not when the block is entered:
    # the traceback shows the line of the mistake.
    parsed = parse_url(url)
    # Checked first: the registry may import many plugins.
    check_permitted(parsed, options.get("transports"))
    service = options.pop("service", None)
    options["registry"] = registry = registry_of(options.get("registry"), build_registry)
    options.setdefault("on_violation", log_violation)
    _check_service(service, registry)
    parsed = connectable(registry, url, parsed)
    settings = client_settings(parsed, **cast("TrioClientOptions", options))
    block = OpenConnection if settings.reconnect is None else ReconnectingConnection
    # An empty service, and not None: the peer's subscribe gets the answer to a name
    # that does not exist.
    return block(settings, service or Service())


def connectable(registry: Registry, given: str | Url, url: Url) -> Url:
    """Return `url`, which was parsed of `given`, as that of a whole connection. Raises UsageError
    if it names a publisher, and if no installed transport connects to it.
    """
    check_connectable(registry, url)
    check_transport(registry, url)
    if (
        isinstance(given, str)
        and "#" not in given
        and url.publisher is not None
        and registry.transport(url.transport).has_mounts
    ):
        # No publisher can be meant, so it is the place of the server at its host.
        return parse_url(f"{given}#")
    check_whole(url, str(url))
    return url


def _check_service(service: object, registry: Registry) -> None:
    if service is None:
        return
    if not isinstance(service, Service):
        raise UsageError(
            f"connect() was given service={service!r}; give a penstock.Service: what the peer may "
            "subscribe to"
        )
    # If not, a publisher without its serializer would fail at the first subscribe of the peer.
    service.check(registry)
    service.check_loop()
