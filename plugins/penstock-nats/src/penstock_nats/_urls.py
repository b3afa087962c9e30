"""Logs on JetStream by their URL."""

from typing import ClassVar

from penstock.brokers import LogAtUrl, LogUrls
from penstock_nats._late import LateUrls
from penstock_nats._log import JetStreamLog


class NatsUrls(LogUrls):
    """``nats://127.0.0.1:4222/orders?partition=east&start=500&stop=latest``."""

    schemes: ClassVar[tuple[str, ...]] = LateUrls.schemes
    why_no_connection: ClassVar[str] = LateUrls.why_no_connection
    what: ClassVar[str] = "log on JetStream"
    example: ClassVar[str] = (
        "write the name of the log, and from where to where, as in "
        "nats://127.0.0.1:4222/orders?start=500&stop=latest"
    )
    options: ClassVar[frozenset[str]] = frozenset({"servers"})
    """``servers=host:port,host:port`` are others of the same cluster."""

    logins: ClassVar[dict[str, str]] = {
        "basic": "Credentials.basic(user, password)",
        "bearer": "Credentials.bearer(token)",
    }

    def open_log(self, at: LogAtUrl) -> JetStreamLog | None:
        """Return the log."""
        name = "/".join(at.path)
        if not name:
            return None
        others = filter(None, at.options.get("servers", "").split(","))
        url = f"nats://{at.user}{','.join((at.parts.netloc, *others))}"
        return JetStreamLog(
            url,
            name,
            partitions=[at.partition],
            read_only=at.read_only,
            retention=at.retention,
        )
