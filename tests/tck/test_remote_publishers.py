"""The test kit over publishers of a peer's: what holds for a source in this process holds for one behind a connection, over each transport.

Rules of this file

* Server and client are in this process: checks run on the kit's MockClock, and what one side has sent, the other can read at once.
* Virtual time waits for no thread. The certificates for TLS are read in one; here they are read on the spot.
* A child process has a clock of its own, so `exec:` is not here; `pipe:` is, which is its other end.
"""

import itertools
import os
import tempfile
from pathlib import Path
from typing import ClassVar
from unittest import mock

import trio
import trustme

import penstock
from penstock.api import Model
from penstock.builtin import PipeTransport
from penstock.plugins import Tls, TransportOptions, build_registry, hookimpl
from tests.tck._ours import OurPublisher, numbers, numbers_and_an_error, numbers_slowly

COUNTER = itertools.count()  # a check may make several publishers, and a name in memory can be taken once


class _EndOfPipes(PipeTransport):
    """One end of the pipes that a check has made, and not this process's own standard input and output."""

    files: ClassVar[tuple[int, int]]

    def __init__(self):
        """The files are known when a check begins."""

    async def listen(self, url, *, options, nursery):
        return await PipeTransport(stdin=self.files[0], stdout=self.files[1]).listen(url, options=options, nursery=nursery)

    async def connect(self, url, *, options, nursery):
        return await PipeTransport(stdin=self.files[0], stdout=self.files[1]).connect(url, options=options, nursery=nursery)


class _Parent(_EndOfPipes):
    schemes: ClassVar[tuple[str, ...]] = ("parent",)


class _Child(_EndOfPipes):
    schemes: ClassVar[tuple[str, ...]] = ("child",)


class _Plugin:
    @hookimpl
    def penstock_transports(self):
        return [_Parent(), _Child()]


REGISTRY = build_registry([_Plugin()])  # once: it looks through all that is installed


async def _here(function, *arguments, **_options):
    """What stands in for a thread."""
    await trio.lowlevel.checkpoint()
    return function(*arguments)


class _Certificates:
    """Made once, when first asked for: keys take time."""

    _options: ClassVar[list[TransportOptions]] = []

    @classmethod
    def options(cls):
        if not cls._options:
            ca = trustme.CA()
            with tempfile.TemporaryDirectory() as folder:
                authority, server = Path(folder) / "ca.pem", Path(folder) / "server.pem"
                ca.cert_pem.write_to_path(authority)
                ca.issue_cert("127.0.0.1").private_key_and_cert_chain_pem.write_to_path(server)
                contexts = Tls(certificate=server).server_context(), Tls(authorities=authority).client_context()
            cls._options += [TransportOptions(tls=Tls(context=context)) for context in contexts]
        return cls._options


class OverMemory(OurPublisher):
    """A peer's publisher, over a connection that is there already. Elements come when the connection brings them, and not before."""

    verifies = "remote"
    url: ClassVar[str] = "memory://kit{}"
    serializer: ClassVar[str] = "json"
    watchdog_seconds = 30.0  # some checks stream thousands of elements, here through the system's sockets
    waivers: ClassVar[dict[str, str]] = {
        "the_error_of_the_source_arrives_unwrapped": "an exception stays on its side of the wire; PublisherFailed says so",
    }

    async def create_publisher(self, elements):
        return await self._remote(lambda: numbers(elements))

    async def create_faulty_publisher(self, elements, error):
        return await self._remote(lambda: numbers_and_an_error(elements, error))

    async def create_broken_publisher(self, error):
        def broken():
            raise error

        return await self._remote(broken)

    async def create_slow_publisher(self, elements, seconds):
        return await self._remote(lambda: numbers_slowly(elements, seconds))

    # --- the connection

    def listening(self):
        """The URL to listen at, and options and registry for both sides."""
        return self.url.format(next(COUNTER)), TransportOptions(), TransportOptions(), REGISTRY

    def connecting(self, address):
        return address

    def asking(self, peer):
        """The peer's publisher, as a source."""
        return peer.source("numbers", serializer=self.serializer)

    async def _remote(self, function):
        service = penstock.Service()
        service.publisher("numbers", serializer=self.serializer)(function)
        return await self.env.nursery.start(self._hold, service)

    async def _hold(self, service, task_status):
        url, serving, calling, registry = self.listening()
        with mock.patch("trio.to_thread.run_sync", _here):
            async with penstock.serve(
                service, url, options=serving, registry=registry, extensions=(), on_violation=lambda _error: None
            ) as server:
                await self._connect(self.connecting(server.addresses[0]), calling, registry, task_status)

    async def _connect(self, address, options, registry, task_status):
        async with penstock.connect(address, options=options, registry=registry, extensions=()) as peer:
            await peer.wait_accepted()
            task_status.started(self.bound(self.asking(peer)))
            await trio.sleep_forever()


