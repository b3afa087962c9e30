"""A connection that is killed again and again over real sockets loses no element, and repeats
none. `nox -s resume` takes 1,000 kills.
"""

from pathlib import Path

import pytest
import trio

from campaigns.resume._kills import TLS, run_kills, tls_options
from tests._real_time import HANGS_AFTER

KILLS = 30


@pytest.mark.parametrize("scheme", ["tcp", "tls", "unix"])
async def test_kills_cost_no_element(scheme: str, tmp_path: Path) -> None:
    """Elements flow in both directions;
    each comes once, and the bytes that are kept for a loss stay within its bound.
    """
    with trio.fail_after(HANGS_AFTER):  # real sockets
        figures = await run_kills(
            KILLS,
            scheme=scheme,
            folder=tmp_path,
            options=tls_options(tmp_path) if scheme in TLS else None,
        )
    assert (figures.lost, figures.repeated) == (0, 0)
    assert figures.resumed >= KILLS // 2 - 1
    assert figures.most_retained <= figures.bound, figures
