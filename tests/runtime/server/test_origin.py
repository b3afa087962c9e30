"""Which connections count together."""

import pytest

from penstock.runtime.server._origin import network_of, origin_of
from penstock.spi import PeerIdentity, UnixCredentials


@pytest.mark.parametrize(
    ("host", "network"),
    [
        ("192.0.2.7", "192.0.2.7"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("2001:db8:1:2::", "2001:db8:1:2::/64"),
        ("2001:db8:1:3::1", "2001:db8:1:3::/64"),
        ("::1", "::/64"),
        ("fe80::1%eth0", "fe80::/64%eth0"),
        ("fe80::1%eth1", "fe80::/64%eth1"),
        ("::ffff:192.0.2.7", "192.0.2.7"),
        ("64:ff9b::192.0.2.7", "192.0.2.7"),
        ("2002:c000:207::5", "192.0.2.7"),
        ("2001:0:53aa:64c:0:fbff:3fff:fdf8", "192.0.2.7"),
        ("a:host:of:a:plugin", "a:host:of:a:plugin"),
        ("example.org", "example.org"),
    ],
)
def test_an_ipv6_host_counts_by_its_network_of_64_bits(host: str, network: str) -> None:
    """A subscriber has 2^64 addresses. An IPv4 address that a gateway maps counts as itself."""
    assert network_of(host) == network


def test_a_unix_peer_counts_by_its_user() -> None:
    """Two processes of one user are one origin."""
    peers = [
        PeerIdentity(address="unix", credentials=UnixCredentials(pid=pid, uid=uid, gid=0))
        for pid, uid in ((1, 7), (2, 7), (3, 8))
    ]
    assert [origin_of(peer) for peer in peers] == ["uid 7", "uid 7", "uid 8"]


def test_a_peer_without_host_and_user_has_no_origin() -> None:
    """The peer of a pipe or of a memory transport has no origin."""
    assert origin_of(PeerIdentity(address="memory://x")) is None
    assert origin_of(PeerIdentity(address="x", host="192.0.2.7", port=1)) == "192.0.2.7"
