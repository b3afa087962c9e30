"""All requirements, by protocol."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final

from penstock.wirecheck._requirement import Requirement, joined
from penstock.wirecheck._rs_demand_rows import DEMAND
from penstock.wirecheck._rs_fragment_rows import FRAGMENTS
from penstock.wirecheck._rs_framing_rows import FRAMING
from penstock.wirecheck._rs_id_rows import IDS
from penstock.wirecheck._rs_relay_rows import RELAY
from penstock.wirecheck._rs_request_rows import REQUESTS
from penstock.wirecheck._rs_setup_rows import SETUPS

TABLES: Final[Mapping[str, Sequence[Requirement]]] = MappingProxyType(
    {"reactivesocket": joined(SETUPS, FRAMING, REQUESTS, DEMAND, IDS, FRAGMENTS, RELAY)}
)
"""The requirements of each protocol, in the order in which they are checked."""
