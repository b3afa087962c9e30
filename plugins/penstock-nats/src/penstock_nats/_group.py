"""A group of readers of a `JetStreamLog`, on durable consumers of JetStream.

Rules of this file:

* A member asks for as many elements as were requested, with a pull that does not wait. So nothing
  is pushed, and nothing waits at the client.
* Each partition has a consumer, whose policy ``pinned_client`` gives it to one member at a time. So
  its elements stay in order.
* A message that is not acknowledged within `hold` seconds comes again. Signs of life of a member
  extend that for all that it holds (``+WPI``).
* What was sent and did not arrive, or was held by a member that is gone, comes again before new
  elements: until then no new ones are asked for.
* So a pull whose connection was lost is not made again on the next one: it would get the elements
  after those that were under way. The server may still answer to it, until it has another pin.
* A server that was killed may have lost its last acknowledgements. A member knows what it has
  acknowledged, and does it again when an element comes again.
* Such a server does not answer to an acknowledgement of what it does not know. So one of an element
  that came over an earlier connection is sent and not waited for.
* The members are the subjects of a small stream, whose messages expire.
"""

import json
import ssl
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Collection, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, Final, TypeVar

import trio

from penstock.api import ConnectionLost, LogError, UsageError
from penstock.brokers import (
    Acknowledgement,
    BrokerGroup,
    GroupRecord,
    GroupSettings,
    Place,
    Present,
    SharingMember,
    Start,
)
from penstock.logs import BrokerConnection
from penstock_nats._address import Address, parse_address
from penstock_nats._link import Link, Message
from penstock_nats._log import check_name, check_seconds
from penstock_nats._server import (
    NO_CONSUMER,
    NO_ROOM,
    NO_STREAM,
    Refused,
    ask_api,
    checked,
    connected,
    explained,
)

T = TypeVar("T")

WAIT: Final = 1.0
"""Seconds that a fetch waits for elements."""

LOOKS: Final = (0.005, 0.1)
"""Seconds between two looks for elements of several partitions: the first, and at most."""

MOST_BYTES: Final = 16 << 20
"""Bytes of one fetch, or one element."""

MOST_DONE: Final = 4_096
"""Positions of a partition that a member remembers as done."""

ANSWER: Final = 2.0
"""Seconds that an acknowledgement waits for its answer. In a cluster the server that knew the
element can be gone while the connection stays: the element then comes again.
"""

GROUP: Final = "members"
"""The priority group of the consumers."""


