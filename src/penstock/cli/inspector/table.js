/**
 * The table of streams. Only the rows that are seen exist in the page, so ten thousand streams cost what thirty do.
 *
 * Rules of this module:
 *
 * - Texts of services are set with textContent alone.
 * - Rows have one height, `ROW`, which the style sheet repeats.
 * - The table has the focus, and not a row of it: a row may be scrolled away. `aria-activedescendant` names the row.
 */

const ROW = 31; // pixels: 30 of a cell, and its line
const BEYOND = 8; // rows that are drawn above and below those that are seen

export class Table {
  #place;
  #choose;
  #columns;
  #body;
  #table;
  #heads = new Map();
  #rows = []; // what is shown, in its order
  #sort;
  #isDescending = true;
  #chosen = null;
  #planned = false;

  /** Draw into `place`. A column has `name`, `title`, `value(row)`, `text(row)`, and `isNumber`. */
  constructor(place, columns, sort, choose) {
    this.#place = place;
    this.#columns = columns;
    this.#sort = sort;
    this.#choose = choose;
    this.#table = document.createElement("table");
    this.#table.tabIndex = 0;
    this.#table.setAttribute("role", "grid");
    this.#table.setAttribute("aria-label", "Streams");
    const group = document.createElement("colgroup");
    const head = document.createElement("tr");
    for (const column of columns) {
      const col = document.createElement("col");
      col.className = column.name;
      group.append(col);
      head.append(this.#headOf(column));
    }
    const heads = document.createElement("thead");
    heads.append(head);
    this.#body = document.createElement("tbody");
    this.#table.append(group, heads, this.#body);
    place.replaceChildren(this.#table);
    place.addEventListener("scroll", () => this.#plan(), { passive: true });
    new ResizeObserver(() => this.#plan()).observe(place);
    this.#table.addEventListener("keydown", (event) => this.#onKey(event));
  }

  /** Show these rows, in the order of the table. */
  show(rows) {
    const column = this.#columns.find((each) => each.name === this.#sort);
    const way = this.#isDescending ? -1 : 1;
    // Made once for each row: a comparison is asked a hundred thousand times for ten thousand rows.
    const keyed = rows.map((row) => [column.value(row), row]);
    keyed.sort(([one, first], [other, second]) => {
      if (one !== other) return one < other ? -way : way;
      return first.id < second.id ? -1 : 1;
    });
    this.#rows = keyed.map(([, row]) => row);
    this.#table.setAttribute("aria-rowcount", String(rows.length + 1));
    this.#plan();
  }

  /** Mark a row as chosen, by its id. */
  set chosen(id) {
    this.#chosen = id;
    this.#plan();
  }

  #headOf(column) {
    const cell = document.createElement("th");
    cell.scope = "col";
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = column.title;
    if (column.isNumber) button.className = "n";
    button.addEventListener("click", () => {
      this.#isDescending = this.#sort === column.name ? !this.#isDescending : column.isNumber === true;
      this.#sort = column.name;
      this.#markSort();
      this.show(this.#rows);
    });
    cell.append(button);
    this.#heads.set(column.name, cell);
    this.#markSort();
    return cell;
  }

  #markSort() {
    for (const [name, cell] of this.#heads) {
      if (name === this.#sort) cell.setAttribute("aria-sort", this.#isDescending ? "descending" : "ascending");
      else cell.removeAttribute("aria-sort");
    }
  }

  #plan() {
    if (this.#planned) return;
    this.#planned = true;
    requestAnimationFrame(() => {
      this.#planned = false;
      this.#draw();
    });
  }

  #draw() {
    const { scrollTop, clientHeight } = this.#place;
    if (clientHeight === 0) return;
    const from = Math.max(0, Math.floor(scrollTop / ROW) - BEYOND);
    const to = Math.min(this.#rows.length, Math.ceil((scrollTop + clientHeight) / ROW) + BEYOND);
    const drawn = [space(from * ROW)];
    for (let index = from; index < to; index += 1) drawn.push(this.#rowOf(this.#rows[index], index));
    drawn.push(space((this.#rows.length - Math.max(from, to)) * ROW));
    this.#body.replaceChildren(...drawn);
    const isThere = this.#rows.slice(from, to).some((row) => row.id === this.#chosen);
    if (isThere) this.#table.setAttribute("aria-activedescendant", "chosen-row");
    else this.#table.removeAttribute("aria-activedescendant");
  }

  #rowOf(row, index) {
    const line = document.createElement("tr");
    line.setAttribute("aria-rowindex", String(index + 2));
    if (row.id === this.#chosen) {
      line.id = "chosen-row";
      line.setAttribute("aria-selected", "true");
    }
    for (const column of this.#columns) {
      const cell = document.createElement("td");
      const text = column.text(row);
      cell.textContent = text;
      if (column.isNumber) cell.className = "n";
      else cell.title = text;
      if (column.key !== undefined) {
        cell.className = "waits";
        cell.dataset.key = column.key(row);
      }
      line.append(cell);
    }
    line.addEventListener("click", () => this.#choose(row.id));
    return line;
  }

  #onKey(event) {
    if (event.target !== this.#table) return; // a button of the head
    const page = Math.max(1, Math.floor(this.#place.clientHeight / ROW) - 2);
    const steps = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -Infinity, End: Infinity };
    if (event.key === "Enter" && this.#chosen !== null) this.#choose(this.#chosen, true);
    if (!(event.key in steps) || this.#rows.length === 0) return;
    event.preventDefault();
    const at = this.#rows.findIndex((row) => row.id === this.#chosen);
    const wanted = Math.min(this.#rows.length - 1, Math.max(0, at + steps[event.key]));
    const top = wanted * ROW;
    if (top < this.#place.scrollTop) this.#place.scrollTop = top;
    const seen = this.#place.clientHeight - 2 * ROW;
    if (top > this.#place.scrollTop + seen) this.#place.scrollTop = top - seen;
    // Known at once, and not with the next picture: a second key may come before it.
    this.#chosen = this.#rows[wanted].id;
    this.#choose(this.#chosen);
  }
}

function space(height) {
  const line = document.createElement("tr");
  line.className = "space";
  line.setAttribute("aria-hidden", "true");
  const cell = document.createElement("td");
  cell.style.height = `${height}px`;
  line.append(cell);
  return line;
}
