"""The requirements of a Spark job, and the errors if one is missing."""

import pytest
from penstock_spark import _session
from penstock_spark._session import check_requirements

from penstock.api import UsageError


@pytest.fixture(autouse=True)
def all_is_there(monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """A machine that has everything; a test changes one thing."""
    versions = {"pyspark": "4.3.0", "pandas": "2.3.3"}
    monkeypatch.setattr(_session, "find_spec", versions.get)
    monkeypatch.setattr(_session, "version", versions.__getitem__)
    monkeypatch.setattr(_session, "ensure_java", lambda: None)
    return versions


def test_a_machine_with_everything_is_accepted() -> None:
    """No error: so each of the others comes from what its test takes away."""
    assert check_requirements() is None


@pytest.mark.parametrize(
    ("name", "found", "text"),
    [
        ("pyspark", None, r"needs pyspark; install it with: pip install 'penstock-spark\[spark\]'"),
        ("pyspark", "4.1.4", r"needs pyspark 4\.2 or newer, and 4\.1\.4 is installed"),
        ("pandas", None, "pyspark needs pandas"),
        ("pandas", "3.0.1", r"does not work with pandas 3\.0\.1; install an older one"),
    ],
)
def test_a_library_that_does_not_fit_is_told(
    all_is_there: dict[str, str], name: str, found: str | None, text: str
) -> None:
    """With the command that installs the right one."""
    if found is None:
        del all_is_there[name]
    else:
        all_is_there[name] = found
    with pytest.raises(UsageError, match=text):
        check_requirements()


def test_a_missing_java_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """The check asks `ensure_java`, whose error is that of the session."""

    def refuse() -> None:
        raise UsageError("Spark needs Java")

    monkeypatch.setattr(_session, "ensure_java", refuse)
    with pytest.raises(UsageError, match="Spark needs Java"):
        check_requirements()
