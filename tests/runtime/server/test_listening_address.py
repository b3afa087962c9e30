"""The checks of an address that a server listens at."""

import pytest

from penstock.api import UsageError
from penstock.runtime import Service, run, serve
from penstock.runtime.server._listening_address import check_exposed, check_guard, listening_url
from penstock.spi import build_registry, parse_url
from tests.runtime.server._knock import KnockPlugin


def test_a_url_with_a_name_cannot_be_listened_at() -> None:
    """The name would be ignored: a server offers all of its service."""
    assert listening_url("tcp://127.0.0.1:7000") == parse_url("tcp://127.0.0.1:7000")
    with pytest.raises(UsageError, match="leave it out"):
        listening_url("tcp://127.0.0.1:7000/ticks")


def test_a_service_that_examines_its_clients_names_its_protocol() -> None:
    """With setup=, a URL that speaks every protocol would let clients of RS.io pass."""
    registry, service = build_registry(), Service(setup=lambda data: True)
    check_guard(service, "reactivesocket+memory://x", registry)
    check_guard(Service(), "memory://x", registry)
    with pytest.raises(UsageError, match=r"reactivesocket\+memory"):
        check_guard(service, "memory://x", registry)


def test_a_transport_that_answers_its_clients_gets_another_advice() -> None:
    """A protocol before such a URL would serve no stream of the transport's own protocol."""
    with pytest.raises(UsageError, match=r"Give Service\(authenticate=…\)"):
        check_guard(Service(setup=lambda data: True), "knock://x", build_registry([KnockPlugin()]))


PUBLIC = [
    "tcp://0.0.0.0:7000",
    "tcp://[::]:0",
    "tcp://:0",
    "tcp://192.0.2.1:1",
    "rsio+tcp://host.example:7000",
    "tcp://127.example.org:7000",
]
LOCAL = [
    "tcp://127.0.0.1:0",
    "tcp://127.9.9.9:0",
    "tcp://[::1]:0",
    "tcp://[::ffff:127.0.0.1]:0",
    "tcp://localhost:0",
]
ELSEWHERE = ["tls://0.0.0.0:7443", "unix:///run/a.sock", "memory://name", "pipe:"]


@pytest.mark.parametrize("url", PUBLIC)
def test_an_address_that_others_reach_needs_tls_or_authentication(url: str) -> None:
    """Or the word of the program. The error says all three ways."""
    registry = build_registry()
    with pytest.raises(
        UsageError, match=r"(?s)127\.0\.0\.1.*TLS.*authenticate=.*insecure=True \(--insecure\)"
    ):
        check_exposed(Service(), url, registry)
    check_exposed(Service(authenticate=lambda *_: "somebody"), url, registry)
    check_exposed(Service(setup=lambda _: True), url, registry)


@pytest.mark.parametrize("url", LOCAL + ELSEWHERE)
def test_other_addresses_need_neither(url: str) -> None:
    """No other machine reaches them, or the bytes are encrypted."""
    check_exposed(Service(), url, build_registry())


def test_serve_and_run_refuse_such_an_address_at_the_call() -> None:
    """Before anything is opened; with insecure=True they do not."""
    with pytest.raises(UsageError, match="insecure=True"):
        serve(Service(), "memory://a", "tcp://0.0.0.0:0")
    with pytest.raises(UsageError, match="insecure=True"):
        run(Service(), "tcp://0.0.0.0:0")
    serve(Service(), "memory://a", "tcp://0.0.0.0:0", insecure=True)
