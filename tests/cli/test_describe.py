"""`penstock describe` tells all that a service says of itself."""

import dataclasses
import datetime as dt
import enum
import json
import shlex
import uuid
from typing import Annotated, Any, Literal, NamedTuple

import msgspec
import pytest

import penstock
from penstock.api import UsageError
from penstock.cli._describe import asyncapi_of, chosen, example_command, lines_of
from penstock.cli._description import checked, read_description
from penstock.cli._main import parse
from penstock.runtime import DESCRIPTION, Service, serve
from penstock.spi import parse_url
from tests._real_time import HANGS_AFTER
from tests.cli._programs import penstock as program_of
from tests.cli.test_ls import HOSTILE
from tests.runtime.service.test_description import service_with

HERE = parse_url("tcp://127.0.0.1:7000")


async def described(
    capsys: pytest.CaptureFixture[str], *arguments: str, service: Service | None = None
) -> str:
    async with serve(service or service_with(), "memory://describe"):
        options = parse(["describe", "memory://describe", *arguments])
        assert await options.run(options) == 0
    return capsys.readouterr().out


async def test_each_entry_has_its_types_and_an_example(capsys: pytest.CaptureFixture[str]) -> None:
    """Parameters, payload, answer and the fields of each."""
    text = await described(capsys, "order/{symbol}")
    assert text.splitlines() == [
        "order/{symbol}  (request)",
        "  Place an order.",
        "  parameters  symbol: str  (in the name)",
        "  payload     Quote",
        "                price: integer",
        "  answer      Quote",
        "                price: integer",
        "  example     penstock request memory://describe/order/SYMBOL '{\"price\": 1}'",
    ]


async def test_all_entries_are_told_without_a_name(capsys: pytest.CaptureFixture[str]) -> None:
    """With an empty line between two of them."""
    blocks = (await described(capsys)).split("\n\n")
    assert [block.partition("  (")[0] for block in blocks] == [
        "odd",
        "order/{symbol}",
        DESCRIPTION,
        "raw",
        "ticks/{symbol}",
    ]


async def test_a_name_that_fits_a_pattern_chooses_it(capsys: pytest.CaptureFixture[str]) -> None:
    """Parameters after ? are no part of it."""
    assert (await described(capsys, "ticks/EURUSD?most=2")).startswith(
        "ticks/{symbol}  (publisher)"
    )


async def test_json_is_one_object(capsys: pytest.CaptureFixture[str]) -> None:
    """It has the URL and the entries as the service sent them."""
    document = json.loads(await described(capsys, "order/{symbol}", "--json"))
    assert document["url"] == "memory://describe"
    assert [entry["payload"] for entry in document["entries"]] == ["Quote"]


async def test_limits_of_a_publisher_are_told(capsys: pytest.CaptureFixture[str]) -> None:
    """The size of elements of one size, and that a log can be replayed."""
    service = Service(describe=True)

    @service.publisher("rows", element_size=16)
    async def rows() -> Any:
        yield bytes(16)

    service.publish("orders", penstock.RingLog(retention=penstock.Retention(max_count=9)))
    text = await described(capsys, service=service)
    assert "  limits      each element has 16 bytes\n" in text
    assert "  limits      a log: --start and --stop take a position" in text


async def test_asyncapi_has_channels_and_operations(capsys: pytest.CaptureFixture[str]) -> None:
    """Requests among them."""
    page = json.loads(await described(capsys, "--asyncapi"))
    assert page["asyncapi"] == "3.0.0"
    assert page["operations"]["order__symbol_"]["action"] == "receive"
    assert page["operations"]["ticks__symbol_"]["action"] == "send"


def test_an_address_of_ip_version_6_keeps_its_brackets() -> None:
    """AsyncAPI has host and port in one text."""
    page = asyncapi_of([], parse_url("tcp://[::1]:7000"))
    assert page["servers"]["here"]["host"] == "[::1]:7000"


