"""The plugin in a registry, and on a connection."""

import subprocess
import sys
from collections.abc import AsyncIterator

import pyarrow as pa
import pytest

import penstock
from penstock.spi import PluginStatus, build_registry


def test_installing_the_plugin_is_enough() -> None:
    """The registry finds it and reports no problem."""
    registry = build_registry(environ={})
    report = next(report for report in registry.plugins if report.distribution == "penstock-arrow")
    assert (report.name, report.status, report.offers) == (
        "arrow",
        PluginStatus.ACTIVE,
        ("serializer arrow",),
    )
    assert registry.problems == ()


def test_a_program_that_sends_no_batch_imports_no_pyarrow() -> None:
    """It would hold 40 MiB more, for a plugin that it only has installed."""
    code = (
        "import sys; from penstock.spi import build_registry; "
        "build_registry().serializer('arrow'); "
        "sys.exit('pyarrow' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False, timeout=60).returncode == 0


@pytest.mark.parametrize("dialect", ["", "reactivesocket+"])
async def test_batches_arrive_as_they_were_sent(dialect: str) -> None:
    """Over a socket. On RS.io the serializer is announced, and need not be named."""
    table = pa.table({"n": range(5_000), "text": [f"row {n}" for n in range(5_000)]})
    service = penstock.Service()

    @service.publisher("rows", serializer="arrow")
    async def rows() -> AsyncIterator[pa.RecordBatch]:
        for batch in table.to_batches(max_chunksize=300):
            yield batch

    async with penstock.serve(service, "tcp://127.0.0.1:0") as server:
        named = {"serializer": "arrow"} if dialect else {}
        async with penstock.subscribe(f"{dialect}{server.addresses[0]}/rows", **named) as stream:
            batches = [batch async for batch in stream]
    assert len(batches) == 17
    assert pa.Table.from_batches(batches) == table
