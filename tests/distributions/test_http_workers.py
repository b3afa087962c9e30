"""HTTP in several processes: each worker serves each subscription."""

import http.client
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import AsyncExitStack, ExitStack
from pathlib import Path

import pytest
import trio

from campaigns.resume._kills import tls_options
from penstock import connect, subscribe
from penstock.spi import TransportOptions
from tests._real_time import HANGS_AFTER
from tests.workers._program import Program, program

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="it looks into /proc")

SOURCE = """
import os
import penstock

service = penstock.Service()


@service.publisher("who")
async def who():
    while True:
        yield b"%d" % os.getpid()


@service.publisher("numbers")
async def numbers():
    for number in range(1000):
        yield b"%d" % number


@service.publisher("silent")
async def silent():
    import trio
    await trio.sleep_forever()
    yield b""
"""


class Client:
    """A connection of HTTP/1.1."""

    def __init__(self, running: Program) -> None:
        host, port = running.address.removeprefix("http://").split(":")
        self.http = http.client.HTTPConnection(host, int(port), timeout=HANGS_AFTER)

    def ask(self, method: str, path: str, **headers: str) -> http.client.HTTPResponse:
        self.http.request(method, path, headers=headers)
        return self.http.getresponse()

    def body(self, method: str, path: str, **headers: str) -> tuple[int, bytes]:
        answer = self.ask(method, path, **headers)
        return answer.status, answer.read()

    def subscribe(self, name: str) -> str:
        """Return the path of a new subscription."""
        answer = self.ask("PUT", f"/p/{name}")
        answer.read()
        assert answer.status == 201
        return "/s/" + (answer.getheader("Location") or "").rpartition("/")[2]

    def process(self) -> bytes:
        """The process that serves this connection."""
        return self.body("PUT", f"{self.subscribe('who')}?request=1")[1]


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Program]:
    """A server that no test ends."""
    folder = tmp_path_factory.mktemp("shared")
    with program(folder, *METRICS, source=SOURCE, url="http://127.0.0.1:0") as running:
        yield running


METRICS = ("--option", "http.metrics=127.0.0.0/8")


def two_clients(running: Program, stack: ExitStack) -> tuple[Client, Client]:
    """Clients at different workers."""
    clients = [Client(running) for _ in range(2)]
    for client in clients:
        stack.callback(client.http.close)
    assert clients[0].process() != clients[1].process()
    return clients[0], clients[1]


def test_polls_over_another_connection_reach_the_subscription(shared: Program) -> None:
    """A poll may reach any worker. Each element comes once and in order; and the end."""
    with ExitStack() as stack:
        first, second = two_clients(shared, stack)
        path = first.subscribe("numbers")
        found = []
        for number in range(1000):
            client = (first, second)[number % 2]
            status, body = client.body("PUT", f"{path}?request=1")
            assert status == 200
            found.append(int(body))
        assert found == list(range(1000))
        assert second.ask("PUT", f"{path}?request=1").status == 410


def test_a_poll_with_many_elements_passes(shared: Program) -> None:
    """With its positions and its coding."""
    with ExitStack() as stack:
        first, second = two_clients(shared, stack)
        path = first.subscribe("numbers")
        answer = second.ask(
            "PUT", f"{path}?request=100", **{"Accept-Encoding": "X-Rsio-LengthPrefixedElements"}
        )
        assert answer.getheader("X-Rsio-Position") == "0"
        batch = b"".join(len(b"%d" % number).to_bytes(4) + b"%d" % number for number in range(100))
        assert batch.startswith(answer.read())


def test_events_pass_through_another_worker(shared: Program) -> None:
    """Each event is written at once."""
    with ExitStack() as stack:
        first, second = two_clients(shared, stack)
        path = first.subscribe("numbers")
        answer = second.ask("GET", f"{path}/events?request=3&text=1")
        assert answer.getheader("Content-Type") == "text/event-stream"
        data = b""
        while b"data: 2\n" not in data:
            data += answer.read1()
        assert data.startswith(b"retry: 2000\n")
        second.http.close()
        # The subscription goes on: its client is not the connection.
        assert first.body("PUT", f"{path}?request=1", **{"X-Rsio-Position": "3"}) == (200, b"3")


def test_a_subscription_can_be_cancelled_over_another_worker(shared: Program) -> None:
    """And then both of them answer that it has ended."""
    with ExitStack() as stack:
        first, second = two_clients(shared, stack)
        path = first.subscribe("silent")
        assert second.ask("PUT", f"{path}/cancel").status == 200
        second.http.close()
        assert second.ask("PUT", f"{path}?request=1").status == 404
        assert first.ask("PUT", f"{path}?request=1").status == 404


