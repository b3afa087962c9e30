"""Maps of demand that a test makes by hand."""

from typing import Any

from penstock.cli._demand_map import DemandMap

DEFAULTS: dict[str, Any] = {
    "name": "",
    "out": True,
    "peer": "",
    "principal": "",
    "local": "",
    "protocol": "rsio",
    "transport": "tcp",
    "stream": 1,
    "trace": "",
    "state": "live",
    "requested": 0,
    "delivered": 0,
    "demand": 0,
    "held": 0,
    "serializer": "",
    "position": None,
    "lag": None,
    "since": 0.0,
    "waits": "demand",
    "limit": "",
    "parts": [],
    "on": [],
    "place": "",
    "stage": "",
}


def map_of(url: str, *streams: dict[str, Any], now: float = 12.0) -> DemandMap:
    """Return the map of a service with these streams, after one look."""
    found = DemandMap(url)
    found.apply({"kind": "service", "addresses": [url]})
    found.apply({"kind": "streams", "streams": [{**DEFAULTS, **each} for each in streams]})
    found.apply({"kind": "looked", "at": now, "streams": len(streams)})
    return found


def hop(
    key: str, name: str, local: str, peer: str, *, out: bool, waits: str, **more: Any
) -> dict[str, Any]:
    """Return one side of a stream."""
    return {
        "key": key,
        "name": name,
        "local": local,
        "peer": peer,
        "out": out,
        "waits": waits,
        **more,
    }
