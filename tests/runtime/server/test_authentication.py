"""`Service(authenticate=…, authorize=…)` and `credentials=`, over both protocols
and real connections.
"""

import os
from collections.abc import AsyncIterator
from typing import Any, ClassVar

import attrs
import pytest
import trio
import trustme

import penstock
from penstock import Credentials
from penstock.api import AuthRefused, PublisherFailed, Rejected, UsageError
from penstock.spi import (
    Connection,
    Listener,
    PeerIdentity,
    Tls,
    Transport,
    TransportOptions,
    Url,
    build_registry,
    hookimpl,
)
from penstock.transports import MemoryTransport

PROTOCOLS = ["", "reactivesocket+"]
TOKENS = {b"swordfish": "alice", b"tuna": "bob"}


def known(scheme: str, data: bytes, peer: PeerIdentity) -> str | None:
    return TOKENS.get(data) if scheme == "bearer" else None


async def known_later(scheme: str, data: bytes, peer: PeerIdentity) -> str | None:
    await trio.sleep(0.01)
    return known(scheme, data, peer)


def service_with(authenticate: Any, authorize: Any = None) -> penstock.Service:
    service = penstock.Service(authenticate=authenticate, authorize=authorize)

    @service.publisher("me", serializer="text")
    async def me(peer: PeerIdentity) -> AsyncIterator[str]:
        yield str(peer.principal)

    @service.request("whoami")
    async def whoami(peer: PeerIdentity) -> str:
        return str(peer.principal)

    return service


async def read(url: str, name: str = "me", **options: Any) -> list[str]:
    async with penstock.subscribe(f"{url}#{name}", serializer="text", **options) as stream:
        return [element async for element in stream]


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("authenticate", [known, known_later])
async def test_a_publisher_and_a_handler_see_the_principal(
    autojump_clock: object, protocol: str, authenticate: Any
) -> None:
    """By a plain and by an async function."""
    async with penstock.serve(service_with(authenticate), "memory://a") as server:
        url = f"{protocol}{server.addresses[0]}"
        assert await read(url, credentials=Credentials.bearer("swordfish")) == ["alice"]
        async with penstock.connect(url, credentials=Credentials.bearer("tuna")) as peer:
            assert await peer.request("whoami", type=str) == "bob"
            assert [each.identity.principal for each in server.peers] == ["bob"]


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("authenticate", [known, known_later])
@pytest.mark.parametrize(
    "credentials", [None, Credentials.bearer("guess"), Credentials.basic("alice", "swordfish")]
)
async def test_wrong_and_missing_credentials_are_refused_after_250_ms(
    autojump_clock: object, protocol: str, authenticate: Any, credentials: Credentials | None
) -> None:
    """On trio's clock, for both kinds of function."""
    async with penstock.serve(service_with(authenticate), "memory://a") as server:
        began = trio.current_time()
        with pytest.raises(AuthRefused):
            await read(f"{protocol}{server.addresses[0]}", credentials=credentials)
        assert trio.current_time() - began == pytest.approx(0.25, abs=0.06)


@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_authorize_decides_by_the_principal_and_hides_names(
    autojump_clock: object, protocol: str
) -> None:
    """Sync and async; a function that raises refuses; the answer is that to an unknown name."""
    asked: list[tuple[Any, Any]] = []

    def plain(principal: Any, name: Any) -> bool:
        asked.append((principal, name))
        return bool(principal == "alice")

    async def later(principal: Any, name: Any) -> bool:
        await trio.sleep(0.01)
        return plain(principal, name)

    def broken(principal: Any, name: Any) -> bool:
        raise ValueError("a secret")

    for authorize in (plain, later, broken):
        told: list[Exception] = []
        async with penstock.serve(
            service_with(known, authorize), "memory://a", on_violation=told.append
        ) as server:
            url = f"{protocol}{server.addresses[0]}"
            for token, may in (("swordfish", authorize is not broken), ("tuna", False)):
                if may:
                    assert await read(url, credentials=Credentials.bearer(token)) == ["alice"]
                    continue
                texts = []
                for name in ("me", "no-such-name"):
                    with pytest.raises((Rejected, PublisherFailed)) as refused:
                        await read(url, name, credentials=Credentials.bearer(token))
                    texts.append(str(refused.value))
                assert texts[0] == texts[1]
                assert "no such publisher" in texts[0]
        assert [str(each) for each in told] == ["a secret"] * (4 if authorize is broken else 0)
    assert ("alice", "me") in asked


