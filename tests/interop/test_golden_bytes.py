"""The golden bytes of the reference, written and read by MessagePack and Protocol Buffers of
Node.js, which others have made.
"""

import json
import re
from importlib.resources import files
from pathlib import Path
from typing import Any

import attrs
import pytest
import trio

from penstock.protocols import rsio
from penstock.spi import build_registry
from penstock.testing import MessageList
from tests.browser._programs import npm_package, run_node

HERE = Path(__file__).parent
PAGE = HERE.parents[1] / "docs/reference/rsio.md"
ROW = re.compile(r"^\| ([^|]+) \| `([0-9a-f ]+)` \| `([0-9a-f ]+)` \|$", re.MULTILINE)
# The change of the encoding is a message of the compact one,
# and the extension defines the bytes in the body of its message.
OTHERS = re.compile("switchEncoding|of an extension")


def _rows() -> dict[str, tuple[str, str]]:
    """Return the bytes in msgpack and in protobuf, by the text of the page."""
    return {
        text: (msgpack, protobuf)
        for text, msgpack, protobuf in ROW.findall(PAGE.read_text("utf-8"))
        if not OTHERS.search(text)
    }


def _message(encoding: str, data: str) -> rsio.Message:
    """Return the message that penstock reads."""
    sink = MessageList()
    sink.receive_on_subscribe(0, 0)
    sink.receive_on_subscribe(1, 1 if data.startswith("22") else 0)
    sink.messages.clear()
    made: Any = build_registry().encoding(encoding).make()
    made.decoder(sink, sink.streams, rsio.WireLimits()).feed(bytes.fromhex(data))
    (message,) = sink.messages
    return message


def _value(value: object) -> dict[str, Any]:
    if isinstance(value, int):
        return {"int": str(value)}
    if isinstance(value, str):
        return {"text": value}
    return (
        {"bytes": value.hex()}
        if isinstance(value, bytes)
        else {"ints": [str(each) for each in value]}
    )  # type: ignore[attr-defined]  # the ids of a hello


def _question(msgpack: str, protobuf: str) -> dict[str, Any]:
    message = _message("msgpack", msgpack)
    name = re.sub("^(Client|Server)Hello$", "Hello", type(message).__name__).replace("Last", "")
    values = {name: _value(value) for name, value in attrs.asdict(message).items()}
    return {
        "name": name,
        "type": int(msgpack[:2], 16),
        "values": values,
        "msgpack": _hex(msgpack),
        "protobuf": _hex(protobuf),
    }


def _hex(text: str) -> str:
    return text.replace(" ", "")


@pytest.fixture(scope="module")
def asked(
    tmp_path_factory: pytest.TempPathFactory,
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """What Node.js was asked, and its answers."""
    npm_package("@msgpack/msgpack")
    npm_package("protobufjs")
    questions = [_question(*row) for row in _rows().values()]
    file = tmp_path_factory.mktemp("golden") / "questions.json"
    proto = files("penstock_protobuf").joinpath("rsio.proto").read_text(encoding="utf-8")
    file.write_text(json.dumps({"proto": proto, "messages": questions}), "utf-8")
    return questions, json.loads(trio.run(run_node, str(HERE / "golden.mjs"), str(file)))


def test_the_page_has_each_kind_of_message() -> None:
    """A table that this test cannot read would check nothing."""
    kinds = {row[0][:2] for row in _rows().values()}
    assert kinds == {"01", "02", "03", "10", "11", "12", "20", "21", "22", "23", "24", "25", "26"}


@pytest.mark.parametrize("encoding", ["msgpack", "protobuf"])
def test_penstock_reads_the_same_message_in_each_encoding(encoding: str) -> None:
    """The two columns of a row are one message."""
    for text, row in _rows().items():
        assert _message(encoding, row[encoding == "protobuf"]) == _message("msgpack", row[0]), text


@pytest.mark.parametrize("encoding", ["msgpack", "protobuf"])
def test_node_writes_the_bytes_of_the_page(
    asked: tuple[list[dict[str, Any]], list[dict[str, Any]]], encoding: str
) -> None:
    """From the values of each message; protobufjs has read `rsio.proto` itself."""
    questions, answers = asked
    assert [each[encoding] for each in answers] == [each[encoding] for each in questions]


def test_node_reads_the_values_from_the_bytes_of_the_page(
    asked: tuple[list[dict[str, Any]], list[dict[str, Any]]],
) -> None:
    """The type, and each field."""
    questions, answers = asked
    for question, answer in zip(questions, answers, strict=True):
        assert answer["read_msgpack"] == [question["type"], *question["values"].values()]
        assert answer["read_protobuf"] == question["values"]
