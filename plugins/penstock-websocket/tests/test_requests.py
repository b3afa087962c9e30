"""The opening handshake, judged by plain functions."""

import h11
import pytest
from penstock_websocket._requests import (
    Accepted,
    OpeningFacts,
    Refused,
    accept_token,
    judge_request,
    judge_response,
)
from penstock_websocket._settings import Settings, settings_of

from penstock.api import UsageError
from penstock.spi import TransportOptions

PLACE = OpeningFacts(
    secure=False,
    path="",
    subprotocols=("rsio.v0", "reactivesocket.v0"),
    is_loopback=True,
    settings=Settings(),
)
KEY = "AAAAAAAAAAAAAAAAAAAAAA=="


def _request(
    *more: tuple[str, str],
    target: str = "/",
    version: str = "1.1",
    method: str = "GET",
    **changes: str | None,
) -> h11.Request:
    headers = {
        "host": "127.0.0.1:7001",
        "upgrade": "websocket",
        "connection": "keep-alive, Upgrade",
        "sec-websocket-key": KEY,
    }
    headers |= {"sec-websocket-version": "13"} | {
        name.replace("_", "-"): value for name, value in changes.items()
    }
    given = [(name, value) for name, value in headers.items() if value is not None]
    return h11.Request(method=method, target=target, headers=[*given, *more], http_version=version)


def _status(request: h11.Request, place: OpeningFacts = PLACE, size: int = 200) -> int:
    verdict = judge_request(request, size, place)
    return verdict.status if isinstance(verdict, Refused) else 101


def _place(
    *, is_loopback: bool = True, secure: bool = False, path: str = "", **settings: object
) -> OpeningFacts:
    return OpeningFacts(
        secure=secure,
        path=path,
        subprotocols=("rsio.v0",),
        is_loopback=is_loopback,
        settings=Settings(**settings),
    )


@pytest.mark.parametrize(
    ("changes", "status"),
    [
        ({}, 101),
        ({"version": "1.0"}, 400),
        ({"method": "POST"}, 400),
        ({"upgrade": None}, 400),
        ({"upgrade": "h2c"}, 400),
        ({"connection": "keep-alive"}, 400),
        ({"content_length": "5"}, 400),
        ({"sec_websocket_key": None}, 400),
        ({"sec_websocket_key": "AAAA"}, 400),
        ({"sec_websocket_key": "A" * 22}, 400),
        ({"sec_websocket_key": "!" * 24}, 400),
        ({"sec_websocket_version": "8"}, 426),
        ({"sec_websocket_version": None}, 426),
    ],
    ids=str,
)
def test_each_fault_of_a_request_has_its_status(changes: dict[str, str], status: int) -> None:
    """400 for the form, 426 for the version."""
    assert _status(_request(**changes)) == status


def test_another_version_is_answered_with_the_known_one() -> None:
    """In the header that RFC 6455 (4.4) asks for."""
    verdict = judge_request(_request(sec_websocket_version="8"), 200, PLACE)
    assert isinstance(verdict, Refused)
    assert verdict.headers == (("Sec-WebSocket-Version", "13"),)


def test_headers_are_bounded_in_bytes_and_in_number() -> None:
    """16 KiB and 100 fields, of which the request itself has five."""
    assert _status(_request(), size=16 << 10) == 101
    assert _status(_request(), size=(16 << 10) + 1) == 431
    assert _status(_request(*[("x-a", "b")] * 95)) == 101
    assert _status(_request(*[("x-a", "b")] * 96)) == 431


@pytest.mark.parametrize(
    ("offered", "chosen"),
    [
        (None, None),
        ("rsio.v0", "rsio.v0"),
        ("reactivesocket.v0, rsio.v0", "reactivesocket.v0"),
        ("mqtt, rsio.v0", "rsio.v0"),
    ],
)
def test_the_first_known_subprotocol_of_the_client_is_chosen(
    offered: str | None, chosen: str | None
) -> None:
    """The order of the client counts; without an offer none is answered."""
    assert judge_request(_request(sec_websocket_protocol=offered), 200, PLACE) == Accepted(
        key=KEY.encode(), subprotocol=chosen
    )


def test_without_a_known_subprotocol_the_request_is_refused() -> None:
    """An encoding of RS.io that is not installed is not known."""
    assert _status(_request(sec_websocket_protocol="mqtt")) == 400
    assert _status(_request(sec_websocket_protocol="rsio.v0+msgpack")) == 400


@pytest.mark.parametrize(
    ("origin", "status"),
    [
        (None, 101),
        ("http://127.0.0.1:7001", 101),
        ("HTTP://127.0.0.1:7001", 101),
        ("https://127.0.0.1:7001", 403),
        ("http://127.0.0.1", 403),
        ("http://127.0.0.1:7002", 403),
        ("https://app.example", 101),
        ("https://app.example:443", 101),
        ("https://app.example.evil.example", 403),
        ("https://app.example/", 403),
        ("null", 403),
        ("", 403),
        ("https://app.example https://app.example", 403),
    ],
)
def test_an_origin_must_be_the_server_itself_or_named(origin: str | None, status: int) -> None:
    """Without one the client is not a browser.
    `null`, an empty one and one with a path are refused.
    """
    assert (
        _status(_request(origin=origin), _place(origins=frozenset({"https://app.example"})))
        == status
    )


