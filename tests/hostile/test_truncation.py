"""Messages that end in the middle, and bytes that are no messages: to a server, beside a canary."""

import random
import re
from pathlib import Path

import pytest
import trio

from penstock.runtime import Server
from tests.hostile import _rs_wire as rs
from tests.hostile._arena import GAP, Certificates, beside_a_canary, wait_alone
from tests.hostile._attacker import Attacker, open_stream
from tests.hostile._own_time import OwnTime
from tests.hostile._row import SCALED
from tests.hostile._tongue import REACTIVESOCKET, RSIO, Tongue
from tests.hostile._wire import cancel, goodbye, hello, ping, request, subscribe

GREETING = hello(1)
SETUP = rs.setup(b"cap")
MESSAGES = {
    "hello": (RSIO, b"", hello(1, 300, 70_000)),
    "goodbye": (RSIO, GREETING, goodbye("so long")),
    "subscribe": (RSIO, GREETING, subscribe("endless", 300, 70_000)),
    "request": (RSIO, GREETING, request(300, 2**63 - 1)),
    "cancel": (RSIO, GREETING, cancel(70_000)),
    "ping": (RSIO, GREETING, ping(b"12345678")),
    "SETUP": (REACTIVESOCKET, b"", SETUP),
    "REQUEST_RESPONSE": (REACTIVESOCKET, SETUP, rs.request_response("one", 300)),
    "REQUEST_FNF": (REACTIVESOCKET, SETUP, rs.fire_and_forget("one", 300)),
    "REQUEST_STREAM": (REACTIVESOCKET, SETUP, rs.request_stream("endless", 300, 70_000)),
    "REQUEST_SUB": (REACTIVESOCKET, SETUP, rs.request_sub("endless", 300, 70_000)),
    "REQUEST_N": (REACTIVESOCKET, SETUP, rs.request_n(300, 2**63 - 1)),
    "CANCEL": (REACTIVESOCKET, SETUP, rs.cancel(70_000)),
    "RESPONSE": (REACTIVESOCKET, SETUP, rs.response(300, b"x")),
    "ERROR": (REACTIVESOCKET, SETUP, rs.error(0, "so long")),
    "EXT": (REACTIVESOCKET, SETUP, rs.ext(9, b"whatever")),
}
OPENING = [
    SETUP,
    rs.request_stream("endless", 1, 2),
    rs.request_response("one", 3),
    rs.request_n(1, 3),
    rs.request_sub("endless", 5, 1),
    rs.cancel(1),
    rs.fire_and_forget("shot", 7),
    rs.cancel(5),
    rs.request_response("one", 9),
]
"""What a client says first, in one go: each kind of frame that it has for its own streams."""

REFERENCE = Path(__file__).parents[2] / "docs/reference"
PAGES = {RSIO: "rsio.md", REACTIVESOCKET: "reactivesocket.md"}


@pytest.mark.parametrize("name", MESSAGES)
@pytest.mark.parametrize("ends", ["fin", "rst"])
async def test_a_message_cut_at_every_byte_does_nothing(name: str, ends: str, files: Certificates) -> None:
    """Nothing is said about it, nothing of it is done, nothing is left."""
    tongue, before, message = MESSAGES[name]
    heard = []

    async def act(server: Server, clock: OwnTime) -> None:
        for cut in range(len(message)):
            attacker = Attacker(await open_stream(server.addresses[0], files.authority), clock, tongue)
            await attacker.send(before + message[:cut])
            if ends == "fin":
                await attacker.finish()
                await attacker.listen()
            else:
                await attacker.reset()
            heard.extend(attacker.heard)
            await attacker.close()
            await wait_alone(server)

    peace = await beside_a_canary(SCALED, "tcp", files, act, tongue)
    assert [message for message in heard if message[0] != "serverHello"] == []
    assert peace.gap <= GAP
    assert peace.left == {}
    assert peace.told == []


async def test_an_opening_of_reactivesocket_cut_at_every_byte_is_answered_as_far_as_it_goes(files: Certificates) -> None:
    """What came whole may be served until the end is noticed; nothing else is, nothing is said about it, and nothing is left."""
    said, heard = b"".join(OPENING), {}

    async def act(server: Server, clock: OwnTime) -> None:
        for cut in range(len(said) + 1):
            attacker = Attacker(await open_stream(server.addresses[0], files.authority), clock, REACTIVESOCKET)
            async with trio.open_nursery() as nursery:
                nursery.start_soon(attacker.listen)
                await attacker.send(said[:cut])
                if cut == len(said):
                    await attacker.wait_heard("onComplete", 9)
                await attacker.finish()
            heard[cut] = attacker.heard
            await attacker.close()
        await wait_alone(server)

    peace = await beside_a_canary(SCALED, "tcp", files, act, REACTIVESOCKET)
    for cut, messages in heard.items():
        whole = {int.from_bytes(frame[8:16]) for at, frame in enumerate(OPENING) if len(b"".join(OPENING[: at + 1])) <= cut}
        assert {message[0] for message in messages} <= {"onNext", "onComplete"}
        assert {message[1] for message in messages} <= whole
    assert ("onNext", 9, b"one") in heard[len(said)]
    assert peace.gap <= GAP
    assert peace.left == {}
    assert peace.told == []


