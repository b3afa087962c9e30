"""The test kit over remote publishers. The checks of a local source hold for a remote one, over
each transport.

Rules of this file

* Server and client run in this process: checks run on the kit's MockClock, and one side can read at
  once what the other has sent.
* The virtual clock does not wait for threads. Penstock reads TLS certificates in a thread;
  here that function runs inline.
* A child process has its own clock, so `exec:` is missing here.
  `pipe:`, the other end of it, is verified.
"""

import itertools
import os
import tempfile
from pathlib import Path
from typing import ClassVar

import trio
import trustme

import penstock
from penstock.api import Model
from penstock.spi import Tls, TransportOptions, build_registry, hookimpl
from penstock.transports import PipeTransport
from tests.tck._penstock_publisher import (
    PenstockPublisher,
    numbers,
    numbers_and_an_error,
    numbers_slowly,
)

# A check may make several publishers, and a name in memory can be used once.
COUNTER = itertools.count()


class _PipeEnd(PipeTransport):
    """One end of the pipes that a check has made, in the place of standard input and output."""

    files: ClassVar[tuple[int, int]]

    def __init__(self):
        """Take no files: they are known only when a check begins."""

    async def listen(self, url, *, options, nursery):
        return await PipeTransport(stdin=self.files[0], stdout=self.files[1]).listen(
            url, options=options, nursery=nursery
        )

    async def connect(self, url, *, options, nursery):
        return await PipeTransport(stdin=self.files[0], stdout=self.files[1]).connect(
            url, options=options, nursery=nursery
        )


class _Parent(_PipeEnd):
    schemes: ClassVar[tuple[str, ...]] = ("parent",)


class _Child(_PipeEnd):
    schemes: ClassVar[tuple[str, ...]] = ("child",)


class _Plugin:
    @hookimpl
    def penstock_transports(self):
        return [_Parent(), _Child()]


REGISTRY = build_registry([_Plugin()])  # once, because it searches all installed distributions


async def _run_sync_inline(function, *arguments, **_options):
    """Replaces `trio.to_thread.run_sync`: runs the function in this task."""
    await trio.lowlevel.checkpoint()
    return function(*arguments)


class _InlineThreads:
    """While at least one block is open, functions for a thread run in their task.

    Two servers of a check overlap, and the first one may end first. With `mock.patch` the second
    one would restore the replacement.
    """

    def __init__(self):
        self._blocks = 0
        self._original = trio.to_thread.run_sync

    def __enter__(self):
        self._blocks += 1
        trio.to_thread.run_sync = _run_sync_inline

    def __exit__(self, *_exc_info):
        self._blocks -= 1
        if not self._blocks:
            trio.to_thread.run_sync = self._original


_INLINE_THREADS = _InlineThreads()


class _Certificates:
    """TLS options, made at the first use, because making keys takes time."""

    _options: ClassVar[list[TransportOptions]] = []

    @classmethod
    def options(cls):
        if not cls._options:
            ca = trustme.CA()
            with tempfile.TemporaryDirectory() as folder:
                authority, server = Path(folder) / "ca.pem", Path(folder) / "server.pem"
                ca.cert_pem.write_to_path(authority)
                ca.issue_cert("127.0.0.1").private_key_and_cert_chain_pem.write_to_path(server)
                contexts = (
                    Tls(certificate=server).server_context(),
                    Tls(authorities=authority).client_context(),
                )
            cls._options += [TransportOptions(tls=Tls(context=context)) for context in contexts]
        return cls._options


