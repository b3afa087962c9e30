"""`penstock --version` prints the versions that matter for a report."""

import tomllib

import pytest

from penstock.cli import _version, main
from tests.cli._programs import ROOT


def test_the_version_is_that_of_the_project(capsys: pytest.CaptureFixture[str]) -> None:
    """On standard output, with status 0."""
    with pytest.raises(SystemExit) as ended:
        main(["--version"])
    assert ended.value.code == 0
    version = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"][
        "version"
    ]
    shown = capsys.readouterr()
    assert shown.out.startswith(f"penstock {version} (Python 3.")
    assert "trio 0." in shown.out
    assert shown.err == ""


def test_without_metadata_the_version_is_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    """A copied folder has no metadata. The rest of the line is still useful."""

    def version(name: str) -> str:
        raise _version.PackageNotFoundError(name)

    monkeypatch.setattr(_version, "version", version)
    assert _version.version_text().startswith("penstock unknown (Python")
