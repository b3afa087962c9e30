/**
 * The page of `penstock inspect`: reads the map of demand with the JavaScript client over HTTP, and shows it.
 *
 * Rules of this module:
 *
 * - Texts of services are set with textContent alone, and no text becomes an address, a selector or code.
 * - A page that is hidden takes no elements, so it requests none.
 * - The picture is drawn at most once for each frame of the screen.
 */

import { Graph } from "./graph.js";
import { stream } from "./http.js";
import { Table } from "./table.js";
import { Timeline } from "./timeline.js";

const AGAIN = 2000; // milliseconds before the page asks again
const DEMAND = 8; // messages that are requested ahead
const STREAMS_OF_A_DETAIL = 20;
const STATES = Object.freeze({
  flows: "flows",
  demand: "waits for its reader",
  publisher: "waits for its publisher",
  network: "waits for the network",
  limit: "held up by a limit",
  permission: "waits for permission",
  cause: "holds up the others",
});
const KINDS = Object.freeze({ service: "a service", inspector: "this command", reader: "reads", source: "a service that was not asked" });

const secret = location.hash.slice(1);
const byId = (id) => document.getElementById(id);
const rows = new Map();
let picture = null;
let chosen = null; // { kind, id }: a node, an edge or a stream
let chosenWhy = null; // the cause of the chosen stream
let planned = false;

const texts = {
  states: STATES,
  kinds: KINDS,
  node: (id) => picture?.nodes.find((each) => each.id === id)?.label ?? "",
  count: (number) => (number === 1 ? "1 stream" : `${number.toLocaleString("en")} streams`),
  number: short,
};
const graph = new Graph(byId("graph"), choose);
const timeline = new Timeline(byId("timeline"), (id) => choose("edge", id));
const table = new Table(byId("table"), columns(), "still", (id, moves) => choose("stream", id, moves === true));

// --- reading

async function read() {
  if (secret === "") return tell("lost", "This address lacks its secret: open the one that the command printed.");
  for (;;) {
    try {
      rows.clear();
      for await (const message of open("penstock/fleet")) {
        take(message);
        await whileHidden();
      }
      tell("lost", "the command has ended; trying again");
    } catch (error) {
      if (error.name === "AuthRefused") return tell("lost", "The secret in this address is another one: open the address that the command printed.");
      tell("lost", `not connected (${error.message}); trying again`);
    }
    await new Promise((resolve) => setTimeout(resolve, AGAIN));
  }
}

function open(name) {
  // "omit": else the browser asks for a password if the secret is wrong.
  return stream(new URL(`/p/${name}`, location.origin), { type: "json", bearer: secret, credentials: "omit", demand: DEMAND });
}

function take(message) {
  if (message.kind === "streams") for (const row of message.streams) rows.set(row.id, row);
  else if (message.kind === "gone") for (const id of message.ids) rows.delete(id);
  else if (message.kind === "past") timeline.remember(message.edges);
  else if (message.kind === "picture") {
    picture = message;
    timeline.add(picture.at, picture.edges);
    tell("live", "live");
    if (chosen?.kind === "stream") askWhy(chosen.id);
  }
  plan();
}

function whileHidden() {
  if (!document.hidden) return undefined;
  return new Promise((resolve) => document.addEventListener("visibilitychange", resolve, { once: true }));
}

function tell(state, text) {
  byId("state").dataset.state = state;
  put(byId("state"), text);
}

async function askWhy(id) {
  const row = rows.get(id);
  if (row === undefined) return;
  try {
    for await (const found of open(`penstock/why/${row.service}/${encodeURIComponent(row.key)}`)) {
      if (chosen?.id !== id) return;
      chosenWhy = found;
      plan();
    }
  } catch {
    // The stream itself says what is wrong.
  }
}

// --- showing

function plan() {
  if (planned) return;
  planned = true;
  requestAnimationFrame(() => {
    planned = false;
    if (picture !== null) show();
  });
}

function show() {
  const showsOwn = byId("own").checked;
  const edges = picture.edges.filter((each) => showsOwn || !each.own);
  const used = new Set(edges.flatMap((each) => [each.from, each.to]));
  const nodes = picture.nodes.filter((each) => (each.kind === "inspector" ? showsOwn : each.kind === "service" || used.has(each.id)));
  const rate = edges.reduce((sum, each) => sum + each.rate, 0);
  const count = edges.reduce((sum, each) => sum + each.count, 0);
  put(byId("totals"), `${nodes.filter((each) => each.kind === "service").length} services, ${texts.count(count)}, ${short(rate)} elements a second`);
  showCause();
  if (!byId("view-graph").hidden) graph.show(nodes, edges, chosen, texts);
  if (!byId("view-table").hidden) showTable(showsOwn);
  timeline.show(picture.at, edges, texts);
  showDetail(edges);
  document.body.dataset.drawn = String(picture.streams);
}

function showCause() {
  const { cause } = picture;
  byId("cause").dataset.stalled = String(cause !== null);
  put(byId("sentence"), cause === null ? "No stream stands still." : cause.sentence);
  byId("evidence").hidden = cause === null;
  list(byId("evidence").querySelector("ol"), cause?.evidence ?? []);
}

