"""Runs the checks of the wire over penstock's own server, in this process."""

import importlib.util
import sys
from pathlib import Path
from typing import Any
from unittest import mock

from penstock_tck.wire import Target, Verdict, check_target

from penstock.runtime import serve
from penstock.spi import build_registry
from tests._limits import HASTY
from tests.conformance._product import served_at

EXAMPLE = Path(__file__).parents[2] / "examples/conformance_service.py"
REGISTRY = build_registry()  # once, because it searches all installed distributions
AUTH = {"auth-refused", "auth-unreadable", "auth-setup", "auth-setup-unreadable"}
"""The service examines no credentials."""


def _example(url: str) -> Any:
    found = importlib.util.spec_from_file_location("conformance_service", EXAMPLE)
    assert found is not None
    assert found.loader is not None
    module = importlib.util.module_from_spec(found)
    with mock.patch.object(sys, "argv", ["conformance_service.py", url]):
        found.loader.exec_module(module)
    return module


async def check_wire(
    dialect: str, transport: str, encoding: str | None = None, *, is_in_url: bool = False
) -> set[str]:
    """Check every requirement. Fail if one of them is broken; return the names of those that were
    not supported, without `AUTH`.

    With `is_in_url` both sides begin in the encoding;
    without it the transport negotiates it, or the hellos agree on it.
    """
    with served_at(transport) as (address, serving, calling):
        url = f"{dialect}+{address}{f'?encoding={encoding}' if is_in_url else ''}"
        example = _example(url)
        # A refused client is waited for, and a row has some of them.
        limits = HASTY
        async with serve(
            example.service,
            url,
            limits=limits,
            registry=REGISTRY,
            options=serving,
            on_violation=lambda _: None,
        ) as server:
            example.servers.append(server)
            results = await check_target(
                server.addresses[0],
                Target(quiet=0.05, patience=30.0),
                encoding=None if is_in_url else encoding,
                registry=REGISTRY,
                options=calling,
            )
    assert [result for result in results if result.verdict is Verdict.FAIL] == []
    return {result.name for result in results if result.verdict is Verdict.NOT_SUPPORTED} - AUTH