def test_a_repeated_origin_is_refused() -> None:
    """Even if both are known."""
    same = ("origin", "http://127.0.0.1:7001")
    assert _status(_request(same)) == 101
    assert _status(_request(same, same)) == 403


def test_the_scheme_of_a_page_must_fit_wss() -> None:
    """Behind a proxy that does TLS the scheme differs: then the origin is named."""
    page = _request(origin="https://127.0.0.1:7001")
    assert _status(page, _place(secure=True)) == 101
    assert _status(page, _place(secure=False)) == 403


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("127.0.0.1:7001", 101),
        ("127.5.5.5", 101),
        ("[::1]:7001", 101),
        ("localhost:7001", 101),
        ("LOCALHOST", 101),
        ("dev.example:7001", 101),
        ("evil.example:7001", 421),
        ("10.0.0.1", 421),
        ("localhost.evil.example", 421),
        ("127.0.0.1.evil.example", 421),
    ],
)
def test_at_an_address_of_this_machine_the_host_must_be_known(host: str, status: int) -> None:
    """A page may let one of its names lead to 127.0.0.1 (DNS rebinding)."""
    place = _place(hosts=frozenset({"dev.example"}))
    assert _status(_request(host=host), place) == status


def test_at_another_address_any_host_is_accepted() -> None:
    """A server does not know the names that lead to it."""
    assert _status(_request(host="any.example"), _place(is_loopback=False)) == 101


def test_a_path_of_the_listener_must_be_asked_for() -> None:
    """Its query does not count. Without a path any is accepted."""
    assert _status(_request(target="/streams?x=1"), _place(path="/streams")) == 101
    assert _status(_request(target="/other"), _place(path="/streams")) == 404
    assert _status(_request(target="/other"), _place()) == 101


def _response(status: int = 101, **changes: str | None) -> h11.InformationalResponse | h11.Response:
    headers = {
        "upgrade": "websocket",
        "connection": "Upgrade",
        "sec-websocket-accept": accept_token(KEY.encode()).decode(),
    }
    headers |= {name.replace("_", "-"): value for name, value in changes.items()}
    given = [(name, value) for name, value in headers.items() if value is not None]
    return (h11.InformationalResponse if status < 200 else h11.Response)(
        status_code=status, headers=given
    )


@pytest.mark.parametrize(
    ("response", "text"),
    [
        (_response(200), "answered 200"),
        (_response(403), "answered 403"),
        (_response(upgrade=None), "another protocol"),
        (_response(sec_websocket_accept="wrong"), "wrong key"),
        (_response(sec_websocket_accept=None), "wrong key"),
        (_response(sec_websocket_extensions="permessage-deflate"), "extension"),
        (_response(sec_websocket_protocol="mqtt"), "not offered"),
    ],
)
def test_each_fault_of_a_response_is_named(response: h11.Response, text: str) -> None:
    """The client opens no WebSocket then."""
    verdict = judge_response(response, KEY.encode(), ("rsio.v0",))
    assert isinstance(verdict, str)
    assert text in verdict


@pytest.mark.parametrize("chosen", ["rsio.v0", None])
def test_a_server_may_choose_no_subprotocol(chosen: str | None) -> None:
    """Then the client speaks what it would have spoken."""
    verdict = judge_response(_response(sec_websocket_protocol=chosen), KEY.encode(), ("rsio.v0",))
    assert verdict == Accepted(key=KEY.encode(), subprotocol=chosen)


def test_options_may_be_texts_with_commas() -> None:
    """As the command line gives them, or several texts."""
    for origins in (
        "https://A.example:443, http://b.example:8000",
        ["https://a.example", "http://b.example:8000"],
    ):
        settings = settings_of(
            TransportOptions(
                extra={"ws.origins": origins, "ws.hosts": "Dev.example", "ws.ping": "5"}
            )
        )
        assert settings == Settings(
            origins=frozenset({"https://a.example", "http://b.example:8000"}),
            hosts=frozenset({"dev.example"}),
            ping=5.0,
        )


@pytest.mark.parametrize(
    "extra",
    [
        {"ws.origin": "https://a.example"},
        {"ws.origins": "a.example"},
        {"ws.origins": "https://a.example/page"},
        {"ws.origins": "null"},
        {"ws.origins": 5},
        {"ws.hosts": [5]},
        {"ws.ping": "soon"},
        {"ws.ping": 0},
        {"ws.ping": float("nan")},
    ],
    ids=str,
)
def test_a_wrong_option_is_a_usage_error(extra: dict[str, object]) -> None:
    """A misspelt one too: an origin that is not read would be refused later, without a reason."""
    with pytest.raises(UsageError, match=next(iter(extra))):
        settings_of(TransportOptions(extra=extra))
