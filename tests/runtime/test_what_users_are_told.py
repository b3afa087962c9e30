"""The texts that a newcomer reads:
each tells who must act, what happened, what was allowed, what to try.
"""

import datetime as dt
import errno
import re
import shlex
import socket
import sys
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

import pytest
import trio
import trustme

from penstock.api import (
    AlreadySubscribed,
    ConnectionLost,
    Limits,
    PluginError,
    ProtocolError,
    PublisherFailed,
    Rejected,
    UsageError,
)
from penstock.runtime import Peer, Service, connect, serve, subscribe
from penstock.spi import Serializer, Tls, TransportOptions, build_registry, hookimpl
from tests._limits import HASTY
from tests._real_time import HANGS_AFTER
from tests.runtime._services import numbers_service


async def told(url: str, kind: type[Exception], **options: Any) -> str:
    """Return the text of the exception that the first element of a stream turns out to be."""
    with pytest.raises(kind) as caught:
        async with subscribe(url, **options) as stream:
            await anext(stream)
    assert type(caught.value) is kind
    return str(caught.value)


# --- no server there


async def test_nothing_listens() -> None:
    """The system's reason, and what to look at."""
    said = await told("tcp://127.0.0.1:1/x", ConnectionLost)
    assert said.startswith(f"no server answers at tcp://127.0.0.1:1: [Errno {errno.ECONNREFUSED}] ")
    assert said.endswith("Connection refused. Is the server running, at this host and port?")


@pytest.mark.parametrize(
    "error",
    [socket.gaierror(socket.EAI_NONAME, "Name or service not known"), UnicodeError("label empty")],
    ids=type,
)
async def test_a_host_that_cannot_be_resolved(
    error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The text blames the name, not the server."""

    async def fail(host: str, port: int) -> NoReturn:
        await trio.lowlevel.checkpoint()
        raise error

    monkeypatch.setattr(trio, "open_tcp_stream", fail)
    said = await told("tcp://no.such.host:7000/x", ConnectionLost)
    assert said == (
        f"the name 'no.such.host' of tcp://no.such.host:7000 cannot be resolved: {error}. "
        "Check it, or write the address"
    )


async def test_no_unix_socket(tmp_path: Path) -> None:
    """No file, or a file without a server."""
    said = await told(f"unix://{tmp_path}/none#x", ConnectionLost)
    assert said.endswith("The file does not exist; has the server been started, with this path?")
    (tmp_path / "file").touch()
    said = await told(f"unix://{tmp_path}/file#x", ConnectionLost)
    assert said.endswith(
        "The file exists, but no server listens: it has ended, or the file is not a socket"
    )


async def test_a_unix_socket_of_another_user(monkeypatch: pytest.MonkeyPatch) -> None:
    """The text tells which user may connect."""

    async def refuse(path: str) -> NoReturn:
        await trio.lowlevel.checkpoint()
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(trio, "open_unix_socket", refuse)
    said = await told("unix:///run/p.sock#x", ConnectionLost)
    assert said.endswith(
        "Permission denied. Only the user who runs the server may connect; run this as that user"
    )


async def test_other_errors_of_a_unix_socket_keep_their_text(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """In the system's words."""

    async def refuse(path: str) -> NoReturn:
        await trio.lowlevel.checkpoint()
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(trio, "open_unix_socket", refuse)
    assert (await told("unix:///run/p.sock#x", ConnectionLost)).endswith(
        f"[Errno {errno.EIO}] Input/output error"
    )


async def test_no_such_command() -> None:
    """And that no shell is used."""
    said = await told("exec:no-such-command#x", UsageError)
    assert said.startswith("cannot start 'no-such-command': ")
    assert said.endswith("No shell is involved: give the program's name or path")


# --- another server there


async def test_a_command_that_speaks_something_else() -> None:
    """Its output is shown, escaped."""
    command = shlex.join([sys.executable, "-c", "print('\\x1b[1mhello', end='')"])
    said = await told(f"exec:{command}#x", ConnectionLost)
    assert said == (
        "the connection was ended because the peer broke the protocol: "
        "it begins with '\\x1b[1mhello', which is no hello of RS.io: something else is there"
    )


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (
            b"HTTP/1.1 400 Bad Request\r\n\r\n",
            r"it begins with 'HTTP/1.1 400 Bad', which is no hello of RS.io: something else is there$",
        ),
        (b"SSH-2.0-Open", r"it begins with 'SSH-2.0-Open'"),
        (
            b"",
            r"^the connection ended before the peer answered: is it a server of this protocol .* \(tls:// if not\)\?$",
        ),
        (None, r"the peer did not say hello within 2 s$"),
    ],
    ids=["http", "ssh", "hangs up", "silent"],
)
async def test_a_server_of_another_protocol(answer: bytes | None, says: str) -> None:
    """The text names the protocol, if it can be recognised."""

    async def other(stream: trio.SocketStream) -> None:
        await stream.receive_some()
        if answer is None:
            await trio.sleep_forever()
        await stream.send_all(answer)

    limits = replace(HASTY, handshake_timeout=2.0 if answer is None else HANGS_AFTER)
    async with trio.open_nursery() as nursery:
        listeners = await nursery.start(partial(trio.serve_tcp, other, 0, host="127.0.0.1"))
        said = await told(
            f"tcp://127.0.0.1:{listeners[0].socket.getsockname()[1]}/x",
            ConnectionLost,
            limits=limits,
        )
        nursery.cancel_scope.cancel()
    assert re.search(says, said), said


