"""The transport that the tests use, and the time that each test may take. Change the three
fixtures: then the tests use your transport.
"""

import inspect
from collections.abc import Awaitable, Callable
from functools import wraps
from typing import Any

import pytest
import trio
from penstock_template_transport import NetstringTransport

from penstock.spi import Transport

SECONDS = 60
"""A test that takes longer fails, and its traceback shows the line at which it waited. On a busy
machine a correct test takes seconds.
"""


@pytest.fixture
def transport() -> Transport:
    """The transport."""
    return NetstringTransport()


@pytest.fixture
def url() -> str:
    """A URL to listen at. For a Unix socket add the parameter ``tmp_path``, and return
    ``f"yours://{tmp_path}/socket"``.
    """
    return "netstring://127.0.0.1:0"


@pytest.fixture
def wrong_url() -> str:
    """A URL with the right scheme that lacks what the transport needs. For a Unix socket:
    ``"yours://"``, which names no file.
    """
    return "netstring:x"


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Bound the time of each async test."""
    if isinstance(item, pytest.Function) and inspect.iscoroutinefunction(item.obj):
        item.obj = _in_time(item.obj)


def _in_time(test: Callable[..., Awaitable[None]]) -> Callable[..., Awaitable[None]]:
    @wraps(test)
    async def bounded(**fixtures: Any) -> None:
        with trio.move_on_after(SECONDS) as limit:
            try:
                await test(**fixtures)
            except BaseException as error:
                if limit.cancel_called:
                    raise AssertionError(f"the test took longer than {SECONDS} s") from error
                raise

    return bounded
