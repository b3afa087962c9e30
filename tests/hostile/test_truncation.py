"""Messages that end in the middle, and random bytes: sent to a server, beside a canary."""

import random

import pytest
import trio
from penstock_tck.wire import reactivesocket as rs
from penstock_tck.wire.rsio import cancel, goodbye, hello, ping, request, subscribe

from penstock.runtime import Server
from penstock.session import CONNECTION_REASONS
from tests.hostile._attack_clock import AttackClock
from tests.hostile._attacker import Attacker, open_stream
from tests.hostile._attacker_protocol import REACTIVESOCKET, RSIO, AttackerProtocol
from tests.hostile._beside_a_canary import beside_a_canary, wait_alone
from tests.hostile._control_canary import ControlCanary
from tests.hostile._setup import Certificates, Setup

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
"""The first frames of a client, sent in one piece:
each kind that it may send for its own streams.
"""


@pytest.mark.parametrize("name", MESSAGES)
@pytest.mark.parametrize("end", ["fin", "rst"])
async def test_a_message_cut_at_every_byte_does_nothing(
    name: str, end: str, files: Certificates, control: ControlCanary
) -> None:
    """The server does not answer the part of a message, does nothing of it, and keeps nothing."""
    protocol, before, message = MESSAGES[name]

    async def attempt(stretch: float) -> None:
        heard = []

        async def attack(server: Server, clock: AttackClock) -> None:
            for cut in range(len(message)):
                attacker = Attacker(
                    await open_stream(server.addresses[0], files.authority), clock, protocol
                )
                await attacker.send(before + message[:cut])
                if end == "fin":
                    await attacker.send_fin()
                    await attacker.listen()
                else:
                    await attacker.send_rst()
                heard.extend(attacker.heard)
                await attacker.close()
                await wait_alone(server)

        aftermath = await beside_a_canary(
            Setup(files=files, protocol=protocol, stretch=stretch), attack
        )
        assert [each for each in heard if each[0] != "serverHello"] == []
        aftermath.check()

    await control.judge(attempt)


async def test_an_opening_of_reactivesocket_cut_at_every_byte_is_answered_as_far_as_it_goes(
    files: Certificates, control: ControlCanary
) -> None:
    """Requests that arrived whole may be served until the server sees the end. Nothing else is
    answered, and nothing is left.
    """
    said = b"".join(OPENING)

    async def attempt(stretch: float) -> None:
        heard = {}

        async def attack(server: Server, clock: AttackClock) -> None:
            for cut in range(len(said) + 1):
                attacker = Attacker(
                    await open_stream(server.addresses[0], files.authority), clock, REACTIVESOCKET
                )
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(attacker.listen)
                    await attacker.send(said[:cut])
                    if cut == len(said):
                        await attacker.wait_heard("onComplete", 9)
                    await attacker.send_fin()
                heard[cut] = attacker.heard
                await attacker.close()
            await wait_alone(server)

        aftermath = await beside_a_canary(
            Setup(files=files, protocol=REACTIVESOCKET, stretch=stretch), attack
        )
        for cut, messages in heard.items():
            whole = {
                int.from_bytes(frame[8:16])
                for at, frame in enumerate(OPENING)
                if len(b"".join(OPENING[: at + 1])) <= cut
            }
            assert {message[0] for message in messages} <= {"onNext", "onComplete"}
            assert {message[1] for message in messages} <= whole
        assert ("onNext", 9, b"one") in heard[len(said)]
        aftermath.check()

    await control.judge(attempt)


