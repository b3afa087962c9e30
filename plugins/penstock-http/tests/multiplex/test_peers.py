"""Other software: curl, nghttp and Node as clients, nginx as a proxy. Each test is skipped where
its program is missing.
"""

import json
import shutil
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import trio

import penstock
from penstock.spi import TransportOptions, open_tcp, parse_url

HELLO = bytes.fromhex("01 00 00")
"""The hello of an RS.io client without extensions."""

SUBSCRIBE = b"\x10\x09numbers/3\x01\x09"
"""Subscribe to `numbers/3` as the stream 1, with a demand of 9."""

PAGE = (Path(__file__).parents[4] / "docs/how-to/http2.md").read_text(encoding="utf-8")

CURL = shutil.which("curl") or ""
NGHTTP = shutil.which("nghttp") or ""
NODE = shutil.which("node") or ""
NGINX = shutil.which("nginx") or ("/usr/sbin/nginx" if Path("/usr/sbin/nginx").exists() else "")


def _speaks_http2(curl: str) -> bool:
    return (
        bool(curl)
        and "HTTP2"
        in subprocess.run([curl, "--version"], capture_output=True, text=True, check=True).stdout
    )


@pytest.mark.skipif(not _speaks_http2(CURL), reason="needs curl with HTTP/2")
async def test_curl_speaks_rsio_in_full_duplex(serving: Any) -> None:
    """The server answers while the upload is open:
    curl shows the hello, then the elements, before its input ends.
    """
    async with serving() as server, trio.open_nursery() as nursery:
        url = str(server.addresses[0]).replace("h2:", "http:")
        command = [CURL, "-s", "-N", "-T", ".", "-X", "POST", "--http2-prior-knowledge", url]
        curl = await nursery.start(
            partial(trio.run_process, command, stdin=subprocess.PIPE, stdout=subprocess.PIPE),
        )
        received = b""

        async def wait(words: bytes) -> None:
            nonlocal received
            while words not in received:
                data = await curl.stdout.receive_some()
                assert data, received
                received += data

        await curl.stdin.send_all(HELLO)
        await wait(b"\x02")
        assert len(server.peers) == 1
        await curl.stdin.send_all(SUBSCRIBE)
        await wait(b"2")
        await curl.stdin.aclose()
        while await curl.stdout.receive_some():
            pass


@pytest.mark.skipif(not _speaks_http2(CURL), reason="needs curl with HTTP/2")
async def test_the_command_on_the_page_shows_the_hello_of_the_server(serving: Any) -> None:
    """It runs in a shell, word by word."""
    [command] = [line.strip() for line in PAGE.splitlines() if "curl -s -N -T ." in line]
    async with serving() as server:
        port = parse_url(server.addresses[0]).port
        done = await trio.run_process(
            ["sh", "-c", command.replace("7002", str(port))], capture_stdout=True
        )
    assert b"02 00" in done.stdout


@pytest.mark.skipif(not _speaks_http2(CURL), reason="needs curl with HTTP/2")
@pytest.mark.parametrize(
    ("arguments", "status", "words"),
    [
        (["--http2-prior-knowledge"], "405", "a stream of bytes begins with a POST"),
        (
            ["--http2-prior-knowledge", "-X", "POST", "-H", "Origin: https://evil.example"],
            "403",
            "pages of this origin",
        ),
        (
            ["--http2-prior-knowledge", "-X", "POST", "-H", "Content-Type: application/x-rsio;v=9"],
            "415",
            "served are",
        ),
        (["--http1.1"], "505", "this port speaks HTTP/2 alone"),
    ],
)
async def test_curl_shows_why_a_request_is_refused(
    serving: Any, arguments: list[str], status: str, words: str
) -> None:
    """In words for people."""
    async with serving() as server:
        url = str(server.addresses[0]).replace("h2:", "http:")
        command = [CURL, "-s", "-w", "%{http_code}", *arguments, url]
        done = await trio.run_process(command, capture_stdout=True)
    assert words in done.stdout.decode()
    assert done.stdout.decode().endswith(status)


@pytest.mark.skipif(not NGHTTP, reason="needs nghttp")
async def test_nghttp_gets_the_words_of_the_server(serving: Any, tmp_path: Path) -> None:
    """It opens five streams for priorities alone before its request."""
    (tmp_path / "hello").write_bytes(HELLO)
    async with serving() as server:
        url = str(server.addresses[0]).replace("h2:", "http:")
        command = [
            NGHTTP,
            "-v",
            "-H",
            "content-type: application/x-rsio",
            "-d",
            str(tmp_path / "hello"),
            url,
        ]
        done = await trio.run_process(command, capture_stdout=True)
    shown = done.stdout.decode("latin-1")
    assert ":status: 200" in shown
    assert "content-type: application/x-rsio;v=0" in shown
    assert "error_code=NO_ERROR" in shown


