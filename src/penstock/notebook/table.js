/*
 * The page's side of a table: it draws rows, and says how many more it has room for.
 *
 * It has room while it is seen: on the screen, in a tab that is not hidden, scrolled to its end.
 */

const LINE = 1.6; // height of a row, in em

function render({ model, el }) {
  const rows = model.get("rows"), kept = model.get("kept");
  const frame = document.createElement("div"), table = document.createElement("table");
  const head = table.createTHead().insertRow(), body = table.createTBody();
  const state = document.createElement("div");
  frame.className = "penstock-table";
  frame.style.height = `${(rows + 1) * LINE}em`;
  state.className = "penstock-state";
  frame.append(table);
  el.append(frame, state);
  const columns = [];
  let onScreen = false, follows = true, drawn = 0, ended = false;

  const ask = () => {
    if (!ended && onScreen && follows && !document.hidden) model.send({ wants: rows });
  };

  const draw = (cells) => {
    for (const name of Object.keys(cells)) {
      if (columns.includes(name)) continue;
      columns.push(name);
      const cell = document.createElement("th");
      cell.textContent = name; // never as HTML: elements come from elsewhere
      head.append(cell);
    }
    const row = body.insertRow();
    for (const name of columns) row.insertCell().textContent = cells[name] ?? "";
    if (body.rows.length > kept) body.deleteRow(0);
  };

  const show = (text) => {
    state.textContent = `${drawn} elements${text}`;
  };

  const onMessage = (message) => {
    if (message.end !== undefined) {
      ended = true;
      show(`, ${message.end}`);
      return;
    }
    for (const cells of message.rows) draw(cells);
    drawn += message.rows.length;
    show("");
    // The next frame: these rows are on the screen then, and there is room for others.
    requestAnimationFrame(() => {
      if (follows) frame.scrollTop = frame.scrollHeight;
      ask();
    });
  };

  const onScroll = () => {
    const follow = frame.scrollTop + frame.clientHeight >= frame.scrollHeight - 4;
    if (follow === follows) return;
    follows = follow;
    ask();
  };

  const seen = new IntersectionObserver((entries) => {
    onScreen = entries.at(-1).isIntersecting;
    ask();
  });
  model.on("msg:custom", onMessage);
  frame.addEventListener("scroll", onScroll);
  document.addEventListener("visibilitychange", ask);
  seen.observe(frame);
  return () => {
    seen.disconnect();
    document.removeEventListener("visibilitychange", ask);
    model.off("msg:custom", onMessage);
  };
}

export default { render };