# --- TLS


CA = trustme.CA()


def certified(folder: Path, *names: str, **more: Any) -> TransportOptions:
    path = folder / "server.pem"
    CA.issue_cert(*names, **more).private_key_and_cert_chain_pem.write_to_path(path)
    return TransportOptions(tls=Tls(certificate=path))


def trusting(folder: Path, ca: trustme.CA) -> TransportOptions:
    ca.cert_pem.write_to_path(folder / "ca.pem")
    return TransportOptions(tls=Tls(authorities=folder / "ca.pem"))


LONG_AGO = {
    "not_before": dt.datetime(2019, 1, 1, tzinfo=dt.UTC),
    "not_after": dt.datetime(2020, 1, 1, tzinfo=dt.UTC),
}
FAR_AWAY = {
    "not_before": dt.datetime(2090, 1, 1, tzinfo=dt.UTC),
    "not_after": dt.datetime(2091, 1, 1, tzinfo=dt.UTC),
}


@pytest.mark.parametrize(
    ("name", "dates", "ca", "says"),
    [
        (
            "127.0.0.1",
            {},
            trustme.CA(),
            (
                "issuer certificate. If you trust its issuer, say so: Tls(authorities='ca.pem'), "
                "on the command line --tls-ca ca.pem"
            ),
        ),
        ("127.0.0.1", LONG_AGO, CA, "certificate has expired. The server needs a new one"),
        (
            "127.0.0.1",
            FAR_AWAY,
            CA,
            "certificate is not yet valid. It is not valid yet: compare the clocks of both sides",
        ),
        (
            "10.0.0.1",
            {},
            CA,
            (
                "Connect by an address that is in it, or say which name is meant: "
                "Tls(server_name=...), on the command line --tls-name"
            ),
        ),
    ],
    ids=["unknown", "expired", "not yet", "wrong name"],
)
async def test_a_certificate_that_is_not_accepted(
    tmp_path: Path, name: str, dates: Any, ca: trustme.CA, says: str
) -> None:
    """The reason in the words of OpenSSL, and what to do."""
    options = certified(tmp_path, name, **dates)
    async with serve(Service(), "tls://127.0.0.1:0", options=options) as server:
        said = await told(
            f"{server.addresses[0]}/x", ConnectionLost, options=trusting(tmp_path, ca)
        )
    assert "its certificate cannot be verified: " in said
    assert said.endswith(says)


async def test_a_server_that_asks_for_a_certificate(tmp_path: Path) -> None:
    """It closes without a reason, so the text names the likely one."""
    trust = trusting(tmp_path, CA)
    options = TransportOptions(
        tls=replace(certified(tmp_path, "127.0.0.1").tls or Tls(), authorities=tmp_path / "ca.pem")
    )
    async with serve(Service(), "tls://127.0.0.1:0", options=options) as server:
        said = await told(f"{server.addresses[0]}/x", ConnectionLost, options=trust)
    assert said.endswith(
        "if it asks its clients for a certificate, show one: Tls(certificate='client.pem')"
    )


