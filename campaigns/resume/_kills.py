"""Kills and stalls of connections over real sockets, while elements flow in both directions: none
may be lost, and none may come twice.

Rules of this file:

* A proxy stands between the client and the server. A kill resets its connections, at a random
  moment: also while one is being resumed. In a stall it carries nothing, until the keepalive gives
  the connection up.
* Each element has its number in it. The reader knows the number that is due, so one look finds a
  loss, a repetition and a change.
"""

from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from random import Random
from typing import Any, Final

import attrs
import trio
import trustme

from penstock.api import Limits
from penstock.runtime import Peer, Server, Service, connect, serve
from penstock.spi import Tls, TransportOptions

LIMITS: Final = replace(
    Limits(),
    keepalive=0.4,
    keepalive_timeout=0.4,
    keepalive_least=0.1,
    resume_timeout=120.0,
    resume_bytes=256 << 10,
)
"""A stall is noticed within a second, and the bytes that are kept reach their bound."""

STALL_SECONDS: Final = 1.0
SMALL, LARGE = 3, 2_000
"""Repetitions of the number in an element:
24 bytes towards the client, 16,000 towards the server.
"""

TLS: Final = frozenset({"tls", "wss"})
"""The schemes that need a certificate."""

KEYS: Final = ("to the client", "to the server")

PROGRESS: Final = 10
"""Elements that must still come, in each direction, behind the last kill."""


def tls_options(folder: Path) -> TransportOptions:
    """Return a certificate for 127.0.0.1, and the authority that issued it."""
    authority = trustme.CA()
    authority.cert_pem.write_to_path(str(folder / "ca.pem"))
    authority.issue_cert("127.0.0.1").private_key_and_cert_chain_pem.write_to_path(
        str(folder / "server.pem")
    )
    return TransportOptions(
        tls=Tls(
            certificate=folder / "server.pem",
            authorities=folder / "ca.pem",
            client_may_be_unknown=True,
        )
    )


@attrs.define
class Figures:
    """The results of a run."""

    kills: int = 0
    stalls: int = 0
    connections: int = 0
    resumed: int = 0
    elements: dict[str, int] = attrs.Factory(dict)
    lost: int = 0
    repeated: int = 0
    most_held: int = 0
    most_retained: int = 0
    seconds: float = 0.0

    @property
    def bound(self) -> int:
        """The most that one connection may retain."""
        return LIMITS.resume_bytes + 2 * (
            LIMITS.outbound_high + LIMITS.max_element + LIMITS.outbound_control
        )

    def __str__(self) -> str:
        return (
            f"{self.kills} kills, {self.stalls} stalls, {self.connections} connections, resumed "
            f"{self.resumed} times; "
            f"elements {self.elements}: lost {self.lost}, repeated {self.repeated}; retained at "
            f"most {self.most_retained:,} of {self.bound:,} bytes, held at most "
            f"{self.most_held:,}; {self.seconds:.1f} s"
        )


class Proxy:
    """Carries bytes between two stream sockets."""

    def __init__(self, open_target: Callable[[], Any]) -> None:
        self._open_target = open_target
        self._open: set[trio.CancelScope] = set()
        self._may_carry = trio.Event()
        self._may_carry.set()
        self.connections = 0

    async def run(
        self,
        listeners: list[trio.SocketListener],
        task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED,
    ) -> None:
        """Accept, until cancelled."""
        task_status.started()
        await trio.serve_listeners(self._serve, listeners)

    def kill(self) -> None:
        """End all connections at once."""
        for scope in tuple(self._open):
            scope.cancel()

    async def stall(self, seconds: float) -> None:
        """Carry nothing for that time."""
        self._may_carry = trio.Event()
        await trio.sleep(seconds)
        self._may_carry.set()

    async def _serve(self, client: trio.SocketStream) -> None:
        self.connections += 1
        with trio.CancelScope() as scope:
            self._open.add(scope)
            try:
                async with (
                    client,
                    await self._open_target() as server,
                    trio.open_nursery() as nursery,
                ):
                    nursery.start_soon(self._carry, client, server, scope)
                    nursery.start_soon(self._carry, server, client, scope)
            except* OSError:
                pass  # the server has no room in its queue
            finally:
                self._open.discard(scope)

    async def _carry(
        self, source: trio.SocketStream, target: trio.SocketStream, scope: trio.CancelScope
    ) -> None:
        try:
            while data := await source.receive_some(1 << 16):
                await self._may_carry.wait()
                await target.send_all(data)
        except trio.BrokenResourceError:
            pass
        scope.cancel()


def _counting(size: int) -> Service:
    service = Service()

    @service.publisher("numbers")
    async def numbers() -> AsyncIterator[bytes]:
        number = 0
        while True:
            yield number.to_bytes(8) * size
            number += 1
            if number % 16 == 0:
                await trio.lowlevel.checkpoint()

    return service


