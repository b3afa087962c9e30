"""`penstock pub` publishes the lines of standard input."""

import pytest

from penstock.cli import _input, _pub, main
from tests._real_time import HANGS_AFTER
from tests.cli._programs import line_of, penstock


@pytest.mark.parametrize("protocol", ["", "reactivesocket+"])
def test_a_subscriber_receives_every_line_and_the_end(protocol: str) -> None:
    """Also the last line, which has no line break. The URL selects the protocol."""
    with penstock("pub", f"{protocol}tcp://127.0.0.1:0/lines") as publisher:
        address = line_of(publisher).split(";", maxsplit=1)[0].split()[-1]
        with penstock("cat", f"{address}/lines", "--quiet") as reader:
            assert publisher.stdin is not None
            publisher.stdin.write(b"one\n\nthree")
            publisher.stdin.close()
            assert publisher.wait(HANGS_AFTER) == 0
            assert line_of(publisher) == "3 lines published\n"
            publisher.stdin = None
            assert reader.communicate(timeout=HANGS_AFTER)[0] == b"one\n\nthree\n"


def test_a_line_above_the_size_of_an_element_is_refused(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Even if it has no end: the bytes that are kept are bounded."""

    async def return_at_once(self: object) -> None: ...

    # It would change the process of the tests.
    monkeypatch.setattr(_pub, "tune_collector", lambda: None)
    monkeypatch.setattr(_pub, "MAX_LINE", 10)
    monkeypatch.setattr(_input, "_read", lambda size: b"x" * 6)
    monkeypatch.setattr(_pub.Topic, "wait_subscribers", return_at_once)
    assert main(["pub", "memory://lines/lines", "--quiet"]) == 1
    assert "a line has more than 10 bytes" in capsys.readouterr().err
