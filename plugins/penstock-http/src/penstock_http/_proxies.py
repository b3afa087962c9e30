"""Proxies of the server: which client a request, or a connection, comes from.

Rules of this file:

* Only a proxy whose address is in ``http.trusted`` is believed, and only in the way that
  ``http.forwarded`` names. A client can send every other header itself.
* The last address that no trusted proxy has is the client.
  Addresses before it were written by the client, and prove nothing.
* An address that cannot be read hides the client.
  Then the proxy that wrote it counts as the client.
* A connection of a trusted proxy has the requests of many users, so it does not count against
  `Limits.max_connections_per_address`.
"""

import ipaddress
import re
from collections.abc import Iterable
from typing import Final

import attrs

from penstock.api import UsageError
from penstock.spi import PeerIdentity
from penstock_http._messages import Request

Network = ipaddress.IPv4Network | ipaddress.IPv6Network
Address = ipaddress.IPv4Address | ipaddress.IPv6Address

FORWARDED: Final = "forwarded"
X_FORWARDED_FOR: Final = "x-forwarded-for"
PROXY_PROTOCOL: Final = "proxy-protocol"
WAYS: Final = (X_FORWARDED_FOR, FORWARDED, PROXY_PROTOCOL)

MAX_HOPS: Final = 32
_FOR: Final = re.compile(r'(?:^|;)\s*for\s*=\s*("(?:[^"\\]|\\.)*"|[^;,\s"]*)', re.IGNORECASE)
_WITH_PORT: Final = re.compile(r"\[([0-9A-Fa-f:.]+)\](?::[0-9]{1,5})?|([0-9.]+):[0-9]{1,5}")
_ELEMENT: Final = re.compile(r'(?:"(?:[^"\\]|\\.)*"|[^,"])+')


@attrs.frozen(kw_only=True)
class Proxies:
    """The proxies that are trusted, and the way in which they name their clients."""

    networks: tuple[Network, ...] = ()
    way: str = X_FORWARDED_FOR

    def are_trusted(self, host: str | None) -> bool:
        """Return whether `host` is the address of a trusted proxy."""
        address = read_address(host or "")
        return address is not None and is_within(address, self.networks)

    def expect_header(self, peer: PeerIdentity) -> bool:
        """Return whether a connection of `peer` begins with a header of the PROXY protocol."""
        return self.way == PROXY_PROTOCOL and self.are_trusted(peer.host)

    def counted(self, peer: PeerIdentity) -> PeerIdentity:
        """Return the peer of a connection for the limits of the server:
        without an address, if it is a trusted proxy.
        """
        return attrs.evolve(peer, host=None, port=None) if self.are_trusted(peer.host) else peer

    def client_of(self, request: Request, peer: PeerIdentity) -> PeerIdentity:
        """Return the client of a request that has come from `peer`."""
        if self.way == PROXY_PROTOCOL or not self.are_trusted(peer.host):
            return peer
        client = None
        for hop in reversed(_hops(request, self.way)[-MAX_HOPS:]):
            address = read_address(hop)
            if address is None:
                break
            client = address
            if not is_within(address, self.networks):
                break
        return peer if client is None else behind(peer, client)


def behind(proxy: PeerIdentity, client: Address, port: int | None = None) -> PeerIdentity:
    """Return the identity of a client at an address, whose requests come by `proxy`."""
    shown = f"[{client}]" if client.version == 6 and port is not None else str(client)
    return attrs.evolve(
        proxy, host=str(client), port=port, address=shown if port is None else f"{shown}:{port}"
    )


def read_networks(texts: Iterable[str], option: str) -> tuple[Network, ...]:
    """Return networks: ``10.0.0.0/8``, ``::1``. Raises UsageError for another text."""
    networks: list[Network] = []
    for text in texts:
        try:
            networks.append(ipaddress.ip_network(text))
        except ValueError:
            raise UsageError(
                f"{option} has {text!r}, which is no network; write for example 10.0.0.0/8 or "
                "127.0.0.1"
            ) from None
    return tuple(networks)


def is_within(address: Address, networks: tuple[Network, ...]) -> bool:
    """Return whether an address is in one of the networks."""
    return any(address.version == network.version and address in network for network in networks)


def read_address(text: str) -> Address | None:
    """Return the address in ``1.2.3.4``, ``1.2.3.4:567``, ``::1`` or ``[::1]:567``;
    None for anything else.
    """
    found = _WITH_PORT.fullmatch(text)
    try:
        address = ipaddress.ip_address((found[1] or found[2]) if found else text.partition("%")[0])
    except ValueError:
        return None
    # A socket of both families shows a client of IPv4 so.
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return mapped or address


def _hops(request: Request, way: str) -> list[str]:
    """Return the addresses that proxies have written, the one of the client first."""
    header = request.header(way) or ""
    if way == X_FORWARDED_FOR:
        return [part.strip() for part in header.split(",") if part.strip()]
    hops = []
    for element in _ELEMENT.findall(header):
        found = _FOR.search(element.strip())
        hops.append(found[1].strip('"') if found else "")
    return hops
