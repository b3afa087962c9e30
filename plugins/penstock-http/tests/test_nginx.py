"""nginx in front, with the configuration on the page: skipped where nginx is missing."""

import os
import re
import shutil
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing, asynccontextmanager
from functools import partial
from pathlib import Path

import pytest
import trio
from _free_port import free_port
from _site_in_memory import service

import penstock
from penstock.spi import TransportOptions, parse_url

PAGE = (Path(__file__).parents[3] / "docs/how-to/nginx.md").read_text(encoding="utf-8")
NGINX = shutil.which("nginx") or ("/usr/sbin/nginx" if Path("/usr/sbin/nginx").exists() else "")
pytestmark = pytest.mark.skipif(not NGINX, reason="needs nginx")

# The workers of a master of root belong to another user, and could not write into this folder.
AROUND = """
daemon off;
{user}
pid {folder}/pid;
error_log {folder}/error.log;
events {{}}
http {{
  client_body_temp_path {folder}/1; proxy_temp_path {folder}/2; fastcgi_temp_path {folder}/3; uwsgi_temp_path {folder}/4;
  scgi_temp_path {folder}/5;
  {gzip}
  {server}
}}
"""


def _configuration(folder: Path, port: int, target: int, gzip: str) -> str:
    """Return the configuration on the page, without TLS and with other ports."""
    server = PAGE.partition("```nginx\n")[2].partition("```")[0]
    for shown, tested in (
        ("443 ssl http2", f"127.0.0.1:{port}"),
        ("127.0.0.1:7002", f"127.0.0.1:{target}"),
        ("/var/log/nginx/streams.log", f"{folder}/access.log"),
    ):
        assert shown in server
        server = server.replace(shown, tested)
    return AROUND.format(
        folder=folder, server=server, gzip=gzip, user="user root;" if os.geteuid() == 0 else ""
    )


@asynccontextmanager
async def _nginx(port: int, target: int, folder: Path, gzip: str = "") -> AsyncIterator[str]:
    """Run nginx at `port` as a proxy of the port `target`; yield the URL of the publishers."""
    (folder / "nginx.conf").write_text(_configuration(folder, port, target, gzip))
    async with trio.open_nursery() as nursery:
        command = [NGINX, "-c", str(folder / "nginx.conf"), "-e", str(folder / "error.log")]
        nginx = await nursery.start(partial(trio.run_process, command, check=False))
        while True:
            assert nginx.poll() is None, (folder / "error.log").read_text()
            try:
                stream = await trio.open_tcp_stream("127.0.0.1", port)
            except OSError:
                await trio.lowlevel.checkpoint()
                continue
            await stream.aclose()
            break
        yield f"http://127.0.0.1:{port}/live/p"
        nginx.terminate()


@asynccontextmanager
async def _served(
    folder: Path,
    served: penstock.Service,
    *,
    public: bool = False,
    gzip: str = "",
    limits: penstock.Limits | None = None,
) -> AsyncIterator[str]:
    """Serve behind nginx; yield the URL of the publishers there."""
    port = free_port()
    extra = {
        "http.trusted": "127.0.0.1",
        **({"http.public": f"http://127.0.0.1:{port}/live"} if public else {}),
    }
    options = TransportOptions(extra=extra)
    async with (
        penstock.serve(served, "http://127.0.0.1:0", options=options, limits=limits) as server,
        _nginx(port, parse_url(server.addresses[0]).port or 0, folder, gzip) as url,
    ):
        yield url


async def _ask(url: str, method: str, path: str, *headers: str, source: str = "127.0.0.1") -> bytes:
    """Send a request from the address `source`, and return the whole answer."""
    port = parse_url(url).port
    connection = trio.socket.socket()
    await connection.bind((source, 0))
    await connection.connect(("127.0.0.1", port))
    async with trio.SocketStream(connection) as stream:
        lines = [
            f"{method} {path} HTTP/1.1",
            "Host: 127.0.0.1",
            "Connection: close",
            *headers,
            "",
            "",
        ]
        await stream.send_all("\r\n".join(lines).encode())
        return b"".join([bytes(part) async for part in stream])


@pytest.mark.parametrize("public", [False, True])
async def test_a_stream_comes_through_nginx(tmp_path: Path, public: bool) -> None:
    """With a relative Location below the prefix, and with an absolute one."""
    async with (
        _served(tmp_path, service(), public=public) as url,
        penstock.subscribe(f"{url}/numbers/3000", serializer="json", demand=100) as stream,
    ):
        assert [number async for number in stream] == list(range(3000))


@pytest.mark.parametrize("delivery", ["batch", "events"])
async def test_streamed_answers_are_not_buffered(tmp_path: Path, delivery: str) -> None:
    """The publisher makes an element when the client has read the one before."""
    paced, has_read = penstock.Service(), [trio.Event() for _ in range(4)]

    @paced.publisher("paced", serializer="text")
    async def paced_texts() -> AsyncIterator[str]:
        for number in range(3):
            await has_read[number].wait()
            yield f"element {number}"

    has_read[0].set()
    async with _served(tmp_path, paced) as url:
        if delivery == "batch":
            async with penstock.subscribe(f"{url}/paced", serializer="text") as stream:
                seen = []
                async for text in stream:
                    seen.append(text)
                    has_read[len(seen)].set()
            assert seen == ["element 0", "element 1", "element 2"]
            return
        created = await _ask(url, "PUT", "/live/p/paced?request=4")
        [location] = re.findall(rb"(?m)^Location: (?:\.\./)+(\S+)", created)
        async with await trio.open_tcp_stream("127.0.0.1", parse_url(url).port or 0) as stream:
            path = f"/live/{location.decode()}/events?text=1"
            await stream.send_all(f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode())
            received, count = b"", 0
            async with aclosing(aiter(stream)) as parts:
                async for part in parts:
                    received += part
                    count = received.count(b"data: element")
                    has_read[count].set()
                    if b"rsio-complete" in received:
                        break
        assert count == 3


