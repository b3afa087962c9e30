"""Third-party WebSockets as peers: `websockets` as a client and as a server, trio-websocket as a
client, and npm's `ws` if Node has it.
"""

import json
import shutil
import subprocess
import threading
from typing import Any

import pytest
import trio
import trio_websocket
import websockets.sync.client
import websockets.sync.server
from penstock_websocket import WebSocketTransport

from penstock.spi import TransportOptions, parse_url

SUBSCRIBE = b"\x10\x09numbers/3\x00\x64"
"""Subscribe to numbers/3 as 0, with a demand of 100."""

SCRIPT = """
const { WebSocket } = require("ws");
const socket = new WebSocket(process.argv[1], ["rsio.v0"]);
const received = [];
socket.on("open", () => socket.send(Buffer.from(process.argv[2], "hex")));
socket.on("message", (data, isBinary) => {
  received.push(data);
  if (Buffer.concat(received).includes(Buffer.from("2500", "hex"))) socket.close(1000);
});
socket.on("close", (code) => console.log(JSON.stringify({
  code, protocol: socket.protocol, extensions: socket.extensions, data: Buffer.concat(received).toString("hex"),
})));
"""


def _checked(data: bytes, hello: bytes) -> None:
    """The three elements of numbers/3, each as json, behind the hello and onSubscribe,
    and the end.
    """
    assert data[:2] == b"\x02\x00"
    assert data.endswith(bytes.fromhex("200000 21000130 21000131 21000132 2500")), data.hex()


def _ask_websockets(url: str, first: bytes) -> tuple[bytes, str | None]:
    with websockets.sync.client.connect(
        url, subprotocols=["rsio.v0"], compression="deflate", proxy=None
    ) as socket:
        assert socket.protocol.extensions == []
        socket.send(first)
        data = b""
        while not data.endswith(b"\x25\x00"):
            data += bytes(socket.recv(timeout=10))
        return data, socket.subprotocol


async def test_websockets_as_a_client(serving: Any, hello: bytes) -> None:
    """It offers compression, which is not accepted, and closes in good order."""
    async with serving() as server:
        data, subprotocol = await trio.to_thread.run_sync(
            _ask_websockets, str(server.addresses[0]), hello + SUBSCRIBE
        )
    _checked(data, hello)
    assert subprotocol == "rsio.v0"


async def test_trio_websocket_as_a_client(serving: Any, hello: bytes) -> None:
    """Cut into one message for each byte."""
    async with serving() as server:
        connected = trio_websocket.open_websocket_url(
            str(server.addresses[0]), subprotocols=["rsio.v0"]
        )
        async with connected as socket:
            for byte in hello + SUBSCRIBE:
                await socket.send_message(bytes([byte]))
            data = b""
            while not data.endswith(b"\x25\x00"):
                data += await socket.get_message()
    _checked(data, hello)
    assert socket.closed is not None
    assert socket.closed.code == 1000


async def test_trio_websocket_reads_the_code_of_a_refusal(serving: Any, hello: bytes) -> None:
    """1003 for a text, 1009 for a message above `max_message`, both in the Close frame."""
    async with serving() as server:
        for message, code in (("text", 1003), (bytes((1 << 20) + 1), 1009)):
            # With its deadline of 60 s for a close, a busy machine would once wait for all of it.
            opening = trio_websocket.open_websocket_url(
                str(server.addresses[0]), subprotocols=["rsio.v0"], disconnect_timeout=1
            )
            async with opening as socket:
                await socket.send_message(hello)
                await socket.get_message()
                with pytest.raises(trio_websocket.ConnectionClosed) as caught:
                    await _exchange(socket, message)
                assert caught.value.reason.code == code
                # trio-websocket leaves it open after a Close frame with an error.
                await trio.aclose_forcefully(socket._stream)


async def _exchange(socket: trio_websocket.WebSocketConnection, message: str | bytes) -> None:
    await socket.send_message(message)
    await socket.get_message()


async def test_websockets_as_a_server(nursery: trio.Nursery) -> None:
    """A client of this plugin sends and receives, answers its ping, and closes with 1000."""
    seen: list[object] = []
    is_over = threading.Event()

    def echo(socket: websockets.sync.server.ServerConnection) -> None:
        socket.ping().wait(10)
        for message in socket:
            socket.send(message)
        seen.append(socket.protocol.close_code)
        is_over.set()

    with websockets.sync.server.serve(
        echo, "127.0.0.1", 0, subprotocols=["rsio.v0"], max_size=1 << 24
    ) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        options = TransportOptions(protocols=("rsio/0",))
        url = parse_url(f"ws://127.0.0.1:{server.socket.getsockname()[1]}")
        client = await WebSocketTransport().connect(url, options=options, nursery=nursery)
        await client.handshake(nursery)
        assert client.facts.protocol == "rsio.v0"
        client.on_open()
        received = b""
        nursery.start_soon(client.send, b"x" * 600_000)
        while len(received) < 600_000:
            received += await client.receive() or b""
        assert received == b"x" * 600_000
        await client.aclose()
        assert await trio.to_thread.run_sync(is_over.wait, 10)
        await trio.to_thread.run_sync(server.shutdown)
    assert seen == [1000]


def _missing() -> str | None:
    """Return what this machine lacks to run npm's `ws`."""
    if shutil.which("node") is None:
        return "node is not installed"
    found = subprocess.run(
        ["node", "-e", "require('ws')"], capture_output=True, check=False, stdin=subprocess.DEVNULL
    )
    return (
        "Node finds no package ws: npm install ws, and NODE_PATH=…/node_modules"
        if found.returncode
        else None
    )


MISSING = _missing()


@pytest.mark.skipif(MISSING is not None, reason=MISSING or "")
async def test_ws_of_npm_as_a_client(serving: Any, hello: bytes) -> None:
    """It offers compression as browsers do, which is not accepted, and closes in good order."""
    async with serving() as server:
        command = ["node", "-e", SCRIPT, str(server.addresses[0]), (hello + SUBSCRIBE).hex()]
        done = await trio.run_process(command, capture_stdout=True)
    told = json.loads(done.stdout)
    _checked(bytes.fromhex(told["data"]), hello)
    assert (told["code"], told["protocol"], told["extensions"]) == (1000, "rsio.v0", "")
