"""RS.io: hello messages and their versions, extensions, and goodbye messages."""

from penstock_tck.wire import rsio as io
from penstock_tck.wire._check_context import CheckContext
from penstock_tck.wire._requirement import RSIO, Level, Table
from penstock_tck.wire._verdict import NotSupported, verify

HELLO = Table(RSIO)

HANDSHAKE = "The server's hello, serverHello, has a version and a list of extension ids."
VERSION = (
    "A side that gets a hello of a version that it cannot speak MUST answer with a goodbye "
    "and close."
)
CONFIRMED = (
    "A side MUST NOT send a message of an extension until the other side has listed that "
    "extension in its hello."
)
NEGOTIATED = (
    "Before an extension changes the meaning of messages, one side MUST announce the "
    "change, and the other side MUST acknowledge it."
)
GOODBYE = "A connection is closed in order by a goodbye that the other side acknowledges."
CLOSES = "A goodbye also ends every open stream, as cancel or onError would."

STRANGE_IDS = (0x7A5F_3C21, 91_827_364, 1 << 40 | 7, 1 << 62 | 5)
"""Ids of extensions that no implementation has."""


@HELLO.row("hello", 21, HANDSHAKE)
async def hello(context: CheckContext) -> str:
    """The server sends one serverHello before any other message.
    Its version is that of the client, 0.
    """
    peer = await context.connect_rsio()
    await peer.wait_until(lambda: peer.received, "a serverHello")
    await peer.settle()
    first = peer.received[0]
    verify(
        first.type == io.SERVER_HELLO and first.numbers[0] == 0,
        f"a serverHello of version 0 was expected; {peer.describe_received()}",
    )
    verify(
        len(peer.of_type(io.SERVER_HELLO)) == 1,
        f"more than one serverHello came; {peer.describe_received()}",
    )
    verify(
        not peer.of_type(io.CLIENT_HELLO),
        f"the server sent a clientHello; {peer.describe_received()}",
    )
    return str(first)


@HELLO.row(
    "hello-waits",
    24,
    "The handshake is loose: the server may send serverHello before clientHello has come.",
    level=Level.READING,
)
async def hello_waits(context: CheckContext) -> str:
    """Before the client's hello the server sends at most its own hello."""
    peer = await context.connect_rsio(hello=False)
    await peer.settle()
    verify(
        all(message.type == io.SERVER_HELLO for message in peer.received),
        f"before any hello {peer.describe_received()}",
    )
    return peer.describe_received()


@HELLO.row(
    "hello-first",
    19,
    (
        "A conversation begins with a handshake between the client, which has opened the "
        "connection, and the server."
    ),
    level=Level.READING,
)
async def hello_first(context: CheckContext) -> str:
    """A subscribe before the hello is refused with a goodbye, and not served."""
    peer = await context.connect_rsio(hello=False)
    await peer.subscribe(1, 2, context.target.publisher)
    seen = await peer.expect_refused("a subscribe was sent before any hello")
    verify(
        not peer.of_stream(1),
        f"a subscribe before the hello was answered; {peer.describe_received()}",
    )
    return seen


@HELLO.row(
    "hello-twice",
    19,
    (
        "A conversation begins with a handshake between the client, which has opened the "
        "connection, and the server."
    ),
    level=Level.READING,
)
async def hello_twice(context: CheckContext) -> str:
    """A second hello is refused with a goodbye."""
    peer = await context.connect_rsio()
    await peer.send(io.hello())
    return await peer.expect_refused("a second hello was sent")


@HELLO.row("hello-version", 27, VERSION, level=Level.MUST)
async def hello_version(context: CheckContext) -> str:
    """A clientHello of version 99 is answered with a goodbye, and the connection is closed."""
    peer = await context.connect_rsio(hello=False)
    await peer.send(io.hello(version=99))
    return await peer.expect_refused("a hello of version 99 was sent")


@HELLO.row(
    "hello-version-matching",
    35,
    (
        "A server of several versions must read clientHello first, and then answer with the "
        "client's version."
    ),
    level=Level.MUST,
)
async def hello_version_matching(context: CheckContext) -> str:
    """A clientHello of version 99 is answered with a serverHello of version 99, or with a goodbye,
    but not with a serverHello of another version.
    """
    peer = await context.connect_rsio(hello=False)
    await peer.settle()
    before = len(peer.received)
    await peer.send(io.hello(version=99))
    await peer.settle()
    wrong = [
        message
        for message in peer.received[before:]
        if message.type == io.SERVER_HELLO and message.numbers[0] != 99
    ]
    verify(
        not wrong,
        (
            f"a hello of version 99 was answered with {', '.join(map(str, wrong))}; "
            f"{peer.describe_received()}"
        ),
    )
    return peer.describe_received()


@HELLO.row(
    "hello-discarded",
    35,
    (
        "A client that gets a serverHello of another version must assume that the server threw "
        "away what it had sent."
    ),
    level=Level.MUST,
)
async def hello_discarded(_context: CheckContext) -> str:
    """The sentence binds clients. The target is a server, so this cannot be checked."""
    raise NotSupported("the sentence binds clients, and the target is a server")


@HELLO.row(
    "hello-optimistic",
    32,
    "The client may send further messages before serverHello has come.",
    needs=["publisher"],
)
async def hello_optimistic(context: CheckContext) -> str:
    """A hello, two subscribes and a request, sent at once, are served."""
    peer = await context.connect_rsio(hello=False)
    name = context.target.publisher
    await peer.send(
        io.hello() + io.subscribe(name, 0, 1) + io.subscribe(name, 1, 2) + io.request(0, 2)
    )
    await peer.wait_elements(0, 3)
    await peer.expect_exactly(1, 2)
    return "all requests were served"


