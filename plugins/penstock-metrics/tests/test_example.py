"""The example runs: a service with a page of metrics beside it."""

import importlib.util
from pathlib import Path
from urllib.request import urlopen

import pytest
import trio
from _metrics_helpers import samples

import penstock

EXAMPLE = Path(__file__).parents[1] / "examples/metrics_service.py"


async def test_the_example_serves_quotes_and_metrics(capsys: pytest.CaptureFixture[str]) -> None:
    """The page of metrics has the elements of the stream that was read."""
    spec = importlib.util.spec_from_file_location("metrics_service", EXAMPLE)
    assert spec is not None
    assert spec.loader is not None
    example = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)
    started = trio.Event()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(lambda: example.main("tcp://127.0.0.1:0", 0, started=started))
        await started.wait()
        _, address, _, _, page = capsys.readouterr().out.replace(",", "").split()
        async with penstock.subscribe(f"{address}/quotes/EURUSD", type=str) as stream:
            assert await anext(stream) == "EURUSD 100"
            found = samples(await trio.to_thread.run_sync(_get, page))
        nursery.cancel_scope.cancel()
    assert found["penstock_connections{protocol=rsio,side=server,transport=tcp}"] == 1
    assert found["penstock_elements_total{direction=sent}"] >= 1
    assert found["penstock_publisher_subscriptions{publisher=quotes/{symbol}}"] >= 1


def _get(url: str) -> str:
    with urlopen(url) as answer:
        return str(answer.read().decode())
