"""How many elements a second a page in Chromium and a program in Node.js read:
`nox -s browser -- --measure`.
"""

import json
import os
import statistics
from collections.abc import Awaitable, Callable

import trio

from tests.browser._chromium import run_chromium
from tests.browser._pages import serve_pages
from tests.browser._programs import CLIENT, node_websocket, run_node
from tests.browser._servers import serve_websocket
from tests.browser._service import service

ROUNDS = 5
COUNT = 200_000
SIZE = 64
BAR = 100_000
"""Elements of 64 bytes a second that a page must read."""

READ = f"""
  const connection = await connect(url, options);
  const figures = [];
  for (let round = 0; round < {ROUNDS}; round += 1) {{
    const begin = performance.now();
    let count = 0;
    await new Promise((resolve, reject) => connection.publisher("blocks/{COUNT}?size={SIZE}").subscribe({{
      onSubscribe: (subscription) => subscription.request(Infinity),
      onNext: () => {{ count += 1; }},
      onError: reject,
      onComplete: resolve,
    }}));
    const callbacks = count / (performance.now() - begin) * 1000;
    const second = performance.now();
    count = 0;
    for await (const block of connection.stream("blocks/{COUNT}?size={SIZE}")) count += 1;
    figures.push([callbacks, count / (performance.now() - second) * 1000]);
  }}
  await connection.close();
"""


async def in_chromium(kind: str) -> list[list[float]]:
    """Read in a page of another origin."""
    async with (
        serve_pages() as origin,
        serve_websocket(kind, service, origin=origin) as url,
        run_chromium() as browser,
    ):
        page = await browser.open(f"{origin}/")
        imports = 'const { connect } = await import("/penstock.js");'
        figures: list[list[float]] = await page.run(
            f"{imports} const url = {json.dumps(url)}, options = {{}}; {READ} return figures;"
        )
        return figures


async def in_node(kind: str) -> list[list[float]]:
    """Read in Node.js with its own WebSocket."""
    async with serve_websocket(kind, service) as url:
        program = f"""
            import {{ connect }} from {json.dumps((CLIENT / "penstock.js").as_uri())};
            const url = {json.dumps(url)}; const options = {{}}; {READ}
            console.log("FIGURES " + JSON.stringify(figures));"""
        output = await run_node(*node_websocket(), "--input-type=module", "--eval", program)
        figures: list[list[float]] = json.loads(
            next(line for line in output.splitlines() if line.startswith("FIGURES ")).split(" ", 1)[
                1
            ]
        )
        return figures


async def measure(
    name: str, read: Callable[[str], Awaitable[list[list[float]]]], kind: str
) -> float:
    """Print the median of each way to read; return that of the iterator."""
    figures = await read(kind)
    callbacks, iterator = (statistics.median(column) for column in zip(*figures, strict=True))
    print(f"{name:>9} {kind:>7} {callbacks:12,.0f} {iterator:12,.0f}", flush=True)
    return iterator


async def main() -> None:
    """Measure the plugin and, with BRIDGE=1, the bridge of the tests as well."""
    print(f"elements of {SIZE} bytes a second, median of {ROUNDS} rounds of {COUNT:,}")
    print(f"{'':>9} {'server':>7} {'callbacks':>12} {'for await':>12}")
    for kind in ("plugin", "bridge") if os.environ.get("BRIDGE") else ("plugin",):
        await measure("Node.js", in_node, kind)
        reached = await measure("Chromium", in_chromium, kind)
        if kind == "plugin" and reached < BAR:
            raise SystemExit(f"the bar is {BAR:,} elements a second in Chromium")


if __name__ == "__main__":
    trio.run(main)
