"""The price of a record: the same elements with a recorder on both sides, and with none."""

from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from campaigns.bench._bulk import over_trio, read_elements, time_subscription
from campaigns.bench._measure import Bar, Group, Opening
from penstock.recording import Recorder
from penstock.spi import build_registry

_PLAIN: Final = "without a recorder"
_RECORDED: Final = "recorded"
_EACH: Final = "recorded, each signal"


async def _read_recorded(port: int, size: int, count: int, detail: str) -> float:
    """Connect with a recorder, and read one stream with `async for`."""
    from penstock.runtime import connect

    with (
        TemporaryDirectory() as folder,
        Recorder(Path(folder), detail="signals" if detail == "signals" else "runs") as recorder,
    ):
        async with connect(
            f"tcp://127.0.0.1:{port}", registry=build_registry([recorder])
        ) as remote:
            await remote.wait_accepted()
            return await time_subscription(remote, size, count)


def _contenders(short: bool) -> dict[str, Opening]:
    count = 100_000 if short else 400_000

    def recorded(detail: str) -> Opening:
        async def read(port: int, size: int, elements: int) -> float:
            return await _read_recorded(port, size, elements, detail)

        return partial(over_trio, "penstock_recorded", read, 64, count, detail)

    return {
        _PLAIN: partial(over_trio, "penstock", read_elements, 64, count),
        _RECORDED: recorded("runs"),
        _EACH: recorded("signals"),
    }


GROUPS: Final = (
    Group(
        "recorded",
        "Elements of 64 bytes with and without a recorder",
        "element",
        _PLAIN,
        _contenders,
        (Bar("64 B by element, recorded", _RECORDED, _PLAIN, at_least=0.95),),
        {_RECORDED: "pyarrow", _EACH: "pyarrow"},
    ),
)