async def test_messages_without_an_answer_are_authorized_too(autojump_clock: object) -> None:
    """One that is refused is dropped."""
    heard: list[bytes] = []
    service = penstock.Service(
        authenticate=known, authorize=lambda principal, _: principal == "alice"
    )

    @service.fire_and_forget
    async def note(data: bytes) -> None:
        heard.append(data)

    async with penstock.serve(service, "memory://a") as server:
        for token in ("swordfish", "tuna"):
            async with penstock.connect(
                f"reactivesocket+{server.addresses[0]}", credentials=Credentials.bearer(token)
            ) as peer:
                await peer.fire_and_forget(token)
                await trio.sleep(1)
    assert heard == [b"swordfish"]


async def test_a_client_that_leaves_cancels_the_examination(autojump_clock: object) -> None:
    """The function does not run on."""
    ended = []

    async def slow(scheme: str, data: bytes, peer: PeerIdentity) -> str:
        try:
            await trio.sleep(5)
        finally:
            ended.append(trio.current_time())
        return "alice"

    async with penstock.serve(service_with(slow), "memory://a") as server:
        began = trio.current_time()
        async with penstock.connect(
            server.addresses[0], credentials=Credentials.bearer("swordfish")
        ):
            await trio.sleep(1)
        await trio.sleep(1)
        assert len(ended) == 1
        assert ended[0] - began < 2


async def test_a_reconnecting_client_shows_its_credentials_each_time(
    autojump_clock: object,
) -> None:
    """The second connection also has the principal."""
    async with penstock.serve(service_with(known), "memory://a") as server:
        options: Any = {
            "credentials": Credentials.bearer("swordfish"),
            "reconnect": penstock.Reconnect(),
        }
        async with penstock.connect(server.addresses[0], **options) as peer:
            assert await peer.request("whoami", type=str) == "alice"
            await server.peers[0].wait_accepted()
        assert await read(server.addresses[0], credentials=Credentials.bearer("tuna")) == ["bob"]


@pytest.mark.parametrize(
    "extra", [{"credentials": "swordfish"}, {"credentials": Credentials.bearer("x" * 70000)}]
)
def test_credentials_that_cannot_arrive_are_refused_at_the_call(extra: Any) -> None:
    """No error repeats them."""
    with pytest.raises(UsageError) as wrong:
        penstock.connect("memory://a", **extra)
    assert "swordfish" not in str(wrong.value)
    assert "xxx" not in str(wrong.value)


def test_setup_and_credentials_exclude_each_other() -> None:
    """A client cannot give both, and a service cannot examine both."""
    with pytest.raises(UsageError, match="one place"):
        penstock.connect(
            "reactivesocket+memory://a", setup=b"x", credentials=Credentials.bearer("y")
        )
    with pytest.raises(UsageError, match="give one of them"):
        penstock.Service(setup=lambda data: None, authenticate=known)


async def test_what_the_setup_function_returns_is_the_principal() -> None:
    """True and None say nothing about the client."""
    for returned, principal in (({"user": "alice"}, {"user": "alice"}), (True, None), (None, None)):
        service = penstock.Service(setup=lambda data, returned=returned: returned)

        @service.publisher("me", serializer="json")
        async def me(peer: PeerIdentity) -> AsyncIterator[Any]:
            yield [peer.principal]

        async with (
            penstock.serve(service, "reactivesocket+memory://a") as server,
            penstock.subscribe(
                f"{server.addresses[0]}#me", serializer="json", setup=b"x"
            ) as stream,
        ):
            assert [element async for element in stream] == [[principal]]


# --- the server shows credentials to its clients

OF_SERVER = Credentials.bearer("lighthouse")


