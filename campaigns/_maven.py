"""Maven and the JVM, for campaigns that start programs of Java."""

import shutil
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

RSOCKET_POM = Path(__file__).parent / "interop_rsocket/java/pom.xml"
"""The libraries of rsocket-java."""

COMMON_JAVA = RSOCKET_POM.parents[1] / "spring/src/main/java/common"
"""What the programs share. It lies there so that the folder of the how-to's builds by itself."""


def run_maven(folder: Path, *goals: str, shows: bool = True) -> None:
    """Run goals of Maven in the folder of a project. Without Maven the program ends and says so."""
    maven = shutil.which("mvn")
    if maven is None:
        sys.exit("mvn is not on the PATH: install Maven and Java 17")
    subprocess.run([maven, "-q", "-B", *goals], cwd=folder, check=True, capture_output=not shows)


def rsocket_java(folder: Path, sources: Iterable[Path]) -> list[str]:
    """Compile programs against rsocket-java in an existing folder. Return the command that runs
    them, without the name of the class.
    """
    shutil.copy(RSOCKET_POM, folder)
    run_maven(folder, "dependency:copy-dependencies", "-DoutputDirectory=lib")
    libraries = f"{folder}/lib/*"
    subprocess.run(["javac", "-cp", libraries, "-d", str(folder), *map(str, sources)], check=True)
    return ["java", "-cp", f"{libraries}:{folder}"]
