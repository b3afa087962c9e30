"""A broker of Kafka for a measurement, and the jars of Spark's connector. Maven has both.

Rules of this file:

* Nothing is installed: the jars stay in the repository of Maven, the data of the broker in a folder
  that the caller deletes.
* The broker and its controller are one process, on addresses of this machine.
"""

import base64
import os
import socket
import subprocess
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

CONNECTOR = "org.apache.spark:spark-sql-kafka-0-10_2.13:4.2.0"
BROKER = "org.apache.kafka:kafka_2.13:4.4.0"

OWN_JARS = ("kafka-clients", "commons-pool2", "spark-token-provider-kafka", "spark-sql-kafka")
"""The jars of the connector that Spark does not have."""

POM = """<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>
<groupId>measured</groupId><artifactId>measured</artifactId><version>1</version><dependencies>
<dependency><groupId>{}</groupId><artifactId>{}</artifactId><version>{}</version></dependency>
</dependencies></project>"""

SETTINGS = """process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller}
listeners=PLAINTEXT://127.0.0.1:{broker},CONTROLLER://127.0.0.1:{controller}
controller.listener.names=CONTROLLER
log.dirs={folder}/data
num.partitions=2
offsets.topic.replication.factor=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
message.max.bytes=8388608
"""

STARTS_IN = 120.0
"""Seconds that a broker may take to answer."""


def jars_of(artifact: str, folder: Path) -> list[str]:
    """Return the jars of an artifact and of what it needs, as Maven resolves them."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "pom.xml").write_text(POM.format(*artifact.split(":")))
    command = ["mvn", "-q", "-B", "dependency:build-classpath", "-DincludeScope=runtime"]
    subprocess.run([*command, f"-Dmdep.outputFile={folder}/jars"], cwd=folder, check=True)
    return (folder / "jars").read_text().strip().split(os.pathsep)


def connector_jars(folder: Path) -> list[str]:
    """Return the jars that a session of Spark needs for Kafka."""
    found = jars_of(CONNECTOR, folder)
    return [jar for jar in found if Path(jar).name.startswith(OWN_JARS)]


@contextmanager
def broker(folder: Path) -> Iterator[str]:
    """Run a broker for the length of a block, and return its address."""
    jars = os.pathsep.join(jars_of(BROKER, folder / "broker"))
    ports = _free_ports()
    settings = folder / "server.properties"
    settings.write_text(SETTINGS.format(broker=ports[0], controller=ports[1], folder=folder))
    java = ["java", "-Xmx1g", "-XX:+UseParallelGC", "-cp", jars]
    cluster = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
    log = folder / "broker.log"
    with log.open("wb") as output:
        tool = [*java, "kafka.tools.StorageTool", "format", "-t", cluster, "-c", str(settings)]
        subprocess.run(tool, check=True, stdout=output, stderr=output)
        process = subprocess.Popen(
            [*java, "kafka.Kafka", str(settings)], stdout=output, stderr=output
        )
        try:
            _wait(ports[0], process, log)
            yield f"127.0.0.1:{ports[0]}"
        finally:
            process.terminate()
            try:
                process.wait(30)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _wait(port: int, process: subprocess.Popen[bytes], log: Path) -> None:
    ends = time.monotonic() + STARTS_IN
    while time.monotonic() < ends and process.poll() is None:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
        except OSError:
            time.sleep(0.2)
        else:
            return
    raise RuntimeError(f"the broker of Kafka did not start: {log.read_text()[-2000:]}")


def _free_ports() -> list[int]:
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(2)]
    found = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return found
