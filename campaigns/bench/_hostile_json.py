"""How long one JSON element of 4 MiB holds the loop: `python3 -m campaigns.bench._hostile_json`."""

import json
import time
from collections.abc import Callable

from penstock.api import ProtocolError
from penstock.elements import JsonSerializer

SIZE = 4 << 20
DEEP = b"[" * 100 + b"]" * 100
ELEMENTS = {
    "empty lists": b"[" + b"[]," * (SIZE // 3 - 1) + b"[]]",
    "lists 100 deep": b"[" + (DEEP + b",") * (SIZE // 201 - 1) + b"[]]",
    "opening brackets": b"[" * SIZE,
    "empty objects": b"[" + b"{}," * (SIZE // 3 - 1) + b"{}]",
    "99,999 empty lists": b"[" + b"[]," * 99_998 + b"[]]",
    "99,990 lists 100 deep": b"[" + (b"[" * 90 + b"]" * 90 + b",") * 1_110 + b"[]]",
    "49,999 keys": b"{" + b",".join(b'"%05d":%d' % (each, each) for each in range(49_999)) + b"}",
    "one text of brackets": b'"' + b"[" * (SIZE - 2) + b'"',
}


def _timed(act: Callable[[], object]) -> str:
    begun = time.perf_counter()
    try:
        act()
        result = "read"
    except (ProtocolError, RecursionError):
        result = "refused"
    return f"{(time.perf_counter() - begun) * 1000:7.1f} ms, {result}"


def main() -> None:
    """Print the time for each element, with and without the bounds."""
    serializer = JsonSerializer()
    for name, data in ELEMENTS.items():
        print(
            f"{name:24}{_timed(lambda data=data: serializer.loads(data)):20}  json.loads: "
            f"{_timed(lambda data=data: json.loads(data))}"
        )


if __name__ == "__main__":
    main()