class OverMemory(PenstockPublisher):
    """A publisher of a peer over an existing connection. Elements arrive when the connection
    delivers them, and not inside `request`.
    """

    verifies = "remote"
    url: ClassVar[str] = "memory://kit{}"
    serializer: ClassVar[str] = "json"
    # real seconds: some checks stream thousands of elements through sockets of the system.
    watchdog_seconds = 30.0
    waivers: ClassVar[dict[str, str]] = {
        "the_error_of_the_source_arrives_unwrapped": (
            "an exception is not sent over the connection; the peer gets PublisherFailed"
        ),
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
        """Return the URL to listen at, the options of server and client,
        and the registry of both.
        """
        return self.url.format(next(COUNTER)), TransportOptions(), TransportOptions(), REGISTRY

    def connecting(self, address):
        return address

    def remote_source(self, peer):
        """Return the publisher of the peer as a source."""
        return peer.source("numbers", serializer=self.serializer)

    async def _remote(self, function):
        service = penstock.Service()
        service.publisher("numbers", serializer=self.serializer)(function)
        return await self.env.nursery.start(self._hold, service)

    async def _hold(self, service, task_status):
        url, serving, calling, registry = self.listening()
        with _INLINE_THREADS:
            async with penstock.serve(
                service,
                url,
                options=serving,
                registry=registry,
                extensions=(),
                on_violation=lambda _error: None,
            ) as server:
                await self._connect(
                    self.connecting(server.addresses[0]), calling, registry, task_status
                )

    async def _connect(self, address, options, registry, task_status):
        async with penstock.connect(
            address, options=options, registry=registry, extensions=()
        ) as peer:
            await peer.wait_accepted()
            task_status.started(self.bound(self.remote_source(peer)))
            await trio.sleep_forever()


class OverFramedMemory(OverMemory):
    """A transport that delivers whole messages."""

    url = "memory-framed://kit{}"


class RemoteUrl(OverMemory):
    """`remote(url)`: each subscription opens its own connection and closes it."""

    async def _connect(self, address, options, registry, task_status):
        named = f"{address}{'/' if '://kit' in str(address) else '#'}numbers"
        source = penstock.remote(
            named, serializer=self.serializer, options=options, registry=registry, extensions=()
        )
        task_status.started(self.bound(source))
        await trio.sleep_forever()


class OverTcp(OverMemory):
    """Sockets of the system."""

    url = "tcp://127.0.0.1:0"


class OverTls(OverMemory):
    """Encrypted sockets."""

    url = "tls://127.0.0.1:0"

    def listening(self):
        serving, calling = _Certificates.options()
        return self.url, serving, calling, REGISTRY


class OverUnix(OverMemory):
    """A socket with a path."""

    async def _hold(self, service, task_status):
        with tempfile.TemporaryDirectory() as folder:
            self.path = f"unix://{folder}/kit.sock"
            await super()._hold(service, task_status)

    def listening(self):
        return self.path, TransportOptions(), TransportOptions(), REGISTRY


class OverPipes(OverMemory):
    """Two pipes, as between a parent and its child process."""

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
    """A mixin: the same publisher at the same address over ReactiveSocket."""

    def listening(self):
        url, *others = super().listening()
        return f"reactivesocket+{url}", *others

    async def _connect(self, address, options, registry, task_status):
        # Without wait_accepted(): a ReactiveSocket server does not tell a client
        # that it is accepted.
        async with penstock.connect(address, options=options, registry=registry) as peer:
            task_status.started(self.bound(self.remote_source(peer)))
            await trio.sleep_forever()


class ReactiveSocketOverMemory(_ThroughReactiveSocket, OverMemory):
    """Frames with a length field."""


class ReactiveSocketOverFramedMemory(_ThroughReactiveSocket, OverFramedMemory):
    """Frames without a length field."""


class ReactiveSocketOverTcp(_ThroughReactiveSocket, OverTcp):
    """Sockets of the system."""


class ReactiveSocketOverTls(_ThroughReactiveSocket, OverTls):
    """Encrypted sockets."""


class ReactiveSocketOverUnix(_ThroughReactiveSocket, OverUnix):
    """A socket with a path."""


class ReactiveSocketOverPipes(_ThroughReactiveSocket, OverPipes):
    """Two pipes, as between a parent and its child process."""

    def connecting(self, address):
        return "reactivesocket+parent:"


class RemoteUrlOverReactiveSocket(RemoteUrl):
    """`remote(url)` over ReactiveSocket:
    each subscription opens its own connection and closes it.
    """

    url = "reactivesocket+memory://kit{}"


class SubscriptionOverReactiveSocket(_ThroughReactiveSocket, OverMemory):
    """A stream that never completes: checks of the kit that need a completion do not apply."""

    completes = False

    def remote_source(self, peer):
        return peer._requesting(Model.SUBSCRIPTION, b"numbers", peer._loader(self.serializer, None))