class JetStreamGroup(BrokerGroup[GroupRecord]):
    """A member of a group of readers of a `JetStreamLog`: a publisher of `GroupRecord`, with one
    subscriber at a time.

    ::

        async with JetStreamGroup("nats://127.0.0.1:4222", "orders", group="billing") as orders:
            async with penstock.subscribe(orders, demand=1) as stream:
                async for record in stream:
                    await bill(record.value)

    The members of a group, in any number of programs, divide the partitions of the log among them.
    An element counts as done when the subscriber has taken it: then it is acknowledged at the
    server. An element that was not taken comes again, to this member or another one: at least
    once. A subscriber has taken an element when it has requested as many more as it ever waited
    for; with ``acknowledge="by hand"`` the program calls `acknowledge`.

    A group that is new begins at `start`. With ``records=True`` elements are records, as `send`
    appends them; headers of NATS are headers of a `GroupRecord` with and without it. A member that
    gives no sign of life for `hold` seconds, the same for all members, has lost its partitions to
    the others. `timeout`, `url`, `name` and `tls` are those of `JetStreamLog`. Raises UsageError
    for arguments that are not possible; opening it raises UsageError if the log is missing, and
    LogError if no server answers.
    """

    def __init__(  # noqa: PLR0913  # each is one setting
        self,
        url: str,
        name: str,
        *,
        group: str,
        start: Start = "earliest",
        acknowledge: Acknowledgement = "taken",
        records: bool = False,
        hold: float = 10.0,
        timeout: float = 10.0,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        check_name(name)
        settings = GroupSettings(
            what="JetStreamGroup", name=name, group=group, start=start, records=records, hold=hold
        )
        member = JetStreamMember(parse_address(url, tls), check_seconds(timeout), settings)
        super().__init__(member, acknowledge=acknowledge)


class _Partition:
    """The facts of a partition that a member owns."""

    def __init__(self) -> None:
        self.pin = ""
        """The id by which the server knows the owner."""
        self.held: dict[int, tuple[bytes, Link]] = {}
        """The receipt of each element that is neither acknowledged nor given back, and the
        connection over which it came.
        """
        self.done: OrderedDict[int, None] = OrderedDict()
        """The elements that this member acknowledged last, at most `MOST_DONE`."""
        self.is_behind = True
        """Something may be under way, or held by a member that is gone."""
        self.is_cut = False
        """The end of a pull did not come: the server may still answer to it."""
        self.is_large = False
        """The next element is larger than `MOST_BYTES`. It is asked for alone."""
        self.look_at = 0.0
        """When to look for it again."""
        self.ahead: list[GroupRecord] = []
        """What has come, and waits for what is before it."""
        self.returned: list[GroupRecord] = []
        """The elements that came again, in order. Members held each of them."""

    def cut(self) -> None:
        """Note that the end of a pull did not come. The elements under way come again, after their
        time.
        """
        self.is_cut = self.is_behind = True


class JetStreamMember(SharingMember):
    """A durable consumer of each partition, as a member of a group."""

    def __init__(self, address: Address, timeout: float, settings: GroupSettings) -> None:
        super().__init__(settings)
        self._address = address
        self._timeout = timeout
        self._registry = f"{self.name}=={self.group}"

    def __repr__(self) -> str:
        return f"{self.group!r} of {self.name!r} at {self._address}"

    # --- the contract

    async def open(self, gone: Callable[[Collection[Place]], None], nursery: trio.Nursery) -> None:
        self.begin(gone)
        self._nursery = nursery
        self._states: dict[str, _Partition] = {}
        self._consumers: set[str] = set()
        self._members = [self.id]
        self._pause = LOOKS[0]
        self._connection = BrokerConnection(
            lambda: connected(self._address, self._nursery),
            place=str(self._address),
            timeout=self._timeout,
            lost=lambda _: None,  # the calls tell it
        )
        await self._connection.open()
        nursery.start_soon(self._connection.run)
        await self.keep(())

    async def aclose(self) -> None:
        link = None if not hasattr(self, "_connection") else self._connection.current
        if link is None:
            await trio.lowlevel.checkpoint()
            return
        with suppress(ConnectionLost, Refused):
            for name in self.owned:
                await self._unpin(name, link)
            await ask_api(link, f"STREAM.PURGE.{self._registry}", {"filter": self._subject})

    async def acknowledge(self, records: Sequence[GroupRecord]) -> None:
        # First: while the server is away, one that is done may come again.
        for record in records:
            if self.has(record.partition):
                done = self._states[record.partition].done
                done[record.position] = None
                if len(done) > MOST_DONE:
                    done.popitem(last=False)
        await self._answer(records, b"+ACK")

    async def give_back(self, records: Sequence[GroupRecord]) -> None:
        mine = [record for record in records if self.has(record.partition)]
        for record in mine:
            state = self._states[record.partition]
            state.is_behind, state.look_at = True, 0.0
        await self._answer(sorted(mine, key=lambda each: each.position), b"-NAK")

    async def show_life(self, held: Sequence[GroupRecord]) -> Present:
        """See `SharingMember`."""
        held_here = [each for name in self.owned for each in self._states[name].held.values()]
        receipts = [receipt for receipt, _ in held_here]

        async def beat(link: Link) -> tuple[list[str], list[str]]:
            for receipt in receipts:
                link.send(receipt.decode(), b"+WPI")
            try:
                await self._register(link)
            except Refused as error:
                if error.code not in NO_ROOM:
                    raise
                # A full disk must not keep elements from being handled: they make room. Until
                # then the members are those that were known.
                return await self._partitions(link), self._members
            info = await ask_api(
                link, f"STREAM.INFO.{self._registry}", {"subjects_filter": f"{self._subjects}*"}
            )
            subjects = info["state"].get("subjects") or {}
            self._members = [each.rpartition(".")[2] for each in subjects]
            return await self._partitions(link), self._members

        partitions, members = await self._ask(beat)
        if not partitions:
            raise UsageError(
                f"{self._address} has no log {self.name!r}: give the name that its writer has, or "
                "open it with JetStreamLog first"
            )
        for name in partitions:
            if name not in self._consumers:
                await self._ask(partial(self._make_consumer, name))
                self._consumers.add(name)
        return Present(partitions, members, ())

    async def take(self, partition: str) -> bool:
        """See `SharingMember`. The first pull pins it, when the last owner has left it."""
        await trio.lowlevel.checkpoint()
        self._states[partition] = _Partition()
        return True

    async def release(self, partition: str, held: Sequence[GroupRecord]) -> None:
        """See `SharingMember`."""
        state = self._states[partition]
        await self.give_back([*held, *state.ahead, *state.returned])
        state.ahead, state.returned = [], []
        await self._ask(partial(self._unpin, partition))

    # --- elements

    async def fetch_of(self, partition: str, most: int) -> Sequence[GroupRecord]:
        """See `SharingMember`."""
        found = await self._elements_of(partition, most)
        if found:
            self._pause = LOOKS[0]
        return found

    async def wait_for_elements(self, partitions: Sequence[str]) -> Sequence[GroupRecord]:
        """See `SharingMember`. A pull that waits brings one; of several partitions each is looked
        at again, after a pause.
        """
        if not partitions:
            with trio.move_on_after(WAIT):
                await self.wait_changed()
            return ()
        state = self._states[partitions[0]]
        if len(partitions) == 1 and state.pin and not state.is_behind:
            return await self._pull(partitions[0], 1, WAIT)
        await trio.sleep(self._pause)
        self._pause = min(2 * self._pause, LOOKS[1])
        return ()

    async def _elements_of(self, name: str, most: int) -> list[GroupRecord]:
        state = self._states[name]
        if state.is_cut:
            await self._ask(partial(self._unpin, name))
            state.pin, state.is_cut = "", False
        if not state.pin:
            # The last owner may have got elements until now. So the first one waits for them.
            state.ahead += await self._pull(name, 1)
            state.is_behind, state.look_at = True, 0.0
            if not state.pin:
                return []
        if state.is_behind and not state.returned:
            await self._get_what_comes_again(name)
        if state.returned:
            found, state.returned = state.returned[:most], state.returned[most:]
            return found
        return [] if state.is_behind else await self._pull(name, most)

    async def _get_what_comes_again(self, name: str) -> None:
        """Get what members have not acknowledged and this one does not hold, in order."""
        state = self._states[name]
        if trio.current_time() < state.look_at:
            return
        info = await self._ask(partial(self._info, name))
        held = set(state.held)
        missing = info["num_ack_pending"] - len(held)
        if missing > 0:
            found = await self._pull(name, missing)
            state.ahead += found
            # One that is held comes again if it was not extended: it is none of those missing.
            found = [each for each in found if each.position not in held]
            if len(found) < missing or any(each.deliveries == 1 for each in found):
                # Those that a member holds come when their time has passed. New ones wait.
                state.look_at = trio.current_time() + self.hold / 4
                return
        state.is_behind = False
        # They come in the order in which their times have passed.
        state.returned = sorted(state.ahead, key=lambda each: each.position)
        state.ahead = []

    async def _pull(self, name: str, most: int, wait: float = 0.0) -> list[GroupRecord]:
        state = self._states[name]
        found, link = await self._ask(partial(self._pull_once, name, most, wait))
        records = [self._record_of(name, each) for each in found]
        again = [record for record in records if record.position in state.done]
        if again:
            records = [record for record in records if record.position not in state.done]
            # Nothing waits for it: without it they come again.
            with suppress(ConnectionLost):
                for record in again:
                    link.send(record.receipt.decode(), b"+ACK")
        for record in records:
            state.held[record.position] = record.receipt, link
        return records if self.has(name) else []

    async def _pull_once(
        self, name: str, most: int, wait: float, link: Link
    ) -> tuple[list[Message], Link]:
        state = self._states[name]
        most, state.is_large = 1 if state.is_large else most, False
        words: dict[str, Any] = {"batch": most, "group": GROUP}
        if state.pin:
            words["id"] = state.pin
        if wait:
            words["expires"] = int(wait * 1e9)
        else:
            words["no_wait"] = True
        if most > 1:
            words["max_bytes"] = MOST_BYTES
        subject = f"$JS.API.CONSUMER.MSG.NEXT.{self._stream(name)}.{self.group}"
        inbox, key, replies = link.open_pull(subject)
        found: list[Message] = []
        try:
            link.send(subject, json.dumps(words).encode(), inbox)
            while len(found) < most:
                for message in await replies.take():
                    if message.answer_to:
                        found.append(message)
                        state.pin = message.header(b"Nats-Pin-Id").decode()
                    else:
                        self._check_status(message, state, link)
                        return found, link
        except ConnectionLost:
            # Not raised: the connection would make the pull again.
            self._connection.give_up(link)
            state.cut()
        except trio.Cancelled:
            state.cut()
            raise
        finally:
            link.close_pull(key)
        return found, link

    def _check_status(self, message: Message, state: _Partition, link: Link) -> None:
        """Look at the message that ends a pull. Raises Refused if the consumer is not there."""
        if message.status == "503" or b"Consumer Deleted" in message.head:
            raise Refused(NO_CONSUMER, "the consumer is not there")
        state.is_large = b"MaxBytes" in message.head
        if message.status == "423":
            # Another member had it in between, or this one was away. What it held may be done, and
            # other elements may be held by a member that is gone.
            state.pin, state.is_behind = "", True
            state.held.clear()
        elif not message.status:
            checked(message, link)  # a refusal of the subject

    def _record_of(self, name: str, message: Message) -> GroupRecord:
        # $JS.ACK.[DOMAIN.ACCOUNT.]STREAM.CONSUMER.DELIVERIES.SEQUENCE.OF CONSUMER.TIME.PENDING
        words = message.answer_to.split(b".")
        at = 2 if len(words) == 9 else 4
        deliveries, sequence, _, time = (int(each) for each in words[at + 2 : at + 6])
        record = self.record_of(message.content)
        headers = tuple(each for each in message.headers() if not each[0].startswith("Nats-"))
        return GroupRecord(
            record.value,
            record.key,
            record.headers + headers,
            self.name,
            name,
            sequence - 1,
            time / 1e9,
            deliveries,
            message.answer_to,
        )

    async def _answer(self, records: Sequence[GroupRecord], word: bytes) -> None:
        """Answer to messages. Returns when the server has taken the answers to what came over the
        connection that is there now.
        """
        last: dict[str, GroupRecord] = {record.partition: record for record in records}
        links = {id(record): self._held_no_more(record) for record in records}

        async def answer(link: Link) -> None:
            asked = []
            try:
                for record in records:
                    receipt, inbox = record.receipt.decode(), ""
                    if last[record.partition] is record and links[id(record)] is link:
                        inbox, key, replies = link.open_request(receipt)
                        asked.append((key, replies))
                    link.send(receipt, word, inbox)
                await trio.lowlevel.checkpoint()
                with trio.move_on_after(ANSWER):
                    for _, replies in asked:
                        if (await replies.take())[0].status == "503":
                            raise Refused(NO_CONSUMER, "the consumer is not there")
            finally:
                for key, _ in asked:
                    link.close_request(key)

        if records:
            await self._ask(answer)

    def _held_no_more(self, record: GroupRecord) -> Link | None:
        """Forget the receipt of an element, and return the connection over which it came. The
        server may count the element as done before its answer is here.
        """
        if not self.has(record.partition):
            return None
        receipt, link = self._states[record.partition].held.pop(record.position, (b"", None))
        return link if receipt == record.receipt else None

    # --- the server

    async def _register(self, link: Link) -> None:
        try:
            checked(await link.request(self._subject, b""), link)
        except Refused as error:
            if error.code != NO_STREAM:
                raise
            # Longer than a message may be held: those of a lost member can come again by then.
            age = int((self.hold + 2 * self.beat) * 1e9)
            wanted = {
                "name": self._registry,
                "subjects": [f"{self._subjects}*"],
                "retention": "limits",
                "storage": "file",
                "discard": "old",
                "max_msgs_per_subject": 1,
                "max_age": age,
                "duplicate_window": min(age, 100_000_000),
            }
            await ask_api(link, f"STREAM.CREATE.{self._registry}", wanted)
            checked(await link.request(self._subject, b""), link)

    async def _partitions(self, link: Link) -> list[str]:
        found: list[str] = []
        total = 1
        offset = 0
        while offset < total:
            wanted = {"subject": f"{self.name}.*", "offset": offset}
            page = await ask_api(link, "STREAM.NAMES", wanted)
            streams = page.get("streams") or []
            found += [each.partition("=")[2] for each in streams]
            offset, total = offset + len(streams), page["total"] if streams else 0
        return sorted(name for name in found if name)

    async def _info(self, name: str, link: Link) -> Any:
        return await ask_api(link, f"CONSUMER.INFO.{self._stream(name)}.{self.group}")

    async def _make_consumer(self, name: str, link: Link) -> None:
        """Make the consumer of a partition, if it is not there. Raises UsageError for another."""
        hold = int(self.hold * 1e9)
        try:
            config = (await self._info(name, link))["config"]
        except Refused as error:
            if error.code != NO_CONSUMER:
                raise
        else:
            if config.get("priority_groups") != [GROUP]:
                raise UsageError(
                    f"{self._address} has a consumer {self.group!r} of another program at "
                    f"{self._stream(name)!r}: give the group another name"
                )
            if config["ack_wait"] != hold:
                raise UsageError(
                    f"the members of {self.group!r} of {self.name!r} have "
                    f"hold={config['ack_wait'] / 1e9:g}, and this one {self.hold:g}: give the same"
                )
            return
        wanted = {
            "durable_name": self.group,
            "name": self.group,
            "ack_policy": "explicit",
            "ack_wait": hold,
            # Without a bound: the server would drop an element at it without a word.
            "max_deliver": -1,
            "max_ack_pending": -1,
            "deliver_policy": "all" if self.start == "earliest" else "new",
            "priority_policy": "pinned_client",
            "priority_groups": [GROUP],
            "priority_timeout": hold,
        }
        call = f"CONSUMER.CREATE.{self._stream(name)}.{self.group}"
        await ask_api(link, call, {"stream_name": self._stream(name), "config": wanted})

    async def _unpin(self, name: str, link: Link) -> None:
        """Let the next member that asks have a partition."""
        if self._states[name].pin:
            call = f"CONSUMER.UNPIN.{self._stream(name)}.{self.group}"
            await ask_api(link, call, {"group": GROUP})

    async def _ask(self, ask: Callable[[Link], Awaitable[T]]) -> T:
        try:
            return await self._connection.call(ask)
        except Refused as error:
            raise self._explain(error) from None

    def _explain(self, error: Refused) -> Exception:
        if error.code in (NO_CONSUMER, NO_STREAM):
            return LogError(
                f"the group {self.group!r} of {self.name!r} at {self._address} was deleted, or "
                "the log was: open the member again to make it anew. It then begins at its start, "
                "and elements that were done come again"
            )
        return explained(error, self._address, self.name)

    def _stream(self, partition: str) -> str:
        return f"{self.name}={partition}"

    @property
    def _subjects(self) -> str:
        return f"_penstock.members.{self.name}.{self.group}."

    @property
    def _subject(self) -> str:
        return f"{self._subjects}{self.id}"