async def test_tls_to_a_plain_server_and_the_other_way_round(tmp_path: Path) -> None:
    """Each of the two texts points to the other mistake."""
    async with serve(Service(), "tcp://127.0.0.1:0") as server:
        said = await told(str(server.addresses[0]).replace("tcp", "tls") + "/x", ConnectionLost)
    assert said.endswith("is it a server without TLS (tcp://)?")
    async with serve(
        Service(), "tls://127.0.0.1:0", options=certified(tmp_path, "127.0.0.1")
    ) as server:
        said = await told(str(server.addresses[0]).replace("tls", "tcp") + "/x", ConnectionLost)
    assert "(tls:// if not)?" in said


# --- the URL


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("", "'' is not a URL; write for example tcp://127.0.0.1:7000/name"),
        ("ticks", "'ticks' is not a URL"),
        (
            "127.0.0.1:7000/x",
            "'127.0.0.1:7000/x' is not a URL; write for example tcp://127.0.0.1:7000/name",
        ),
        (
            "localhost:7000/x",
            "'localhost:7000/x' lacks the transport; write for example tcp://localhost:7000/x",
        ),
        (
            "tcp:/127.0.0.1:7000/x",
            "names no publisher; write it after the authority (tcp://host:port/name)",
        ),
        (
            "tcp://127.0.0.1:7000",
            "names no publisher; write it after the authority (tcp://host:port/name)",
        ),
        (
            "tcp://127.0.0.1:port/x",
            "'127.0.0.1:port' is not a host and port; write for example 127.0.0.1:7000",
        ),
        ("tcp://127.0.0.1:70000/x", "port 70000 does not exist; the highest is 65535"),
        (
            "tcp://127.0.0.1/x",
            "lacks the host or the port to connect to; write for example tcp://127.0.0.1:7000",
        ),
        ("tcp://me:secret@127.0.0.1:1/x", "a URL must not hold a user or a password"),
        ("tpc://127.0.0.1:7000/x", "there is no transport 'tpc'; there is: exec, memory,"),
        (
            "tpc://127.0.0.1:7000/x",
            "Did you mean 'tcp'? Plugins bring more; `penstock plugins` lists them",
        ),
    ],
)
async def test_a_url_that_is_misspelt(url: str, says: str) -> None:
    """The error says the mistake, and the text to write."""
    assert says in await told(url, UsageError)


MISTAKES: list[tuple[str, Callable[[], object], str]] = [
    ("connect to nothing", lambda: connect(None), "None is not a URL; write a text"),  # type: ignore[arg-type]  # the point: mistakes
    (
        "a function for a service",
        lambda: connect("tcp://h:1", service=print),
        "give a penstock.Service: what the peer may",
    ),  # type: ignore[arg-type]  # the same
    (
        "serve a function",
        lambda: serve(print, "tcp://h:1"),
        "give a penstock.Service first, then the URLs",
    ),  # type: ignore[arg-type]  # the same
    ("serve at a list", lambda: serve(Service(), ["tcp://h:1"]), "is not a URL; write a text"),  # type: ignore[arg-type]  # the same
    (
        "serve one publisher",
        lambda: serve(Service(), "tcp://h:1/x"),
        "a server offers all of its service: leave it out",
    ),
    ("serve over nothing", lambda: serve(Service(), "tpc://h:1"), "Did you mean 'tcp'?"),
    (
        "no such serializer",
        lambda: subscribe("tcp://h:1/x", serializer="jsn"),
        "there is no serializer 'jsn'; there is: ",
    ),
]


@pytest.mark.parametrize(
    ("call", "says"), [each[1:] for each in MISTAKES], ids=[each[0] for each in MISTAKES]
)
def test_a_mistake_in_the_call(call: Callable[[], object], says: str) -> None:
    """UsageError is raised by the call itself, before anything is opened."""
    with pytest.raises(UsageError, match=re.escape(says)):
        call()


