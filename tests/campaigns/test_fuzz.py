"""The campaign that fuzzes decoders: each target runs, and a fault in one is found."""

import importlib.util
import zipfile
from pathlib import Path
from types import ModuleType

import pytest

from campaigns.fuzz import __main__ as campaign

NEEDED = {
    "arrow": ["penstock_arrow"],
    "broker_links": ["penstock_nats", "penstock_redis"],
    "elements": ["penstock_msgpack", "penstock_protobuf"],
    "http": ["penstock_http"],
    "http2": ["penstock_http"],
    "rsio": ["penstock_msgpack", "penstock_protobuf"],
    "rsocket": ["penstock_rsocket"],
    "urls": ["penstock_nats", "penstock_redis"],
    "websocket": ["penstock_websocket"],
}

FAULTY = """
from support import fuzz, instrumented

def TestOneInput(data):
    if data.startswith(b"bad"):
        raise ValueError("found")

SEEDS = (b"good", b"", b"bad seed")

if __name__ == "__main__":
    fuzz(TestOneInput, SEEDS)
"""


@pytest.mark.parametrize("name", campaign.targets())
def test_a_target_takes_its_seeds_and_its_corpus(name: str) -> None:
    """Without atheris, which a plain run does not need."""
    for each in NEEDED.get(name, ()):
        pytest.importorskip(each)
    outcome = campaign.replay(name)
    assert not outcome.finding
    assert outcome.inputs >= 8


def test_each_target_has_a_corpus_and_a_row_on_the_page() -> None:
    """A target that is added has both."""
    page = (campaign.FOLDER.parent / "docs/how-to/fuzz.md").read_text(encoding="utf-8")
    for name in campaign.targets():
        assert (campaign.CORPUS / f"{name}.zip").exists(), name
        assert f"| `{name}` |" in page, name


def test_an_input_that_raises_is_a_finding(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The campaign fails, and shows the input and the error."""
    (tmp_path / "fuzz_faulty.py").write_text(FAULTY)
    support = campaign.FOLDER / "support.py"
    (tmp_path / "support.py").write_text(support.read_text(encoding="utf-8"))
    monkeypatch.setattr(campaign, "FOLDER", tmp_path)
    assert campaign.main(["--seconds", "0"]) == 1
    printed = capsys.readouterr().out
    assert "seed 2 is a finding: b'bad seed'" in printed
    assert "ValueError: found" in printed
    assert printed.endswith("0 inputs, findings in faulty\n")


def test_a_corpus_is_the_same_file_for_the_same_inputs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The smallest inputs, each once."""
    monkeypatch.setattr(campaign, "CORPUS", tmp_path)
    written = []
    for inputs in ([b"bb", b"a", b"a"], [b"a", b"bb"]):
        campaign.write_corpus("x", inputs)
        written.append((tmp_path / "x.zip").read_bytes())
    assert written[0] == written[1]
    with zipfile.ZipFile(tmp_path / "x.zip") as archive:
        assert [archive.read(each) for each in archive.namelist()] == [b"a", b"bb"]


def _support() -> ModuleType:
    spec = importlib.util.spec_from_file_location("support", campaign.FOLDER / "support.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("choice", [0, 1, 2, 77, 255])
def test_pieces_are_the_whole_input(choice: int) -> None:
    """Wherever it is cut."""
    pieces = _support().pieces_of(bytes(range(100)), choice)
    assert b"".join(pieces) == bytes(range(100))
    assert all(pieces)
