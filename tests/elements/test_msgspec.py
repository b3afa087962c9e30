"""msgspec is used if it is installed and treats a type in the same way."""

import subprocess
import sys
from typing import Any

import pytest

from penstock.elements import _msgspec
from penstock.elements._msgspec import fast_json
from penstock.spi import PlainType, plain_type


def test_a_usual_type_is_fast() -> None:
    """`fast_json` returns an encoder and a decoder of msgspec."""
    fast = fast_json(list[int], plain_type(list[int]))
    assert fast is not None
    assert fast[0]([1]) == b"[1]"
    assert fast[1](b"[1]") == [1]


def test_without_msgspec_no_type_is_fast(monkeypatch: pytest.MonkeyPatch) -> None:
    """`fast_json` returns None, so the serializer uses Python's json."""
    monkeypatch.setattr(_msgspec, "msgspec", None)
    assert fast_json(int, plain_type(int)) is None


@pytest.mark.parametrize("kind", [complex, list[complex] | tuple[int, ...]])
def test_a_type_that_msgspec_treats_in_another_way_is_not_fast(kind: Any) -> None:
    """Such types are read by Python's json, and so are types that msgspec refuses."""
    unusual = PlainType(read=lambda value: value, takes=frozenset(), classes=None, is_usual=False)
    assert fast_json(kind, unusual) is None
    if kind is not complex:
        assert (
            fast_json(kind, PlainType(read=lambda value: value, takes=frozenset(), classes=None))
            is None
        )


PROGRAM = """
import sys
sys.modules["msgspec"] = None  # as if it were not installed
import dataclasses
from penstock.spi import build_registry, resolve_serializer

@dataclasses.dataclass
class Quote:
    symbol: str
    price: float

serializer = resolve_serializer(build_registry(), None, Quote)
data = serializer.dumps(Quote("a", 1e16))
print(data.decode(), serializer.loads(data))
"""


def test_penstock_works_where_msgspec_is_not_installed() -> None:
    """A process that cannot import msgspec writes and reads a record."""
    run = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True
    )
    assert run.stdout == '{"symbol":"a","price":1e16} Quote(symbol=\'a\', price=1e+16)\n'
