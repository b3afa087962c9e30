"""The process's limit on open files: room for connections, raising it, and a line at the start."""

import logging
import os
import resource
from collections.abc import Iterator
from typing import Any

import pytest
import trio

import penstock
from penstock.api import Rejected
from penstock.runtime import connect, serve
from penstock.runtime.server import _open_files as module
from penstock.runtime.server._open_files import (
    connections_within,
    count_open_files,
    raise_open_files,
)
from tests.runtime._services import numbers_service


@pytest.fixture
def few_files() -> Iterator[int]:
    """The process may open 40 more files than it has open now, during the test."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    files = count_open_files() + 40
    resource.setrlimit(resource.RLIMIT_NOFILE, (files, hard))
    try:
        yield files
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.parametrize(
    ("files", "taken", "expected"),
    [
        (64, 12, 44),
        (256, 12, 212),
        (1024, 24, 872),
        (4096, 96, 3744),
        (20_000, 0, 10_000),
        (10, 5, 8),
        (64, 64, 8),
        (None, 5, 10_000),
    ],
)
def test_one_file_in_eight_is_kept_in_reserve(files: int | None, taken: int, expected: int) -> None:
    """256 at most, beside those that are open; and 8 connections at least."""
    assert connections_within(files, taken, 10_000) == expected


def test_a_lower_max_connections_stays() -> None:
    """Also below the least number."""
    assert connections_within(64, 12, 3) == 3


def test_open_files_are_counted() -> None:
    """One more after a file was opened."""
    before = count_open_files()
    descriptor = os.open(os.devnull, os.O_RDONLY)
    try:
        assert count_open_files() == before + 1
    finally:
        os.close(descriptor)


def test_raise_open_files_raises_the_soft_limit_to_the_hard_one(few_files: int) -> None:
    """And returns it. A second call changes nothing."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    assert few_files < hard
    assert penstock.raise_open_files is raise_open_files
    assert [raise_open_files(), raise_open_files()] == [hard, hard]
    assert resource.getrlimit(resource.RLIMIT_NOFILE) == (hard, hard)


def test_raise_open_files_tries_a_lower_number_where_the_hard_limit_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As on macOS; and never raises."""
    soft = [256]
    tried: list[Any] = []

    def refuse(_: int, limits: tuple[int, int]) -> None:
        tried.append(limits[0])
        if limits[0] != 10_240:
            raise ValueError("refused")
        soft[0] = limits[0]

    monkeypatch.setattr(resource, "getrlimit", lambda _: (soft[0], resource.RLIM_INFINITY))
    monkeypatch.setattr(resource, "setrlimit", refuse)
    assert raise_open_files() == 10_240
    assert tried == [resource.RLIM_INFINITY, 10_240]


async def test_a_server_with_few_files_accepts_connections_and_warns_at_the_start(
    few_files: int, caplog: pytest.LogCaptureFixture
) -> None:
    """Each connection here takes two files, one for each side:
    no file runs out with both sides of eight.
    """
    with caplog.at_level(logging.INFO, "penstock.server"):
        async with (
            serve(numbers_service(), "tcp://127.0.0.1:0") as server,
            trio.open_nursery() as nursery,
        ):
            accepted: list[None] = []
            all_accepted = trio.Event()

            async def hold() -> None:
                async with connect(server.addresses[0]) as peer:
                    await peer.wait_accepted()
                    accepted.append(None)
                    if len(accepted) == 8:
                        all_accepted.set()
                    await trio.sleep_forever()

            for _ in range(8):
                nursery.start_soon(hold)
            await all_accepted.wait()
            nursery.cancel_scope.cancel()
        (line,) = [record for record in caplog.records if "files open" in record.getMessage()]
    assert line.levelno == logging.WARNING
    assert f"this process may have {few_files} files open, so at most " in line.getMessage()
    assert "penstock.raise_open_files() before serve()" in line.getMessage()
    assert "LimitNOFILE=10288" in line.getMessage()


async def test_connections_beyond_the_files_are_refused_and_the_reserve_stays(
    few_files: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server refuses the connection that would take a file of the reserve."""
    monkeypatch.setattr(module, "LEAST_CONNECTIONS", 1)
    monkeypatch.setattr(module, "count_open_files", lambda: few_files - few_files // 8 - 1)
    async with (
        serve(numbers_service(), "tcp://127.0.0.1:0") as server,
        connect(server.addresses[0]) as peer,
    ):
        await peer.wait_accepted()
        with pytest.raises(Rejected, match="places:"):
            async with connect(server.addresses[0]) as refused:
                await refused.wait_accepted()
        assert dict(server.refused) == {"places:connections": 1}
        assert peer.is_connected


def test_a_process_with_enough_files_says_nothing(caplog: pytest.LogCaptureFixture) -> None:
    """And one that has enough for most uses gives an information, not a warning."""
    with caplog.at_level(logging.INFO, "penstock.server"):
        assert module.connections_possible(100) == 100
        assert caplog.records == []


def test_more_than_512_connections_are_no_reason_for_a_warning(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The usual 1,024 files: an information, with what to do."""
    monkeypatch.setattr(resource, "getrlimit", lambda _: (1024, 1024))
    with caplog.at_level(logging.INFO, "penstock.server"):
        assert 512 < module.connections_possible(10_000) < 1024 - 128
    (line,) = caplog.records
    assert line.levelno == logging.INFO
    assert "raise_open_files" not in line.getMessage()  # the soft limit is the hard one already


@pytest.mark.parametrize(("files", "spare"), [(None, 16), (1024, 16), (256, 8), (64, 2), (16, 0)])
def test_answers_to_refused_clients_take_a_quarter_of_the_reserve_at_most(
    files: int | None, spare: int
) -> None:
    """The rest of the process needs the reserve, and so do connections that are about to close."""
    assert module.spare_files(files, 16) == spare
