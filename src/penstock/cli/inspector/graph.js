/**
 * The picture of services and streams: nodes in columns from publishers to readers, on a narrow window in rows.
 *
 * Rules of this module:
 *
 * - Texts of services are set with textContent alone.
 * - Elements are kept from one picture to the next: the focus stays where it is. Places are new only if nodes or edges are.
 * - One element of the graph is in the order of the tab key; the arrow keys lead to the others.
 */

const SVG = "http://www.w3.org/2000/svg";
const WIDTH = 158;
const HEIGHT = 56;
const GAP = 88; // between two columns: the label of an edge has its place there
const GAP_DOWN = 78;
const BESIDE = 26;
const LONGEST = Object.freeze({ title: 16, at: 24, label: 13 }); // characters that a label has room for
const SMALLEST = 0.7; // a graph that would be smaller is turned, or scrolled

export class Graph {
  #place;
  #choose;
  #svg = null;
  #nodes = new Map();
  #edges = new Map();
  #shape = "";
  #order = [];
  #at = null; // the element that the tab key leads to
  #chosen = null;
  #last = null;

  /** Draw into the element `place`; call `choose(kind, id)` if a person chooses a node or an edge. */
  constructor(place, choose) {
    this.#place = place;
    this.#choose = choose;
    new ResizeObserver(() => this.#last && this.#draw(...this.#last)).observe(place);
  }

  /** Show nodes and edges; `texts` says what their states mean. */
  show(nodes, edges, chosen, texts) {
    this.#chosen = chosen;
    this.#draw(nodes, edges, texts);
  }

  #draw(nodes, edges, texts) {
    this.#last = [nodes, edges, texts];
    const width = this.#place.clientWidth - 36;
    if (width <= 0) return; // not shown now
    const shape = JSON.stringify([nodes.map((each) => each.id), edges.map((each) => [each.id, each.from, each.to]), Math.round(width / 8)]);
    if (shape !== this.#shape) {
      this.#shape = shape;
      this.#arrange(nodes, edges, width);
    }
    for (const each of nodes) this.#showNode(each, texts);
    for (const each of edges) this.#showEdge(each, texts);
  }