def test_a_hostile_server_writes_no_control_characters() -> None:
    """Neither in text nor in the command to try, whose words a shell takes as one."""
    entry = checked(
        {**HOSTILE, "parameters": [{"name": "x;rm", "type": 7, "in": "query", "required": 1}]}
    )
    lines = list(lines_of(entry, HERE))
    assert all(line.isprintable() for line in lines)
    words = shlex.split(example_command({**entry, "name": "a;b $(c)"}, HERE))
    assert words == ["penstock", "cat", "tcp://127.0.0.1:7000/a;b $(c)?x;rm=X;RM"]


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"channel": "Quote"}, "request --channel tcp://127.0.0.1:7000/sums < FILE"),
        (
            {"payload": "str", "needs_payload": True},
            "request --stream tcp://127.0.0.1:7000/sums PAYLOAD",
        ),
        ({"payload": "str"}, "cat tcp://127.0.0.1:7000/sums"),
    ],
    ids=["channel", "payload", "payload that may be left out"],
)
def test_an_example_gives_a_publisher_what_it_needs(more: dict[str, Any], words: str) -> None:
    """`penstock cat` sends neither elements nor a payload."""
    entry = checked({"name": "sums", "kind": "publisher", "parameters": [], "summary": "", **more})
    assert example_command(entry, HERE) == f"penstock {words}"


class Side(enum.Enum):
    BUY = "buy"


class Pair(NamedTuple):
    first: int
    second: dt.timedelta
    third: float = 0.5


@dataclasses.dataclass
class Order:
    took: dt.timedelta
    pair: Pair
    data: bytes
    key: uuid.UUID


async def test_the_example_of_a_request_can_be_sent() -> None:
    """Also of a payload whose JSON is a text: a text alone travels unchanged."""
    service, got = Service(describe=True), []
    kinds = [str, str | None, dt.datetime, dt.timedelta, Side, uuid.UUID, bytes, Pair, Order, int]
    kinds += [Literal["a b"], Annotated[str, msgspec.Meta(title="Word")]]
    for number, kind in enumerate(kinds):

        async def take(payload: Any) -> bool:
            got.append(payload)
            return True

        take.__annotations__["payload"] = kind
        service.request(f"take/{number:02}")(take)

    async def take_as_json(payload: str) -> bool:
        got.append(payload)
        return True

    service.request("take/json", serializer="json")(take_as_json)
    async with serve(service, "memory://examples"):
        url = parse_url("memory://examples")
        options = parse(["describe", "memory://examples"])
        for entry in await read_description(url, options):
            if entry["kind"] == "request":
                words = shlex.split(example_command(entry, url))
                sent = parse(words[1:])
                assert await sent.run(sent) == 0, words
    assert got[:5] == [
        "text",
        "text",
        dt.datetime(2026, 7, 1, 10, tzinfo=dt.UTC),
        dt.timedelta(seconds=1),
        Side.BUY,
    ]
    assert got[-2:] == ["text", "text"]
    assert len(got) == len(kinds) + 1


def test_the_example_of_an_odd_name_leads_to_it() -> None:
    """A character that a line cannot show, and one with a meaning in a URL, is percent-encoded."""
    name = "evil\u202e/\x1b[2J/50%41#/a b"
    entry = checked({"name": name, "kind": "publisher", "parameters": [], "summary": ""})
    *_, target = shlex.split(example_command(entry, HERE))
    assert target.isprintable()
    assert parse_url(target).publisher == name


def test_a_name_that_is_not_there_is_an_error_with_those_that_are() -> None:
    """As many as a line can show."""
    entries = [checked({**HOSTILE, "name": f"n{number}", "parameters": []}) for number in range(30)]
    with pytest.raises(UsageError, match=r"no 'm' to this client; there are n0, .* and 10 more"):
        chosen(entries, "m")


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("tcp://127.0.0.1:1", b"127.0.0.1:1"),
        ("tcp://127.0.0.1:1/ticks", b"names a publisher"),
        ("ADDRESS", b"describe=True"),
    ],
)
def test_what_cannot_be_described_is_an_error_of_one_line(
    url: str, message: bytes, address: str
) -> None:
    """No server, a URL of a publisher, and a service that does not describe itself."""
    with program_of("describe", url.replace("ADDRESS", address)) as program:
        out, err = program.communicate(timeout=HANGS_AFTER)
    assert (program.returncode, out, err.count(b"\n")) == (1, b"", 1)
    assert message in err
