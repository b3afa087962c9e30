"""Malformed messages, and messages in a state that does not allow them:
from a client, after a proper hello.
"""

from penstock_tck.wire.rsio import (
    goodbye,
    hello,
    on_complete,
    on_error,
    on_next,
    on_next_packed,
    on_subscribe,
    part,
    ping,
    request,
    server_hello,
    subscribe,
    varint,
)

from tests.hostile._attacker import COMPANION, Attacker, companion
from tests.hostile._row import C, Row
from tests.hostile._rows_before_hello import EVERYWHERE

HUGE = 2**62


async def subscribe_twice(attacker: Attacker) -> None:
    await attacker.send(companion())
    await attacker.wait_companion()
    await attacker.send(subscribe("ticks", COMPANION, 1))


def fatal(title: str, attack: bytes, says: str, **more: object) -> Row:
    return Row(title=title, attack=attack, answer=C, says=says, **more)  # type: ignore[arg-type]  # the row checks what it is given


MESSAGES = [
    fatal(
        "bytes that mean nothing", b"\xff\xfe\xfd" * 500, "protocol:type 0xff", schemes=EVERYWHERE
    ),
    fatal("type 0x00, which is reserved", b"\x00", "protocol:type 0x00"),
    fatal("a reserved type of a connection", b"\x05\x00", "protocol:type 0x05"),
    fatal("a reserved type of a subscriber", b"\x13\x00", "protocol:type 0x13"),
    fatal("a reserved type of a publisher", b"\x27\x00", "protocol:type 0x27"),
    fatal("a reserved type above all", b"\x7f\x00", "protocol:type 0x7f"),
    fatal("a switch to an encoding that was not agreed upon", b"\x04\x10", "protocol:switch 16"),
    fatal(
        "a message of an extension that is not active",
        ping(),
        "protocol:type 0x40",
        schemes=EVERYWHERE,
    ),
    fatal("a message of a private extension that is not active", b"\x60\x00", "protocol:type 0x60"),
    fatal("a second hello", hello(), "protocol:hello", schemes=EVERYWHERE),
    fatal("the server's hello, after one's own", server_hello(), "protocol:hello"),
    fatal("a varint without end", b"\x12" + b"\x80" * 1000, "protocol:varint", schemes=EVERYWHERE),
    fatal("a varint of ten bytes", b"\x12" + b"\xff" * 9 + b"\x01", "protocol:varint"),
    fatal("a varint that is longer than it must be", b"\x12\x80\x00", "protocol:varint"),
    fatal("a name of 1,025 bytes", subscribe("n" * 1025, 1), "limit:name 1025 > 1024"),
    fatal(
        "a name of 2^62 bytes announced",
        b"\x10" + varint(HUGE),
        f"limit:name {HUGE} > 1024",
        schemes=EVERYWHERE,
    ),
    fatal("a reason of 1,025 bytes", goodbye("r" * 1025), "limit:reason 1025 > 1024"),
    fatal("an error of 4,097 bytes", on_error(0, "e" * 4097), "limit:text 4097 > 4096"),
    fatal(
        "a body of 2^62 bytes announced, of an extension that is active",
        b"\x40" + varint(HUGE),
        f"limit:frame {HUGE} > 65536",
        extensions=(1,),
    ),
    Row(
        title="subscribe with the id of a live stream",
        attack=subscribe_twice,
        answer=C,
        says="protocol:subscribe 0",
        schemes=EVERYWHERE,
    ),
    fatal("onSubscribe for a stream that was never opened", on_subscribe(7), "protocol:stream 7"),
    fatal(
        "onNext for a stream that was never opened",
        on_next(7, b"hm"),
        "protocol:stream 7",
        schemes=EVERYWHERE,
    ),
    fatal(
        "onNextPacked for a stream that was never opened",
        on_next_packed(7, 1, b"hm"),
        "protocol:stream 7",
    ),
    fatal("onNextPart for a stream that was never opened", part(7, 0, b"hm"), "protocol:stream 7"),
    fatal(
        "onNextLastPart for a stream that was never opened",
        part(7, 0, b"hm", last=True),
        "protocol:stream 7",
    ),
    fatal("onComplete for a stream that was never opened", on_complete(7), "protocol:stream 7"),
    fatal("onError for a stream that was never opened", on_error(7, "hm"), "protocol:stream 7"),
    fatal(
        "goodbye, and then more",
        goodbye("bye") + subscribe("ticks", 1, 5) + request(1, 5) + hello() + b"\xff",
        "",
    ),
    fatal("a thousand goodbyes", goodbye("bye") * 1000, "", schemes=EVERYWHERE),
    fatal("a goodbye whose reason is no UTF-8", goodbye(b"\xff\xfe"), ""),
    fatal("a goodbye whose reason would command a terminal", goodbye("\x1b[2J\x07"), ""),
]
