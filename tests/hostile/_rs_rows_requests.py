"""ReactiveSocket: errors of a requester that end one stream at most:
the connection and the stream beside it go on.
"""

from penstock_tck.wire import named_request
from penstock_tck.wire.reactivesocket import (
    cancel,
    fire_and_forget,
    request_n,
    request_response,
    request_stream,
    request_sub,
)
from penstock_tck.wire.rsio import UNBOUNDED

from tests.hostile._attacker import VICTIM, Attacker
from tests.hostile._attacker_protocol import REACTIVESOCKET
from tests.hostile._row import LARGE, Row, S
from tests.hostile._rows_before_hello import EVERYWHERE
from tests.hostile._rs_rows_frames import row, tolerated

NO_SUCH = "no such publisher"
ILLEGAL = "illegal demand"
SIGN = 1 << 63
COMPANION = REACTIVESOCKET.companion


def refused(title: str, attack: object, says: str, **more: object) -> Row:
    return row(title, attack, S, says, **more)


async def request_zero(attacker: Attacker) -> None:
    await attacker.send(request_stream("ticks", VICTIM, 1))
    await attacker.send(request_n(VICTIM, 0))


async def request_negative(attacker: Attacker) -> None:
    await attacker.send(request_stream("ticks", VICTIM, 1))
    await attacker.send(request_n(VICTIM, SIGN | 1))


async def request_too_often(attacker: Attacker) -> None:
    """Open 16 streams beside the companion; `max_subscriptions` is 16. The last one is the
    victim, so the error is recognised by its id.
    """
    await attacker.send(b"".join(request_stream("ticks", stream) for stream in range(100, 115)))
    await attacker.send(request_stream("ticks", VICTIM))
    await attacker.wait(lambda: any(message[0] == "onError" for message in attacker.heard))
    await attacker.send(b"".join(map(cancel, range(100, 115))))


async def request_after_end(attacker: Attacker) -> None:
    await attacker.send(request_stream("one", VICTIM, 2))
    await attacker.wait_heard("onComplete", VICTIM)
    await attacker.send(request_n(VICTIM, 5) + cancel(VICTIM) + cancel(VICTIM))


async def reuse_id(attacker: Attacker) -> None:
    """Use one id for two requests. A requester must not, but a responder forgets a stream that
    has ended, and serves the second.
    """
    for _ in range(2):
        await attacker.send(request_stream("one", VICTIM, 2))
        await attacker.wait_heard("onComplete", VICTIM)
        attacker.heard.remove(("onComplete", VICTIM))


async def request_with_large_ids(attacker: Attacker) -> None:
    for stream in (2**63, 2**64 - 1):
        await attacker.send(request_response("one", stream))
        await attacker.wait_heard("onComplete", stream)


async def request_too_much(attacker: Attacker) -> None:
    await attacker.send(request_stream("one", VICTIM, UNBOUNDED) + request_n(VICTIM, UNBOUNDED) * 5)
    await attacker.wait_heard("onComplete", VICTIM)


async def begin_without_demand(attacker: Attacker) -> None:
    await attacker.send(request_stream("one", VICTIM, 0))
    await attacker.pause(0.05)
    assert not [message for message in attacker.heard if message[1] == VICTIM]
    await attacker.send(request_n(VICTIM, 5))
    await attacker.wait_heard("onComplete", VICTIM)


async def request_more_of_one_value(attacker: Attacker) -> None:
    await attacker.send(
        request_response("one", VICTIM)
        + request_n(VICTIM, 5)
        + request_n(VICTIM, 0)
        + request_n(VICTIM, SIGN)
    )
    await attacker.wait_heard("onComplete", VICTIM)


async def cancel_within_an_element(attacker: Attacker) -> None:
    """Cancel a stream after the first part of an element. The responder sends no further part."""
    await attacker.send(request_stream("large", VICTIM, 1))
    await attacker.wait(lambda: any(message[:2] == ("part", VICTIM) for message in attacker.heard))
    await attacker.send(cancel(VICTIM))


async def cancel_subscription(attacker: Attacker) -> None:
    await attacker.send(request_sub("ticks", VICTIM, UNBOUNDED))
    await attacker.wait(
        lambda: any(message[:2] == ("onNext", VICTIM) for message in attacker.heard)
    )
    await attacker.send(cancel(VICTIM))


ON_ZERO = (
    request_response("one", 0)
    + fire_and_forget("one", 0)
    + request_stream("one", 0, 5)
    + request_sub("one", 0, 5)
)
SHOTS = fire_and_forget("shot", VICTIM) + request_n(VICTIM, 5) + cancel(VICTIM)