@HELLO.row(
    "hello-cut",
    18,
    "The type and the fields of a message tell where it ends.",
    needs=["publisher"],
)
async def hello_cut(context: CheckContext) -> str:
    """Messages that arrive one byte at a time are read like whole ones."""
    peer = await context.connect_rsio(hello=False)
    await peer.send_cut(io.hello(1, 200) + io.subscribe(context.target.publisher, 300, 2))
    await peer.expect_exactly(300, 2)
    return "a hello and a subscribe a byte at a time: served"


@HELLO.row(
    "extensions-unknown",
    29,
    "Extensions add behaviour that is optional, or that a later version may have.",
    level=Level.READING,
    needs=["publisher"],
)
async def extensions_unknown(context: CheckContext) -> str:
    """Unknown ids of extensions, and repeated ones, are ignored:
    a hello with 64 ids is accepted.
    """
    peer = await context.connect_rsio(hello=False)
    await peer.send(io.hello(*range(100_000, 100_062), 100_000, io.UNBOUNDED))
    await peer.expect_working()
    return "64 ids accepted"


@HELLO.row("extensions-own", 30, CONFIRMED, level=Level.READING)
async def extensions_own(context: CheckContext) -> str:
    """The serverHello lists what the target has, and not what the client lists: ids that no
    implementation has are not in it.
    """
    for strange in (STRANGE_IDS[:2], STRANGE_IDS[2:]):
        peer = await context.connect_rsio(hello=False)
        await peer.send(io.hello(*strange))
        await peer.wait_until(lambda peer=peer: peer.of_type(io.SERVER_HELLO), "a serverHello")  # type: ignore[misc]  # bound in the loop
        listed = set(peer.of_type(io.SERVER_HELLO)[0].numbers[1:])
        verify(
            not listed & set(strange),
            f"the target lists the extensions {sorted(listed & set(strange))}, which do not exist",
        )
    return "the invented ids are not listed"


@HELLO.row("extensions-confirmed", 30, CONFIRMED, level=Level.MUST, needs=["publisher"])
async def extensions_confirmed(context: CheckContext) -> str:
    """A client that lists no extension gets no message of any extension,
    neither before nor after the hello messages.
    """
    peer = await context.connect_rsio()
    await peer.expect_working()
    await peer.settle()
    wrong = peer.of_type(*io.EXTENSIONS)
    verify(
        not wrong,
        (
            "messages of extensions came, although no extension was confirmed; "
            f"{peer.describe_received()}"
        ),
    )
    return "none"


@HELLO.row("extensions-refused", 30, CONFIRMED, level=Level.MUST)
async def extensions_refused(context: CheckContext) -> str:
    """A message of an extension that was not confirmed is refused with a goodbye."""
    peer = await context.connect_rsio()
    await peer.send(bytes((0x60,)) + io.length_prefixed(b"anything"))
    return await peer.expect_refused("a message of an extension that was not confirmed was sent")


@HELLO.row("extensions-negotiated", 31, NEGOTIATED, level=Level.MUST, needs=["publisher", "three"])
async def extensions_negotiated(context: CheckContext) -> str:
    """A client lists the ids 0 to 63 without those of encodings, and acknowledges none: all
    messages keep their meaning of version 0.
    """
    peer = await context.connect_rsio(hello=False)
    # A server may change to an encoding that the client lists, and no acknowledgement is due: this
    # client reads the compact one only.
    ids = (each for each in range(64) if each not in (16, 17))
    await peer.send(
        io.hello(*ids)
        + io.subscribe(context.target.publisher, 1, 3)
        + io.subscribe(context.target.three, 2, 9)
    )
    await peer.wait_end(2, well=True)
    await peer.expect_exactly(1, 3)
    verify(
        len(peer.elements(2)) == 3,
        f"three elements were expected on stream 2; {peer.describe_received()}",
    )
    return "elements, demand and ends as in version 0"


@HELLO.row("goodbye-answered", 82, GOODBYE)
async def goodbye_answered(context: CheckContext) -> str:
    """A goodbye is answered with one goodbye, which is the last message.
    Then the connection is closed.
    """
    peer = await context.connect_rsio()
    await peer.wait_until(lambda: peer.received, "a serverHello")
    await peer.send(io.goodbye("done"))
    return await peer.expect_refused("a goodbye was sent")


@HELLO.row("goodbye-ends-streams", 87, CLOSES, needs=["publisher", "slow"])
async def goodbye_ends_streams(context: CheckContext) -> str:
    """A goodbye ends all streams:
    requests after it are not served, and nothing comes after the goodbye that answers it.
    """
    peer = await context.connect_rsio()
    await peer.subscribe(1, 2, context.target.publisher)
    await peer.wait_elements(1, 2)
    await peer.send(io.goodbye() + io.request(1, 5) + io.subscribe(context.target.publisher, 2, 5))
    seen = await peer.expect_refused("a goodbye was sent")
    verify(
        len(peer.elements(1)) == 2 and not peer.of_stream(2),
        f"a message after the goodbye was served; {peer.describe_received()}",
    )
    return seen


@HELLO.row("goodbye-crossing", 82, GOODBYE, level=Level.READING)
async def goodbye_crossing(context: CheckContext) -> str:
    """Goodbye messages that cross answer each other: after its own goodbye the target does not
    send another one for that of the client.
    """
    peer = await context.connect_rsio()
    await peer.wait_until(lambda: peer.received, "a serverHello")
    await peer.send(bytes((0x7F,)))
    await peer.wait_until(lambda: peer.of_type(io.GOODBYE), "a goodbye")
    await peer.send(io.goodbye("crossing"))
    return await peer.expect_refused("type 0x7f was sent")
