"""`penstock pub`: the lines of standard input, for whoever subscribes."""

import pytest

from penstock.cli import _pub, main
from tests.cli._programs import line_of, penstock


@pytest.mark.parametrize("protocol", ["", "reactivesocket+"])
def test_lines_reach_a_subscriber_and_the_end_does_too(protocol: str) -> None:
    """The last one as well, though nothing ends it; in the protocol that the URL names."""
    with penstock("pub", f"{protocol}tcp://127.0.0.1:0/lines") as publisher:
        address = line_of(publisher).split(";", maxsplit=1)[0].split()[-1]
        with penstock("cat", f"{address}/lines", "--quiet") as reader:
            assert publisher.stdin is not None
            publisher.stdin.write(b"one\n\nthree")
            publisher.stdin.close()
            assert publisher.wait(20) == 0
            assert line_of(publisher) == "3 lines published\n"
            publisher.stdin = None
            assert reader.communicate(timeout=20)[0] == b"one\n\nthree\n"


def test_a_line_without_end_is_refused(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """No more of it is held than an element may have."""

    async def somebody(self: object) -> None: ...

    monkeypatch.setattr(_pub, "LONGEST", 10)
    monkeypatch.setattr(_pub, "_read", lambda size: b"x" * 6)
    monkeypatch.setattr(_pub.Topic, "wait_subscribers", somebody)
    assert main(["pub", "memory://lines/lines", "--quiet"]) == 1
    assert "a line of more than 10 bytes" in capsys.readouterr().err