REQUESTS = [
    refused(
        "REQUEST_STREAM for a name that is not there",
        request_stream("nowhere", VICTIM, 1),
        NO_SUCH,
        schemes=EVERYWHERE,
    ),
    refused("REQUEST_STREAM without data", request_stream("", VICTIM, 1), NO_SUCH),
    refused(
        "REQUEST_RESPONSE with data that is no UTF-8",
        request_response(b"\xff\xfe", VICTIM),
        NO_SUCH,
        schemes=EVERYWHERE,
    ),
    refused(
        "REQUEST_RESPONSE with data of 60,000 bytes",
        request_response("n" * 60_000, VICTIM),
        NO_SUCH,
    ),
    refused(
        "REQUEST_STREAM with a parameter that does not fit",
        request_stream("up-to/" + "9" * 900, VICTIM, 1),
        NO_SUCH,
    ),
    refused(
        "REQUEST_STREAM for a name that climbs",
        request_stream("../../ticks\x00\r\n", VICTIM, 1),
        NO_SUCH,
    ),
    refused(
        "a request by a name that is not there",
        request_response(named_request("nowhere", b"x"), VICTIM),
        NO_SUCH,
        schemes=EVERYWHERE,
    ),
    refused(
        "a request by a name that is no UTF-8",
        request_response(named_request(b"\xff\xfe", b"x"), VICTIM),
        NO_SUCH,
    ),
    refused(
        "a request whose name ends behind its data",
        request_response(b"\xffrq\x00\xff\xffx", VICTIM),
        NO_SUCH,
    ),
    refused(
        "a payload for a publisher",
        request_response(named_request("one", b"xy"), VICTIM),
        "one is a publisher and takes no payload, and one of 2 bytes was sent",
    ),
    refused(
        "REQUEST_STREAM over the limit",
        request_stream("n" * 65_537, VICTIM, 1),
        "too long",
        schemes=EVERYWHERE,
    ),
    refused("REQUEST_RESPONSE over the limit", request_response("n" * 65_537, VICTIM), "too long"),
    refused(
        "requests beyond `max_subscriptions`", request_too_often, "refused", schemes=EVERYWHERE
    ),
    refused(
        "an initial demand with bit 63 set",
        request_stream("ticks", VICTIM, SIGN),
        ILLEGAL,
        schemes=EVERYWHERE,
    ),
    refused(
        "an initial demand with bit 63 set, of a subscription",
        request_sub("ticks", VICTIM, SIGN | 5),
        ILLEGAL,
    ),
    refused("REQUEST_N of 0", request_zero, ILLEGAL, schemes=EVERYWHERE),
    refused("REQUEST_N with bit 63 set", request_negative, ILLEGAL, schemes=EVERYWHERE),
    refused(
        "REQUEST_RESPONSE to a publisher without elements",
        request_response("none", VICTIM),
        "there was nothing to answer with",
    ),
    refused(
        "REQUEST_SUB to a publisher that ends",
        request_sub("one", VICTIM, 5),
        "subscription terminated",
    ),
    tolerated("requests on stream 0, of every kind", ON_ZERO, schemes=EVERYWHERE),
    tolerated(
        "a request with the id of a live stream",
        request_stream("one", COMPANION, 5),
        schemes=EVERYWHERE,
    ),
    tolerated(
        "requests of other kinds with the id of a live stream",
        request_response("one", COMPANION) + fire_and_forget("x", COMPANION),
    ),
    tolerated("a request with the id of a stream that has ended: it is served", reuse_id),
    tolerated("requests with ids of 2^63 and above: they are served", request_with_large_ids),
    tolerated("an initial demand of 0: the stream waits", begin_without_demand),
    tolerated("demand that adds up to more than 2^63-1", request_too_much),
    tolerated(
        "REQUEST_N for a stream that was never opened", request_n(VICTIM, 5), schemes=EVERYWHERE
    ),
    tolerated(
        "REQUEST_N of 0, and with bit 63 set, for a stream that was never opened",
        request_n(VICTIM, 0) + request_n(VICTIM, SIGN),
    ),
    tolerated("REQUEST_N on stream 0", request_n(0, 5)),
    tolerated("REQUEST_N, of whatever, for a REQUEST_RESPONSE", request_more_of_one_value),
    tolerated("CANCEL for a stream that was never opened", cancel(VICTIM), schemes=EVERYWHERE),
    tolerated("CANCEL on stream 0", cancel(0)),
    tolerated("REQUEST_N and CANCEL for a REQUEST_FNF", SHOTS),
    tolerated("REQUEST_N and CANCEL, twice, for a stream that has ended", request_after_end),
    tolerated(
        "CANCEL in the middle of an element's parts",
        cancel_within_an_element,
        schemes=EVERYWHERE,
        holds=LARGE,
    ),
    tolerated("CANCEL for a subscription", cancel_subscription),
    tolerated(
        "CANCEL right behind its request", request_stream("ticks", VICTIM, 5) + cancel(VICTIM)
    ),
]