class OverFramedMemory(OverMemory):
    """Whole messages."""

    url = "memory-framed://kit{}"


class AnUrl(OverMemory):
    """Each subscription makes a connection of its own, and ends it."""

    async def _connect(self, address, options, registry, task_status):
        named = f"{address}{'/' if '://kit' in address else '#'}numbers"
        source = penstock.remote(named, serializer=self.serializer, options=options, registry=registry, extensions=())
        task_status.started(self.bound(source))
        await trio.sleep_forever()


class OverTcp(OverMemory):
    """Sockets of the system."""

    url = "tcp://127.0.0.1:0"


class OverTls(OverMemory):
    """Encrypted."""

    url = "tls://127.0.0.1:0"

    def listening(self):
        serving, calling = _Certificates.options()
        return self.url, serving, calling, REGISTRY


class OverUnix(OverMemory):
    """A socket with a name in a folder."""

    async def _hold(self, service, task_status):
        with tempfile.TemporaryDirectory() as folder:
            self.path = f"unix://{folder}/kit.sock"
            await super()._hold(service, task_status)

    def listening(self):
        return self.path, TransportOptions(), TransportOptions(), REGISTRY


class OverPipes(OverMemory):
    """Two pipes, such as a parent has with its child."""

    def listening(self):
        return "child:", TransportOptions(), TransportOptions(), REGISTRY

    def connecting(self, address):
        return "parent:"

    async def _hold(self, service, task_status):
        (to_child, from_parent), (to_parent, from_child) = os.pipe(), os.pipe()
        try:
            _Child.files, _Parent.files = (to_child, from_child), (to_parent, from_parent)
            await super()._hold(service, task_status)
        finally:
            for number in (to_child, from_parent, to_parent, from_child):
                os.close(number)


class _ThroughReactiveSocket:
    """A mixin: the same publisher at the same place, asked for in the other protocol."""

    def listening(self):
        url, *others = super().listening()
        return f"reactivesocket+{url}", *others

    async def _connect(self, address, options, registry, task_status):
        # Nothing is waited for: an accepted client is not told so, and need not know.
        async with penstock.connect(address, options=options, registry=registry) as peer:
            task_status.started(self.bound(self.asking(peer)))
            await trio.sleep_forever()


class RequestedOverMemory(_ThroughReactiveSocket, OverMemory):
    """Frames with their lengths."""


class RequestedOverFramedMemory(_ThroughReactiveSocket, OverFramedMemory):
    """Frames without them."""


class RequestedOverTcp(_ThroughReactiveSocket, OverTcp):
    """Sockets of the system."""


class RequestedOverTls(_ThroughReactiveSocket, OverTls):
    """Encrypted."""


class RequestedOverUnix(_ThroughReactiveSocket, OverUnix):
    """A socket with a name in a folder."""


class RequestedOverPipes(_ThroughReactiveSocket, OverPipes):
    """Two pipes, such as a parent has with its child."""

    def connecting(self, address):
        return "reactivesocket+parent:"


class ARequestsUrl(AnUrl):
    """Each subscription makes a connection of its own, in this protocol, too."""

    url = "reactivesocket+memory://kit{}"


class ASubscriptionRequested(_ThroughReactiveSocket, OverMemory):
    """A stream without an end of its own: nothing of the kit that needs a completion applies."""

    completes = False

    def asking(self, peer):
        return peer._requesting(Model.SUBSCRIPTION, b"numbers", self.serializer)