function showTable(showsOwn) {
  const wanted = byId("filter").value.toLowerCase();
  const edge = byId("all").dataset.edge ?? "";
  const found = [];
  for (const row of rows.values()) {
    if (!showsOwn && row.name.startsWith("penstock/")) continue;
    if (edge !== "" && row.edge !== edge) continue;
    if (wanted === "" || searched(row).includes(wanted)) found.push(row);
  }
  put(byId("count"), `${found.length.toLocaleString("en")} of ${texts.count(rows.size)}`);
  table.chosen = chosen?.kind === "stream" ? chosen.id : null;
  table.show(found);
}

function searched(row) {
  return (row.searched ??= `${row.name} ${row.who} ${row.protocol} ${row.waits} ${row.limit}`.toLowerCase());
}

function columns() {
  const isNumber = true;
  const still = (row) => Math.max(0, (picture?.clocks[row.service] ?? 0) - row.since);
  return [
    { name: "name", title: "Stream", value: (row) => row.name, text: (row) => `${row.out ? "→" : "←"} ${row.name || "(no name)"}` },
    { name: "at", title: "Service", value: (row) => row.service, text: (row) => texts.node(`s${row.service}`) },
    { name: "who", title: "Peer", value: (row) => row.who, text: (row) => row.who },
    { name: "rate", title: "Rate", value: (row) => row.rate, text: (row) => short(row.rate), isNumber },
    { name: "lag", title: "Lag", value: (row) => row.lag ?? -1, text: (row) => (row.lag === null ? "" : short(row.lag)), isNumber },
    { name: "demand", title: "Demand", value: (row) => row.demand, text: (row) => short(row.demand), isNumber },
    { name: "held", title: "Held", value: (row) => row.held, text: (row) => short(row.held), isNumber },
    { name: "still", title: "Still", value: still, text: (row) => seconds(still(row)), isNumber },
    { name: "waits", title: "Waits for", value: (row) => row.waits, text: waitsText, key: (row) => (row.rate > 0 ? "flows" : row.waits) },
  ];
}

function waitsText(row) {
  return row.rate > 0 ? "flows" : row.waits === "limit" ? row.limit : row.waits;
}

// --- details

/** Show a node, an edge or a stream in detail; with `moves` the focus goes there. */
function choose(kind, id, moves = false) {
  chosen = { kind, id };
  chosenWhy = null;
  if (kind === "stream") askWhy(id);
  plan();
  if (moves) byId("detail-title").focus();
}

function showDetail(edges) {
  if (chosen === null) return;
  const body = byId("detail-body");
  const made = { node: nodeDetail, edge: edgeDetail, stream: streamDetail }[chosen.kind](chosen.id, edges);
  // A button that has the focus stays: only what has changed is put in.
  const shape = JSON.stringify(made.map((each) => [each.tag, each.lines, each.text]));
  if (body.dataset.shape === shape) return;
  body.dataset.shape = shape;
  const focused = body.contains(document.activeElement) ? [...body.querySelectorAll("button")].indexOf(document.activeElement) : -1;
  body.replaceChildren(...made.map(build));
  if (focused >= 0) body.querySelectorAll("button")[focused]?.focus();
}

function nodeDetail(id, edges) {
  const node = picture.nodes.find((each) => each.id === id);
  if (node === undefined) return [{ tag: "p", text: "It is there no more." }];
  const facts = [["kind", KINDS[node.kind]], ["address", node.at], ["streams", node.streams.toLocaleString("en")], ["not there", node.lost]];
  const beside = edges.filter((each) => each.from === id || each.to === id);
  return [
    { tag: "name", text: node.label },
    { tag: "dl", lines: facts.filter(([, text]) => text !== "") },
    { tag: "buttons", lines: beside.map((each) => [edgeText(each), "edge", each.id]) },
  ];
}

function edgeText(edge) {
  return `${edge.label || "(no name)"}: ${texts.node(edge.from)} → ${texts.node(edge.to)}, ${short(edge.rate)}/s`;
}

function edgeDetail(id, edges) {
  const edge = edges.find((each) => each.id === id);
  if (edge === undefined) return [{ tag: "p", text: "It is there no more." }];
  const found = [];
  for (const row of rows.values()) if (row.edge === id) found.push(row);
  const states = Object.entries(edge.states).map(([state, number]) => `${number} ${STATES[state] ?? state}`);
  return [
    { tag: "name", text: edge.label || "(no name)" },
    {
      tag: "dl",
      lines: [
        ["from", texts.node(edge.from)],
        ["to", texts.node(edge.to)],
        ["rate", `${short(edge.rate)} a second`],
        ["demand", `${short(edge.demand)} requested and not there`],
        ["still", seconds(edge.still)],
        ["state", states.join(", ")],
      ],
    },
    { tag: "buttons", lines: found.slice(0, STREAMS_OF_A_DETAIL).map((each) => [`${each.out ? "→" : "←"} ${each.name || "(no name)"}, ${each.who}`, "stream", each.id]) },
    ...(found.length > STREAMS_OF_A_DETAIL ? [{ tag: "buttons", lines: [[`Show all ${found.length.toLocaleString("en")} in the table`, "table", id]] }] : []),
  ];
}

