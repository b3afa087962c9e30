"""The examples of the pages about Spring. The campaign `interop_rsocket` runs them with Spring."""

import re
import subprocess
import sys
from functools import partial
from pathlib import Path

import trio

EXAMPLES = Path(__file__).parents[1] / "examples"


async def test_the_client_for_spring_asks_the_service_for_spring(tmp_path: Path) -> None:
    """Both have the same routes, so without Spring one asks the other, and prints what the page
    shows. A name of penstock has no dots, and no tick has a price: a copy of the client has slashes
    and two fields.
    """
    text = (EXAMPLES / "ask_spring.py").read_text(encoding="utf-8")
    text = text.replace("ticks.AAPL", "ticks/AAPL").replace("    price: float\n", "")
    client = tmp_path / "ask.py"
    client.write_text(text, encoding="utf-8")
    async with trio.open_nursery() as nursery:
        service = [sys.executable, str(EXAMPLES / "stock.py"), "rsocket+tcp://127.0.0.1:0"]
        start = partial(trio.run_process, service, stdout=subprocess.PIPE, check=False)
        process: trio.Process = await nursery.start(start)
        assert process.stdout is not None
        url = (await process.stdout.receive_some()).decode().strip()
        done = await trio.run_process([sys.executable, str(client), url], capture_stdout=True)
        process.kill()
    shown = (EXAMPLES / "ask_spring.out").read_text(encoding="utf-8").splitlines()
    shown[2:5] = [re.sub(r", price=[\d.]+", "", line) for line in shown[2:5]]
    assert done.stdout.decode().splitlines()[:-1] == shown[:-1]
    assert done.stdout.decode().splitlines()[-1].startswith("the server did not let this client in")
