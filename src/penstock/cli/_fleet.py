"""Several services at one time, as the page of `penstock inspect` shows them: the services and who
reads them as nodes, their streams as edges, and the cause why one of them does not move.

Rules of this file:

* Plain functions of maps that were read, and one class that keeps what the page gets.
* Each text of a service is made printable here, before it leaves for the page.
* A picture has at most `MOST_NODES` nodes beside the services. Readers of one principal, or of one
  host, are one node. Beyond that number each service has one node.
* The streams between two nodes are one edge.
"""

from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from heapq import nlargest
from typing import Any, Final, NamedTuple

import trio

from penstock.cli._cause import Cause, Maps, Step, cause_of, who_text
from penstock.cli._demand_map import DemandMap, Record
from penstock.cli._printable import printable
from penstock.cli._why import evidence_of

MOST_NODES: Final = 40
"""Nodes beside the services."""

MOST_KEPT: Final = 300
"""Pictures that an edge is remembered for: five minutes, with a look each second."""

MOST_LANES: Final = 16
"""Edges whose past a page gets. They are those that a person looks at first."""

ROWS: Final = 128
"""Streams in one message."""

IDS: Final = 1024
"""Ids of streams in one message."""

STALLED: Final = 2.0
"""Seconds without an element from which on the page names a cause."""

MOST_TRIED: Final = 8
"""Streams whose chains are compared, to tell the longest one."""

FLOWS: Final = "flows"

ORDER: Final = ("limit", "network", "permission", "demand", FLOWS, "publisher")
"""What an edge with several streams shows: the first of these that one of them has. A publisher
without an element is the last: many streams are quiet, and that is right.
"""

OWN: Final = "penstock/"
"""The beginning of the names of penstock's own streams."""

NAMES_OF_A_NODE: Final = 3
"""Names of publishers that the label of a service has."""

Message = dict[str, Any]


class Picture(NamedTuple):
    """The services at one time."""

    nodes: list[Message]
    edges: list[Message]
    """Those that a person looks at first come first."""
    rows: dict[str, Message]
    """The streams, by id."""
    cause: Message | None
    clocks: list[float]
    """The clock of each service."""
    total: int
    """Streams of the services, with those of which they do not tell."""


class _Edge:
    """The streams between two nodes."""

    __slots__ = ("demand", "first", "rate", "source", "states", "still", "target")

    def __init__(self, source: str, target: str) -> None:
        self.source = source
        self.target = target
        self.states: Counter[str] = Counter()
        self.rate = 0.0
        self.demand = 0
        self.still = 0.0
        self.first = ""

    def add(self, where: DemandMap, record: Record) -> None:
        rate = where.rates.get(record["key"], 0.0)
        self.states[FLOWS if rate else record["waits"]] += 1
        self.rate += rate
        self.demand = min(2**63 - 1, self.demand + record["demand"])
        self.still = max(self.still, where.still(record))
        self.first = self.first or record["name"]

    @property
    def state(self) -> str:
        return next((each for each in ORDER if self.states[each]), "publisher")

    def message(self, id: str, *, is_cause: bool) -> Message:  # noqa: A002  # the page's word
        count = self.states.total()
        return {
            "id": id,
            "from": self.source,
            "to": self.target,
            "own": id.endswith("!"),
            "label": printable(self.first) if count == 1 else f"{count:,} streams",
            "count": count,
            "state": self.state,
            "states": {printable(state): number for state, number in self.states.items()},
            "rate": round(self.rate, 1),
            "demand": self.demand,
            "still": round(self.still, 1),
            "cause": is_cause,
        }


