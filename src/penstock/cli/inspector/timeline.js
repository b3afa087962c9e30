/**
 * The last minutes of the edges that a person looks at first: a lane for each, coloured by what it waited for.
 *
 * Rules of this module:
 *
 * - Of an edge `MOST` points are kept, and of edges that are gone none.
 * - While elements move, the height of a bar is their rate. While they do not, the lane is full.
 */

const MOST = 300;
const LANES = 8;
const SHORTEST = 60; // seconds that the lanes show, and grow with, up to `LONGEST`
const LONGEST = 300;

export class Timeline {
  #place;
  #choose;
  #past = new Map();
  #lanes = new Map();
  #grid = null;
  #axis = null;

  /** Draw into `place`; call `choose(id)` if a person chooses a lane. */
  constructor(place, choose) {
    this.#place = place;
    this.#choose = choose;
  }

  /** Take what the server remembers of edges. */
  remember(edges) {
    for (const [id, points] of Object.entries(edges)) this.#past.set(id, points);
  }

  /** Add a picture. */
  add(at, edges) {
    const kept = new Map();
    for (const edge of edges) {
      const points = this.#past.get(edge.id) ?? [];
      if (points.length === 0 || points.at(-1)[0] < at) points.push([at, edge.cause ? "cause" : edge.state, edge.rate]);
      if (points.length > MOST) points.splice(0, points.length - MOST);
      kept.set(edge.id, points);
    }
    this.#past = kept;
  }

  /** Draw the lanes of these edges, the first of them. */
  show(now, edges, texts) {
    const shown = edges.slice(0, LANES);
    if (this.#grid === null || shown.some((each) => !this.#lanes.has(each.id)) || this.#lanes.size !== shown.length) this.#build(shown);
    const style = getComputedStyle(document.documentElement);
    const first = Math.min(now, ...shown.map((each) => this.#past.get(each.id)?.[0]?.[0] ?? now));
    const seconds = Math.min(LONGEST, Math.max(SHORTEST, Math.ceil((now - first) / 60) * 60));
    this.#axis.textContent = `${seconds / 60} min ago`;
    for (const edge of shown) {
      const { name, canvas } = this.#lanes.get(edge.id);
      const label = edge.label || "(no name)";
      if (name.textContent !== label) name.textContent = label;
      name.title = `${label}, from ${texts.node(edge.from)} to ${texts.node(edge.to)}`;
      const points = this.#past.get(edge.id) ?? [];
      canvas.setAttribute("aria-label", spoken(points, now, texts));
      draw(canvas, points, { now, seconds, style });
    }
  }

  #build(edges) {
    this.#lanes.clear();
    this.#grid = document.createElement("div");
    this.#grid.className = "lanes";
    for (const { id } of edges) {
      const name = document.createElement("button");
      name.type = "button";
      name.addEventListener("click", () => this.#choose(id));
      const canvas = document.createElement("canvas");
      canvas.setAttribute("role", "img");
      this.#grid.append(name, canvas);
      this.#lanes.set(id, { name, canvas });
    }
    const axis = document.createElement("p");
    axis.className = "axis";
    this.#axis = document.createElement("span");
    const end = document.createElement("span");
    end.textContent = "now";
    axis.append(this.#axis, end);
    this.#grid.append(axis);
    this.#place.replaceChildren(this.#grid);
  }
}

function draw(canvas, points, { now, seconds, style }) {
  const ratio = globalThis.devicePixelRatio || 1;
  const width = Math.round(canvas.clientWidth * ratio);
  const height = Math.round(canvas.clientHeight * ratio);
  if (width === 0) return;
  if (canvas.width !== width || canvas.height !== height) [canvas.width, canvas.height] = [width, height];
  const context = canvas.getContext("2d");
  context.clearRect(0, 0, width, height);
  const most = Math.max(1, ...points.map(([, , rate]) => rate));
  const x = (at) => Math.round(width - ((now - at) / seconds) * width);
  for (const [index, [at, state, rate]] of points.entries()) {
    const left = index === 0 ? x(at - 1) : x(points[index - 1][0]);
    const high = state === "flows" ? Math.max(0.12, rate / most) : 1;
    context.fillStyle = style.getPropertyValue(`--${state}`) || style.getPropertyValue("--quiet");
    context.fillRect(left, height * (1 - high), Math.max(1, x(at) - left), height * high);
  }
}

function spoken(points, now, texts) {
  if (points.length === 0) return "nothing yet";
  const [, state] = points.at(-1);
  const changed = points.findLast(([, each]) => each !== state);
  const since = changed === undefined ? points[0][0] : changed[0];
  return `${texts.states[state] ?? state} for ${Math.round(now - since)} seconds`;
}
