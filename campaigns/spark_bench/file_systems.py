"""An audit through the file systems of Spark: a record in HDFS and one in S3 give the same report as
the same record in a folder.

HDFS is a cluster of one node in the process of Spark, from Hadoop's jar for tests. S3 is a server
that is given as a URL, such as that of ``moto_server``. Maven has the jars:

    mvn dependency:get -Dtransitive=false -Dartifact=org.apache.hadoop:hadoop-client-minicluster:3.5.0

and in the same way ``org.apache.hadoop:hadoop-aws:3.5.0``, ``software.amazon.awssdk:bundle`` and
``software.amazon.s3.analyticsaccelerator:analyticsaccelerator-s3`` in the versions that it names.
"""

import argparse
import sys
import tempfile
from pathlib import Path
from random import Random
from time import monotonic
from typing import Any
from urllib.request import Request, urlopen

from penstock_spark import session
from penstock_spark.audit import audit

sys.path.insert(0, str(Path(__file__).parents[2] / "plugins/penstock-spark/tests"))
from _traces import tell_subscriptions
from test_job import broken_trace

S3_SETTINGS = {
    "spark.hadoop.fs.s3a.access.key": "any",
    "spark.hadoop.fs.s3a.secret.key": "any",
    "spark.hadoop.fs.s3a.path.style.access": "true",
    "spark.hadoop.fs.s3a.connection.ssl.enabled": "false",
    "spark.hadoop.fs.s3a.endpoint.region": "us-east-1",
}


def record_in(folder: Path) -> None:
    """Write a record of 2,000 subscriptions, half of them with faults."""
    random = Random(7)
    trace = broken_trace(random, 2_000)
    trace.write(folder, random, groups=5)
    tell_subscriptions(folder, trace)


def in_hdfs(spark: Any, folder: Path, base: Path) -> tuple[str, Any]:
    """Start HDFS, copy the record into it, and return its URL and the cluster."""
    java = spark._jvm
    settings = java.org.apache.hadoop.conf.Configuration()
    settings.set("hdfs.minidfs.basedir", str(base))
    cluster = java.org.apache.hadoop.hdfs.MiniDFSCluster.Builder(settings).numDataNodes(1).build()
    cluster.waitActive()
    path = java.org.apache.hadoop.fs.Path
    for file in folder.iterdir():
        cluster.getFileSystem().copyFromLocalFile(
            path(file.as_uri()), path(f"/signals/{file.name}")
        )
    return f"hdfs://localhost:{cluster.getNameNodePort()}/signals", cluster


def in_s3(server: str, folder: Path) -> str:
    """Copy the record into a bucket, and return its URL."""
    _put(f"{server}/records", b"")
    for file in folder.iterdir():
        _put(f"{server}/records/signals/{file.name}", file.read_bytes())
    return "s3a://records/signals"


def _put(url: str, data: bytes) -> None:
    kind = {"Content-Type": "application/octet-stream"}  # else it would be those of a form
    asked = Request(url, data=data, method="PUT", headers=kind)  # the user's server
    with urlopen(asked, timeout=60) as answer:  # as above
        answer.read()


def check(spark: Any, url: str, folder: Path) -> bool:
    """Print whether the reports are the same, and how long both took."""
    begun = monotonic()
    found = audit(spark, url)
    middle = monotonic()
    same = found == audit(spark, folder)
    streams = sum(each["subscriptions"] for each in found["violations"].values())
    print(
        f"{url}: {'the same report' if same else 'ANOTHER REPORT'}, {streams:,} violations, "
        f"{middle - begun:.1f} s beside {monotonic() - middle:.1f} s"
    )
    return same


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jars", required=True, help="the jars, with commas")
    parser.add_argument("--hdfs", action="store_true", help="check HDFS")
    parser.add_argument("--s3", metavar="URL", help="check S3 at this server")
    options = parser.parse_args()
    settings = {
        "spark.driver.extraClassPath": options.jars.replace(",", ":"),
        "spark.jars": options.jars,
        "spark.ui.enabled": "false",
    }
    if options.s3:
        settings |= S3_SETTINGS | {"spark.hadoop.fs.s3a.endpoint": options.s3}
    spark = session("local[2]", name="audit of file systems", settings=settings)
    results = []
    try:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name, "record")
            folder.mkdir()
            record_in(folder)
            results.append(check(spark, folder.as_uri(), folder))
            if options.hdfs:
                url, cluster = in_hdfs(spark, folder, Path(name, "hdfs"))
                try:
                    results.append(check(spark, url, folder))
                finally:
                    cluster.shutdown()
            if options.s3:
                results.append(check(spark, in_s3(options.s3, folder), folder))
    finally:
        spark.stop()
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
