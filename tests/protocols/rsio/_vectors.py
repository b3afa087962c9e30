"""The golden bytes as a JSON file, vectors.json, for tests in other languages.
`python -m tests.protocols.rsio._vectors` writes it.
"""

import json
from pathlib import Path
from typing import Any

import attrs

from penstock.protocols import rsio
from tests.protocols.rsio._golden_bytes import FIXED, GOLDEN

FILE = Path(__file__).parent / "vectors.json"

REFUSED: dict[str, tuple[str, str]] = {
    "an unknown type": ("7f", "protocol:type 0x7f"),
    "the reserved type 0": ("00", "protocol:type 0x00"),
    "the reserved type 5": ("05", "protocol:type 0x05"),
    "a varint of more than 9 bytes": ("25" + "80" * 9, "protocol:varint"),
    "a varint that is not the shortest": ("258000", "protocol:varint"),
    "an element of an unknown stream": ("2105", "protocol:stream 5"),
    "an element above the limit": ("2100818040", "limit:frame 1048577 > 1048576"),
    "an element of 2^62 bytes": ("2100" + "80" * 8 + "40", f"limit:frame {2**62} > 1048576"),
    "a part above the limit": ("230000818040", "limit:frame 1048577 > 1048576"),
    "packed elements without a fixed size": ("2200", "protocol:packed"),
    "packed elements with a count of 0": ("220100", "protocol:packed"),
    "packed elements above the limit": ("2201818010", "limit:frame 1048580 > 1048576"),
    "a fixed size above the limit": ("2003818040", "limit:frame 1048577 > 1048576"),
    "an error above the limit": ("26008120", "limit:text 4097 > 4096"),
    "a name above the limit": ("108108", "limit:name 1025 > 1024"),
    "a reason above the limit": ("038108", "limit:reason 1025 > 1024"),
    "an extension's message above the limit": ("40818040", "limit:frame 1048577 > 1048576"),
}
"""Bytes behind the hellos, with the streams of STREAMS open, and the reason of the goodbye
that answers them.
"""


def _fields(message: rsio.Message) -> dict[str, Any]:
    shown = {name: getattr(message, name) for name in attrs.fields_dict(type(message))}
    # A string for a number above 2^53-1, which JSON readers round; bytes in hexadecimal.
    return {
        name: str(value) if isinstance(value, int) and value >= 2**53 else _plain(value)
        for name, value in shown.items()
    }


def _plain(value: Any) -> Any:
    return (
        value.hex()
        if isinstance(value, bytes)
        else list(value)
        if isinstance(value, tuple)
        else value
    )


def render() -> str:
    """Return the text of vectors.json."""
    rows = {**GOLDEN, "onNext id=1 of fixed size": FIXED}
    messages = [
        {"name": name, "message": type(message).__name__, "fields": _fields(message), "bytes": text}
        for name, (message, text) in rows.items()
    ]
    refused = [
        {"name": name, "bytes": text, "reason": reason} for name, (text, reason) in REFUSED.items()
    ]
    return json.dumps({"messages": messages, "refused": refused}, indent=1) + "\n"


if __name__ == "__main__":
    FILE.write_text(render(), encoding="utf-8")