async def test_a_publisher_with_an_unknown_serializer() -> None:
    """Refused when it is served, by either side:
    which publisher, which serializer, and the known ones.
    """
    service = Service()
    service.publish("typo", [1], serializer="jsn")
    says = r"the publisher 'typo' wants serializer='jsn': there is no serializer 'jsn'; there is: .*Did you mean 'json'\?"
    with pytest.raises(UsageError, match=says):
        serve(service, "memory://test")
    with pytest.raises(UsageError, match=says):
        connect("memory://test", service=service)


@pytest.mark.parametrize(
    ("url", "says"),
    [
        (
            "tcp://127.0.0.1",
            "lacks the port to listen at; 0 lets the system choose one: tcp://127.0.0.1:0",
        ),
        ("tcp://192.0.2.1:0", "Choose another address or port"),
        (
            "tls://127.0.0.1:0",
            "give a certificate: tls=Tls(certificate='server.pem', key='server.key')",
        ),
        (
            "unix:///no/such/folder/p.sock",
            "The folder must exist, and you must have write permission",
        ),
        ("exec:cat", "'exec' can be connected to, but not listened at"),
    ],
)
async def test_an_address_that_cannot_be_listened_at(url: str, says: str) -> None:
    """The reason, and what to write."""
    with pytest.raises(UsageError, match=re.escape(says)):
        async with serve(Service(), url, insecure=True):
            pass


# --- the publisher


def odd_service() -> Service:
    service = numbers_service()

    @service.publisher("a-dict")
    async def a_dict() -> AsyncIterator[Any]:
        yield {"price": 1}

    service.publish("number-as-text", [12], serializer="text")
    return service


@pytest.mark.parametrize("name", ["nope", "numbers/many"])
async def test_a_name_or_a_parameter_that_does_not_fit(name: str) -> None:
    """Both in the same words, with advice."""
    async with serve(odd_service(), "memory://test"):
        said = await told(f"memory://test/{name}", Rejected)
    assert said == (
        "the peer refused this stream: no such publisher (penstock says this if the name leads "
        "nowhere, its parameters do not fit, "
        "or the peer may not have it; check its name and its parameters; a publisher that you may "
        "not have is answered in the same words)"
    )


@pytest.mark.parametrize(
    ("name", "serializer", "says"),
    [
        (
            "a-dict",
            "bytes",
            (
                "an element of type dict was published, and only bytes can be sent as they are. "
                "Give the publisher the type of its elements (its return annotation, or type=), "
                "or a serializer, such as serializer='json'"
            ),
        ),
        (
            "number-as-text",
            "text",
            (
                "the serializer 'text' takes str, not int; give serializer='bytes' or 'json' for "
                "others"
            ),
        ),
        ("failing", "text", "a secret"),
    ],
)
async def test_a_publisher_that_fails(name: str, serializer: str, says: str) -> None:
    """The subscriber is told where to look; the publisher's side reports the error and the name."""
    here: list[Exception] = []
    async with serve(odd_service(), "memory://test", on_violation=here.append):
        with pytest.raises(PublisherFailed) as caught:
            async with subscribe(f"memory://test/{name}", serializer=serializer) as stream:
                assert [element async for element in stream]
    assert str(caught.value) == (
        "the publisher failed (penstock says this if the publisher raised an exception that is "
        "not a PublicError; look into the log of the other side; only the text of a PublicError "
        "is sent)"
    )
    (error,) = here
    assert says in str(error)
    assert error.__notes__ == [f"This was raised while '{name}' was served to a peer."]


@pytest.mark.parametrize("serializer", ["json", "text"])
async def test_another_serializer_than_the_publishers(serializer: str) -> None:
    """The error names the unreadable element, and the two settings to compare."""
    service = Service()
    service.publish("raw", [b"\xff\xfe"])
    async with serve(service, "memory://test"):
        said = await told("memory://test/raw", ProtocolError, serializer=serializer)
    assert said.endswith(f"; is serializer='{serializer}' what the publisher has, too?")


