"""The server of an attack: certificates, transport, protocol, limits, and the service
that it offers.
"""

from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from itertools import cycle
from pathlib import Path

import trio
import trustme

from penstock.api import Limits, Rejected
from penstock.runtime import Service
from penstock.spi import Tls, TransportOptions, build_registry
from tests.hostile._attacker_protocol import RSIO, AttackerProtocol
from tests.hostile._control_canary import TICK
from tests.hostile._row import SCALED

REGISTRY = build_registry()
MIXED = (0, 1, 63, 64, 65, 1000, 4096, 4097, 20_000, 100_000)
"""The lengths of the elements of `mixed`:
below, at and above the bounds from which elements are joined or sent in parts.
"""

DEADLINES = (
    "handshake_timeout",
    "tls_timeout",
    "partial_age",
    "idle_connection",
    "write_stall",
    "goodbye_timeout",
    "linger",
    "drain",
    "keepalive",
    "keepalive_timeout",
    "resume_timeout",
)
"""The limits that give a peer a number of seconds."""


class Certificates:
    """A certificate, its authority, and a folder for sockets. Made once in a test run:
    making keys takes time.
    """

    def __init__(self, folder: Path) -> None:
        authority = trustme.CA()
        self.authority = folder / "ca.pem"
        self.server = folder / "server.pem"
        authority.cert_pem.write_to_path(self.authority)
        authority.issue_cert("localhost", "127.0.0.1").private_key_and_cert_chain_pem.write_to_path(
            self.server
        )
        self.folder = folder

    @property
    def server_options(self) -> TransportOptions:
        return TransportOptions(tls=Tls(certificate=self.server))

    @property
    def client_options(self) -> TransportOptions:
        return TransportOptions(tls=Tls(authorities=self.authority))


def stretched(limits: Limits, stretch: float) -> Limits:
    """Return the limits with each deadline `stretch` times as long."""
    return replace(limits, **{name: getattr(limits, name) * stretch for name in DEADLINES})


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup:
    """One server to attack."""

    files: Certificates
    stretch: float
    """The factor for every deadline, from the control canary."""
    scheme: str = "tcp"
    protocol: AttackerProtocol = RSIO
    unstretched: Limits = SCALED
    resumes: bool = False
    """The server is given ``resume=True``."""
    ticks: str = "ticks"
    """The stream of the canary."""
    hangs_after: float = 60
    """Seconds after which an attack is ended that would hang, times the stretch.
    The slowest over a socket takes 3.
    """

    @property
    def limits(self) -> Limits:
        return stretched(self.unstretched, self.stretch)

    @property
    def url(self) -> str:
        places = {
            "unix": f"{self.files.folder}/s.sock",
            "memory-framed": "attacked",
            "memory": "attacked",
        }
        return f"{self.protocol.url_prefix or 'rsio+'}{self.scheme}://{places.get(self.scheme, '127.0.0.1:0')}"


def service() -> Service:
    """Return the service that canaries read from and attackers attack."""
    made = Service(setup=examine_setup)
    offer(made)
    return made


def offer(made: Service) -> None:
    """Add the publishers and handlers of the attacks to a service."""

    @made.publisher("ticks")
    async def ticks() -> AsyncIterator[bytes]:
        while True:
            yield b"tick"
            await trio.sleep(TICK)

    @made.publisher("seconds")
    async def seconds() -> AsyncIterator[bytes]:
        while True:
            yield b"tick"
            await trio.sleep(1)

    @made.publisher("mixed")
    async def mixed() -> AsyncIterator[bytes]:
        for length in cycle(MIXED):
            yield bytes(length)

    @made.publisher("endless")
    async def endless() -> AsyncIterator[bytes]:
        while True:
            yield b"x" * 1000

    @made.publisher("large")
    async def large() -> AsyncIterator[bytes]:
        while True:
            yield b"x" * 100_000

    @made.publisher("up-to/{count}")
    async def up_to(count: int) -> AsyncIterator[bytes]:
        yield b"x" * count

    _offer_short(made)


def _offer_short(made: Service) -> None:
    """Add the publishers that end by themselves, and the handlers."""

    @made.publisher("one")
    async def one() -> AsyncIterator[bytes]:
        yield b"one"

    made.publish("none", [])

    @made.request("size")
    async def size(payload: bytes) -> bytes:
        return str(len(payload)).encode()

    @made.fire_and_forget
    async def swallow(data: bytes) -> None:
        await trio.lowlevel.checkpoint()


async def examine_setup(data: bytes) -> None:
    """Accept each client, except those whose data ask to be refused or to be kept waiting."""
    if data == b"keep me waiting":
        await trio.sleep_forever()
    if data == b"send me away":
        raise Rejected("not you")
