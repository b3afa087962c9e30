"""A broker of Apache Kafka that tests and campaigns start for themselves.

Rules of this file:

* The broker runs in KRaft mode, in a folder of its own, on free ports of 127.0.0.1, with a bounded
  heap. `close` ends it and removes the folder.
* `why_missing` names the program that is not there, so that a test can say why it is skipped.
* Maven fetches the jars once; they are in its own cache.
"""

import asyncio
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Final, Self

from campaigns._processes import stop

HERE: Final = Path(__file__).parent
HEAP: Final = "512m"
MEASURED_HEAP: Final = "1g"
STARTS_WITHIN: Final = 60.0
"""Seconds: on a busy machine the JVM takes some of them."""

_CLUSTER: Final = "cGVuc3RvY2stdGVzdHMtMQ"  # any 16 bytes, as Kafka writes them

_SETTINGS: Final = """\
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller}
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}
advertised.listeners=PLAINTEXT://127.0.0.1:{port}
controller.listener.names=CONTROLLER
log.dirs={folder}/data
auto.create.topics.enable=false
offsets.topic.num.partitions=4
offsets.topic.replication.factor=1
transaction.state.log.num.partitions=4
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
group.initial.rebalance.delay.ms=0
group.min.session.timeout.ms=1000
log.retention.check.interval.ms=500
log.initial.task.delay.ms=500
num.network.threads=2
num.io.threads=2
"""

_GUARD: Final = """\
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller},SASL_PLAINTEXT://127.0.0.1:{guarded}
advertised.listeners=PLAINTEXT://127.0.0.1:{port},SASL_PLAINTEXT://127.0.0.1:{guarded}
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,SASL_PLAINTEXT:SASL_PLAINTEXT
sasl.enabled.mechanisms=PLAIN
listener.name.sasl_plaintext.plain.sasl.jaas.config=\\
  org.apache.kafka.common.security.plain.PlainLoginModule required user_alice="swordfish";
authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer
super.users=User:ANONYMOUS
"""
"""A second listener, for the user alice, who has no rights. The first one stays as it is."""

_SECURED: Final = """\
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller},SSL://127.0.0.1:{guarded}
advertised.listeners=PLAINTEXT://127.0.0.1:{port},SSL://127.0.0.1:{guarded}
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,SSL:SSL
listener.name.ssl.ssl.keystore.type=PEM
listener.name.ssl.ssl.keystore.location={certificate}
"""
"""A second listener, with TLS."""


OWN_JARS: Final = (
    "kafka-clients",
    "commons-pool2",
    "spark-token-provider-kafka",
    "spark-sql-kafka",
)
"""The jars of Spark's connector that Spark does not have."""


def connector_jars() -> list[str]:
    """Return the jars that a session of Spark needs for Kafka."""
    found = class_path(HERE / "spark-connector.xml").strip().split(os.pathsep)
    return [jar for jar in found if Path(jar).name.startswith(OWN_JARS)]


def why_missing() -> str | None:
    """Return which program a broker needs and the machine lacks; None if all are there."""
    for program, package in (("java", "Java 17 or newer"), ("mvn", "Maven")):
        if shutil.which(program) is None:
            return f"a broker of Kafka needs {program} on the PATH: install {package}"
    return None


