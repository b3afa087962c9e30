"""Errors of a subscriber that end one stream at most:
the connection and the stream beside it go on.
"""

from penstock_tck.wire.rsio import UNBOUNDED, cancel, request, subscribe

from tests.hostile._attacker import VICTIM, Attacker
from tests.hostile._row import I, Row, S
from tests.hostile._rows_before_hello import EVERYWHERE

NO_SUCH = "no such publisher"


async def request_zero(attacker: Attacker) -> None:
    await attacker.send(subscribe("ticks", VICTIM, 1))
    await attacker.wait_heard("onSubscribe", VICTIM, 0)
    await attacker.send(request(VICTIM, 0))


async def subscribe_too_often(attacker: Attacker) -> None:
    """Open 16 streams beside the companion; `max_subscriptions` is 16. The last one is the
    victim, so the error is recognised by its id.
    """
    await attacker.send(b"".join(subscribe("ticks", stream) for stream in range(100, 115)))
    await attacker.wait_heard("onSubscribe", 114, 0)
    await attacker.send(subscribe("ticks", VICTIM))
    await attacker.wait(lambda: any(message[0] == "onError" for message in attacker.heard))
    await attacker.send(b"".join(map(cancel, range(100, 115))))


async def request_after_end(attacker: Attacker) -> None:
    await attacker.send(subscribe("one", VICTIM, 2))
    await attacker.wait_heard("onComplete", VICTIM)
    await attacker.send(request(VICTIM, 5) + cancel(VICTIM) + cancel(VICTIM))


async def request_too_much(attacker: Attacker) -> None:
    await attacker.send(subscribe("one", VICTIM, UNBOUNDED) + request(VICTIM, UNBOUNDED) * 5)
    await attacker.wait_heard("onComplete", VICTIM)


STREAMS = [
    Row(
        title="subscribe to a name that is not there",
        attack=subscribe("nowhere", VICTIM, 1),
        answer=S,
        says=NO_SUCH,
        schemes=EVERYWHERE,
    ),
    Row(
        title="subscribe to the empty name", attack=subscribe("", VICTIM, 1), answer=S, says=NO_SUCH
    ),
    Row(
        title="subscribe to a name of 1,024 bytes",
        attack=subscribe("n" * 1024, VICTIM, 1),
        answer=S,
        says=NO_SUCH,
    ),
    Row(
        title="subscribe with a parameter that does not fit",
        attack=subscribe("up-to/" + "9" * 900, VICTIM, 1),
        answer=S,
        says=NO_SUCH,
    ),
    Row(
        title="subscribe to a name that climbs",
        attack=subscribe("../../ticks\x00\r\n", VICTIM, 1),
        answer=S,
        says=NO_SUCH,
    ),
    Row(
        title="subscribe to a name that is no UTF-8",
        attack=subscribe(b"\xff\xfeticks", VICTIM, 1),
        answer=S,
        says="the publisher's name is no UTF-8",
        schemes=EVERYWHERE,
    ),
    Row(
        title="subscribe beyond `max_subscriptions`",
        attack=subscribe_too_often,
        answer=S,
        says="refused",
    ),
    Row(
        title="request with demand 0",
        attack=request_zero,
        answer=S,
        says="illegal demand",
        schemes=EVERYWHERE,
    ),
    Row(
        title="request for a stream that was never opened",
        attack=request(VICTIM, 5),
        answer=I,
        schemes=EVERYWHERE,
    ),
    Row(
        title="cancel for a stream that was never opened",
        attack=cancel(VICTIM),
        answer=I,
        schemes=EVERYWHERE,
    ),
    Row(
        title="request and cancel, twice, for a stream that has ended",
        attack=request_after_end,
        answer=I,
    ),
    Row(title="requests that add up to more than 2^63-1", attack=request_too_much, answer=I),
]
