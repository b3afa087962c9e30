"""`subscribe` through a proxy: by the option, by the environment, with a tunnel for https://, and
the refusals of a proxy.
"""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import urlsplit

import pytest
import trio
import trustme
from _site_in_memory import service
from penstock_http._client_proxy import Proxy, proxy_for

from penstock import (
    AuthRefused,
    ConnectionLost,
    Credentials,
    Rejected,
    Service,
    UsageError,
    serve,
    subscribe,
)
from penstock.spi import PeerIdentity, Tls, TransportOptions

SECRET = b"Proxy-Authorization: Basic YW5uOmMgZA=="  # ann:c d
VARIABLES = ("http_proxy", "https_proxy", "all_proxy", "no_proxy")


@pytest.fixture(autouse=True)
def _no_proxy_of_the_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


class AProxy:
    """A proxy written by hand: it keeps the head of each request, and passes bytes on to the
    server that the first line names.
    """

    def __init__(self, answers: Sequence[bytes]) -> None:
        self.heads: list[bytes] = []
        self.url = ""
        self._answers = list(answers)

    async def serve(self, stream: trio.SocketStream) -> None:
        head = b""
        while not head.endswith(b"\r\n\r\n"):
            part = await stream.receive_some(1)
            if not part:
                return
            head += part
        self.heads.append(head)
        if self._answers:
            await stream.send_all(self._answers.pop(0))
            return
        method, target = head.split(b" ")[:2]
        named = urlsplit(target.decode() if method != b"CONNECT" else f"//{target.decode()}")
        async with (
            stream,
            await trio.open_tcp_stream(named.hostname or "", named.port or 80) as server,
            trio.open_nursery() as nursery,
        ):
            if method == b"CONNECT":
                await stream.send_all(b"HTTP/1.1 200 Connected\r\n\r\n")
            else:
                await server.send_all(head)
            nursery.start_soon(self._pass_on, stream, server, nursery.cancel_scope)
            nursery.start_soon(self._pass_on, server, stream, nursery.cancel_scope)

    async def _pass_on(
        self, source: trio.SocketStream, target: trio.SocketStream, scope: trio.CancelScope
    ) -> None:
        async for part in source:
            await target.send_all(part)
        scope.cancel()


@asynccontextmanager
async def a_proxy(*answers: bytes) -> AsyncIterator[AProxy]:
    """Yield a proxy that answers the first requests itself."""
    proxy = AProxy(answers)
    async with trio.open_nursery() as nursery:
        listeners = await nursery.start(trio.serve_tcp, proxy.serve, 0)
        proxy.url = f"http://ann:c%20d@127.0.0.1:{listeners[0].socket.getsockname()[1]}"
        yield proxy
        nursery.cancel_scope.cancel()


async def read(url: str, **options: Any) -> list[Any]:
    async with subscribe(url, serializer="json", **options) as stream:
        return [element async for element in stream]


async def test_the_option_sends_all_requests_through_a_proxy() -> None:
    """Each names the whole URL and shows the secret of the proxy;
    the credentials of the stream reach the server.
    """
    guarded = Service(
        authenticate=lambda scheme, data, _peer: (
            "ann" if (scheme, data) == ("bearer", b"token") else None
        )
    )

    @guarded.publisher("who", serializer="json")
    async def who(peer: PeerIdentity) -> AsyncIterator[str]:
        yield str(peer.principal)

    async with serve(guarded, "http://127.0.0.1:0") as server, a_proxy() as proxy:
        options = TransportOptions(extra={"http.proxy": proxy.url})
        origin = str(server.addresses[0])
        assert await read(
            f"{origin}/p/who", options=options, credentials=Credentials.bearer("token")
        ) == ["ann"]
    # The requests that follow the first on a connection are passed on unread.
    assert proxy.heads[0].startswith(f"PUT {origin}/p/who?request=".encode())
    assert f"Host: {origin.removeprefix('http://')}\r\n".encode() in proxy.heads[0]
    assert SECRET in proxy.heads[0]


async def test_https_goes_through_a_tunnel() -> None:
    """The proxy sees the name of the server, and its own secret, and no header of the stream."""
    authority = trustme.CA()
    certificate = authority.issue_cert("localhost")
    with (
        certificate.private_key_and_cert_chain_pem.tempfile() as pem,
        authority.cert_pem.tempfile() as roots,
    ):
        serving = TransportOptions(tls=Tls(certificate=pem, key=pem))
        async with (
            serve(service(), "https://127.0.0.1:0", options=serving) as server,
            a_proxy() as proxy,
        ):
            port = urlsplit(str(server.addresses[0])).port
            options = TransportOptions(tls=Tls(authorities=roots), extra={"http.proxy": proxy.url})
            assert await read(f"https://localhost:{port}/p/numbers/100", options=options) == list(
                range(100)
            )
    assert proxy.heads[0].startswith(f"CONNECT localhost:{port} HTTP/1.1\r\n".encode())
    assert SECRET in proxy.heads[0]
    assert b"X-Rsio" not in proxy.heads[0]