PROGRAM = """
const http2 = require("http2");
const client = http2.connect(process.argv[1]);
const one = () => new Promise((resolve) => {
  const stream = client.request({":method": "POST", ":path": "/", "content-type": "application/x-rsio"});
  let received = Buffer.alloc(0);
  stream.on("data", (data) => {
    received = Buffer.concat([received, data]);
    if (!stream.asked) { stream.asked = true; stream.write(Buffer.from(process.argv[2], "hex")); }
    if (received.includes("2")) { stream.end(); }
  });
  stream.on("close", () => resolve(received.includes("0") && received.includes("1")));
  stream.write(Buffer.from("010000", "hex"));
});
Promise.all(Array.from({length: 10}, one)).then((all) => { console.log(JSON.stringify(all)); client.close(); });
"""


@pytest.mark.skipif(not NODE, reason="needs Node.js")
async def test_node_has_ten_sessions_on_one_connection(serving: Any) -> None:
    """Each subscribes, gets its elements, and ends."""
    async with serving() as server:
        url = str(server.addresses[0]).replace("h2:", "http:")
        done = await trio.run_process(
            [NODE, "-e", PROGRAM, url, SUBSCRIBE.hex()], capture_stdout=True
        )
    assert json.loads(done.stdout) == [True] * 10


# --- nginx

AROUND = """
daemon off;
pid {folder}/pid;
error_log {folder}/error.log;
events {{}}
http {{
  access_log off;
  client_body_temp_path {folder}/1; proxy_temp_path {folder}/2; fastcgi_temp_path {folder}/3; uwsgi_temp_path {folder}/4;
  scgi_temp_path {folder}/5;
  {server}
}}
"""


def _configuration(folder: Path, port: int, target: int) -> str:
    """Return the configuration on the page, without TLS and with other ports."""
    shown = PAGE.partition("```nginx\n")[2].partition("```")[0]
    assert "listen 443 ssl http2" in shown
    assert "127.0.0.1:7002" in shown
    server = shown.replace("443 ssl http2", f"127.0.0.1:{port} http2").replace(
        "127.0.0.1:7002", f"127.0.0.1:{target}"
    )
    return AROUND.format(folder=folder, server=server)


@asynccontextmanager
async def _nginx(target: int, folder: Path) -> AsyncIterator[str]:
    """Run nginx as a proxy of the port `target`; yield its URL."""
    [listener] = await trio.open_tcp_listeners(0, host="127.0.0.1")
    port = listener.socket.getsockname()[1]
    await listener.aclose()
    (folder / "nginx.conf").write_text(_configuration(folder, port, target))
    async with trio.open_nursery() as nursery:
        command = [NGINX, "-c", str(folder / "nginx.conf"), "-e", str(folder / "error.log")]
        nginx = await nursery.start(partial(trio.run_process, command, check=False))
        url = f"h2://127.0.0.1:{port}"
        while not await _listens(url):
            await trio.lowlevel.checkpoint()
        yield url
        nginx.terminate()


async def _listens(url: str) -> bool:
    try:
        stream, _ = await open_tcp(parse_url(url), TransportOptions())
    except penstock.ConnectionLost:
        return False
    await stream.aclose()
    return True


@pytest.mark.skipif(not NGINX, reason="needs nginx")
@pytest.mark.parametrize("dialect", ["", "reactivesocket+"])
async def test_nginx_passes_both_directions(serving: Any, tmp_path: Path, dialect: str) -> None:
    """By grpc_pass: elements, requests, demand, and a cancel in the middle of a stream."""
    async with (
        serving() as server,
        _nginx(parse_url(server.addresses[0]).port or 0, tmp_path) as url,
    ):
        async with penstock.connect(f"{dialect}{url}") as peer:
            async with peer.subscribe("numbers/100", serializer="json", demand=4) as stream:
                assert [number async for number in stream] == list(range(100))
            async with peer.subscribe("big", demand=4) as stream:
                for _ in range(30):
                    assert await anext(stream) == bytes(100_000)
            assert await peer.request("echo", b"?" * 200_000) == b"?" * 200_000
            assert len(server.peers) == 1
        while server.peers:
            await trio.lowlevel.checkpoint()