async def test_a_message_that_ends_too_soon_where_messages_arrive_whole_is_refused_for_its_length(files: Certificates) -> None:
    """Or is a shorter one, and taken as such: nobody waits for the rest of it."""
    goodbyes: dict[tuple[str, int], list[str]] = {}
    names = [name for name, (tongue, _, _) in MESSAGES.items() if tongue is REACTIVESOCKET]

    async def act(server: Server, clock: OwnTime) -> None:
        for name in names:
            _, before, message = MESSAGES[name]
            for cut in range(5, len(message)):
                attacker = Attacker(await open_stream(server.addresses[0], files.authority), clock, REACTIVESOCKET)
                await attacker.send(before)
                await attacker.send(message[:cut])
                await attacker.finish()
                await attacker.listen()
                goodbyes[name, cut] = attacker.goodbyes
                await attacker.close()
        await wait_alone(server)

    peace = await beside_a_canary(SCALED, "memory-framed", files, act, REACTIVESOCKET)
    numbers = {"REQUEST_STREAM": 8, "REQUEST_SUB": 8, "REQUEST_N": 8, "EXT": 4}
    for (name, cut), reasons in goodbyes.items():
        assert reasons == ([f"protocol:length {cut - 4}"] if cut < 16 + numbers.get(name, 0) else []), (name, cut)
    assert peace.gap <= GAP
    assert peace.left == {}
    assert peace.told == []


def noise(chance: random.Random, tongue: Tongue, *, likely: bool) -> bytes:
    """Bytes by chance; likely ones look like messages for a while."""
    if tongue is RSIO or not likely:
        return bytes(chance.choices(range(0x30) if likely else range(0x100), k=chance.randrange(1, 3000)))
    said = b""
    while len(said) < 1000 and chance.random() < 0.98:
        kind = chance.choice([rs.SETUP, *range(0x11, 0x17), rs.RESPONSE, rs.ERROR, rs.EXT, chance.randrange(0x10000)])
        flags, version = chance.choice([0, rs.IGNORE, chance.randrange(0x100)]), int(chance.random() < 0.02)
        body = chance.choice([b"", bytes(8), (3).to_bytes(8) + b"one", b"one", chance.randbytes(chance.randrange(60))])
        length = chance.randrange(40) if chance.random() < 0.03 else None
        said += rs.frame(kind, chance.randrange(1 if kind == rs.ERROR else 0, 12), body, flags=flags, version=version, length=length)
    return said[: chance.randrange(len(said) + 1)] + chance.randbytes(chance.choice([0, 1, 20]))


@pytest.mark.parametrize("greets", [True, False], ids=["after-the-hello", "instead-of-it"])
@pytest.mark.parametrize(
    ("scheme", "tongue", "kinds"),
    [("tcp", RSIO, 5), ("tls", RSIO, 5), ("tcp", REACTIVESOCKET, 5), ("memory-framed", REACTIVESOCKET, 4)],
    ids=["tcp", "tls", "rs-tcp", "rs-memory-framed"],
)
async def test_garbage_ends_with_a_reason_that_is_documented_or_with_its_own_end(
    greets: bool, scheme: str, tongue: Tongue, kinds: int, files: Certificates
) -> None:
    """A hundred pieces of noise, the same in each run; where noise happens to be messages, these are answered."""
    page = (REFERENCE / PAGES[tongue]).read_text(encoding="utf-8")
    explained = set(re.findall(r"`([a-z-]+(?::[a-z]+)?)[^`]*`", page)) | {""}
    reasons: list[str] = []

    async def act(server: Server, clock: OwnTime) -> None:
        for seed in range(100):
            said = noise(random.Random(seed), tongue, likely=bool(seed % 2))
            stream = await open_stream(server.addresses[0], files.authority, plain=scheme == "tls" and seed % 5 == 0)
            attacker = Attacker(stream, clock, tongue)
            await attacker.send(({RSIO: GREETING, REACTIVESOCKET: SETUP}[tongue] if greets else b"") + said)
            await attacker.finish()
            await attacker.listen()
            reasons.extend(reason.split(" ")[0] for reason in attacker.goodbyes)
            await attacker.close()
        await wait_alone(server)

    peace = await beside_a_canary(SCALED, scheme, files, act, tongue)
    assert set(reasons) - explained == set()
    assert len(set(reasons)) >= (kinds if greets else 1)
    assert peace.gap <= GAP
    assert peace.left == {}
    assert peace.told == []
