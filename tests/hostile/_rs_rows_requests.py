"""ReactiveSocket: what a requester may do wrong, or oddly, in one stream: the connection, and a stream beside it, go on."""

from tests.hostile._attacker import VICTIM, Attacker
from tests.hostile._row import Row, S
from tests.hostile._rows_before import EVERYWHERE
from tests.hostile._rs_rows_connection import row, tolerated
from tests.hostile._rs_wire import cancel, fire_and_forget, request_n, request_response, request_stream, request_sub
from tests.hostile._tongue import REACTIVESOCKET
from tests.hostile._wire import UNBOUNDED

NO_SUCH = "no such publisher"
ILLEGAL = "illegal demand"
SIGN = 1 << 63
COMPANION = REACTIVESOCKET.companion


def refused(what: str, act: object, says: str, **more: object) -> Row:
    return row(what, act, S, says, **more)


async def grant_nothing(attacker: Attacker) -> None:
    await attacker.send(request_stream("ticks", VICTIM, 1))
    await attacker.send(request_n(VICTIM, 0))


async def grant_below_zero(attacker: Attacker) -> None:
    await attacker.send(request_stream("ticks", VICTIM, 1))
    await attacker.send(request_n(VICTIM, SIGN | 1))


async def ask_too_often(attacker: Attacker) -> None:
    """The companion is the first of the 16; the one too many is the victim, told apart by its id."""
    await attacker.send(b"".join(request_stream("ticks", stream) for stream in range(100, 115)))
    await attacker.send(request_stream("ticks", VICTIM))
    await attacker.wait(lambda: any(message[0] == "onError" for message in attacker.heard))
    await attacker.send(b"".join(map(cancel, range(100, 115))))


async def ask_of_the_ended(attacker: Attacker) -> None:
    await attacker.send(request_stream("one", VICTIM, 2))
    await attacker.wait_heard("onComplete", VICTIM)
    await attacker.send(request_n(VICTIM, 5) + cancel(VICTIM) + cancel(VICTIM))


async def use_an_id_again(attacker: Attacker) -> None:
    """It is not what a requester should do; whose stream has ended knows no better."""
    for _ in range(2):
        await attacker.send(request_stream("one", VICTIM, 2))
        await attacker.wait_heard("onComplete", VICTIM)
        attacker.heard.remove(("onComplete", VICTIM))


async def ask_with_large_ids(attacker: Attacker) -> None:
    for stream in (2**63, 2**64 - 1):
        await attacker.send(request_response("one", stream))
        await attacker.wait_heard("onComplete", stream)


async def ask_for_too_much(attacker: Attacker) -> None:
    await attacker.send(request_stream("one", VICTIM, UNBOUNDED) + request_n(VICTIM, UNBOUNDED) * 5)
    await attacker.wait_heard("onComplete", VICTIM)


async def pause_at_first(attacker: Attacker) -> None:
    await attacker.send(request_stream("one", VICTIM, 0))
    await attacker.pause(0.05)
    assert not [message for message in attacker.heard if message[1] == VICTIM]
    await attacker.send(request_n(VICTIM, 5))
    await attacker.wait_heard("onComplete", VICTIM)


async def grant_to_one_value(attacker: Attacker) -> None:
    await attacker.send(request_response("one", VICTIM) + request_n(VICTIM, 5) + request_n(VICTIM, 0) + request_n(VICTIM, SIGN))
    await attacker.wait_heard("onComplete", VICTIM)


async def cancel_within_an_element(attacker: Attacker) -> None:
    """Its last part never comes; nothing else does either."""
    await attacker.send(request_stream("large", VICTIM, 1))
    await attacker.wait(lambda: any(message[:2] == ("part", VICTIM) for message in attacker.heard))
    await attacker.send(cancel(VICTIM))


async def cancel_what_has_no_end(attacker: Attacker) -> None:
    await attacker.send(request_sub("ticks", VICTIM, UNBOUNDED))
    await attacker.wait(lambda: any(message[:2] == ("onNext", VICTIM) for message in attacker.heard))
    await attacker.send(cancel(VICTIM))


