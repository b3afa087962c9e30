"""The objects of `json_objects` as classes of msgspec and of protobuf. Both processes of a
benchmark import this file.
"""

from typing import Any

import msgspec


class Article(msgspec.Struct):
    """An object of five fields."""

    id: int
    name: str
    price: float
    tags: list[str]
    stocked: bool


def protobuf_article() -> Any:
    """Return the same as a class of protobuf. It is made without `protoc`."""
    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

    file = descriptor_pb2.FileDescriptorProto(
        name="article.proto", package="bench", syntax="proto3"
    )
    message = file.message_type.add(name="Article")
    # The numbers are those of int64, string, double, string and bool; 3 is repeated.
    for number, (name, kind, label) in enumerate(
        (("id", 3, 1), ("name", 9, 1), ("price", 1, 1), ("tags", 9, 3), ("stocked", 8, 1)), 1
    ):
        message.field.add(name=name, number=number, type=kind, label=label)
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("bench.Article"))
