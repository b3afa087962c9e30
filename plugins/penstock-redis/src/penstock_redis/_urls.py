"""Logs on Redis by their URL."""

from typing import ClassVar, cast

from penstock.brokers import LogAtUrl, LogUrls
from penstock_redis._broker import Durability
from penstock_redis._late import LateUrls
from penstock_redis._log import RedisLog


class RedisUrls(LogUrls):
    """``redis://127.0.0.1:6379/0/orders?partition=east&start=500&stop=latest``."""

    schemes: ClassVar[tuple[str, ...]] = LateUrls.schemes
    why_no_connection: ClassVar[str] = LateUrls.why_no_connection
    what: ClassVar[str] = "log on Redis"
    example: ClassVar[str] = (
        "write the number of the database and the name of the log, and from where to where, as in "
        "redis://127.0.0.1:6379/0/orders?start=500&stop=latest"
    )
    options: ClassVar[frozenset[str]] = frozenset({"durability"})
    logins: ClassVar[dict[str, str]] = {"basic": "Credentials.basic(user, password)"}

    def open_log(self, at: LogAtUrl) -> RedisLog | None:
        """Return the log."""
        database, *words = at.path
        if not any(words):
            return None
        url = f"{at.parts.scheme}://{at.user}{at.parts.netloc}/{database}"
        return RedisLog(
            url,
            "/".join(words),
            partitions=[at.partition],
            read_only=at.read_only,
            retention=at.retention,
            durability=cast("Durability", at.options.get("durability", "always")),
        )