def the_server(scheme: str, data: bytes, peer: PeerIdentity) -> str | None:
    return "the lighthouse" if (scheme, data) == ("bearer", b"lighthouse") else None


async def the_server_later(scheme: str, data: bytes, peer: PeerIdentity) -> str | None:
    await trio.sleep(0.01)
    return the_server(scheme, data, peer)


def anybody(scheme: str, data: bytes, peer: PeerIdentity) -> str:
    return "somebody"


@pytest.mark.parametrize("examine", [the_server, the_server_later])
@pytest.mark.parametrize("own", [None, Credentials.bearer("swordfish")])
async def test_a_client_knows_its_server_by_the_credentials_of_the_server(
    autojump_clock: object, examine: Any, own: Any
) -> None:
    """The publishers of the client see the principal of the server,
    and its `authorize` decides by it.
    """
    seen: list[Any] = []
    offered = penstock.Service(authorize=lambda principal, name: principal == "the lighthouse")

    @offered.publisher("report", serializer="text")
    async def report(peer: PeerIdentity) -> AsyncIterator[str]:
        seen.append(peer.principal)
        yield "calm"

    async with penstock.serve(service_with(anybody), "memory://a", credentials=OF_SERVER) as server:
        options: Any = {"credentials": own, "authenticate": examine, "service": offered}
        async with penstock.connect(server.addresses[0], **options) as peer:
            assert await peer.request("whoami", type=str) == "somebody"
            assert peer.identity.principal == "the lighthouse"
            async with server.peers[0].subscribe("report", serializer="text") as stream:
                assert [each async for each in stream] == ["calm"]
        assert await read(server.addresses[0], credentials=own, authenticate=examine) == [
            "somebody"
        ]
    assert seen == ["the lighthouse"]


@pytest.mark.parametrize("shown", [Credentials.bearer("guess"), Credentials("bearer")])
@pytest.mark.parametrize("examine", [the_server, the_server_later])
async def test_a_client_refuses_a_server_with_wrong_credentials_after_250_ms(
    autojump_clock: object, examine: Any, shown: Credentials
) -> None:
    """No request reaches that server."""
    service = service_with(anybody)
    async with penstock.serve(service, "memory://a", credentials=shown) as server:
        began = trio.current_time()
        with pytest.raises(
            AuthRefused, match="refused the credentials of the other side"
        ) as refused:
            await read(server.addresses[0], authenticate=examine)
        assert refused.value.processed is False
        assert trio.current_time() - began == pytest.approx(0.25, abs=0.06)
        await trio.sleep(1)
        assert server.statistics().sending.opened == 0


async def test_a_server_without_credentials_is_refused(autojump_clock: object) -> None:
    """At once if it examines nothing itself, and at the end of the handshake's time if it does."""
    for authenticate, seconds in ((None, 0.25), (anybody, 10)):
        async with penstock.serve(service_with(authenticate), "memory://a") as server:
            began = trio.current_time()
            with pytest.raises(AuthRefused):
                await read(server.addresses[0], authenticate=the_server)
            assert trio.current_time() - began == pytest.approx(seconds, abs=0.1)


async def test_both_sides_of_a_unix_socket_know_each_other_by_their_users(tmp_path: Any) -> None:
    """The scheme is ``unix`` in both directions, without credentials."""

    def same_user(scheme: str, data: bytes, peer: PeerIdentity) -> str | None:
        return (
            f"uid {peer.credentials.uid}"
            if scheme == "unix" and peer.credentials is not None and not data
            else None
        )

    me = f"uid {os.getuid()}"
    async with penstock.serve(
        service_with(same_user), f"unix://{tmp_path}/s", credentials=Credentials("unix")
    ) as server:
        assert await read(server.addresses[0], authenticate=same_user) == [me]
        async with penstock.connect(server.addresses[0], authenticate=lambda *_: "it") as peer:
            await peer.wait_accepted()
            assert peer.identity.principal == "it"


