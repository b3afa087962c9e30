"""RS.io: the change to another encoding of the messages, if the target has one
that the checks know.
"""

from penstock_tck.wire import rsio as io
from penstock_tck.wire._check_context import CheckContext
from penstock_tck.wire._requirement import RSIO, Level, Table
from penstock_tck.wire._rsio_forms import FORMS_BY_ID, MSGPACK, PROTOBUF, Form
from penstock_tck.wire._rsio_peer import RsioPeer
from penstock_tck.wire._rsio_translation import Incoming
from penstock_tck.wire._target import RELAY_SOURCE
from penstock_tck.wire._verdict import NotSupported, verify

ENCODINGS = Table(RSIO)

AGREED = "The agreed encoding is the first one in the client's list that the server's list has too."
REFUSED = (
    "A switchEncoding with another id, a second one, or one without agreement is answered with "
    "the goodbye `protocol:switch N`."
)
ONE_HELLO = "A second hello, in any encoding, is answered with the goodbye `protocol:hello`."
BETWEEN = "It may stand between two parts of an element."
OBJECTS = (
    "Any other object (nil, bool, float, map, ext, a str for a bin) is answered with "
    "`protocol:encoding` at its first byte."
)
FIELDS = (
    "Groups, the wire types 6 and 7, field number 0, a known field with another wire type, a "
    "field that goes past its body"
)


async def _agree(context: CheckContext, *ids: int) -> tuple[RsioPeer, list[Form]]:
    """Open a connection whose hellos are compact.
    Return it, and the encodings of `ids` that the target has.
    """
    peer = await context.connect_compact()
    peer.incoming = Incoming(agreed=ids)
    await peer.send(io.hello(*ids))
    await peer.wait_until(lambda: peer.of_type(io.SERVER_HELLO) or peer.ending, "a serverHello")
    found = [FORMS_BY_ID[each] for each in ids if each in peer.listed and each in FORMS_BY_ID]
    if not found:
        raise NotSupported(f"the target confirms none of the encodings {', '.join(map(str, ids))}")
    return peer, found


async def _expect_switch_refused(peer: RsioPeer, extension: int, why: str) -> str:
    seen = await peer.expect_refused(why)
    due = f"protocol:switch {extension}"
    verify(
        peer.received[-1].body == due.encode(),
        f"the goodbye `{due}` is due; {peer.describe_received()}",
    )
    return seen


async def _expect_unreadable_refused(context: CheckContext, form: Form) -> str:
    for wrong in form.unreadable:
        peer, _ = await _agree(context, form.id)
        await peer.change_encoding(form)
        await peer.send_as_it_is(wrong)
        await peer.expect_refused(f"{wrong.hex()} was sent")
        verify(
            peer.received[-1].body == b"protocol:encoding",
            f"the goodbye `protocol:encoding` is due; {peer.describe_received()}",
        )
    return f"{len(form.unreadable)} of {len(form.unreadable)} refused"


@ENCODINGS.row("encoding-agreed", 0, AGREED, level=Level.OWN, needs=["publisher"])
async def encoding_agreed(context: CheckContext) -> str:
    """In each encoding of the target: a stream that began in the compact one goes on after the
    change, beside a stream that is opened after it.
    """
    _, forms = await _agree(context, *FORMS_BY_ID)
    for form in forms:
        peer, _ = await _agree(context, form.id)
        await peer.subscribe(1, 2, context.target.publisher)
        await peer.change_encoding(form)
        await peer.send(io.request(1, 3) + io.subscribe(context.target.publisher, 2, 4))
        await peer.wait_elements(2, 4)
        await peer.expect_exactly(1, 5)
    return ", ".join(form.name for form in forms)


@ENCODINGS.row("encoding-not-agreed", 0, REFUSED, level=Level.OWN)
async def encoding_not_agreed(context: CheckContext) -> str:
    """A client lists two encodings, and changes to the second one; if the target has one of them
    only, to an id that was not listed.
    """
    peer, forms = await _agree(context, *FORMS_BY_ID)
    other = forms[1].id if len(forms) > 1 else 127
    await peer.send(io.numbers(io.SWITCH_ENCODING, other))
    return await _expect_switch_refused(
        peer, other, f"a change to the encoding {other}, which was not agreed on, was sent"
    )


@ENCODINGS.row("encoding-twice", 0, REFUSED, level=Level.OWN)
async def encoding_twice(context: CheckContext) -> str:
    """A second change, to the same encoding, is refused."""
    peer, (form, *_) = await _agree(context, *FORMS_BY_ID)
    await peer.change_encoding(form)
    await peer.send(io.numbers(io.SWITCH_ENCODING, form.id))
    return await _expect_switch_refused(peer, form.id, "a second change of the encoding was sent")


@ENCODINGS.row("encoding-hello-twice", 0, ONE_HELLO, level=Level.OWN)
async def encoding_hello_twice(context: CheckContext) -> str:
    """In each encoding of the target: a hello after the change is refused."""
    _, forms = await _agree(context, *FORMS_BY_ID)
    for form in forms:
        peer, _ = await _agree(context, form.id)
        await peer.change_encoding(form)
        await peer.send(io.hello())
        await peer.expect_refused("a second hello was sent")
        verify(
            peer.received[-1].body == b"protocol:hello",
            f"the goodbye `protocol:hello` is due; {peer.describe_received()}",
        )
    return ", ".join(form.name for form in forms)


@ENCODINGS.row("encoding-between-parts", 0, BETWEEN, level=Level.OWN, needs=["relay"])
async def encoding_between_parts(context: CheckContext) -> str:
    """The target reads an element whose first part is compact and whose last part is not. The
    bytes of a change within a part are data.
    """
    peer, (form, *_) = await _agree(context, *FORMS_BY_ID)
    await peer.subscribe(1, 9, context.target.relay)
    await peer.wait_until(
        lambda: peer.of_type(io.SUBSCRIBE), f"a subscribe of the target to {RELAY_SOURCE!r}"
    )
    stream, marker = peer.of_type(io.SUBSCRIBE)[0].stream, io.numbers(io.SWITCH_ENCODING, form.id)
    await peer.send(io.on_subscribe(stream))
    await peer.wait_until(
        lambda: any(
            message.stream == stream and message.numbers[0]
            for message in peer.of_type(io.SUBSCRIBE, io.REQUEST)
        ),
        "demand",
    )
    await peer.send(io.part(stream, 0, marker))
    await peer.change_encoding(form)
    await peer.send(io.part(stream, 0, marker, last=True))
    await peer.wait_until(
        lambda: peer.elements(1) or peer.ended(1), "the element passed on by the target"
    )
    verify(
        peer.elements(1) == [marker * 2],
        f"{marker * 2!r} was expected, {peer.elements(1)} came; {peer.describe_received()}",
    )
    return f"a part, the change to {form.name}, the last part"


@ENCODINGS.row("encoding-objects", 0, OBJECTS, level=Level.OWN)
async def encoding_objects(context: CheckContext) -> str:
    """In msgpack: a cancel with nil, a bool, a float, an array, a map, an ext, a negative
    number, or 2^63 as its id, is refused.
    """
    return await _expect_unreadable_refused(context, MSGPACK)


@ENCODINGS.row("encoding-fields", 0, FIELDS, level=Level.OWN)
async def encoding_fields(context: CheckContext) -> str:
    """In protobuf: a cancel with a group, the wire types 6 and 7, field 0, bytes as its id, a
    field past its body, and 2^63, is refused.
    """
    return await _expect_unreadable_refused(context, PROTOBUF)