def test_a_waiting_poll_ends_with_the_worker_that_holds_it(tmp_path: Path) -> None:
    """With the answer to try again, and then with that of a server that was started again."""
    with (
        program(tmp_path, source=SOURCE, url="http://127.0.0.1:0") as running,
        ExitStack() as stack,
    ):
        first, second = two_clients(running, stack)
        holder = int(first.process())
        path = first.subscribe("silent")
        second.http.request("PUT", f"{path}?request=1")
        os.kill(holder, signal.SIGKILL)
        assert second.http.getresponse().status == 503
        running.wait_for("was ended by SIGKILL")
        second.http.close()
        assert second.ask("PUT", f"{path}?request=1").status == 404


def test_a_poll_of_a_client_that_leaves_loses_nothing(shared: Program) -> None:
    """The worker that holds the elements learns that the answer was not read."""
    with ExitStack() as stack:
        first, second = two_clients(shared, stack)
        path = first.subscribe("silent")
        second.http.request("PUT", f"{path}?request=1", headers={"Prefer": "wait=20"})
        second.http.close()
        # A newer poll is answered at once if the older one has gone, or by it.
        status, _ = first.body("PUT", f"{path}?request=1", Prefer="wait=0")
        assert status == 204


def test_the_client_of_penstock_reads_over_both_workers(shared: Program) -> None:
    """It opens connections as it needs them."""

    async def read() -> list[int]:
        with trio.fail_after(HANGS_AFTER):
            async with subscribe(f"{shared.address}/p/numbers") as stream:
                return [int(element) async for element in stream]

    assert trio.run(read) == list(range(1000))


def metrics(client: Client) -> dict[str, float]:
    """The page as numbers by name and labels."""
    status, body = client.body("GET", "/metrics")
    assert status == 200
    lines = (line for line in body.decode().splitlines() if not line.startswith("#"))
    return {name: float(value) for name, _, value in (line.rpartition(" ") for line in lines)}


def test_one_page_has_the_numbers_of_all_workers(tmp_path: Path) -> None:
    """Any worker gives the sums of the counters, and none falls when a worker ends. The numbers of
    a process have a label.
    """
    with (
        program(tmp_path, *METRICS, source=SOURCE, url="http://127.0.0.1:0") as running,
        ExitStack() as stack,
    ):
        first, second = two_clients(running, stack)
        seen: list[dict[str, float]] = []
        for client in (first, second, first, second):
            client.body("PUT", f"{client.subscribe('numbers')}?request=1")
            seen.append(metrics(client))
        memory = [name for name in seen[0] if name.startswith("process_resident_memory_bytes{")]
        assert len(memory) == 2
        assert all('worker="' in name for name in memory)
        open_streams = 'penstock_publisher_subscriptions{publisher="numbers"}'
        assert [page[open_streams] for page in seen] == [1, 2, 3, 4]
        cancelled = (
            'penstock_publisher_subscriptions_ended_total{outcome="cancelled",publisher="numbers"}'
        )
        path = first.subscribe("numbers")
        assert second.ask("PUT", f"{path}/cancel").read() == b""
        before = metrics(second)[cancelled]
        assert before >= 1
        os.kill(int(first.process()), signal.SIGKILL)
        running.wait_for("was ended by SIGKILL")
        assert metrics(second)[cancelled] >= before
        assert running.end() == 0


def test_a_wrong_worker_in_a_secret_finds_nothing(shared: Program) -> None:
    """Not one that never was, and not a right one with a wrong secret."""
    with ExitStack() as stack:
        first, second = two_clients(shared, stack)
        path = first.subscribe("numbers")
        for wrong in (path[:-1] + "9", "/s/" + "a" * 32 + path[35:], path + "1", "/s/abc"):
            assert second.ask("PUT", f"{wrong}?request=1").status == 404
            second.http.close()


def processes_of(url: str, options: TransportOptions | None = None) -> list[int]:
    """The processes that serve four connections which are open at the same time."""

    async def ask() -> list[int]:
        with trio.fail_after(HANGS_AFTER):
            async with AsyncExitStack() as stack:
                peers = [
                    await stack.enter_async_context(connect(url, options=options)) for _ in range(4)
                ]
                return sorted({int(await peer.request("who")) for peer in peers})

    return trio.run(ask)


@pytest.mark.parametrize("scheme", ["ws", "h2", "http", "rsio+tcp", "reactivesocket+tcp"])
def test_clients_of_each_transport_are_divided(tmp_path: Path, scheme: str) -> None:
    """At the port of HTTP clients of WebSocket are too."""
    with program(tmp_path, source=SOURCE, url=f"{scheme}://127.0.0.1:0") as running:
        port = running.address.rpartition(":")[2]
        url = f"{'ws' if scheme == 'http' else scheme}://127.0.0.1:{port}"
        assert processes_of(url) == running.workers()


def test_clients_of_tls_are_divided(tmp_path: Path) -> None:
    """The handshake is that of the worker, which has read the certificate."""
    options = tls_options(tmp_path)
    arguments = ("--tls-cert", str(tmp_path / "server.pem"))
    with program(tmp_path, *arguments, source=SOURCE, url="tls://127.0.0.1:0") as running:
        assert processes_of(running.address, options) == running.workers()