@pytest.mark.parametrize("own", [None, Credentials("mtls")])
async def test_both_sides_know_each_other_by_their_certificates(tmp_path: Any, own: Any) -> None:
    """The scheme is ``mtls`` in both directions, whether the server shows it
    or has no credentials.
    """
    authority = trustme.CA()
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    for name in ("127.0.0.1", "alice@example.org"):
        authority.issue_cert(name).private_key_and_cert_chain_pem.write_to_path(
            tmp_path / f"{name}.pem"
        )

    def by_name(scheme: str, data: bytes, peer: PeerIdentity) -> Any:
        return (
            peer.certificate is not None
            and (scheme, data) == ("mtls", b"")
            and peer.certificate.names[0]
        )

    def options(name: str) -> TransportOptions:
        return TransportOptions(
            tls=Tls(certificate=tmp_path / f"{name}.pem", authorities=tmp_path / "ca.pem")
        )

    service = service_with(by_name)
    async with penstock.serve(
        service, "tls://127.0.0.1:0", options=options("127.0.0.1"), credentials=own
    ) as server:
        url, examine = server.addresses[0], by_name if own else None
        async with penstock.connect(
            url, authenticate=examine, options=options("alice@example.org")
        ) as peer:
            assert await peer.request("whoami", type=str) == "email:alice@example.org"
            assert peer.identity.principal == ("IP Address:127.0.0.1" if own else None)


def test_credentials_of_a_server_that_would_reach_every_stranger_are_refused_at_the_call() -> None:
    """A service that examines no client accepts every client. No error repeats the credentials."""
    for service, extra, text in (
        (penstock.Service(), OF_SERVER, "a stranger could show them"),
        (service_with(anybody), "lighthouse", "give Credentials.bearer"),
        (service_with(anybody), Credentials.bearer("lighthouse" * 7000), "takes no more than"),
    ):
        with pytest.raises(UsageError, match=text) as wrong:
            penstock.serve(service, "memory://a", credentials=extra)
        assert "lighthouse" not in str(wrong.value)


def test_a_function_that_examines_the_server_is_refused_where_no_credentials_can_come() -> None:
    """ReactiveSocket has no verdict, and a string is not a function."""
    with pytest.raises(UsageError, match="shows no credentials over the protocol 'reactivesocket'"):
        penstock.connect("reactivesocket+memory://a", authenticate=the_server)
    with pytest.raises(UsageError, match="give a function"):
        penstock.connect("memory://a", authenticate="lighthouse")  # type: ignore[arg-type]  # it must be a function


class FrameworkTransport(MemoryTransport):
    """Knows the user of each connection, as a web framework does."""

    schemes: ClassVar[tuple[str, ...]] = ("framework",)

    async def listen(
        self, url: Url, *, options: TransportOptions, nursery: trio.Nursery
    ) -> Listener:
        listener = await super().listen(url, options=options, nursery=nursery)
        accept_any = listener.accept

        async def accept() -> Connection:
            connection = await accept_any()
            connection.peer = attrs.evolve(connection.peer, principal="alice")
            return connection

        listener.accept = accept  # type: ignore[method-assign]  # a transport of this test
        return listener


class FrameworkPlugin:
    @hookimpl
    def penstock_transports(self) -> list[Transport]:
        return [FrameworkTransport()]


@pytest.mark.parametrize("protocol", ["rsio", "reactivesocket"])
async def test_a_transport_may_know_the_principal(autojump_clock: object, protocol: str) -> None:
    """If the service examines no clients itself, `authorize` gets it, and a publisher sees it."""
    service, seen = penstock.Service(authorize=lambda user, _: user == "alice"), list[Any]()

    @service.publisher("me", serializer="json")
    async def me(peer: PeerIdentity) -> AsyncIterator[str]:
        seen.append(peer.principal)
        yield "you"

    registry, url = build_registry([FrameworkPlugin()]), f"{protocol}+framework://site"
    async with (
        penstock.serve(service, url, registry=registry),
        penstock.connect(url, registry=registry) as peer,
        peer.subscribe("me", serializer="json") as stream,
    ):
        assert [text async for text in stream] == ["you"]
    assert seen == ["alice"]
