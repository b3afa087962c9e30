"""Messages that end in the middle, and bytes that are no messages: to a server, beside a canary."""

import random
import re
from pathlib import Path

import pytest

from penstock.runtime import Server
from tests.hostile._arena import GAP, Certificates, beside_a_canary, wait_alone
from tests.hostile._attacker import Attacker, open_stream
from tests.hostile._own_time import OwnTime
from tests.hostile._row import SCALED
from tests.hostile._wire import cancel, goodbye, hello, ping, request, subscribe

GREETING = hello(1)
MESSAGES = {
    "hello": (b"", hello(1, 300, 70_000)),
    "goodbye": (GREETING, goodbye("so long")),
    "subscribe": (GREETING, subscribe("endless", 300, 70_000)),
    "request": (GREETING, request(300, 2**63 - 1)),
    "cancel": (GREETING, cancel(70_000)),
    "ping": (GREETING, ping(b"12345678")),
}
REFERENCE = Path(__file__).parents[2] / "docs/reference"


@pytest.mark.parametrize("name", MESSAGES)
@pytest.mark.parametrize("ends", ["fin", "rst"])
async def test_a_message_cut_at_every_byte_does_nothing(name: str, ends: str, files: Certificates) -> None:
    """Nothing is said about it, nothing of it is done, nothing is left."""
    before, message = MESSAGES[name]
    heard = []

    async def act(server: Server, clock: OwnTime) -> None:
        for cut in range(len(message)):
            attacker = Attacker(await open_stream(server.addresses[0], files.authority), clock)
            await attacker.send(before + message[:cut])
            if ends == "fin":
                await attacker.finish()
                await attacker.listen()
            else:
                await attacker.reset()
            heard.extend(attacker.heard)
            await attacker.close()
            await wait_alone(server)

    peace = await beside_a_canary(SCALED, "tcp", files, act)
    assert [message for message in heard if message[0] != "serverHello"] == []
    assert peace.gap <= GAP
    assert peace.left == {}
    assert peace.told == []


@pytest.mark.parametrize("greets", [True, False], ids=["after-the-hello", "instead-of-it"])
@pytest.mark.parametrize("scheme", ["tcp", "tls"])
async def test_garbage_ends_with_a_reason_that_is_documented_or_with_its_own_end(greets: bool, scheme: str, files: Certificates) -> None:
    """A hundred pieces of noise, the same in each run; where noise happens to be messages, these are answered."""
    page = (REFERENCE / "rsio.md").read_text(encoding="utf-8")
    explained = set(re.findall(r"`([a-z-]+(?::[a-z]+)?)[^`]*`", page)) | {""}
    reasons: list[str] = []

    async def act(server: Server, clock: OwnTime) -> None:
        for seed in range(100):
            chance = random.Random(seed)
            noise = bytes(chance.choices(range(0x30) if seed % 2 else range(0x100), k=chance.randrange(1, 3000)))
            attacker = Attacker(await open_stream(server.addresses[0], files.authority, plain=scheme == "tls" and seed % 5 == 0), clock)
            await attacker.send((GREETING if greets else b"") + noise)
            await attacker.finish()
            await attacker.listen()
            reasons.extend(reason.split(" ")[0] for reason in attacker.goodbyes)
            await attacker.close()
        await wait_alone(server)

    peace = await beside_a_canary(SCALED, scheme, files, act)
    assert set(reasons) - explained == set()
    assert len(set(reasons)) > (4 if greets else 0)
    assert peace.gap <= GAP
    assert peace.left == {}
    assert peace.told == []
