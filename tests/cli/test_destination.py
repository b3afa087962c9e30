"""A scheme of a plugin that leads to logs."""

from collections.abc import Iterator
from contextlib import AbstractAsyncContextManager
from typing import Any, ClassVar, Self

import pytest

from penstock.api import Limits, UsageError
from penstock.logs import Retention, RingLog
from penstock.spi import ElementSink, SourceOptions, TransportOptions, UrlSource
from tests.cli.test_cp import ran as copy
from tests.cli.test_cp import refused
from tests.cli.test_pub_to import contents


class Opened(RingLog):
    """A log that is opened as those of brokers are."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        pass


class Shelf(UrlSource):
    """``shelf:`` URLs lead to one log."""

    schemes: ClassVar[tuple[str, ...]] = ("shelf",)
    why_no_connection: ClassVar[str] = "it is a log"

    def __init__(self) -> None:
        self.log = Opened(retention=Retention(max_count=1_000), partitions=("0", "east"))
        self.asked: list[Any] = []

    def check(self, url: str, options: SourceOptions) -> None: ...

    async def read(self, url: str, sink: ElementSink, options: SourceOptions) -> None:
        raise AssertionError("it is opened as a log")

    def log_at(
        self, url: str, options: SourceOptions, *, read_only: bool = True, retention: Any = None
    ) -> AbstractAsyncContextManager[Any]:
        if not read_only and retention is None:
            raise UsageError("Opened() needs retention=Retention(...)")
        self.asked.append((read_only, retention))
        return self.log


class Stream(Shelf):
    """A scheme without logs."""

    log_at = UrlSource.log_at


@pytest.fixture
def shelf(monkeypatch: pytest.MonkeyPatch) -> Iterator[Shelf]:
    import attrs  # noqa: PLC0415  # for this fixture alone

    from penstock.spi import build_registry  # noqa: PLC0415  # the same

    made = Shelf()
    registry = attrs.evolve(build_registry(), sources={"shelf": made, "stream": Stream()})
    for module in ("_destination", "_origin"):
        monkeypatch.setattr(f"penstock.cli.{module}.build_registry", lambda: registry)
    return made  # type: ignore[return-value]  # pytest takes a value as well


async def test_a_log_of_a_scheme_is_read_and_written(shelf: Shelf, tmp_path: Any) -> None:
    """With the bounds that the command names, and the partition of the URL."""
    await shelf.log.append([b"1", b"2"])
    await copy("shelf://x/a", tmp_path / "file")
    await copy(tmp_path / "file", "shelf://x/a?partition=east", "--max-count", 50)
    assert await contents(shelf.log, "east") == [b"1", b"2"]
    assert shelf.asked == [(True, None), (False, Retention(max_count=50))]


async def test_what_a_scheme_lacks_is_told(shelf: Shelf, tmp_path: Any) -> None:
    """Bounds, a partition, and a log at all."""
    await shelf.log.append([b"1"])
    await copy("shelf://x/a", tmp_path / "file")
    file = tmp_path / "file"
    assert "--max-count" in await refused(file, "shelf://x/b")
    assert "?partition=east" in await refused(file, "shelf://x/b", "--into", "east")
    assert "?partition=" in await refused("shelf://x/b?partition=west", tmp_path / "new")
    assert "is no log that can be opened" in await refused("stream://x", tmp_path / "new")
    assert "is no log that can be opened" in await refused(file, "stream://x")
    with pytest.raises(UsageError, match="no log"):
        UrlSource.log_at(
            shelf, "x://", SourceOptions(limits=Limits(), transport=TransportOptions())
        )
