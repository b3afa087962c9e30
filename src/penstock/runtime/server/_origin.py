"""Where a connection comes from, for limits per address:
an IPv4 address, an IPv6 network, or a user of this machine.
"""

from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address
from typing import Final

from penstock.spi import PeerIdentity

PREFIX: Final = 64
"""Bits of an IPv6 address that count. One subscriber line or machine has at least a network of
this size, and all of its 2^64 addresses.
"""

_NAT64: Final = IPv6Network("64:ff9b::/96")


def origin_of(peer: PeerIdentity) -> str | None:
    """Return a text that is the same for all connections of one origin; None if the transport
    knows neither a host nor a user.
    """
    if peer.host is not None:
        return network_of(peer.host)
    # A Unix socket has no address. The kernel tells which user has connected.
    return None if peer.credentials is None else f"uid {peer.credentials.uid}"


def network_of(host: str) -> str:
    """Return the IPv4 address, or the IPv6 network, that `host` counts for."""
    # One character tells the usual case:
    # an IPv4 address is its own network, and need not be parsed.
    if ":" not in host:
        return host
    try:
        address = ip_address(host)
    except ValueError:  # the transport of a plugin may have hosts of another kind
        return host
    if isinstance(address, IPv4Address):
        return host
    embedded = _embedded_ipv4(address)
    if embedded is not None:
        return str(embedded)
    # The zone stays: the same link-local network on two interfaces is two networks.
    zone = f"%{address.scope_id}" if address.scope_id else ""
    return f"{IPv6Address(int(address) >> (128 - PREFIX) << (128 - PREFIX))}/{PREFIX}{zone}"


def _embedded_ipv4(address: IPv6Address) -> IPv4Address | None:
    """Return the IPv4 address in a mapped, translated or tunnelled one:
    a gateway puts all of them into one network.
    """
    if address.ipv4_mapped is not None:
        return address.ipv4_mapped
    if address in _NAT64:
        return IPv4Address(int(address) & 0xFFFFFFFF)
    if address.teredo is not None:
        return address.teredo[1]
    return address.sixtofour
