"""curl over real sockets: the life cycle of a stream, as the draft has it, with a client
that knows nothing of it.

Each test but those of a version runs over HTTP/1.1 and over HTTP/2.
"""

import shutil
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import cache
from pathlib import Path
from textwrap import indent
from urllib.parse import urljoin

import pytest
import trio
import trustme
from _engine_client import elements_of
from _site_in_memory import Answer, service
from penstock_http._messages import Response

from penstock import Service, serve
from penstock.api import UsageError
from penstock.spi import RequestTransport, Tls, TransportOptions, build_registry, parse_url

pytestmark = pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")


VERSION = {"option": ""}


@pytest.fixture(params=["--http1.1", "--http2-prior-knowledge"], autouse=True)
def version(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """The version of HTTP that curl speaks."""
    if "http2" in request.param and not speaks_http2():
        pytest.skip("needs curl with HTTP/2")
    monkeypatch.setitem(VERSION, "option", request.param)
    return str(request.param)


@cache
def speaks_http2() -> bool:
    """Return whether curl was built with HTTP/2."""
    return (
        "nghttp2"
        in subprocess.run(["curl", "--version"], capture_output=True, text=True, check=True).stdout
    )


async def curl(*arguments: str) -> Answer:
    """Run curl, and return the answer with its head."""
    options = [
        "--silent",
        "--show-error",
        "--include",
        "--no-buffer",
        "--max-time",
        "60",
        VERSION["option"],
    ]
    command = ["curl", *options, *arguments]
    done = await trio.run_process(command, capture_stdout=True, capture_stderr=True, check=False)
    assert done.returncode == 0, done.stderr
    return Answer(done.stdout)


async def subscribe(url: str, *arguments: str) -> str:
    """Subscribe, and return the URL of the subscription."""
    created = await curl("-X", "PUT", url, *arguments)
    assert created.status == 201, created.raw
    return urljoin(url, created.headers["location"])


def elements(answer: Answer) -> list[bytes]:
    coding = answer.headers.get("content-encoding")
    headers = () if coding is None else (("Content-Encoding", coding),)
    return elements_of(Response(status=answer.status, headers=headers, body=answer.body))


@asynccontextmanager
async def site(
    served: Service | None = None,
    url: str = "http://127.0.0.1:0",
    options: TransportOptions | None = None,
) -> AsyncIterator[str]:
    async with serve(served or service(), url, options=options) as server:
        yield str(server.addresses[0])


async def test_the_life_cycle_of_a_stream() -> None:
    """Subscribe, a batch, one element, the completion, a failure, a cancel, and URLs
    that lead nowhere.
    """
    async with site() as base:
        url = await subscribe(f"{base}/p/numbers/6?request=3")
        assert elements(await curl("-X", "PUT", url)) == [b"0", b"1", b"2"]
        assert elements(await curl("-X", "PUT", f"{url}?request=1")) == [b"3"]
        assert (await curl("-X", "PUT", f"{url}/requestMore=5")).status == 200
        assert elements(await curl("-X", "PUT", url)) == [b"4", b"5"]
        assert (await curl("-X", "PUT", url)).status == 410
        url = await subscribe(f"{base}/p/failing?request=5")
        assert elements(await curl("-X", "PUT", url)) == [b"0"]
        failed = await curl("-X", "PUT", url)
        assert (failed.status, failed.headers["x-rsio-error"], failed.body) == (
            500,
            "true",
            b"out of stock\n",
        )
        url = await subscribe(f"{base}/p/large?request=1")
        assert (await curl("-X", "PUT", f"{url}/cancel")).status == 200
        gone = await curl("-X", "PUT", url)
        assert (gone.status, gone.headers["x-rsio-error"]) == (404, "true")
        assert (await curl("-X", "PUT", f"{base}/p/nowhere")).headers["x-rsio-error"] == "true"


async def test_the_commands_of_the_readme(version: str, tmp_path: Path) -> None:
    """They print the head of the subscription, two elements, nothing for the cancel,
    and then the reason of the 404.
    """
    readme = (Path(__file__).parents[3] / "README.md").read_text(encoding="utf-8")
    script = readme.split("In another terminal, the life of a stream:\n\n```sh\n")[1].split("```")[
        0
    ]
    ticks = Service()

    @ticks.publisher("ticks/{symbol}", serializer="json")
    async def prices(symbol: str) -> AsyncIterator[dict[str, object]]:
        for price in range(100, 200):
            yield {"symbol": symbol, "price": price}

    async with site(ticks) as base:
        (tmp_path / "life.sh").write_text(
            script.replace("http://127.0.0.1:7002", base).replace("curl ", f"curl {version} ")
        )
        done = await trio.run_process(["sh", "life.sh"], cwd=tmp_path, capture_stdout=True)
    head, _, rest = done.stdout.decode().replace("\r", "").partition("\n\n")
    assert head.split("\n")[0].split()[1] == "201"
    assert rest == (
        '{"symbol":"EURUSD","price":100}{"symbol":"EURUSD","price":101}this subscription was '
        "cancelled\n"
    )


async def test_positions_streams_and_events() -> None:
    """A batch that is asked for again, elements one by one, and server-sent events."""
    async with site() as base:
        url = await subscribe(f"{base}/p/numbers/4?request=4")
        for position, rest in (
            ("0", [b"0", b"1", b"2", b"3"]),
            ("0", [b"0", b"1", b"2", b"3"]),
            ("3", [b"3"]),
        ):
            again = await curl("-X", "PUT", "-H", f"X-Rsio-Position: {position}", url)
            assert elements(again) == rest
            assert again.headers["x-rsio-position"] == position
        url = await subscribe(f"{base}/p/slow/0.01?request=3")
        stream = await curl("-X", "PUT", "-H", "X-Rsio-Delivery: stream", url)
        assert elements(stream) == [b"0", b"1", b"2"]
        url = await subscribe(f"{base}/p/numbers/2?request=5")
        events = await curl(f"{url}/events?text=1")
        assert events.body.endswith(
            b"id: 0\ndata: 0\n\nid: 1\ndata: 1\n\nevent: rsio-complete\ndata:\n\n"
        )


async def test_curl_takes_part_in_authentication_and_sends_a_body() -> None:
    """``-u`` and a token; a POST with a body is a PUT."""
    served = Service(
        authenticate=lambda scheme, data, peer: (
            data.decode() if data in {b"alice:pw", b"token"} else None
        )
    )
    served.publish("one", [b"1"])
    async with site(served) as base:
        for credentials in (("-u", "alice:pw"), ("-H", "Authorization: Bearer token")):
            url = await subscribe(f"{base}/p/one?request=1", *credentials)
            assert (await curl("-X", "POST", "-d", "ignored", url, *credentials)).body == b"1"
        assert (await curl("-X", "PUT", f"{base}/p/one")).status == 401


async def test_over_tls(tmp_path: Path, version: str) -> None:
    """The certificate is that of `TransportOptions.tls`. TLS negotiates the version: ``--http2``
    offers both, and gets HTTP/2.
    """
    authority = trustme.CA()
    certificate = authority.issue_cert("localhost")
    authority.cert_pem.write_to_path(tmp_path / "authority.pem")
    certificate.cert_chain_pems[0].write_to_path(tmp_path / "server.pem")
    certificate.private_key_pem.write_to_path(tmp_path / "server.key")
    tls = Tls(certificate=str(tmp_path / "server.pem"), key=str(tmp_path / "server.key"))
    async with site(url="https://127.0.0.1:0", options=TransportOptions(tls=tls)) as address:
        base = address.replace("127.0.0.1", "localhost")
        trusted = (
            "--cacert",
            str(tmp_path / "authority.pem"),
            version.removesuffix("-prior-knowledge"),
        )
        created = await curl("-X", "PUT", f"{base}/p/one", *trusted)
        assert created.raw.startswith(b"HTTP/2 " if "http2" in version else b"HTTP/1.1 ")
        # Each curl leaves its connection, and its system does not acknowledge the server's goodbye.
        url = await subscribe(f"{base}/p/numbers/20?request=20", *trusted)
        polls = ("-X", "PUT", "-H", "Accept-Encoding: identity", url, *trusted)
        found = [int(each) for _ in range(20) for each in elements(await curl(*polls))]
        assert found == list(range(20))


async def test_an_upgrade_to_http2_is_ignored() -> None:
    """``curl --http2`` asks for it in the clear; RFC 9113 has no such upgrade any more."""
    async with site() as base:
        created = await curl(
            "-X", "PUT", f"{base}/p/numbers/2", "--http2" if speaks_http2() else "--http1.1"
        )
        assert created.raw.startswith(b"HTTP/1.1 201")


@pytest.mark.parametrize(
    ("url", "extra", "text"),
    [
        ("https://127.0.0.1:0", {}, "certificate"),
        ("http://127.0.0.1:0/x#", {}, "leave it out"),
        ("http://127.0.0.1:0", {"http.origin": "x"}, "not known"),
        ("http://127.0.0.1:0", {"http.origins": "app.example"}, "no origin"),
        ("http://127.0.0.1:0", {"http.public": "streams.example"}, "http.public"),
        ("http://127.0.0.1:0", {"http.hold": "0"}, "http.hold"),
    ],
)
async def test_a_wrong_url_or_option_is_refused(
    url: str, extra: dict[str, object], text: str
) -> None:
    """When the server starts, with what to write."""
    with pytest.raises(UsageError, match=text):
        async with serve(service(), url, options=TransportOptions(extra=extra)):
            pass


async def test_the_example_prints_its_output() -> None:
    """The shell script of the page runs line by line; the page shows script and output unchanged."""
    example = Path(__file__).parent.parent / "examples" / "life_cycle.sh"
    page = (Path(__file__).parents[3] / "docs" / "how-to" / "http.md").read_text()
    for shown in (example, example.with_suffix(".out")):
        assert indent(shown.read_text(), "    ") in page
    async with site() as base:
        done = await trio.run_process(["sh", str(example), base], capture_stdout=True)
    assert done.stdout.decode() == example.with_suffix(".out").read_text()


async def test_http_cannot_be_connected_to() -> None:
    """The transport says why."""
    transport = build_registry().transport("http")
    assert isinstance(transport, RequestTransport)
    async with trio.open_nursery() as nursery:
        with pytest.raises(UsageError, match="subscribe"):
            await transport.connect(
                parse_url("http://127.0.0.1:1"), options=TransportOptions(), nursery=nursery
            )
