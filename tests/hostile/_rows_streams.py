"""What a subscriber may do wrong in one stream, or oddly in none: the connection, and a stream beside it, go on."""

from tests.hostile._attacker import VICTIM, Attacker
from tests.hostile._row import I, Row, S
from tests.hostile._rows_before import EVERYWHERE
from tests.hostile._wire import UNBOUNDED, cancel, request, subscribe

NO_SUCH = "no such publisher"


async def request_nothing(attacker: Attacker) -> None:
    await attacker.send(subscribe("ticks", VICTIM, 1))
    await attacker.wait_heard("onSubscribe", VICTIM, 0)
    await attacker.send(request(VICTIM, 0))


async def subscribe_too_often(attacker: Attacker) -> None:
    """The companion is the first of the 16; the one too many is the victim, told apart by its id."""
    await attacker.send(b"".join(subscribe("ticks", stream) for stream in range(100, 115)))
    await attacker.wait_heard("onSubscribe", 114, 0)
    await attacker.send(subscribe("ticks", VICTIM))
    await attacker.wait(lambda: any(message[0] == "onError" for message in attacker.heard))
    await attacker.send(b"".join(map(cancel, range(100, 115))))


async def ask_of_the_ended(attacker: Attacker) -> None:
    await attacker.send(subscribe("one", VICTIM, 2))
    await attacker.wait_heard("onComplete", VICTIM)
    await attacker.send(request(VICTIM, 5) + cancel(VICTIM) + cancel(VICTIM))


async def ask_for_too_much(attacker: Attacker) -> None:
    await attacker.send(subscribe("one", VICTIM, UNBOUNDED) + request(VICTIM, UNBOUNDED) * 5)
    await attacker.wait_heard("onComplete", VICTIM)


STREAMS = [
    Row(what="subscribe to a name that is not there", act=subscribe("nowhere", VICTIM, 1), answer=S, says=NO_SUCH, over=EVERYWHERE),
    Row(what="subscribe to the empty name", act=subscribe("", VICTIM, 1), answer=S, says=NO_SUCH),
    Row(what="subscribe to a name of 1,024 bytes", act=subscribe("n" * 1024, VICTIM, 1), answer=S, says=NO_SUCH),
    Row(what="subscribe with a parameter that does not fit", act=subscribe("up-to/" + "9" * 900, VICTIM, 1), answer=S, says=NO_SUCH),
    Row(what="subscribe to a name that climbs", act=subscribe("../../ticks\x00\r\n", VICTIM, 1), answer=S, says=NO_SUCH),
    Row(
        what="subscribe to a name that is no UTF-8",
        act=subscribe(b"\xff\xfeticks", VICTIM, 1),
        answer=S,
        says="the publisher's name is no UTF-8",
        over=EVERYWHERE,
    ),
    Row(what="subscribe beyond `max_subscriptions`", act=subscribe_too_often, answer=S, says="refused"),
    Row(what="request with demand 0", act=request_nothing, answer=S, says="illegal demand", over=EVERYWHERE),
    Row(what="request for a stream that was never opened", act=request(VICTIM, 5), answer=I, over=EVERYWHERE),
    Row(what="cancel for a stream that was never opened", act=cancel(VICTIM), answer=I, over=EVERYWHERE),
    Row(what="request and cancel, twice, for a stream that has ended", act=ask_of_the_ended, answer=I),
    Row(what="requests that add up to more than 2^63-1", act=ask_for_too_much, answer=I),
]
