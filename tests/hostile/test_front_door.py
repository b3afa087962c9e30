"""Silent connections and resets at the front door, over real sockets:
an honest client is let in meanwhile.
"""

import socket
import struct
from contextlib import ExitStack

import pytest
import trio

from penstock.api import Limits, Rejected
from penstock.runtime import Server, Service, connect, serve, subscribe
from penstock.runtime.server._refused_clients import MOST
from tests._real_time import HANGS_AFTER
from tests.hostile._beside_a_canary import wait_until
from tests.hostile._setup import Certificates

LIMITS = Limits(handshake_timeout=2 * HANGS_AFTER)
"""The defaults, except that no silent connection goes by itself during a test."""


def _target(server: Server) -> tuple[str, int]:
    address = server.addresses[0]
    return address.host or "", address.port or 0


async def _assert_let_in(server: Server) -> None:
    with trio.fail_after(HANGS_AFTER):
        async with connect(server.addresses[0]) as peer:
            await peer.wait_accepted()


async def test_520_silent_connections_from_three_addresses_keep_no_client_out() -> None:
    """With the default places. Each connection that made room is counted."""
    async with serve(Service(), "tcp://127.0.0.1:0", limits=LIMITS) as server:
        with ExitStack() as sockets:
            for number in range(520):
                source = (f"127.0.0.{2 + number % 3}", 0)
                sockets.enter_context(
                    socket.create_connection(_target(server), source_address=source)
                )
                await trio.lowlevel.checkpoint()
            await wait_until(
                lambda: (
                    len(server._admission._handshaking) + server.refused.get("places:silent", 0)
                    == 520
                )
            )
            for _ in range(3):
                await _assert_let_in(server)
            assert server.refused["places:silent"] >= 8


async def test_silent_connections_of_one_address_keep_no_client_of_that_address_out() -> None:
    """An address has 256 places; the oldest silent one goes."""
    async with serve(Service(), "tcp://127.0.0.1:0", limits=LIMITS) as server:
        with ExitStack() as sockets:
            for _ in range(300):
                sockets.enter_context(socket.create_connection(_target(server)))
                await trio.lowlevel.checkpoint()
            await wait_until(lambda: sum(server.refused.values()) >= 44)
            await _assert_let_in(server)


async def test_silent_connections_of_one_user_keep_no_client_of_a_unix_socket_out(
    files: Certificates,
) -> None:
    """Its user has 256 places, as an address has."""
    async with serve(Service(), f"unix://{files.folder}/d.sock", limits=LIMITS) as server:
        with ExitStack() as sockets:
            for _ in range(300):
                client = sockets.enter_context(socket.socket(socket.AF_UNIX))
                client.connect(f"{files.folder}/d.sock")
                await trio.lowlevel.checkpoint()
            await wait_until(lambda: server.refused.get("places:address", 0) >= 44)
            await _assert_let_in(server)


@pytest.mark.parametrize("scheme", ["tcp", "tls"])
async def test_connections_that_are_reset_before_they_speak_cost_no_pace(
    scheme: str, files: Certificates
) -> None:
    """At one connection in 100 s, each of the 200 would delay the honest client by 100 s
    if it counted.
    """
    limits = Limits(accept_rate=0.01)
    async with serve(
        Service(), f"{scheme}://127.0.0.1:0", limits=limits, options=files.server_options
    ) as server:
        for _ in range(200):
            client = socket.create_connection(_target(server))
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            client.close()
        with trio.fail_after(HANGS_AFTER):
            async with connect(server.addresses[0], options=files.client_options) as peer:
                await peer.wait_accepted()


@pytest.mark.parametrize("scheme", ["tcp", "tls"])
@pytest.mark.parametrize("protocol", ["rsio", "reactivesocket"])
async def test_a_client_without_a_place_reads_why(
    scheme: str, protocol: str, files: Certificates
) -> None:
    """It has sent requests after its hello, and still reads it: bytes that the server has not read
    at the close would reset the connection.
    """
    limits = Limits(max_connections_per_address=1)
    async with serve(
        Service(), f"{scheme}://127.0.0.1:0", limits=limits, options=files.server_options
    ) as server:
        async with connect(server.addresses[0], options=files.client_options) as first:
            with trio.fail_after(HANGS_AFTER):
                await first.wait_accepted()
                for _ in range(3):
                    url = f"{protocol}+{server.addresses[0]}/{'x' * 1000}"
                    with pytest.raises(
                        Rejected, match=r"places:address.*Limits\.max_connections_per_address"
                    ):
                        async with subscribe(url, options=files.client_options) as stream:
                            await anext(stream)


async def test_silent_clients_without_a_place_keep_no_client_out() -> None:
    """300 connections of an address that has used up its places;
    clients of other addresses are let in meanwhile.
    """
    limits = Limits(max_connections_per_address=1)
    async with (
        serve(Service(), "tcp://127.0.0.1:0", limits=limits) as server,
        connect(server.addresses[0]) as first,
    ):
        await first.wait_accepted()
        with ExitStack() as sockets:
            for number in range(300):
                sockets.enter_context(socket.create_connection(_target(server)))
                if number % 100 == 50:
                    with (
                        trio.fail_after(HANGS_AFTER),
                        socket.create_connection(
                            _target(server), source_address=("127.0.0.9", 0)
                        ) as other,
                    ):
                        other.sendall(bytes.fromhex("010000"))
                        assert (await trio.to_thread.run_sync(other.recv, 1)) == b"\x02"
            await wait_until(lambda: server.refused.get("places:address", 0) == 300)
            assert server._refused_clients._answering <= MOST
