"""Many subscribers in one process, as cheap as can be: each is a socket and some counts.

A subscriber requests `demand` elements, and half of it again whenever it has got half: as the
clients of penstock do. Over RS.io it has the keepalive and answers pings.
"""

import selectors
import socket
import time
from collections.abc import Callable
from typing import Final

from penstock.protocols import reactivesocket, rsio

AT_ONCE: Final = 50
"""Subscribers that connect before the first of them is read: the system queues no more."""

ADDRESSES: Final = 100
"""Addresses from which they come."""

CHUNK: Final = 1 << 18

KEEPALIVE: Final = 1
"""The id of the extension."""

PING_BODY: Final = 8
PING: Final = rsio.encode(rsio.ExtensionMessage(type=0x40, body=bytes(PING_BODY)))
PING_HEAD: Final = PING[:-PING_BODY]
PONG_HEAD: Final = rsio.encode(rsio.ExtensionMessage(type=0x41, body=bytes(PING_BODY)))[:-PING_BODY]


class Protocol:
    """What the subscribers of one protocol send, and how long its messages are."""

    def __init__(self, scheme: str, size: int, demand: int) -> None:
        if scheme.startswith("reactivesocket"):
            self.begin: bytes = reactivesocket.encode(reactivesocket.Setup()) + (
                reactivesocket.encode(
                    reactivesocket.RequestSub(stream_id=2, demand=demand, data=b"topic")
                )
            )
            self.more: bytes = reactivesocket.request_n(2, demand // 2)
            self.prefix: int = 0
            head = len(reactivesocket.response_header(2, size))
        else:
            self.begin = rsio.encode(
                rsio.ClientHello(version=0, extensions=(KEEPALIVE,))
            ) + rsio.encode(rsio.Subscribe(publisher="topic", subscriber=0, demand=demand))
            self.more = rsio.encode(rsio.Request(subscriber=0, demand=demand // 2))
            self.prefix = len(rsio.encode(rsio.ServerHello(version=0, extensions=()))) + len(
                rsio.encode(rsio.OnSubscribe(subscriber=0, element_size=0))
            )
            head = len(rsio.encode(rsio.OnNext(subscriber=0, element=bytes(size)))) - size
        self.stride: int = head + size
        self.half: int = demand // 2


class Subscriber:
    """One of them."""

    def __init__(self, address: tuple[str, int], protocol: Protocol, number: int) -> None:
        # From many addresses, which 127.0.0.0/8 has: a server bounds what one of them may hold.
        source = f"127.0.1.{1 + number % ADDRESSES}", 0
        self.socket: socket.socket = socket.create_connection(address, source_address=source)
        self.socket.setblocking(False)
        self.socket.sendall(protocol.begin)
        self._protocol = protocol
        self.received: int = -protocol.prefix
        """Bytes of elements."""
        self._renewed = 0
        self._rest = b""  # the beginning of a ping
        self.pings: int = 0
        """Pings that were answered."""
        self.is_lost: bool = False

    @property
    def elements(self) -> int:
        """Elements that have come, whole."""
        return self.received // self._protocol.stride

    def read(self) -> None:
        """Read what has come, and request as much again."""
        data = self.socket.recv(CHUNK)
        self.is_lost = self.is_lost or not data
        self._count(data)
        due = self.elements // self._protocol.half - self._renewed
        if due > 0:
            self._renewed += due
            self.socket.send(self._protocol.more * due)

    def _count(self, data: bytes) -> None:
        """Count the bytes of elements, and answer the pings between them."""
        if self.received == -self._protocol.prefix and self._protocol.prefix:
            self.received -= data[2]  # the extensions in the hello of the server, a byte each
        data, self._rest, begin = self._rest + data, b"", 0
        found = data.find(PING_HEAD)
        while found >= 0:
            end = found + len(PING)
            if self.received < 0 or (self.received + found - begin) % self._protocol.stride:
                end = found + 1  # inside of an element
            elif end <= len(data):
                self.socket.send(PONG_HEAD + data[found + len(PING_HEAD) : end])
                self.received += found - begin
                self.pings += 1
                begin = end
            else:
                break
            found = data.find(PING_HEAD, end)
        else:
            last = len(data) - 1
            is_at_head = data[last:] == PING_HEAD[:1] and self.received >= 0
            if is_at_head and not (self.received + last - begin) % self._protocol.stride:
                found = last
        if found >= 0:
            data, self._rest = data[:found], data[found:]
        self.received += len(data) - begin


class Crowd:
    """All subscribers of a server."""

    def __init__(self, url: str, *, size: int, demand: int = 256) -> None:
        scheme, _, rest = url.partition("://")
        host, _, port = rest.rpartition(":")
        self._address = host, int(port)
        self._protocol = Protocol(scheme, size, demand)
        self._selector = selectors.DefaultSelector()
        self.subscribers: list[Subscriber] = []

    def join(self, count: int) -> None:
        """Connect `count` more subscribers, and wait until each is subscribed."""
        for start in range(0, count, AT_ONCE):
            for _ in range(min(AT_ONCE, count - start)):
                subscriber = Subscriber(self._address, self._protocol, len(self.subscribers))
                self._selector.register(subscriber.socket, selectors.EVENT_READ, subscriber)
                self.subscribers.append(subscriber)
            self.read_until(lambda: all(one.received >= 0 for one in self.subscribers[-AT_ONCE:]))

    @property
    def lost(self) -> int:
        """How many the server has cut."""
        return sum(subscriber.is_lost for subscriber in self.subscribers)

    @property
    def pings(self) -> int:
        """How many pings were answered."""
        return sum(subscriber.pings for subscriber in self.subscribers)

    def read_all(self, elements: int) -> None:
        """Read until each subscriber has got `elements` more, or is lost."""
        wanted = {one: one.elements + elements for one in self.subscribers}

        def have_come() -> bool:
            done = [one for one, most in wanted.items() if one.elements >= most or one.is_lost]
            for one in done:
                del wanted[one]
            return not wanted

        self.read_until(have_come)

    def read_until(self, is_done: Callable[[], bool], *, seconds: float = 600) -> None:
        """Read until `is_done` is true."""
        until = time.monotonic() + seconds
        while not is_done():
            if time.monotonic() > until:
                raise TimeoutError(f"the elements did not come within {seconds:g} s")
            for key, _ in self._selector.select(1):
                key.data.read()
                if key.data.is_lost:
                    self._selector.unregister(key.fileobj)

    def leave(self) -> None:
        """Close all connections."""
        for subscriber in self.subscribers:
            subscriber.socket.close()
        self._selector.close()