async def _read(figures: Figures, key: str, peer: Peer, size: int, stop: trio.Event) -> None:
    due = 0
    async with peer.subscribe("numbers", demand=64) as stream:
        async for element in stream:
            number = int.from_bytes(element[:8])
            if element != number.to_bytes(8) * size:
                wrong = next(
                    (
                        at
                        for at in range(0, len(element), 8)
                        if element[at : at + 8] != number.to_bytes(8)
                    ),
                    len(element),
                )
                raise AssertionError(
                    f"{key}: element {due}, of {len(element)} bytes, was changed at byte {wrong}: "
                    f"{element[wrong:][:16]!r}"
                )
            figures.lost += max(0, number - due)
            figures.repeated += number < due
            due = number + 1
            figures.elements[key] = due
            if stop.is_set():
                return


async def _disturb(
    figures: Figures, proxy: Proxy, random: Random, disturbances: int, look: Callable[[], None]
) -> None:
    for number in range(disturbances):
        # Each second one hits a connection that carries elements again, and the other one hits the
        # next connection at any time: often while it is being resumed.
        before, connections = dict(figures.elements), proxy.connections
        if number % 2 == 0:
            await _until(
                lambda: all(figures.elements.get(key, 0) > before.get(key, 0) for key in KEYS)  # noqa: B023  # called at once
            )
        else:
            await _until(lambda: proxy.connections > connections)  # noqa: B023  # called at once
        await trio.sleep(random.expovariate(1 / 0.01))
        look()
        if number % 50 == 49:
            await proxy.stall(STALL_SECONDS)
            figures.stalls += 1
        else:
            proxy.kill()
            figures.kills += 1


async def run_kills(
    disturbances: int,
    *,
    scheme: str,
    folder: Path,
    options: TransportOptions | None = None,
    encoding: str | None = None,
    seed: int = 0,
) -> Figures:
    """Disturb one connection that many times, and return the figures. `encoding` is that of the
    messages, if a plugin brings it.
    """
    figures, random, stop = Figures(), Random(seed), trio.Event()
    began = trio.current_time()
    given = options or TransportOptions()
    url = f"unix://{folder}/server" if scheme == "unix" else f"{scheme}://127.0.0.1:0"
    async with (
        serve(_counting(SMALL), f"rsio+{url}", resume=True, limits=LIMITS, options=given) as server,
        trio.open_nursery() as nursery,
    ):
        proxy, address = await _proxy_before(server, scheme, folder, nursery)
        connecting = connect(
            address,
            resume=True,
            service=_counting(LARGE),
            limits=LIMITS,
            options=given,
            encoding=encoding,
        )
        async with connecting as peer:
            await peer.wait_accepted()
            await _until(lambda: bool(server.peers))
            async with trio.open_nursery() as reading:
                for key, side, size in zip(
                    KEYS, (peer, server.peers[0]), (SMALL, LARGE), strict=True
                ):
                    reading.start_soon(_read, figures, key, side, size, stop)
                await _disturb(
                    figures, proxy, random, disturbances, partial(_look, figures, server, peer)
                )
                before = dict(figures.elements)
                with trio.fail_after(60):
                    await _until(
                        lambda: all(
                            figures.elements.get(key, 0) >= before.get(key, 0) + PROGRESS
                            for key in KEYS
                        )
                    )
                stop.set()
            figures.resumed = peer.statistics().resumed
        nursery.cancel_scope.cancel()
    figures.connections, figures.seconds = proxy.connections, trio.current_time() - began
    return figures


async def _until(is_reached: Callable[[], bool]) -> None:
    while not is_reached():  # noqa: ASYNC110  # no event reports the progress of a reader
        await trio.sleep(0.01)


async def _proxy_before(
    server: Server, scheme: str, folder: Path, nursery: trio.Nursery
) -> tuple[Proxy, str]:
    """Start a proxy, and return it with the URL at which a client reaches it."""
    if scheme == "unix":
        proxy = Proxy(partial(trio.open_unix_socket, str(folder / "server")))
        listening = trio.socket.socket(trio.socket.AF_UNIX)
        await listening.bind(str(folder / "proxy"))
        listening.listen()
        await nursery.start(proxy.run, [trio.SocketListener(listening)])
        return proxy, f"unix://{folder}/proxy"
    proxy = Proxy(partial(trio.open_tcp_stream, "127.0.0.1", server.addresses[0].port))
    listeners = await trio.open_tcp_listeners(0, host="127.0.0.1")
    await nursery.start(proxy.run, listeners)
    return proxy, f"{scheme}://127.0.0.1:{listeners[0].socket.getsockname()[1]}"


def _look(figures: Figures, server: Server, peer: Peer) -> None:
    """Note the most that was held."""
    figures.most_held = max(
        figures.most_held, server.statistics().buffered_bytes, peer.statistics().buffered_bytes
    )
    for side in (peer, *server.peers):
        figures.most_retained = max(figures.most_retained, side.statistics().retained_bytes)
