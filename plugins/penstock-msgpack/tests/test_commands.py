"""The commands with `--encoding msgpack`, each against a server of this process."""

from pathlib import Path

import pytest
import trio
from penstock_msgpack import MsgpackEncoding

import penstock
from penstock.cli._main import parse


def _service() -> penstock.Service:
    service = penstock.Service()
    service.publish("three", [b"one", b"two", b"three"])
    return service


async def _run(*arguments: str) -> int:
    options = parse(arguments)
    return int(await options.run(options))


async def test_cat_asks_for_the_encoding(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The decoder of the plugin reads what the server sends."""
    made: list[object] = []
    decoder = MsgpackEncoding.decoder
    monkeypatch.setattr(
        MsgpackEncoding,
        "decoder",
        lambda *arguments: made.append(arguments[0]) or decoder(*arguments),
    )
    async with penstock.serve(_service(), "tcp://127.0.0.1:0") as server:
        assert await _run("cat", f"{server.addresses[0]}/three", "--quiet") == 0
        assert made == []
        assert (
            await _run("cat", f"{server.addresses[0]}/three", "--encoding", "msgpack", "--quiet")
            == 0
        )
        assert len(made) == 2  # on each side
    assert capfd.readouterr().out.split() == ["one", "two", "three"] * 2


async def test_pub_speaks_the_encoding_from_the_first_byte(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The client also does so: its URL names the encoding."""
    lines = tmp_path / "lines"
    lines.write_text("one\ntwo\n", encoding="utf-8")
    with lines.open(encoding="utf-8") as file:
        monkeypatch.setattr("sys.stdin", file)
        url = f"unix://{tmp_path}/s"
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_run, "pub", f"{url}#lines", "--encoding", "msgpack", "--quiet")
            # The server may begin later than the client.
            async with penstock.subscribe(
                f"{url}?encoding=msgpack#lines", reconnect=penstock.Reconnect()
            ) as stream:
                assert [bytes(line) async for line in stream] == [b"one", b"two"]


@pytest.mark.parametrize("how", [("", ("--encoding", "msgpack")), ("?encoding=msgpack", ())])
async def test_tck_checks_in_the_encoding(
    how: tuple[str, tuple[str, ...]], capsys: pytest.CaptureFixture[str]
) -> None:
    """Some rows here, all of them in the tests of conformance."""
    at, options = how
    async with penstock.serve(
        _service(), f"rsio+tcp://127.0.0.1:0{at}", on_violation=lambda _: None
    ) as server:
        options = parse(
            [
                "tck",
                str(server.addresses[0]),
                *options,
                "--only",
                "complete",
                "--only",
                "hello",
                "--without",
                "empty",
            ]
        )
        assert await options.run(options) == 0
    assert "1 pass, 0 fail, 1 not supported" in capsys.readouterr().out
