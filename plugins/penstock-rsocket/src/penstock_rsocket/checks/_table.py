"""The tables for servers and clients, and the question whether a server has a route."""

from typing import Final

from penstock_tck.wire import CheckContext, WireTable, join_tables

from penstock_rsocket.checks import _frames as rs
from penstock_rsocket.checks._channel_rows import CHANNELS
from penstock_rsocket.checks._client_setup_rows import CLIENT_SETUPS
from penstock_rsocket.checks._client_stream_rows import CLIENT_STREAMS
from penstock_rsocket.checks._demand_rows import DEMAND
from penstock_rsocket.checks._fragment_rows import FRAGMENTS
from penstock_rsocket.checks._frame_rows import FRAMES
from penstock_rsocket.checks._keepalive_rows import KEEPALIVES
from penstock_rsocket.checks._peer import connect
from penstock_rsocket.checks._setup_rows import SETUPS
from penstock_rsocket.checks._stream_rows import STREAMS

KINDS: Final = {
    "echo": rs.REQUEST_RESPONSE,
    "channel": rs.REQUEST_CHANNEL,
    "pair": rs.REQUEST_CHANNEL,
    "greedy": rs.REQUEST_CHANNEL,
}
"""How offers are asked for that are not streams."""


async def _refusal(context: CheckContext, offer: str, name: str) -> str | None:
    peer = await connect(context)
    stream = await peer.request(KINDS.get(offer, rs.REQUEST_STREAM), name, b"x")
    await peer.wait_until(lambda: peer.of_stream(stream), "an answer")
    first = peer.of_stream(stream)[0]
    # Without the name of the route, which some servers say in their text.
    text = first.body[4:].decode(errors="replace").replace(name, "…")
    return f"ERROR {first.number:#05x} {text!r}" if first.type == rs.ERROR else None


TABLE: Final = WireTable(
    rows=join_tables(SETUPS, KEEPALIVES, STREAMS, DEMAND, CHANNELS, FRAGMENTS, FRAMES),
    clients=join_tables(CLIENT_SETUPS, CLIENT_STREAMS),
    refusal=_refusal,
)
