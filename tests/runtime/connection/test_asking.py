"""Requests by name, from the side that asks, over both protocols."""

import pytest
import trio
import trio.testing

from penstock.api import ProtocolError, PublisherFailed, Rejected, UsageError
from penstock.runtime import Service, connect, serve
from penstock.spi import Outcome
from tests.runtime._named import RECORDS, Order, Price, named_service
from tests.runtime._observer import Observer

PROTOCOLS = pytest.mark.parametrize("protocol", ["rsio", "reactivesocket"])


@PROTOCOLS
async def test_a_typed_payload_leads_to_a_typed_answer(protocol: str, url: str) -> None:
    """Name, query, payload and answer, over each transport."""
    async with (
        serve(named_service(), url) as server,
        connect(f"{protocol}+{server.addresses[0]}") as peer,
    ):
        assert await peer.request(
            "price/EURUSD", Order(3), type=Price, serializer=RECORDS
        ) == Price("EURUSD", 300)
        assert await peer.request(
            "price/EURUSD?cents=7", Order(3), type=Price, serializer=RECORDS
        ) == Price("EURUSD", 21)


@PROTOCOLS
async def test_a_request_without_a_payload_needs_its_name_only(protocol: str) -> None:
    """The name leads to a handler, whose payload has a default or which takes none; or to the
    first element of a publisher.
    """
    async with (
        serve(named_service(), "memory://n") as server,
        connect(f"{protocol}+{server.addresses[0]}") as peer,
    ):
        assert await peer.request("time") == b"12:00"
        assert await peer.request("echo") == b"nothing"
        assert await peer.request("numbers", type=str) == "0"
        assert "memory" in await peer.request("whoami", type=str)


@PROTOCOLS
async def test_an_empty_payload_is_a_payload(protocol: str) -> None:
    """The default of the handler is for no payload only."""
    async with (
        serve(named_service(), "memory://n") as server,
        connect(f"{protocol}+{server.addresses[0]}") as peer,
    ):
        assert await peer.request("echo", b"") == b""


@PROTOCOLS
async def test_texts_and_bytes_need_no_serializer(protocol: str) -> None:
    """The type of the payload decides, here and there."""
    async with (
        serve(named_service(), "memory://n") as server,
        connect(f"{protocol}+{server.addresses[0]}") as peer,
    ):
        assert await peer.request("upper", "straße", type=str) == "STRASSE"
        assert await peer.request("echo", bytearray(b"ab")) == b"ab"
        assert await peer.request("echo", {"a": [1, None]}) == b'{"a":[1,null]}'


@PROTOCOLS
async def test_an_unknown_name_is_refused_in_the_words_for_publishers(protocol: str) -> None:
    """With a payload and without one."""
    async with (
        serve(named_service(), "memory://n") as server,
        connect(f"{protocol}+{server.addresses[0]}") as peer,
    ):
        for payload in (None, b"x"):
            with pytest.raises((Rejected, PublisherFailed), match="no such publisher"):
                await peer.request("nowhere", payload)


@PROTOCOLS
async def test_a_payload_that_does_not_fit_the_name_is_refused_with_the_reason(
    protocol: str,
) -> None:
    """One that is missing, one that is not taken, and one for a publisher."""
    async with (
        serve(named_service(), "memory://n") as server,
        connect(f"{protocol}+{server.addresses[0]}") as peer,
    ):
        for name, payload, says in (
            ("upper", None, "upper needs a payload"),
            ("time", b"abc", "time takes no payload, and one of 3 bytes was sent"),
            ("numbers", b"abc", "numbers is a publisher and takes no payload"),
        ):
            with pytest.raises((Rejected, PublisherFailed), match=says):
                await peer.request(name, payload)


@PROTOCOLS
async def test_a_payload_that_does_not_decode_is_explained_to_the_caller_alone(
    protocol: str,
) -> None:
    """The caller gets the length and the reason. The server reports nothing:
    a peer must not be able to fill its log.
    """
    reports: list[BaseException] = []
    async with serve(named_service(), "memory://n", on_violation=reports.append) as server:
        async with connect(f"{protocol}+{server.addresses[0]}") as peer:
            with pytest.raises(
                PublisherFailed,
                match=r"the payload of price/\{symbol\}, 7 bytes, cannot be read .*at byte 3",
            ):
                await peer.request("price/EURUSD", b"[1 oops")
            assert await peer.request("time") == b"12:00"
    assert reports == []


@PROTOCOLS
async def test_a_handler_that_fails_tells_the_peer_no_more_than_a_publisher_would(
    protocol: str,
) -> None:
    """The text of a PublicError, or that it failed."""
    reports: list[BaseException] = []
    async with serve(named_service(), "memory://n", on_violation=reports.append) as server:
        async with connect(f"{protocol}+{server.addresses[0]}") as peer:
            with pytest.raises(PublisherFailed, match="sold out"):
                await peer.request("price/a", Order(1, "sold out"), serializer=RECORDS)
            with pytest.raises(PublisherFailed, match="the publisher failed"):
                await peer.request("price/a", Order(1, "secret"), serializer=RECORDS)
    assert "a secret" in [str(each) for each in reports]