class _Drawing:
    """Makes a picture of maps."""

    def __init__(self, maps: Sequence[DemandMap], own: DemandMap | None) -> None:
        self._maps = maps
        self._own = own
        self.known = Maps(maps)
        self._number = {id(each): number for number, each in enumerate(maps)}
        self.edges: dict[str, _Edge] = {}
        self.edge_of: dict[str, str] = {}
        """The edge of each stream, by its id."""
        self._beside: dict[str, tuple[str, str]] = {}  # the label and the kind, by node
        self._streams_beside: Counter[str] = Counter()
        self._kept: set[str] = set()

    def draw(self) -> None:
        """Find the nodes and the edges."""
        ends = [(*each, self.known.other_side(each[1])) for each in self._streams()]
        for _, record, other in ends:
            if other is None:
                node, label = _beside(record)
                self._beside[node] = label, "reader" if record["out"] else "source"
                self._streams_beside[node] += 1
        self._kept = {node for node, _ in self._streams_beside.most_common(MOST_NODES)}
        for where, record, other in ends:
            # A stream with both sides known counts once: as what its publisher tells of it.
            is_counted = record["out"] or other is None
            self._join(where, record, other, is_counted=is_counted)

    def _streams(self) -> Iterator[tuple[DemandMap, Record]]:
        for where in self._maps:
            for record in where.streams.values():
                # The inspector reads its own map in memory, and the fleet does not.
                if where is not self._own or record["transport"] != "memory":
                    yield where, record

    def _join(
        self,
        where: DemandMap,
        record: Record,
        other: tuple[DemandMap, Record] | None,
        *,
        is_counted: bool,
    ) -> None:
        here = self.service(where)
        there = self.service(other[0]) if other is not None else self._node_beside(where, record)
        source, target = (here, there) if record["out"] else (there, here)
        name = f"{source}>{target}{'!' if record['name'].startswith(OWN) else ''}"
        self.edge_of[self.id_of(where, record)] = name
        if is_counted:
            self.edges.setdefault(name, _Edge(source, target)).add(where, record)

    def _node_beside(self, where: DemandMap, record: Record) -> str:
        node = _beside(record)[0]
        if node in self._kept:
            return node
        folded = f"others of {self.service(where)}"
        self._beside[folded] = "others", "reader"
        self._streams_beside[folded] += 1
        self._kept.add(folded)
        return folded

    def service(self, where: DemandMap) -> str:
        """Return the node of a service."""
        return f"s{self._number[id(where)]}"

    def id_of(self, where: DemandMap, record: Record) -> str:
        """Return what tells a stream from all others."""
        return f"{self._number[id(where)]}:{record['key']}"

    def nodes(self, lost: Mapping[str, str], guilty: str) -> list[Message]:
        """Return the nodes; `guilty` holds up the others."""
        found = [
            {
                "id": self.service(each),
                "kind": "inspector" if each is self._own else "service",
                "label": "this inspector" if each is self._own else _published(each),
                "at": "" if each is self._own else printable(each.url),
                "streams": len(each.streams),
                "lost": lost.get(each.url, ""),
                "cause": self.service(each) == guilty,
            }
            for each in self._maps
        ]
        return found + [
            {
                "id": node,
                "kind": self._beside[node][1],
                "label": self._beside[node][0],
                "at": "",
                "streams": self._streams_beside[node],
                "lost": "",
                "cause": node == guilty,
            }
            for node in sorted(self._kept)
        ]

    def rows(self) -> dict[str, Message]:
        """Return the streams as a page shows them."""
        return {
            self.id_of(where, record): self._row(where, record) for where, record in self._streams()
        }

    def _row(self, where: DemandMap, record: Record) -> Message:
        found = self.id_of(where, record)
        return {
            "id": found,
            "service": self._number[id(where)],
            "edge": self.edge_of[found],
            "rate": round(where.rates.get(record["key"], 0.0), 1),
            "who": who_text(record),
            **{
                name: printable(value) if isinstance(value, str) else value
                for name, value in record.items()
                if name not in ("parts", "on")
            },
            "parts": [[printable(label), held] for label, held in record["parts"]],
        }

    def guilty(self, step: Step) -> str:
        """Return the node that the last stream of a chain leads to."""
        record, here = step.record, self.service(step.map)
        source, _, target = self.edge_of[self.id_of(step.map, record)].rstrip("!").partition(">")
        there = target if source == here else source
        ends_there = {"network", "demand"} if record["out"] else {"network", "publisher"}
        # A service that tells of the code of a stream is the one that runs it.
        return there if record["waits"] in ends_there else here

    def cause(self, cause: Cause) -> Message:
        """Return the cause as a page shows it."""
        return {
            "sentence": f"{cause.sentence}.",
            "evidence": [evidence_of(step) for step in cause.steps],
            "ids": [self.id_of(step.map, step.record) for step in cause.steps],
            "edges": [self.edge_of[self.id_of(step.map, step.record)] for step in cause.steps],
        }


def picture_of(
    maps: Sequence[DemandMap], lost: Mapping[str, str], own: DemandMap | None = None
) -> Picture:
    """Return the picture of services. `lost` has those that cannot be read now, by URL, with the
    reason; `own` is the map of the inspector itself.
    """
    drawing = _Drawing(maps, own)
    drawing.draw()
    found = _longest_chain(drawing.known, [each for each in maps if each is not own])
    cause, guilty, guilty_edge = None, "", ""
    if found is not None:
        cause = drawing.cause(found)
        guilty, guilty_edge = drawing.guilty(found.steps[-1]), cause["edges"][-1]
    edges = [
        each.message(name, is_cause=name == guilty_edge) for name, each in drawing.edges.items()
    ]
    edges.sort(
        key=lambda each: (each["own"], not each["cause"], ORDER.index(each["state"]), each["id"])
    )
    return Picture(
        drawing.nodes(lost, guilty),
        edges,
        drawing.rows(),
        cause,
        [each.now for each in maps],
        sum(each.total for each in maps),
    )


