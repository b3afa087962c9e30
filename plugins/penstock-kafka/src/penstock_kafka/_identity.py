"""The id of a topic: one that was deleted and made anew has the same name, and another id.

aiokafka asks for the metadata of a topic in a form without ids. This is version 11 of the request,
which brokers have from Kafka 2.8 on.
"""

from typing import Any, Final

from aiokafka.protocol.api import Request, RequestStruct, Response
from aiokafka.protocol.types import (
    Boolean,
    CompactArray,
    CompactString,
    Int16,
    Int32,
    Int64,
    Schema,
    TaggedFields,
)

NO_ID: Final = (0, 0)
"""The id of a topic that is missing."""

_TEXT: Final = CompactString("utf-8")
_TAGS: Final = ("tags", TaggedFields)
_ID: Final = (("id_begin", Int64), ("id_end", Int64))


class _MetadataResponse(Response):  # type: ignore[misc]  # aiokafka has no types
    API_KEY = 3
    API_VERSION = 11
    SCHEMA = Schema(
        ("throttle_time_ms", Int32),
        (
            "brokers",
            CompactArray(("node", Int32), ("host", _TEXT), ("port", Int32), ("rack", _TEXT), _TAGS),
        ),
        ("cluster_id", _TEXT),
        ("controller", Int32),
        (
            "topics",
            CompactArray(
                ("error", Int16),
                ("name", _TEXT),
                *_ID,
                ("is_internal", Boolean),
                (
                    "partitions",
                    CompactArray(
                        ("error", Int16),
                        ("partition", Int32),
                        ("leader", Int32),
                        ("leader_epoch", Int32),
                        ("replicas", CompactArray(Int32)),
                        ("in_sync", CompactArray(Int32)),
                        ("offline", CompactArray(Int32)),
                        _TAGS,
                    ),
                ),
                ("operations", Int32),
                _TAGS,
            ),
        ),
        _TAGS,
    )


class _MetadataRequest(RequestStruct):  # type: ignore[misc]  # as above
    FLEXIBLE_VERSION = True
    API_KEY = 3
    API_VERSION = 11
    RESPONSE_TYPE = _MetadataResponse
    SCHEMA = Schema(
        ("topics", CompactArray(*_ID, ("name", _TEXT), _TAGS)),
        ("may_create", Boolean),
        ("with_operations", Boolean),
        _TAGS,
    )


class IdentityRequest(Request[_MetadataRequest]):  # type: ignore[misc]  # as above
    """Asks for the id of a topic, and its partitions. It does not make the topic.

    With an older broker aiokafka raises a RuntimeError, as for any request that it does not know.
    """

    API_KEY = 3

    def __init__(self, topic: str) -> None:
        self._topic = topic

    def build(self, kind: Any) -> Any:
        return kind([(*NO_ID, self._topic, {})], False, False, {})  # noqa: FBT003  # aiokafka's form


def identity_of(response: Any) -> tuple[int, int]:
    """Return the id that the answer to an `IdentityRequest` has, or `NO_ID`."""
    _, _, begin, end, *_ = response.topics[0]
    return begin, end


def partitions_in(response: Any) -> int:
    """Return how many partitions the answer to an `IdentityRequest` has."""
    return len(response.topics[0][5])
