"""The request that opens a stream, and its answer: plain functions."""

import pytest
from penstock_http.multiplex._requests import (
    Agreed,
    Mount,
    Refused,
    answer_headers,
    content_type_of,
    judge_answer,
    judge_request,
    refusal_headers,
    request_headers,
    subprotocols_of,
)

PLACE = Mount(protocols=subprotocols_of(("rsio/0+msgpack", "rsio/0", "reactivesocket/0")))
BASE = {":method": "POST", ":scheme": "http", ":authority": "x", ":path": "/"}


def _judge(place: Mount = PLACE, **changes: str) -> Agreed | Refused:
    headers = BASE | {name.replace("_", "-"): value for name, value in changes.items()}
    headers |= {f":{name}": headers.pop(name) for name in ("method", "path") if name in headers}
    return judge_request(
        [(name.encode(), value.encode()) for name, value in headers.items()], place
    )


def _status(verdict: Agreed | Refused) -> int:
    return verdict.status if isinstance(verdict, Refused) else 200


@pytest.mark.parametrize(
    ("content_type", "protocol"),
    [
        ("", None),
        ("application/octet-stream", None),
        ("application/grpc", None),
        ("application/x-www-form-urlencoded", None),
        ("application/x-rsio", "rsio.v0"),
        ("Application/X-RSIO; v=0", "rsio.v0"),
        ("application/x-rsio;v=0;encoding=msgpack", "rsio.v0+msgpack"),
        ("application/x-reactivesocket", "reactivesocket.v0"),
    ],
)
def test_the_content_type_names_the_protocol(content_type: str, protocol: str | None) -> None:
    """Any other one leaves it to the first bytes."""
    verdict = _judge(content_type=content_type) if content_type else _judge()
    assert verdict == Agreed(protocol)
    assert isinstance(verdict, Agreed)
    kind = dict(answer_headers(verdict))["content-type"]
    assert kind == ("application/octet-stream" if protocol is None else content_type_of(protocol))


@pytest.mark.parametrize(
    "content_type", ["application/x-rsio;v=9", "application/x-rsio;encoding=other"]
)
def test_a_protocol_that_is_not_served_is_refused_with_those_that_are(content_type: str) -> None:
    """The words of the peer are not in the answer."""
    verdict = _judge(content_type=content_type)
    assert isinstance(verdict, Refused)
    assert verdict.status == 415
    assert "application/x-rsio;v=0;encoding=msgpack" in verdict.text
    assert "other" not in verdict.text
    assert (
        _status(_judge(Mount(protocols=("rsio.v0",)), content_type="application/x-reactivesocket"))
        == 415
    )


@pytest.mark.parametrize(
    ("changes", "status"),
    [
        ({"method": "GET"}, 405),
        ({"path": "/other"}, 404),
        ({"origin": "https://evil.example"}, 403),
        ({"origin": "null"}, 403),
    ],
)
def test_a_refused_request_has_its_status(changes: dict[str, str], status: int) -> None:
    """With a text, and with the methods that are allowed."""
    verdict = _judge(**changes)
    assert isinstance(verdict, Refused)
    assert verdict.status == status
    headers = dict(refusal_headers(verdict, len(verdict.text)))
    assert headers[":status"] == str(status)
    assert headers["cache-control"] == "no-store"
    assert ("allow" in headers) == (status == 405)


def test_a_path_that_is_listened_at_is_the_only_one() -> None:
    """Its query does not count."""
    place = Mount(path="/streams")
    assert _judge(place, path="/streams?x=1") == Agreed(None)
    assert _status(_judge(place)) == 404


def test_pages_may_be_named() -> None:
    """In the option h2.origins."""
    place = Mount(origins=frozenset({"https://app.example"}))
    assert _judge(place, origin="https://app.example") == Agreed(None)
    assert _status(_judge(place, origin="https://app.example:8443")) == 403


def test_a_request_has_a_bounded_number_of_fields() -> None:
    """101 are refused with 431."""
    headers = [(name.encode(), value.encode()) for name, value in BASE.items()]
    assert judge_request([*headers, *[(b"x", b"y")] * 96], PLACE) == Agreed(None)
    assert _status(judge_request([*headers, *[(b"x", b"y")] * 97], PLACE)) == 431


def test_a_request_of_this_side_is_accepted_by_this_side() -> None:
    """Whatever the protocol is."""
    for protocol in PLACE.protocols:
        pairs = request_headers(scheme="https", host="x", path="/", subprotocol=protocol)
        assert judge_request(
            [(name.encode(), value.encode()) for name, value in pairs], PLACE
        ) == Agreed(protocol)


@pytest.mark.parametrize(
    ("status", "words"), [("200", None), ("503", "503"), ("", "no status"), ("2\u00e9", r"2\xe9")]
)
def test_an_answer_other_than_200_opens_nothing(status: str, words: str | None) -> None:
    """The text for people has no byte of the peer as it came."""
    headers = [(b":status", status.encode("latin-1"))] if status else []
    assert judge_answer(headers) == (
        None if words is None else f"it answered the request with {words}"
    )