async def test_the_environment_names_a_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its variables are the usual ones; no_proxy and an empty option go around the proxy."""
    async with serve(service(), "http://127.0.0.1:0") as server, a_proxy() as proxy:
        url = f"{server.addresses[0]}/p/numbers/3"
        monkeypatch.setenv("http_proxy", proxy.url)
        assert await read(url) == [0, 1, 2]
        assert len(proxy.heads) == 1
        assert await read(url, options=TransportOptions(extra={"http.proxy": ""})) == [0, 1, 2]
        monkeypatch.setenv("no_proxy", "example.org,127.0.0.1")
        assert await read(url) == [0, 1, 2]
    assert len(proxy.heads) == 1


@pytest.mark.parametrize(
    ("answer", "error", "text"),
    [
        (b"407 Auth", AuthRefused, r"the proxy 127\.0\.0\.1:\d+ wants other credentials"),
        (b"403 No", Rejected, "refuses to connect to localhost:1 "),
        (b"301 Moved", Rejected, "HTTP 301"),
    ],
)
async def test_a_tunnel_that_is_refused_ends_the_stream(
    answer: bytes, error: type[Exception], text: str
) -> None:
    """At once, with the reason, and without the secret."""
    async with a_proxy(b"HTTP/1.1 " + answer + b"\r\nContent-Length: 0\r\n\r\n") as proxy:
        with pytest.raises(error, match=text) as raised:
            await read(
                "https://localhost:1/p/x", options=TransportOptions(extra={"http.proxy": proxy.url})
            )
    assert "ann" not in str(raised.value)
    assert len(proxy.heads) == 1


async def test_a_tunnel_that_fails_for_now_is_asked_for_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As often as a request to a server, then the stream fails."""
    monkeypatch.setattr("penstock_http._source.PAUSES", (0.0, 0.0))
    async with a_proxy(*[b"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\n\r\n"] * 3) as proxy:
        with pytest.raises(ConnectionLost, match="has not reached localhost:1 "):
            await read(
                "https://localhost:1/p/x", options=TransportOptions(extra={"http.proxy": proxy.url})
            )
    assert len(proxy.heads) == 3


async def test_a_proxy_that_refuses_a_request_is_told_apart() -> None:
    """407 is AuthRefused as 401 is: no retry helps."""
    async with a_proxy(b"HTTP/1.1 407 Auth\r\nContent-Length: 4\r\n\r\nwho?") as proxy:
        with pytest.raises(AuthRefused, match=r"who\? \(HTTP 407\)"):
            await read(
                "http://localhost:1/p/x", options=TransportOptions(extra={"http.proxy": proxy.url})
            )


@pytest.mark.parametrize(
    "value",
    [
        5,
        "socks5://proxy:1080",
        "https://proxy",
        "http://",
        "http://proxy:99999",
        "http://[bad",
        "http://ann:secret@/",
        "http://p/x",
    ],
)
async def test_a_proxy_that_cannot_be_used_is_refused_at_the_call(value: object) -> None:
    """With what to write instead, and without the text, which may have a password."""
    with pytest.raises(UsageError, match="proxy") as raised:
        await read("http://localhost:1/p/x", options=TransportOptions(extra={"http.proxy": value}))
    assert "secret" not in str(raised.value)


async def test_an_option_that_is_not_known_is_refused_at_the_call() -> None:
    """A misspelt one would be passed over otherwise."""
    with pytest.raises(UsageError, match=r"http\.prxy"):
        await read(
            "http://localhost:1/p/x", options=TransportOptions(extra={"http.prxy": "http://proxy"})
        )


def proxy_of(url: str) -> str | None:
    found = proxy_for(urlsplit(url), TransportOptions())
    return None if found is None else found.name


def test_the_variables_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """One for each scheme, one for both; without a scheme, and with an IPv6 address. Exceptions
    name hosts, domains and ports.
    """
    assert proxy_of("http://site/p/x") is None
    monkeypatch.setenv("all_proxy", "every:1")
    monkeypatch.setenv("HTTPS_PROXY", "http://[::1]:2")
    assert proxy_of("http://site/p/x") == "every:1"
    assert proxy_of("https://site/p/x") == "[::1]:2"
    monkeypatch.setenv("NO_PROXY", ".example.org,site:81")
    assert [
        proxy_of(f"http://{host}/p/x") for host in ("a.example.org", "site:81", "site:82", "site")
    ] == [
        None,
        None,
        "every:1",
        "every:1",
    ]
    monkeypatch.setenv("no_proxy", "*")
    assert proxy_of("https://site/p/x") is None


def test_the_secret_of_a_proxy_is_not_shown() -> None:
    """Records of a proxy may be logged."""
    assert "c2VjcmV0" not in repr(Proxy("proxy", 80, [("Proxy-Authorization", "Basic c2VjcmV0")]))