function streamDetail(id) {
  const row = rows.get(id);
  if (row === undefined) return [{ tag: "p", text: "It has ended." }];
  const still = Math.max(0, picture.clocks[row.service] - row.since);
  const facts = [
    ["service", texts.node(`s${row.service}`)],
    [row.out ? "to" : "from", row.who],
    ["protocol", `${row.protocol} over ${row.transport}, stream ${row.stream}, ${row.state}`],
    ["serializer", row.serializer],
    ["requested", row.requested === null ? "" : count(row.requested)],
    ["moved", row.delivered === null ? "" : `${count(row.delivered)}, ${short(row.rate)} a second`],
    ["demand left", count(row.demand)],
    ["bytes held", count(row.held)],
    ["position", row.position === null ? "" : `${count(row.position)}, ${count(row.lag ?? 0)} behind`],
    ["still", seconds(still)],
    ["waits for", waitsText(row)],
    ["code at", row.place],
    ["pipe", row.parts.map(([label, held]) => `${label} holds ${count(held)}`).join(", ")],
  ];
  return [
    { tag: "name", text: row.name || "(no name)" },
    ...(chosenWhy === null ? [] : [{ tag: "why", text: chosenWhy.sentence }]),
    { tag: "dl", lines: facts.filter(([, text]) => text !== "") },
    { tag: "buttons", lines: [["Show its edge", "edge", row.edge]] },
  ];
}

function build({ tag, text = "", lines = [] }) {
  const made = document.createElement({ buttons: "ul", dl: "dl" }[tag] ?? "p");
  if (tag === "name" || tag === "why") made.className = tag;
  if (tag === "dl") {
    for (const [name, value] of lines) {
      const [term, definition] = [document.createElement("dt"), document.createElement("dd")];
      term.textContent = name;
      definition.textContent = value;
      made.append(term, definition);
    }
  } else if (tag === "buttons") {
    for (const [label, kind, id] of lines) {
      const [item, button] = [document.createElement("li"), document.createElement("button")];
      button.type = "button";
      button.textContent = label;
      button.addEventListener("click", () => (kind === "table" ? onlyEdge(id) : choose(kind, id)));
      item.append(button);
      made.append(item);
    }
  } else made.textContent = text;
  return made;
}

function list(place, lines) {
  const shape = JSON.stringify(lines);
  if (place.dataset.shape === shape) return;
  place.dataset.shape = shape;
  place.replaceChildren(
    ...lines.map((text) => {
      const item = document.createElement("li");
      item.textContent = text;
      return item;
    }),
  );
}

// --- views

function showView(name, focuses = false) {
  for (const each of ["graph", "table"]) {
    const isHere = each === name;
    byId(`view-${each}`).hidden = !isHere;
    byId(`tab-${each}`).setAttribute("aria-selected", String(isHere));
    byId(`tab-${each}`).tabIndex = isHere ? 0 : -1;
    if (isHere && focuses) byId(`tab-${each}`).focus();
  }
  plan();
}

function onlyEdge(id) {
  if (id === "") delete byId("all").dataset.edge;
  else byId("all").dataset.edge = id;
  byId("all").hidden = id === "";
  showView("table");
}

for (const name of ["graph", "table"]) {
  byId(`tab-${name}`).addEventListener("click", () => showView(name));
  byId(`tab-${name}`).addEventListener("keydown", (event) => {
    if (event.key === "ArrowLeft" || event.key === "ArrowRight") showView(name === "graph" ? "table" : "graph", true);
  });
}
byId("filter").addEventListener("input", plan);
byId("all").addEventListener("click", () => onlyEdge(""));
byId("own").addEventListener("change", plan);
addEventListener("keydown", (event) => {
  if (event.key === "/" && event.target.tagName !== "INPUT") {
    event.preventDefault();
    showView("table");
    byId("filter").focus();
  }
});
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", plan);
addEventListener("resize", plan);
for (const [state, text] of Object.entries(STATES)) {
  const item = document.createElement("li");
  item.className = "key";
  item.dataset.key = state;
  item.textContent = text;
  byId("legend").append(item);
}
read();

// --- texts

function put(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

function count(number) {
  return number >= 2 ** 63 - 1 ? "without bound" : number.toLocaleString("en");
}

/** Return a number in few characters: 3.2, 914, 12.5k, 3.1M. */
function short(number) {
  if (number >= 2 ** 63 - 1) return "∞";
  if (number < 10) return Number.isInteger(number) ? String(number) : number.toFixed(1);
  for (const [size, unit] of [[1e9, "G"], [1e6, "M"], [1e3, "k"]]) {
    if (number >= size * (unit === "k" ? 10 : 1)) return `${(number / size).toFixed(1)}${unit}`;
  }
  return number.toFixed(0);
}

function seconds(number) {
  if (number < 10) return `${number.toFixed(1)} s`;
  return number < 120 ? `${number.toFixed(0)} s` : `${(number / 60).toFixed(0)} min`;
}
