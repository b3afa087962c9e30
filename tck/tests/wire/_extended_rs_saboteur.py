"""The scripted server of ReactiveSocket with credentials and *drain*, and with faults in both."""

import trio

from penstock.spi import Connection
from tck.tests.wire._rs_saboteur import ERROR, EXT, I, RsServer

FAULTS: dict[str, set[str]] = {
    "announced-twice": {"ext-announced"},
    "announces-all": {"ext-announced"},
    "auth-serves-early": {"auth-setup", "auth-setup-unreadable"},
    "auth-refusals-differ": {"auth-setup-unreadable"},
    "drain-stops-streams": {"ext-drain-goes-on"},
    "drain-unread": {"ext-drain-unreadable"},
}

KNOWN_TOKEN = b""
"""The SETUP of the checks that are not about credentials."""


async def extended_server(connection: Connection, fault: str) -> None:
    await _ExtendedServer(connection, fault).run()


class _ExtendedServer(RsServer):
    is_refused = False

    async def on_frame(self, version: int, flags: int, kind: int, stream: int, body: bytes) -> None:
        if self.is_refused and not self.has_fault("auth-serves-early"):
            return
        if (
            kind == 1
            and not self.is_open
            and not version
            and not stream
            and body not in (KNOWN_TOKEN, b"refuse me")
        ):
            self.is_refused = True
            is_cut = not body.endswith(b"token")
            self.nursery.start_soon(
                self.refuse_later,
                b"unreadable" if is_cut and self.has_fault("auth-refusals-differ") else b"auth",
            )
            body = KNOWN_TOKEN
        if kind == EXT and len(body) >= 4:
            await self.on_extension(body[:4], body[4:])
        else:
            await super().on_frame(version, flags, kind, stream, body)

    async def refuse_later(self, text: bytes) -> None:
        await trio.sleep(0.25)
        await self.send(ERROR, 0, text)
        await self.connection.send_eof()

    async def on_extension(self, extended: bytes, data: bytes) -> None:
        extension, code = int.from_bytes(extended[:3]), extended[3]
        if not code and (extension in (1, 6) or self.has_fault("announces-all")):
            for _ in range(2 if self.has_fault("announced-twice") else 1):
                await self.send(EXT, 0, extended, I)
        elif (extension, code) == (6, 0x45):
            if not data and not self.has_fault("drain-unread"):
                await self.refuse("protocol:drain")
            if self.has_fault("drain-stops-streams"):
                for served in self.streams.values():
                    served.is_over = True