async def test_each_user_of_nginx_has_places_of_its_own(tmp_path: Path) -> None:
    """Users are those of X-Forwarded-For, to which nginx adds the address that it sees."""
    async with _served(tmp_path, service(), limits=penstock.Limits(max_subscriptions=1)) as url:
        statuses = []
        for source, headers in (
            ("127.0.0.2", []),
            ("127.0.0.2", []),
            # A header that a client writes itself counts for nothing.
            ("127.0.0.2", ["X-Forwarded-For: 203.0.113.7"]),
            ("127.0.0.3", []),
        ):
            created = await _ask(
                url, "PUT", "/live/p/numbers/99?request=1", *headers, source=source
            )
            statuses.append(created[9:12])
            # Without a poll it would give way to the next one.
            for location in re.findall(rb"(?m)^Location: (?:\.\./)+(\S+)", created):
                await _ask(url, "PUT", f"/live/{location.decode()}", source=source)
    assert statuses == [b"201", b"429", b"429", b"201"]


async def test_the_log_of_nginx_has_no_secret(tmp_path: Path) -> None:
    """Neither the one of the subscription, nor a query."""
    async with _served(tmp_path, service()) as url:
        created = await _ask(url, "PUT", "/live/p/numbers/3?request=1")
        [secret] = re.findall(rb"(?m)^Location: (?:\.\./)+s/(\S+)", created)
        await _ask(url, "PUT", f"/live/s/{secret.decode()}/cancel?token=hidden")
    log = (tmp_path / "access.log").read_text()
    assert "PUT /live/p/numbers/3 201" in log
    assert "PUT /live/s/... 200" in log
    assert "hidden" not in log
    assert secret.decode() not in log


async def test_nginx_compresses_single_elements_and_no_batch(tmp_path: Path) -> None:
    """A batch has its own coding already, and comes unchanged."""
    large = penstock.Service()
    large.publish("large", [b"x" * 5000] * 5)
    async with _served(
        tmp_path, large, gzip="gzip on; gzip_types *; gzip_http_version 1.0;"
    ) as url:
        codings = []
        for accepted in ("gzip", "gzip, X-Rsio-LengthPrefixedElements"):
            created = await _ask(
                url, "PUT", f"/live/p/large?request={1 if accepted == 'gzip' else 5}"
            )
            [location] = re.findall(rb"(?m)^Location: (?:\.\./)+(\S+)", created)
            wait = "X-Rsio-Delivery: stream" if accepted != "gzip" else "Prefer: wait=20"
            polled = await _ask(
                url, "PUT", f"/live/{location.decode()}", f"Accept-Encoding: {accepted}", wait
            )
            codings += re.findall(rb"(?m)^Content-Encoding: (\S+)", polled)
    assert codings == [b"gzip", b"X-Rsio-LengthPrefixedElements"]


class _Relay:
    """Between nginx and the server: it cuts connections."""

    def __init__(self, target: int) -> None:
        self.target = target
        self.cut_after: Callable[[int], int | None] = lambda _number: None
        """For each connection the number of bytes of the server after which it is cut, or None."""
        self.connections = 0

    async def __call__(self, client: trio.SocketStream) -> None:
        most = self.cut_after(self.connections)
        self.connections += 1
        async with (
            await trio.open_tcp_stream("127.0.0.1", self.target) as server,
            trio.open_nursery() as nursery,
        ):

            async def pass_up() -> None:
                async for part in client:
                    await server.send_all(part)
                nursery.cancel_scope.cancel()

            nursery.start_soon(pass_up)
            left = most
            async for part in server:
                await client.send_all(part if left is None else part[:left])
                left = None if left is None else left - len(part)
                if left is not None and left <= 0:
                    break
            nursery.cancel_scope.cancel()
        await trio.aclose_forcefully(client)


async def test_a_502_and_a_cut_in_the_middle_of_a_batch_lose_and_repeat_nothing(
    tmp_path: Path,
) -> None:
    """The second connection to the server is cut inside a batch, the next one before any answer:
    nginx says 502.
    """
    port = free_port()
    async with (
        penstock.serve(service(), "http://127.0.0.1:0") as server,
        trio.open_nursery() as nursery,
    ):
        relay = _Relay(parse_url(server.addresses[0]).port or 0)
        relay.cut_after = [3000, 0, None].__getitem__
        [listener] = await nursery.start(partial(trio.serve_tcp, relay, 0, host="127.0.0.1"))
        async with (
            _nginx(port, listener.socket.getsockname()[1], tmp_path) as url,
            penstock.subscribe(f"{url}/numbers/3000", serializer="json", demand=1000) as stream,
        ):
            assert [number async for number in stream] == list(range(3000))
        assert relay.connections == 3
        nursery.cancel_scope.cancel()
    assert " 502 " in (tmp_path / "access.log").read_text()
