"""The requirements of all protocols."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final

from penstock_tck.wire._requirement import Requirement, join_tables
from penstock_tck.wire._rs_demand_rows import DEMAND
from penstock_tck.wire._rs_extension_rows import EXTENSIONS as EXTENSION_FRAMES
from penstock_tck.wire._rs_fragment_rows import FRAGMENTS
from penstock_tck.wire._rs_framing_rows import FRAMING
from penstock_tck.wire._rs_id_rows import IDS
from penstock_tck.wire._rs_named_rows import NAMED as NAMED_REQUESTS
from penstock_tck.wire._rs_relay_rows import RELAY
from penstock_tck.wire._rs_request_rows import REQUESTS
from penstock_tck.wire._rs_setup_rows import SETUPS
from penstock_tck.wire._rsio_encoding_rows import ENCODINGS
from penstock_tck.wire._rsio_extension_rows import EXTENSIONS
from penstock_tck.wire._rsio_hello_rows import HELLO
from penstock_tck.wire._rsio_input_rows import INPUT
from penstock_tck.wire._rsio_named_rows import NAMED
from penstock_tck.wire._rsio_relay_rows import RELAY as SUBSCRIBER
from penstock_tck.wire._rsio_size_rows import SIZES
from penstock_tck.wire._rsio_stream_rows import STREAMS

TABLES: Final[Mapping[str, Sequence[Requirement]]] = MappingProxyType(
    {
        "rsio": join_tables(HELLO, STREAMS, SIZES, INPUT, ENCODINGS, NAMED, EXTENSIONS, SUBSCRIBER),
        "reactivesocket": join_tables(
            SETUPS,
            FRAMING,
            REQUESTS,
            DEMAND,
            IDS,
            FRAGMENTS,
            NAMED_REQUESTS,
            EXTENSION_FRAMES,
            RELAY,
        ),
    }
)
"""The requirements of each protocol, in the order in which they are checked."""
