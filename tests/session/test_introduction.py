"""The handshake of a protocol with an introduction, on a session of the toy delegate."""

import pytest

from penstock.api import ProtocolError, Role
from penstock.session import ConnectionState, ExtensionHost, IntroductionHandshake
from tests.session._pair import RecordingDelegate


def handshake_of(role: Role) -> tuple[RecordingDelegate, IntroductionHandshake, ExtensionHost]:
    delegate = RecordingDelegate(role)
    handshake = IntroductionHandshake(delegate.session)
    extensions = ExtensionHost(
        delegate.session, (), lambda *_: b"", handshake.on_admitted, has_introductions=True
    )
    return delegate, handshake, extensions


def test_a_server_takes_nothing_before_an_introduction() -> None:
    """A client has no introduction to wait for."""
    _, server, _ = handshake_of(Role.SERVER)
    with pytest.raises(ProtocolError) as caught:
        server.check_begun()
    assert caught.value.reason == "protocol:setup"
    handshake_of(Role.CLIENT)[1].check_begun()


def test_the_service_examines_an_introduction() -> None:
    """After that the bytes before it have their bound no longer."""
    delegate, handshake, extensions = handshake_of(Role.SERVER)
    bound = handshake.preauth_bytes
    assert bound == delegate.session.channel.limits.preauth_bytes
    handshake.receive(b"hello", extensions)
    assert delegate.introductions == [b"hello"]
    assert handshake.preauth_bytes > bound
    handshake.check_begun()
    handshake.on_admitted()
    assert delegate.introductions == [b"hello"]


def test_an_introduction_to_a_session_that_is_closing_is_not_examined() -> None:
    """The service may have ended it meanwhile."""
    delegate, handshake, extensions = handshake_of(Role.SERVER)
    delegate.session.close("stopped")
    handshake.receive(b"hello", extensions)
    assert not delegate.introductions


def test_a_client_that_was_accepted_is_open_and_stays_so() -> None:
    """A second answer changes nothing."""
    delegate, handshake, _ = handshake_of(Role.CLIENT)
    handshake.accept()
    handshake.accept()
    assert handshake.is_accepted
    assert delegate.is_open


def test_the_end_of_the_time_opens_a_client_and_ends_a_server() -> None:
    """A server that has not refused by then has accepted; a client without SETUP never will."""
    client, handshake, _ = handshake_of(Role.CLIENT)
    handshake.overdue()
    assert client.session.state is ConnectionState.OPEN
    server, handshake, _ = handshake_of(Role.SERVER)
    handshake.overdue()
    assert server.session.state.is_closing