class Careless(Serializer):
    """A serializer that raises its own errors."""

    name = "careless"

    def dumps(self, element: object, /) -> bytes:
        return bytes(str(element), "ascii")

    def loads(self, data: bytes, /) -> object:
        if data == b"null":
            raise UsageError("null has no meaning here")
        return {}[data]


class CarelessPlugin:
    """Offers the serializer."""

    @hookimpl
    def penstock_serializers(self) -> list[Serializer]:
        return [Careless()]


async def test_a_serializer_of_a_plugin_that_raises() -> None:
    """PluginError names it; the exceptions that it may raise pass unchanged."""
    registry = build_registry([CarelessPlugin()])
    service = Service()
    service.publish("x", [b"x"])
    service.publish("null", [b"null"])
    async with serve(service, "memory://test"):
        said = await told("memory://test/x", PluginError, serializer="careless", registry=registry)
        assert said == (
            "element 0 (1 bytes): the serializer 'careless' raised KeyError(b'x'), where only "
            "ProtocolError and UsageError are due"
        )
        assert (
            await told("memory://test/null", UsageError, serializer="careless", registry=registry)
            == "element 0 (4 bytes): null has no meaning here"
        )


# --- the server


async def first_of(peer: Peer, name: str) -> str:
    """Return the text of the refusal of a stream on an open connection."""
    with pytest.raises(Rejected) as caught:
        async with peer.subscribe(name) as stream:
            await anext(stream)
    return str(caught.value)


async def test_too_many_subscriptions() -> None:
    """The limit, whose it is, and the two ways out."""
    async with serve(
        numbers_service(), "memory://test", limits=replace(Limits(), max_subscriptions=1)
    ):
        async with connect("memory://test") as peer, peer.subscribe("endless") as stream:
            await anext(stream)
            said = await first_of(peer, "endless")
    assert said.startswith("the peer refused this stream: refused (")
    assert said.endswith(
        "(its Limits.max_subscriptions); cancel a stream, or open another connection)"
    )


async def test_a_server_that_drains() -> None:
    """The text gives what to try instead."""
    async with (
        serve(numbers_service(), "memory://test") as server,
        connect("memory://test") as peer,
    ):
        await peer.wait_accepted()
        server.peers[0]._connection.session.streams.drain.begin(
            trio.current_time(), trio.current_time() + 9
        )
        said = await first_of(peer, "endless")
    assert said.endswith(
        "the server is shutting down and takes no new streams; try another server, or the same one "
        "later)"
    )


# --- a publisher that can be read once


async def _sizes() -> AsyncIterator[bytes]:
    for number in range(600):
        yield b"%d" % number


READ_ONCE: dict[str, Callable[[], Any]] = {
    "iterator": lambda: iter([b"%d" % number for number in range(600)]),
    "generator": lambda: (b"%d" % number for number in range(600)),
    "async generator": _sizes,
}


@pytest.mark.parametrize("scheme", ["", "reactivesocket+"])
@pytest.mark.parametrize("make", READ_ONCE.values(), ids=READ_ONCE)
async def test_a_second_subscriber_of_one_iterator_is_refused(
    make: Callable[[], Any], scheme: str
) -> None:
    """The second peer gets a reason and no element; the operator of the server is told what to
    publish instead. The first goes on.
    """
    reported: list[Exception] = []
    service = Service()
    service.publish("once", make())
    async with serve(service, "memory://test", on_violation=reported.append) as server:
        url = f"{scheme}{server.addresses[0]}/once"
        async with subscribe(url, demand=3) as stream:
            assert await anext(stream) == b"0"
            said = await told(url, PublisherFailed)
            assert said.startswith(
                "taken (penstock says this if the publisher reads one iterator or one generator"
            )
            assert "publish a function, so that each subscriber gets its own" in said
            assert [int(element) async for element in stream] == list(range(1, 600))
    (error,) = reported
    assert isinstance(error, AlreadySubscribed)
    assert (
        "each subscriber then gets its own. To let subscribers share one, put share() or a "
        "Topic in between"
    ) in str(error)
    assert error.__notes__ == ["This was raised while 'once' was served to a peer."]