def cause_at(maps: Sequence[DemandMap], number: int, key: str) -> Message | None:
    """Return why one stream does not move; None if it is there no more."""
    drawing = _Drawing(maps, None)
    record = maps[number].streams.get(key) if 0 <= number < len(maps) else None
    if record is None:
        return None
    drawing.draw()
    return drawing.cause(cause_of(drawing.known, (maps[number], record)))


def _longest_chain(known: Maps, maps: Iterable[DemandMap]) -> Cause | None:
    """Return the cause of a stream that has stood still for the longest time. Of streams that do so
    about as long, it leads through the most services: the others are on its way.
    """
    still = [
        (each, record)
        for each in maps
        for record in each.streams.values()
        if each.still(record) >= STALLED and not record["name"].startswith(OWN)
    ]
    first = nlargest(MOST_TRIED, still, lambda each: (each[1]["out"], each[0].still(each[1])))
    causes = [cause_of(known, start) for start in first]
    return max(causes, key=lambda each: len(each.steps), default=None)


def _published(each: DemandMap) -> str:
    """Return what a service is called by: the names that it publishes, or its address."""
    names = dict.fromkeys(
        record["name"].partition("?")[0].partition("/")[0]
        for record in each.streams.values()
        if record["out"] and record["name"] and not record["name"].startswith(OWN)
    )
    shown = [printable(name) for name in list(names)[:NAMES_OF_A_NODE]]
    more = [] if len(names) <= NAMES_OF_A_NODE else ["…"]
    return ", ".join(shown + more) or printable(each.url)


def _beside(record: Record) -> tuple[str, str]:
    """Return the node and the label of a peer of which no map is known."""
    if record["principal"]:
        label = record["principal"]
    elif record["out"]:
        # Its port is another one for each connection.
        label = record["peer"].rpartition(":")[0] or record["peer"] or "a client"
    else:
        label = record["peer"] or "a service"
    label = printable(label)
    return f"{'r' if record['out'] else 'p'} {label}", label


def differences(known: Mapping[str, Message], found: Mapping[str, Message]) -> Iterator[Message]:
    """Yield the messages that make the rows `found` of the rows `known`."""
    changed = [row for id_, row in found.items() if known.get(id_) != row]
    for at in range(0, len(changed), ROWS):
        yield {"kind": "streams", "streams": changed[at : at + ROWS]}
    gone = [id_ for id_ in known if id_ not in found]
    for at in range(0, len(gone), IDS):
        yield {"kind": "gone", "ids": gone[at : at + IDS]}


class Fleet:
    """The data of the page: the newest picture, and the states of the edges in the last minutes."""

    def __init__(self, maps: list[DemandMap]) -> None:
        self.maps: list[DemandMap] = maps
        """The services. Others may be added at the end."""
        self.own: DemandMap | None = None
        """The map of the inspector itself, if it is one of them."""
        self.lost: dict[str, str] = {}
        """Services that cannot be read now, by URL, with the reason."""
        self.number: int = 0
        """Pictures so far."""
        self.picture: Picture = picture_of([], {})
        self._at = 0.0
        self._past: dict[str, deque[tuple[float, str, float]]] = {}
        self._drawn = trio.Event()

    def draw(self, now: float) -> None:
        """Make a new picture, at this time."""
        self.picture = picture_of(self.maps, self.lost, self.own)
        self.number += 1
        self._at = now
        edges = {each["id"]: each for each in self.picture.edges}
        # Those of the picture alone: clients come and go for as long as the command runs.
        self._past = {name: self._past.get(name) or deque(maxlen=MOST_KEPT) for name in edges}
        for name, past in self._past.items():
            state = "cause" if edges[name]["cause"] else edges[name]["state"]
            past.append((round(now, 1), state, edges[name]["rate"]))
        drawn, self._drawn = self._drawn, trio.Event()
        drawn.set()

    async def wait_after(self, number: int) -> None:
        """Wait for a picture after this one. Checkpoints."""
        await trio.lowlevel.checkpoint()
        while self.number <= number:
            await self._drawn.wait()

    def past(self) -> Message:
        """Return the message with what the first edges did."""
        shown = [each["id"] for each in self.picture.edges if not each["own"]][:MOST_LANES]
        return {"kind": "past", "edges": {name: list(self._past[name]) for name in shown}}

    def message(self) -> Message:
        """Return the message with the picture, without its rows."""
        picture = self.picture
        return {
            "kind": "picture",
            "at": round(self._at, 1),
            "nodes": picture.nodes,
            "edges": picture.edges,
            "cause": picture.cause,
            "clocks": picture.clocks,
            "streams": len(picture.rows),
            "total": picture.total,
        }
