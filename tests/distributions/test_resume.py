"""Connections over the transports and in the encodings of plugins go on after a loss,
as those of penstock itself do.

Run by `nox -s plugins`, which installs all of them.
"""

from pathlib import Path

import pytest
import trio

from campaigns.resume._kills import TLS, run_kills, tls_options
from penstock.spi import build_registry
from tests._real_time import HANGS_AFTER

KILLS = 20


@pytest.mark.parametrize(
    ("scheme", "encoding"),
    [
        ("ws", None),
        ("wss", None),
        ("tcp", "msgpack"),
        ("tls", "protobuf"),
        ("unix", "msgpack"),
        ("ws", "protobuf"),
    ],
)
async def test_kills_cost_no_element(scheme: str, encoding: str | None, tmp_path: Path) -> None:
    """In both directions each element comes once, also if the kill hits a message of the
    handshake of HTTP, of TLS or of the resume.
    """
    assert scheme in build_registry().transports
    options = tls_options(tmp_path) if scheme in TLS else None
    with trio.fail_after(HANGS_AFTER):  # real sockets
        figures = await run_kills(
            KILLS, scheme=scheme, folder=tmp_path, options=options, encoding=encoding
        )
    assert (figures.lost, figures.repeated) == (0, 0)
    assert figures.resumed >= KILLS // 2 - 1
    assert figures.most_retained <= figures.bound, figures