def class_path(pom: Path = HERE / "pom.xml") -> str:
    """Return the class path of a project: of Kafka itself. Maven fetches what it has not."""
    with tempfile.TemporaryDirectory() as folder:
        # Maven writes into the folder of the project.
        shutil.copy(pom, Path(folder) / "pom.xml")
        found = Path(folder) / "class-path"
        arguments = ("-q", "-B", "dependency:build-classpath", "-DincludeScope=runtime")
        arguments += (f"-Dmdep.outputFile={found}",)
        done = subprocess.run(
            ["mvn", *arguments], cwd=folder, capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise RuntimeError(f"Maven did not find the jars of Kafka:\n{done.stdout[-2_000:]}")
        return found.read_text()


class LocalKafka:
    """One broker. `with LocalKafka() as kafka` starts it; `kafka.address` is where it is."""

    def __init__(
        self,
        *,
        is_measured: bool = False,
        is_guarded: bool = False,
        certificate: Path | None = None,
        **settings: str,
    ) -> None:
        """With `is_guarded`, `guarded_address` is a listener for the user alice, whose password is
        swordfish; with `certificate`, a file with a key and its certificates, one with TLS.
        `settings` are those of the broker, with ``_`` in the place of dots. One that is measured
        has more memory, and compiles its code better, which makes its first minute slower.
        """
        self._more = _GUARD if is_guarded else _SECURED if certificate else ""
        self._certificate = certificate
        self._heap = MEASURED_HEAP if is_measured else HEAP
        self._compiler = (
            ["-XX:+UseParallelGC"]
            if is_measured
            else ["-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
        )
        self._settings = {name.replace("_", "."): value for name, value in settings.items()}
        self._stack = ExitStack()
        self._process: subprocess.Popen[bytes] | None = None
        self.address: str = ""
        self.guarded_address: str = ""

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            self._folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="kafka-")))
            self._classes = class_path()
            port, controller, guarded = _free_ports(3)
            self.address = f"127.0.0.1:{port}"
            self.guarded_address = f"127.0.0.1:{guarded}"
            self._file = self._folder / "server.properties"
            places = {"port": port, "controller": controller, "guarded": guarded}
            text = (_SETTINGS + self._more).format(
                folder=self._folder, certificate=self._certificate, **places
            )
            more = "".join(f"{name}={value}\n" for name, value in self._settings.items())
            self._file.write_text(text + more)
            self._run_tool("kafka.tools.StorageTool", "format", "-t", _CLUSTER, "-c", self._file)
            stack.callback(self.kill)
            self.start()
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the broker, and remove its folder."""
        self._stack.close()

    @property
    def url(self) -> str:
        """The address."""
        return self.address

    def make_topic(self, name: str, partitions: int = 1) -> None:
        """Make a topic."""
        from aiokafka.admin import AIOKafkaAdminClient, NewTopic  # of a plugin

        async def make() -> None:
            admin = AIOKafkaAdminClient(bootstrap_servers=self.address)
            await admin.start()
            try:
                await admin.create_topics([NewTopic(name, partitions, 1)])
            finally:
                await admin.close()

        # In a thread: the caller may run in trio.
        with ThreadPoolExecutor(1) as pool:
            pool.submit(asyncio.run, make()).result()

    # --- the process

    def start(self) -> None:
        """Start the broker, with the data of before, and wait until it answers."""
        with (self._folder / "broker.log").open("ab") as output:
            self._process = subprocess.Popen(
                self._command("kafka.Kafka", self._file), stdout=output, stderr=output
            )
        deadline = time.monotonic() + STARTS_WITHIN
        while not self._answers():
            if self._process.poll() is not None or time.monotonic() > deadline:
                lines = (self._folder / "broker.log").read_text(errors="replace")
                self.kill()
                raise RuntimeError(f"the broker of Kafka did not start:\n{lines[-3_000:]}")
            time.sleep(0.1)

    def kill(self) -> None:
        """End the broker at once, as kill -9 does."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.wait()

    def pause(self) -> None:
        """Stop the broker: its connections stay, and it answers nothing."""
        if self._process is not None:
            stop(self._process.pid)

    def go_on(self) -> None:
        """Let a broker go on that was paused."""
        if self._process is not None:
            self._process.send_signal(signal.SIGCONT)

    def _answers(self) -> bool:
        host, _, port = self.address.partition(":")
        with socket.socket() as probe:
            probe.settimeout(1)
            return probe.connect_ex((host, int(port))) == 0

    def _command(self, name: str, *arguments: object) -> list[str]:
        options = (f"-Xmx{self._heap}", *self._compiler)
        return ["java", *options, "-cp", self._classes, name, *map(str, arguments)]

    def _run_tool(self, name: str, *arguments: object) -> None:
        done = subprocess.run(
            self._command(name, *arguments), capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise RuntimeError(f"{name} failed:\n{done.stdout[-2_000:]}{done.stderr[-2_000:]}")


def _free_ports(count: int) -> list[int]:
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]