ON_ZERO = request_response("one", 0) + fire_and_forget("one", 0) + request_stream("one", 0, 5) + request_sub("one", 0, 5)
SHOTS = fire_and_forget("shot", VICTIM) + request_n(VICTIM, 5) + cancel(VICTIM)

REQUESTS = [
    refused("REQUEST_STREAM for a name that is not there", request_stream("nowhere", VICTIM, 1), NO_SUCH, over=EVERYWHERE),
    refused("REQUEST_STREAM without data", request_stream("", VICTIM, 1), NO_SUCH),
    refused("REQUEST_RESPONSE with data that is no UTF-8", request_response(b"\xff\xfe", VICTIM), NO_SUCH, over=EVERYWHERE),
    refused("REQUEST_RESPONSE with data of 60,000 bytes", request_response("n" * 60_000, VICTIM), NO_SUCH),
    refused("REQUEST_STREAM with a parameter that does not fit", request_stream("up-to/" + "9" * 900, VICTIM, 1), NO_SUCH),
    refused("REQUEST_STREAM for a name that climbs", request_stream("../../ticks\x00\r\n", VICTIM, 1), NO_SUCH),
    refused("requests beyond `max_subscriptions`", ask_too_often, "refused", over=EVERYWHERE),
    refused("an initial demand with bit 63 set", request_stream("ticks", VICTIM, SIGN), ILLEGAL, over=EVERYWHERE),
    refused("an initial demand with bit 63 set, of a subscription", request_sub("ticks", VICTIM, SIGN | 5), ILLEGAL),
    refused("REQUEST_N of 0", grant_nothing, ILLEGAL, over=EVERYWHERE),
    refused("REQUEST_N with bit 63 set", grant_below_zero, ILLEGAL, over=EVERYWHERE),
    refused("REQUEST_RESPONSE to a publisher without elements", request_response("none", VICTIM), "there was nothing to answer with"),
    refused("REQUEST_SUB to a publisher that ends", request_sub("one", VICTIM, 5), "subscription terminated"),
    tolerated("requests on stream 0, of every kind", ON_ZERO, over=EVERYWHERE),
    tolerated("a request with the id of a live stream", request_stream("one", COMPANION, 5), over=EVERYWHERE),
    tolerated("requests of other kinds with the id of a live stream", request_response("one", COMPANION) + fire_and_forget("x", COMPANION)),
    tolerated("a request with the id of a stream that has ended: it is served", use_an_id_again),
    tolerated("requests with ids of 2^63 and above: they are served", ask_with_large_ids),
    tolerated("an initial demand of 0: the stream waits", pause_at_first),
    tolerated("demand that adds up to more than 2^63-1", ask_for_too_much),
    tolerated("REQUEST_N for a stream that was never opened", request_n(VICTIM, 5), over=EVERYWHERE),
    tolerated("REQUEST_N of 0, and with bit 63 set, for a stream that was never opened", request_n(VICTIM, 0) + request_n(VICTIM, SIGN)),
    tolerated("REQUEST_N on stream 0", request_n(0, 5)),
    tolerated("REQUEST_N, of whatever, for a REQUEST_RESPONSE", grant_to_one_value),
    tolerated("CANCEL for a stream that was never opened", cancel(VICTIM), over=EVERYWHERE),
    tolerated("CANCEL on stream 0", cancel(0)),
    tolerated("REQUEST_N and CANCEL for a REQUEST_FNF", SHOTS),
    tolerated("REQUEST_N and CANCEL, twice, for a stream that has ended", ask_of_the_ended),
    tolerated("CANCEL in the middle of an element's parts", cancel_within_an_element, over=EVERYWHERE),
    tolerated("CANCEL for a subscription", cancel_what_has_no_end),
    tolerated("CANCEL right behind its request", request_stream("ticks", VICTIM, 5) + cancel(VICTIM)),
]