  #arrange(nodes, edges, width) {
    const hadFocus = this.#place.contains(document.activeElement);
    const across = layout(nodes, edges, false);
    const isDown = across.width * SMALLEST > width;
    const { places, width: wide, height } = isDown ? layout(nodes, edges, true) : across;
    const scale = Math.min(1, Math.max(SMALLEST, width / wide));
    this.#svg = make("svg", {
      viewBox: `0 0 ${wide} ${height}`,
      width: Math.ceil(wide * scale),
      height: Math.ceil(height * scale),
      role: "group",
      "aria-label": "Services and their streams",
    });
    this.#svg.addEventListener("keydown", (event) => this.#onKey(event));
    this.#nodes.clear();
    this.#edges.clear();
    const beside = new Map(); // edges between the same two nodes
    for (const each of edges) {
      const pair = `${each.from} ${each.to}`;
      beside.set(pair, (beside.get(pair) ?? -1) + 1);
      const [from, to] = [places.get(each.from), places.get(each.to)];
      if (from === undefined || to === undefined) continue;
      this.#addEdge(each.id, curve(from, to, isDown, beside.get(pair)), isDown);
    }
    for (const each of nodes) this.#addNode(each.id, places.get(each.id));
    this.#order = [...nodes.map((each) => `node ${each.id}`), ...edges.map((each) => `edge ${each.id}`)];
    if (!this.#order.includes(this.#at)) this.#at = this.#order[0] ?? null;
    this.#place.replaceChildren(nodes.length === 0 ? nothing() : this.#svg);
    this.#setTab(hadFocus);
  }

  #addNode(id, place) {
    const group = this.#group("node", id);
    group.setAttribute("transform", `translate(${place.x} ${place.y})`);
    const title = make("text", { class: "title", x: 14, y: 24 });
    const at = make("text", { class: "at", x: 14, y: 42 });
    group.append(make("rect", { width: WIDTH, height: HEIGHT, rx: 9 }), title, at);
    this.#svg.append(group);
    this.#nodes.set(id, { group, title, at });
  }

  #addEdge(id, { path, head, x, y }, isDown) {
    const group = this.#group("edge", id);
    if (isDown) group.classList.add("down"); // its texts stand beside the line
    const side = isDown ? x + 10 : x;
    const [above, below] = isDown ? [-14, 3] : [-8, 16];
    const label = make("text", { class: "label", x: side, y: y + above });
    const number = make("text", { class: "number", x: side, y: y + below });
    const asked = make("text", { class: "asked", x: side, y: y + below + 14 });
    group.append(make("path", { class: "hit", d: path }), make("path", { class: "line", d: path }), make("path", { class: "head", d: head }));
    group.append(label, number, asked);
    this.#svg.append(group);
    this.#edges.set(id, { group, label, number, asked });
  }

  #group(kind, id) {
    const group = make("g", { class: kind, role: "button", tabindex: "-1" });
    group.addEventListener("click", () => {
      this.#at = `${kind} ${id}`;
      this.#setTab(true);
      this.#choose(kind, id);
    });
    return group;
  }

  #showNode(node, texts) {
    const drawn = this.#nodes.get(node.id);
    if (drawn === undefined) return;
    const { group, title, at } = drawn;
    group.dataset.kind = node.kind;
    group.dataset.cause = String(node.cause);
    group.dataset.lost = String(node.lost !== "");
    group.setAttribute("aria-pressed", String(this.#chosen?.kind === "node" && this.#chosen.id === node.id));
    const below = node.cause ? "holds up the others" : node.lost !== "" ? "not there now" : node.at.replace(/^[a-z0-9+]+:\/\//, "") || `${texts.count(node.streams)}`;
    put(title, cut(node.label, LONGEST.title));
    put(at, cut(below, LONGEST.at));
    const said = [node.label, node.at, texts.kinds[node.kind], texts.count(node.streams)];
    if (node.cause) said.push("holds up the others");
    if (node.lost !== "") said.push(`not there now: ${node.lost}`);
    group.setAttribute("aria-label", said.filter((each) => each !== "").join(", "));
  }

  #showEdge(edge, texts) {
    const drawn = this.#edges.get(edge.id);
    if (drawn === undefined) return;
    const { group, label, number, asked } = drawn;
    group.dataset.state = edge.cause ? "cause" : edge.state;
    group.setAttribute("aria-pressed", String(this.#chosen?.kind === "edge" && this.#chosen.id === edge.id));
    put(label, cut(edge.label || "(no name)", LONGEST.label));
    put(number, `${texts.number(edge.rate)}/s`);
    put(asked, `${texts.number(edge.demand)} asked`);
    group.setAttribute(
      "aria-label",
      `${edge.label}, from ${texts.node(edge.from)} to ${texts.node(edge.to)}: ${texts.number(edge.rate)} elements a second, ` +
        `${texts.number(edge.demand)} requested and not there, ${edge.cause ? "the cause, " : ""}${texts.states[edge.state] ?? edge.state}`,
    );
  }

  #onKey(event) {
    const steps = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 };
    const last = this.#order.length - 1;
    let index = this.#order.indexOf(this.#at);
    if (event.key in steps) index = Math.min(last, Math.max(0, index + steps[event.key]));
    else if (event.key === "Home") index = 0;
    else if (event.key === "End") index = last;
    else if (event.key === "Enter" || event.key === " ") {
      const [kind, ...id] = this.#at.split(" ");
      this.#choose(kind, id.join(" "));
    } else return;
    event.preventDefault();
    this.#at = this.#order[index];
    this.#setTab(true);
  }

  #setTab(focuses) {
    for (const [kind, drawn] of [["node", this.#nodes], ["edge", this.#edges]]) {
      for (const [id, { group }] of drawn) {
        const isHere = `${kind} ${id}` === this.#at;
        group.setAttribute("tabindex", isHere ? "0" : "-1");
        if (isHere && focuses) group.focus();
      }
    }
  }
}

/** Return the place of each node: its column follows from the longest way to it, its row from its neighbours. */
export function layout(nodes, edges, isDown) {
  const ids = new Set(nodes.map((each) => each.id));
  const known = edges.filter((each) => ids.has(each.from) && ids.has(each.to) && each.from !== each.to);
  const rank = ranks(nodes, known);
  const columns = [];
  for (const { id } of nodes) (columns[rank.get(id)] ??= []).push(id);
  const row = new Map();
  const note = () => columns.forEach((column) => column.forEach((id, index) => row.set(id, index - (column.length - 1) / 2)));
  note();
  for (let pass = 0; pass < 4; pass += 1) {
    for (const column of pass % 2 === 0 ? columns : columns.toReversed()) {
      const wanted = new Map(column.map((id) => [id, middle(known, id, row)]));
      column.sort((one, other) => wanted.get(one) - wanted.get(other));
    }
    note();
  }
  const most = Math.max(1, ...columns.map((column) => column.length));
  const [along, beside] = isDown ? [HEIGHT + GAP_DOWN, WIDTH + BESIDE] : [WIDTH + GAP, HEIGHT + BESIDE + 14];
  const places = new Map();
  for (const [number, column] of columns.entries()) {
    for (const [index, id] of column.entries()) {
      const across = 2 + (index + (most - column.length) / 2) * beside;
      places.set(id, isDown ? { x: across, y: 2 + number * along } : { x: 2 + number * along, y: across });
    }
  }
  const long = columns.length * along - (isDown ? GAP_DOWN : GAP) + 4;
  // A way back, and one around other nodes, is drawn beside them.
  const isFar = known.some((each) => Math.abs(rank.get(each.to) - rank.get(each.from)) > 1);
  const broad = most * beside + (isFar ? 84 : 24);
  return isDown ? { places, width: broad, height: long } : { places, width: long, height: broad };
}

function ranks(nodes, edges) {
  const rank = new Map(nodes.map((each) => [each.id, 0]));
  const before = new Map(nodes.map((each) => [each.id, 0]));
  for (const each of edges) before.set(each.to, before.get(each.to) + 1);
  const left = new Set(rank.keys());
  while (left.size > 0) {
    // In a circle no node is first: then the one that fewest lead to is.
    const id = [...left].reduce((one, other) => (before.get(other) < before.get(one) ? other : one));
    left.delete(id);
    for (const each of edges) {
      if (each.from !== id || !left.has(each.to)) continue;
      before.set(each.to, before.get(each.to) - 1);
      rank.set(each.to, Math.max(rank.get(each.to), rank.get(id) + 1));
    }
  }
  // No column stays empty.
  const used = [...new Set(rank.values())].sort((one, other) => one - other);
  for (const [id, number] of rank) rank.set(id, used.indexOf(number));
  return rank;
}

function middle(edges, id, row) {
  const found = edges.filter((each) => each.from === id || each.to === id).map((each) => row.get(each.from === id ? each.to : each.from));
  return found.length === 0 ? row.get(id) : found.reduce((sum, each) => sum + each, 0) / found.length;
}

/** Return the way from one node to another, its head, and the place of its label. */
function curve(from, to, isDown, number) {
  const side = number * 14;
  const [startX, startY] = isDown ? [from.x + WIDTH / 2 + side, from.y + HEIGHT] : [from.x + WIDTH, from.y + HEIGHT / 2 + side];
  const [endX, endY] = isDown ? [to.x + WIDTH / 2 + side, to.y - 9] : [to.x - 9, to.y + HEIGHT / 2 + side];
  const head = isDown ? `M${endX - 5} ${endY}h10l-5 9z` : `M${endX} ${endY - 5}v10l9 -5z`;
  const isBack = isDown ? endY <= startY : endX <= startX;
  const isLong = !isBack && (isDown ? endY - startY > HEIGHT + GAP_DOWN : endX - startX > WIDTH + GAP);
  if (isLong) return around({ startX, startY, endX, endY, head, isDown });
  const bend = isBack ? 60 : Math.max(26, (isDown ? endY - startY : endX - startX) / 2);
  const path = isDown
    ? `M${startX} ${startY}C${startX} ${startY + bend} ${endX} ${endY - bend} ${endX} ${endY}`
    : `M${startX} ${startY}C${startX + bend} ${startY} ${endX - bend} ${endY} ${endX} ${endY}`;
  return { path, head, x: (startX + endX) / 2, y: (startY + endY) / 2 };
}

/** Return a way beside the nodes that stand between two others. */
function around({ startX, startY, endX, endY, head, isDown }) {
  const lift = isDown ? WIDTH * 0.8 : HEIGHT * 1.9;
  const path = isDown
    ? `M${startX} ${startY}C${startX + lift} ${startY + 40} ${endX + lift} ${endY - 40} ${endX} ${endY}`
    : `M${startX} ${startY}C${startX + 40} ${startY + lift} ${endX - 40} ${endY + lift} ${endX} ${endY}`;
  const [x, y] = [(startX + endX) / 2, (startY + endY) / 2];
  return isDown ? { path, head, x: x + lift * 0.75, y } : { path, head, x, y: y + lift * 0.75 };
}

function nothing() {
  const text = document.createElement("p");
  text.className = "empty";
  text.textContent = "No stream is open.";
  return text;
}

function make(name, attributes) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, String(value));
  return made;
}

function put(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

function cut(text, size) {
  const letters = [...text];
  return letters.length <= size ? text : `${letters.slice(0, size - 1).join("")}…`;
}
