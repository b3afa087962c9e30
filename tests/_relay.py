"""A relay between a client and a server over TCP, in threads, whose connections a test cuts."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from urllib.parse import urlsplit, urlunsplit

from tests._real_time import HANGS_AFTER


class Relay:
    """Passes bytes on."""

    def __init__(self, listening: socket.socket, server: str) -> None:
        parts = urlsplit(server)
        self._listening = listening
        self._target = parts.hostname or "", parts.port or 0
        self._open: list[socket.socket] = []
        self._threads: list[threading.Thread] = []
        self.url = urlunsplit(parts._replace(netloc=f"127.0.0.1:{listening.getsockname()[1]}"))
        """The URL of the server, through the relay."""
        self.connections = 0

    def cut(self) -> None:
        """End all connections, without a goodbye. New ones are carried."""
        cut, self._open = self._open, []
        for sock in cut:
            with suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)

    def run(self) -> None:
        """Carry each connection in two threads, until the listening socket is closed."""
        while True:
            try:
                client, _ = self._listening.accept()
            except OSError:
                return
            server = socket.create_connection(self._target, HANGS_AFTER)
            self.connections += 1
            self._open += [client, server]
            for pair in ((client, server), (server, client)):
                thread = threading.Thread(target=_carry, args=pair)
                self._threads.append(thread)
                thread.start()

    def join(self) -> None:
        """Wait for the threads."""
        for thread in self._threads:
            thread.join(HANGS_AFTER)
            assert not thread.is_alive()


def _carry(source: socket.socket, sink: socket.socket) -> None:
    with suppress(OSError):
        while data := source.recv(65_536):
            sink.sendall(data)
    for sock in (source, sink):
        with suppress(OSError):
            sock.shutdown(socket.SHUT_RDWR)
    source.close()


@contextmanager
def relaying(server: str) -> Iterator[Relay]:
    """Run a relay to the server at that URL."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        relay = Relay(listening, server)
        thread = threading.Thread(target=relay.run)
        thread.start()
        try:
            yield relay
        finally:
            listening.shutdown(socket.SHUT_RDWR)  # ends accept()
            thread.join(HANGS_AFTER)
            relay.cut()
            relay.join()
