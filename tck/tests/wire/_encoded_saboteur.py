"""The scripted server of RS.io with two more encodings, and with faults in their choice. The
forms are those of the checks.
"""

from penstock_tck.wire import rsio as io
from penstock_tck.wire._rsio_forms import FORMS_BY_ID, Form

from penstock.spi import Connection
from tck.tests.wire._rsio_saboteur import ConnectionEnded, RsioServer

FAULTS: dict[str, set[str]] = {
    "change-refused": {
        "encoding-agreed",
        "encoding-between-parts",
        "encoding-fields",
        "encoding-hello-twice",
        "encoding-objects",
    },
    "other-change-taken": {"encoding-not-agreed"},
    "second-change-taken": {"encoding-twice"},
    "hello-after-change-taken": {"encoding-hello-twice"},
    "change-drops-parts": {"encoding-between-parts"},
    "nil-skipped": {"encoding-objects"},
    "group-skipped": {"encoding-fields"},
}


async def encoded_server(connection: Connection, fault: str) -> None:
    await _EncodedServer(connection, fault).run()


def compact(message: io.Message, size: int) -> bytes:
    """Return a message in the compact encoding; `size` is the element size of its stream."""
    numbers = list(message.numbers if message.stream < 0 else (message.stream, *message.numbers))
    data = bytes((message.type,))
    for field in io.FIELDS[message.type][1]:
        if field == "1":
            data += bytes((numbers.pop(0),))
        elif field == "l":
            data += io.varint(len(numbers)) + b"".join(map(io.varint, numbers))
        elif field in "vp":
            data += io.varint(numbers.pop(0))
        if field in "bn" and not (field == "n" and size):
            data += io.length_prefixed(message.body)
        elif field in "np":
            data += message.body
    return data


class _EncodedServer(RsioServer):
    def __init__(self, connection: Connection, fault: str) -> None:
        super().__init__(connection, fault)
        self.agreed: Form | None = None
        self.taken = 0  # changes of the client
        self.form: Form | None = None  # of the client's messages
        self.reader = io.MessageReader()
        self.answers: Form | None = None  # of this side's messages
        self.sizes = io.MessageReader()  # knows the fixed sizes of the streams that are served

    # --- receiving

    async def on_data(self, data: bytes) -> None:
        if self.form is None:
            await super().on_data(data)
            return
        if data.startswith(self.form.huge_name):
            await self.refuse("huge-length-awaited", "limit")
        messages = self.reader.feed(data)
        for message in messages:
            if message.type == io.SWITCH_ENCODING:
                await self.refuse("second-change-taken", f"protocol:switch {message.numbers[0]}")
            else:
                source = self.sources.get(message.stream)
                await super().on_data(compact(message, 0 if source is None else source.size))
        if self.reader.error:
            await self.refuse(
                "nil-skipped" if self.form.name == "msgpack" else "group-skipped",
                "protocol:encoding",
            )
            self.reader = self.form.reader()

    async def read_message(self):
        if self.form is None and self.buffer[0] == io.SWITCH_ENCODING and self.agreed is not None:
            self.position = 1
            return self.on_change(await self.read_varint())
        return await super().read_message()

    async def on_change(self, extension: int) -> None:
        if self.has_fault("change-refused") or (
            extension != self.agreed.id and not self.has_fault("other-change-taken")
        ):
            await self.say_goodbye(f"protocol:switch {extension}")
        if self.has_fault("change-drops-parts"):
            for source in self.sources.values():
                source.parts.clear()
        self.form = FORMS_BY_ID.get(extension, self.agreed)
        self.reader = self.form.reader()
        rest, self.buffer = self.buffer, b""
        await self.on_data(rest)

    async def on_hello(self, extensions: list[int]) -> None:
        if self.form is not None:
            await self.refuse("hello-after-change-taken", "protocol:hello")
            return
        self.agreed = next((FORMS_BY_ID[each] for each in extensions if each in FORMS_BY_ID), None)
        await super().on_hello([each for each in extensions if each not in FORMS_BY_ID])
        if self.agreed is not None and self.answers is None:
            await self.send(io.SWITCH_ENCODING, self.agreed.id)
            self.answers = self.agreed

    # --- sending

    async def send(
        self, kind: int, *numbers: int, body: bytes | None = None, bare: bytes = b""
    ) -> None:
        if kind == io.SERVER_HELLO:
            version, count, *ids = numbers
            numbers = (version, count + len(FORMS_BY_ID), *ids, *FORMS_BY_ID)
        sized = b"" if body is None else io.length_prefixed(body)
        await self.send_bytes(bytes((kind,)) + b"".join(map(io.varint, numbers)) + sized + bare)

    async def send_bytes(self, data: bytes) -> None:
        messages = self.sizes.feed(data)
        if self.sizes.take_rest():
            raise ConnectionEnded
        await super().send_bytes(
            data if self.answers is None else b"".join(map(self.answers.encode, messages))
        )