@PROTOCOLS
async def test_an_answer_that_cannot_be_read_names_its_request(protocol: str) -> None:
    """With its length, and what to look at."""
    async with (
        serve(named_service(), "memory://n") as server,
        connect(f"{protocol}+{server.addresses[0]}") as peer,
    ):
        with pytest.raises(
            ProtocolError,
            match=r"the answer to request\('time'\), 5 bytes, cannot be read .*'records'.*; is it the serializer",
        ):
            await peer.request("time", type=Price, serializer=RECORDS)


@PROTOCOLS
async def test_a_cancelled_request_cancels_the_handler(
    protocol: str, autojump_clock: trio.testing.MockClock
) -> None:
    """The handler runs in a separate task, and other requests go on."""
    service, stopped = named_service(), trio.Event()

    @service.request("slow")
    async def slow(payload: bytes) -> bytes:
        try:
            await trio.sleep(1000)
        finally:
            stopped.set()
        return payload

    async with (
        serve(service, "memory://n") as server,
        connect(f"{protocol}+{server.addresses[0]}") as peer,
    ):
        with trio.move_on_after(1) as scope:
            await peer.request("slow", b"x")
        assert scope.cancelled_caught
        await stopped.wait()
        assert await peer.request("time") == b"12:00"


@PROTOCOLS
async def test_requests_by_name_are_reported_to_observers(protocol: str) -> None:
    """On both sides, under their names."""
    client, served = Observer(), Observer()
    async with serve(named_service(), "memory://n", registry=served.registry()) as server:
        async with connect(f"{protocol}+{server.addresses[0]}", registry=client.registry()) as peer:
            assert await peer.request("echo", b"ab") == b"ab"
    for observer in (client, served):
        assert [each.publisher for each in observer.begun] == ["echo"]
        assert [(each.outcome, each.elements) for each in observer.ended] == [
            (Outcome.COMPLETED, 1)
        ]


@PROTOCOLS
async def test_what_cannot_be_sent_is_refused_before_the_wait(protocol: str) -> None:
    """A name, a payload of a type without a serializer, and a serializer that is not there."""
    async with (
        serve(named_service(), "memory://n") as server,
        connect(f"{protocol}+{server.addresses[0]}") as peer,
    ):
        for name, payload, serializer, says in (
            ("", b"", None, "the name is empty"),
            ("\udcff", b"", None, "half a character"),
            ("echo", {1}, "text", "set"),
            ("echo", [1], "bytes", "give bytes, or another serializer"),
            ("echo", b"", "nothere", "nothere"),
        ):
            with pytest.raises(UsageError, match=says):
                await peer.request(name, payload, serializer=serializer)


async def test_raw_handlers_and_names_in_request_data_work_beside_named_requests() -> None:
    """Data that only begins like a named request also goes to the raw handler."""
    service = named_service()

    @service.request_response
    async def reverse(data: bytes) -> bytes:
        return data[::-1]

    async with (
        serve(service, "memory://n") as server,
        connect(f"reactivesocket+{server.addresses[0]}") as peer,
    ):
        for data in (
            b"abc",
            b"a/b",
            b"\xff",
            b"\xffrq\x00",
            b"\xffrq\x00\x00\x09echo",
            b"\xffrq\x00\x00\x02\xff\xff",
        ):
            assert await peer.request_response(data) == data[::-1]
        assert await peer.request_response("time") == b"12:00"
        assert await peer.request_response("numbers") == b"0"
        assert await peer.request_response(b"\xffrq\x00\x00\x04echoab") == b"ab"
        with pytest.raises(PublisherFailed, match="no such publisher"):
            await peer.request("nowhere", b"x")


async def test_a_service_without_named_requests_gets_all_data_as_it_is() -> None:
    """So a program that passes requests on, without a look, can pass on named ones."""
    service = Service()

    @service.request_response
    async def same(data: bytes) -> bytes:
        return data

    async with (
        serve(service, "memory://n") as server,
        connect(f"reactivesocket+{server.addresses[0]}") as peer,
    ):
        assert await peer.request("a", b"b") == b"\xffrq\x00\x00\x01ab"


@PROTOCOLS
async def test_a_handler_by_name_can_be_subscribed_to(protocol: str) -> None:
    """It is a stream of one element, without demand as well as with more than it needs."""
    async with (
        serve(named_service(), "memory://n") as server,
        connect(f"{protocol}+{server.addresses[0]}") as peer,
    ):
        async with peer.subscribe("time") as stream:
            assert [element async for element in stream] == [b"12:00"]
        async with peer.subscribe("time", demand=0) as waiting:
            await trio.testing.wait_all_tasks_blocked()
            waiting.request(1)
            assert [element async for element in waiting] == [b"12:00"]