async def test_a_frame_that_is_too_short_on_a_framed_transport_is_refused(
    files: Certificates, control: ControlCanary
) -> None:
    """A framed transport carries whole messages: the server refuses the length, or takes a
    shorter frame, and waits for no more bytes.
    """
    names = [name for name, (protocol, _, _) in MESSAGES.items() if protocol is REACTIVESOCKET]
    fixed_fields = {"REQUEST_STREAM": 8, "REQUEST_SUB": 8, "REQUEST_N": 8}

    async def attempt(stretch: float) -> None:
        goodbyes: dict[tuple[str, int], list[str]] = {}

        async def attack(server: Server, clock: AttackClock) -> None:
            for name in names:
                _, before, message = MESSAGES[name]
                for cut in range(5, len(message)):
                    attacker = Attacker(
                        await open_stream(server.addresses[0], files.authority),
                        clock,
                        REACTIVESOCKET,
                    )
                    await attacker.send(before)
                    await attacker.send(message[:cut])
                    await attacker.send_fin()
                    await attacker.listen()
                    goodbyes[name, cut] = attacker.goodbyes
                    await attacker.close()
            await wait_alone(server)

        setup = Setup(files=files, scheme="memory-framed", protocol=REACTIVESOCKET, stretch=stretch)
        aftermath = await beside_a_canary(setup, attack)
        for (name, cut), reasons in goodbyes.items():
            assert reasons == (
                [f"protocol:length {cut - 4}"] if cut < 16 + fixed_fields.get(name, 0) else []
            ), (name, cut)
        aftermath.check()

    await control.judge(attempt)


def noise(chance: random.Random, protocol: AttackerProtocol, *, likely: bool) -> bytes:
    """Return random bytes. `likely` ones begin with bytes that may be messages."""
    if protocol is RSIO or not likely:
        return bytes(
            chance.choices(range(0x30) if likely else range(0x100), k=chance.randrange(1, 3000))
        )
    said = b""
    while len(said) < 1000 and chance.random() < 0.98:
        kind = chance.choice(
            [rs.SETUP, *range(0x11, 0x17), rs.RESPONSE, rs.ERROR, rs.EXT, chance.randrange(0x10000)]
        )
        flags, version = (
            chance.choice([0, rs.I, chance.randrange(0x100)]),
            int(chance.random() < 0.02),
        )
        body = chance.choice(
            [
                b"",
                bytes(8),
                (3).to_bytes(8) + b"one",
                b"one",
                chance.randbytes(chance.randrange(60)),
            ]
        )
        length = chance.randrange(40) if chance.random() < 0.03 else None
        said += rs.sized_frame(
            kind,
            chance.randrange(1 if kind == rs.ERROR else 0, 12),
            body,
            flags=flags,
            version=version,
            length=length,
        )
    return said[: chance.randrange(len(said) + 1)] + chance.randbytes(chance.choice([0, 1, 20]))


@pytest.mark.parametrize("says_hello", [True, False], ids=["after-the-hello", "instead-of-it"])
@pytest.mark.parametrize(
    ("scheme", "protocol", "kinds"),
    [
        ("tcp", RSIO, 5),
        ("tls", RSIO, 5),
        ("tcp", REACTIVESOCKET, 5),
        ("memory-framed", REACTIVESOCKET, 4),
    ],
    ids=["tcp", "tls", "rs-tcp", "rs-memory-framed"],
)
async def test_noise_ends_a_connection_with_a_documented_reason_or_without_one(
    says_hello: bool,
    scheme: str,
    protocol: AttackerProtocol,
    kinds: int,
    files: Certificates,
    control: ControlCanary,
) -> None:
    """100 pieces of noise, the same in each run.
    `kinds` is how many different reasons they provoke at least.
    """
    explained = {reason.token for reason in CONNECTION_REASONS}

    async def attempt(stretch: float) -> None:
        reasons: list[str] = []

        async def attack(server: Server, clock: AttackClock) -> None:
            for seed in range(100):
                said = noise(random.Random(seed), protocol, likely=bool(seed % 2))
                stream = await open_stream(
                    server.addresses[0],
                    files.authority,
                    without_tls=scheme == "tls" and seed % 5 == 0,
                )
                attacker = Attacker(stream, clock, protocol)
                await attacker.send(
                    ({RSIO: GREETING, REACTIVESOCKET: SETUP}[protocol] if says_hello else b"")
                    + said
                )
                await attacker.send_fin()
                await attacker.listen()
                reasons.extend(reason.split(" ")[0] for reason in attacker.goodbyes)
                await attacker.close()
            await wait_alone(server)

        aftermath = await beside_a_canary(
            Setup(files=files, scheme=scheme, protocol=protocol, stretch=stretch), attack
        )
        assert set(reasons) - explained == set()
        assert len(set(reasons)) >= (kinds if says_hello else 1)
        aftermath.check()

    await control.judge(attempt)
