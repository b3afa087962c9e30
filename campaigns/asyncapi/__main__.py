"""The documents that penstock makes of a service pass the official parser of AsyncAPI: those of
`penstock describe --asyncapi` and of ``/asyncapi.json``, with and without requests.
"""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import trio

import penstock
from campaigns.everyday._service import service
from penstock.spi import asyncapi_document

CHECK = Path(__file__).with_name("check.cjs")


async def _entries() -> list[Any]:
    async with (
        penstock.serve(service, "memory://asyncapi"),
        penstock.connect("memory://asyncapi") as peer,
        peer.subscribe("penstock/describe", serializer="json") as stream,
    ):
        return [entry async for entry in stream]


def main() -> int:
    """Check the document of each protocol."""
    entries, failed = trio.run(_entries), 0
    for protocol in ("rsio", "http"):
        page = asyncapi_document(entries, host="h:7000", path="", protocol=protocol)
        done = subprocess.run(
            ["node", str(CHECK)],
            input=json.dumps(page),
            capture_output=True,
            text=True,
            check=False,
        )
        print(f"{protocol}: {done.stdout.strip() or done.stderr.strip()[-300:]} operations")
        failed += done.returncode != 0
    print("the parser takes both documents" if not failed else f"{failed} documents are refused")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
