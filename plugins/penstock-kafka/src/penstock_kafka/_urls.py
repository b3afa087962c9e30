"""Topics by their URL."""

from typing import ClassVar

from penstock.brokers import LogAtUrl, LogUrls
from penstock_kafka._late import LateUrls
from penstock_kafka._log import KafkaLog


class KafkaUrls(LogUrls):
    """``kafka://127.0.0.1:9092/orders?partition=0&start=500&stop=latest``: over plain TCP, without
    a user. Others need a `KafkaLog`.
    """

    schemes: ClassVar[tuple[str, ...]] = LateUrls.schemes
    why_no_connection: ClassVar[str] = LateUrls.why_no_connection
    what: ClassVar[str] = "partition of a topic"
    example: ClassVar[str] = (
        "write its brokers and its name, and from where to where, as in "
        "kafka://127.0.0.1:9092/orders?partition=0&start=500&stop=latest. For TLS and a user open "
        "a KafkaLog(access=KafkaAccess(...))"
    )

    def open_log(self, at: LogAtUrl) -> KafkaLog | None:
        """Return the log of the topic."""
        topic = "/".join(at.path)
        return KafkaLog(at.parts.netloc, topic, retention=at.retention) if topic else None
