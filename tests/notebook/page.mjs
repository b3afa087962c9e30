// Runs the page's side of a table, with a page that has just enough to draw on.
import { deepStrictEqual as equal } from "node:assert";
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

class Element {
  constructor(tag) { this.tag = tag; this.style = {}; this.children = []; this.listeners = {}; this.textContent = ""; }
  append(...children) { this.children.push(...children); }
  createTHead() { return this.#part("thead"); }
  createTBody() { return this.#part("tbody"); }
  #part(tag) { const part = new Element(tag); this.append(part); return part; }
  get rows() { return this.children; }
  insertRow() { return this.#part("tr"); }
  insertCell() { return this.#part("td"); }
  deleteRow(index) { this.children.splice(index, 1); }
  addEventListener(name, act) { this.listeners[name] = act; }
  removeEventListener(name) { delete this.listeners[name]; }
}

const frames = [];
let screen;
globalThis.document = Object.assign(new Element("document"), {
  hidden: false,
  createElement: (tag) => Object.assign(new Element(tag), { scrollTop: 0, clientHeight: 30, scrollHeight: 30 }),
});
globalThis.requestAnimationFrame = (act) => frames.push(act);
globalThis.IntersectionObserver = class {
  constructor(act) { screen = (isIntersecting) => act([{ isIntersecting }]); }
  observe() {}
  disconnect() { screen = null; }
};
const sent = [], listeners = {};
const model = {
  get: (name) => ({ rows: 3, kept: 5 })[name],
  send: (content) => sent.push(content.wants),
  on: (name, act) => { listeners[name] = act; },
  off: (name) => { delete listeners[name]; },
};
const asked = () => sent.splice(0);
const path = fileURLToPath(new URL("../../src/penstock/notebook/table.js", import.meta.url));
const source = readFileSync(path, "utf-8");
const { default: widget } = await import(`data:text/javascript,${encodeURIComponent(source)}`);

const el = new Element("div"), leave = widget.render({ model, el });
const [frame, state] = el.children, [head, body] = frame.children[0].children;
const say = (content) => { listeners["msg:custom"](content); frames.splice(0).forEach((act) => act()); };
equal(asked(), []); // it is not on the screen yet
screen(true);
equal(asked(), [3]);
say({ rows: [{ name: "<b>", price: "1" }, { name: "b", price: "2", note: "new" }] });
equal(asked(), [3]);
equal(head.children[0].children.map((cell) => cell.textContent), ["name", "price", "note"]);
equal(body.rows.map((row) => row.children.map((cell) => cell.textContent)), [["<b>", "1"], ["b", "2", "new"]]);
equal(state.textContent, "2 elements");

// A hidden tab, a cell that is scrolled away, and a reader who scrolls back ask for nothing.
document.hidden = true;
say({ rows: [{ name: "c" }] });
equal(asked(), []);
document.hidden = false;
document.listeners.visibilitychange();
equal(asked(), [3]);
screen(false);
say({ rows: [{ name: "d" }] });
equal(asked(), []);
screen(true);
equal(asked(), [3]);
frame.scrollHeight = 100;
frame.scrollTop = 10;
frame.listeners.scroll();
say({ rows: [{ name: "e" }, { name: "f" }] });
equal(asked(), []);
equal(frame.scrollTop, 10);
frame.scrollTop = 70;
frame.listeners.scroll();
equal(asked(), [3]);

equal(body.rows.length, 5); // the oldest row is gone
say({ end: "complete" });
equal(state.textContent, "6 elements, complete");
screen(true);
equal(asked(), []);
leave();
equal([screen, listeners, document.listeners], [null, {}, {}]);
