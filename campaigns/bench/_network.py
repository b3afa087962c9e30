"""The network benchmarks: the groups of contenders, which run over loopback in two processes,
and their bars.
"""

from collections.abc import Callable
from typing import Final

from campaigns.bench import _bulk, _idle, _json_elements, _round_trips
from campaigns.bench._measure import Bar, Group, Opening

_PACKAGES: Final = {"pyzmq": "zmq", "rsocket-py": "rsocket", "grpcio": "grpc", "grpcio.aio": "grpc"}
_PENSTOCK: Final = "penstock, by element"


def _bulk_of(size: int, count: int, slow_count: int) -> Callable[[bool], dict[str, Opening]]:
    def contenders(short: bool) -> dict[str, Opening]:
        return (
            _bulk.element_contenders(size, count // 3, slow_count // 5)
            if short
            else _bulk.element_contenders(size, count, slow_count)
        )

    return contenders


def _packed(short: bool) -> dict[str, Opening]:
    return _bulk.packed_contenders(4_000_000 if short else 20_000_000)


def _tls(short: bool) -> dict[str, Opening]:
    return _bulk.tls_contenders(4096, 12_000 if short else 80_000)


def _trips(short: bool) -> dict[str, Opening]:
    return _round_trips.round_trip_contenders(300 if short else 2_000)


def _json(short: bool) -> dict[str, Opening]:
    return _json_elements.json_contenders(40_000 if short else 240_000)


def _beside_idle(short: bool) -> dict[str, Opening]:
    return _idle.idle_contenders((1, 1_000, 100_000), 100_000 if short else 400_000)


GROUPS: Final = (
    Group(
        "small",
        "Elements of 64 bytes over loopback",
        "element",
        "raw split",
        _bulk_of(64, 600_000, 15_000),
        (
            Bar("64 B by element, beside pyzmq", _PENSTOCK, "pyzmq", at_least=1),
            Bar("64 B by element, beside rsocket-py", _PENSTOCK, "rsocket-py", at_least=30),
            Bar("64 B by element, beside grpcio", _PENSTOCK, "grpcio", at_least=40),
            Bar(
                "64 B by batches(), beside a bare split loop",
                "penstock, batches()",
                "raw split",
                at_least=0.6,
            ),
        ),
        _PACKAGES,
    ),
    Group(
        "middling",
        "Elements of 4 KiB over loopback",
        "element",
        "raw split",
        _bulk_of(4096, 90_000, 9_000),
        (Bar("4 KiB by element, beside pyzmq", _PENSTOCK, "pyzmq", at_least=1),),
        _PACKAGES,
    ),
    Group(
        "large",
        "Elements of 256 KiB over loopback",
        "element",
        "raw split",
        _bulk_of(256 << 10, 3_000, 900),
        (Bar("256 KiB by element, beside pyzmq", _PENSTOCK, "pyzmq", at_least=0.5),),
        _PACKAGES,
    ),
    Group(
        "packed",
        "Packed elements of 8 bytes, taken as memory",
        "element",
        "raw bytes",
        _packed,
        (
            Bar(
                "packed elements, beside raw bytes",
                "penstock, buffers()",
                "raw bytes",
                at_least=0.5,
                or_under=50,
            ),
        ),
    ),
    Group(
        "trips",
        "Round trips of 64 bytes over loopback",
        "round trip",
        "raw echo",
        _trips,
        (
            Bar(
                "a round trip, beside a bare echo",
                "penstock, stream of one",
                "raw echo",
                at_most=2.5,
            ),
            Bar(
                "a round trip, beside grpcio.aio",
                "penstock, stream of one",
                "grpcio.aio",
                at_least=1,
            ),
        ),
        _PACKAGES,
    ),
    Group(
        "tls",
        "Elements of 4 KiB over TLS, both with the same certificate",
        "element",
        "raw TLS",
        _tls,
        (Bar("4 KiB over TLS, beside raw TLS", "penstock, TLS", "raw TLS", at_least=0.5),),
        {"raw TLS": "trustme", "penstock, TLS": "trustme"},
    ),
    Group(
        "json",
        "JSON objects of five fields over loopback, as dataclasses",
        "element",
        "dumps and loads alone, two cores",
        _json,
        (
            Bar(
                "typed json, beside dumps and loads",
                "penstock, msgspec, batches()",
                "dumps and loads alone, two cores",
                at_least=0.5,
            ),
            Bar(
                "typed json, beside Python's json",
                "penstock, msgspec",
                "penstock, Python's json",
                at_least=2,
            ),
        ),
        dict.fromkeys(
            (
                "dumps and loads alone, two cores",
                "penstock, msgspec, batches()",
                "penstock, msgspec",
            ),
            "msgspec",
        ),
    ),
    Group(
        "idle",
        "Elements of 64 bytes on a connection with idle streams",
        "element",
        "beside 1 idle",
        _beside_idle,
        (
            Bar(
                "64 B beside 1,000 idle streams", "beside 1,000 idle", "beside 1 idle", at_most=1.15
            ),
            Bar(
                "64 B beside 100,000 idle streams",
                "beside 100,000 idle",
                "beside 1 idle",
                at_most=1.15,
            ),
        ),
    ),
)
