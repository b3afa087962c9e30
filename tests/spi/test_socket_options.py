"""Options of a socket, and the identity of its peer, without trio."""

import os
import socket

from penstock.spi import TransportOptions, set_tcp_options, tcp_identity, unix_identity


def test_small_messages_are_sent_at_once() -> None:
    """TCP_NODELAY is set, and keepalive of the system is on unless it is switched off."""
    with socket.socket() as sock:
        set_tcp_options(sock, TransportOptions(tcp_keepalive=None, tcp_user_timeout=None))
        assert sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
        assert not sock.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
        set_tcp_options(sock, TransportOptions())
        assert sock.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)


def test_an_address_is_shown_as_a_url_has_it() -> None:
    """IPv6 stands in brackets."""
    assert tcp_identity(("127.0.0.1", 7000)).address == "127.0.0.1:7000"
    assert tcp_identity(("::1", 7000, 0, 0)).address == "[::1]:7000"


def test_the_process_behind_a_unix_socket_is_known() -> None:
    """The kernel has recorded it."""
    left, right = socket.socketpair()
    with left, right:
        credentials = unix_identity(left).credentials
        assert credentials is not None
        assert (credentials.pid, credentials.uid) == (os.getpid(), os.getuid())
