// What the page adds where scripts may run: operators and buffers of a memory map can be picked
// (pick.js, which comes before), maps zoomed, long tables sorted and filtered. Without it everything
// can be read all the same.

/** A button in a row of buttons. */
function button(row, text, label, action) {
  const made = make("button", "", text);
  made.type = "button";
  made.setAttribute("aria-label", label);
  made.addEventListener("click", action);
  row.append(made);
}

// --- memory maps ---

/** Say under a memory map which operator is picked, by the rows of its table. */
function makeReadable(svg, tables) {
  const operator = (side, step) => {
    const row = tables[side]?.[step];
    if (!row) return `operator ${step}`;
    const [place, kind, name] = [...row.cells].map((cell) => cell.textContent);
    return `operator ${place}, ${kind} ${name}`;
  };
  const readout = makePickable(svg, operator);
  if (readout) svg.closest(".picture").after(readout);
}

/** Zoom by buttons; a picture that is wider than the page scrolls. */
function makeZoomable(svg) {
  const row = make("div", "buttons");
  svg.closest(".picture").before(row);
  let factor = 1;
  const zoom = (by) => {
    factor = by ? Math.max(1, Math.min(factor * by, 16)) : 1;
    svg.style.width = `${100 * factor}%`;
  };
  button(row, "+", "zoom in", () => zoom(2));
  button(row, "−", "zoom out", () => zoom(0.5));
  button(row, "1:1", "whole picture", () => zoom(0));
}

// --- tables ---

/** A number where a cell has one, else its text. */
function keyOf(row, column) {
  const text = row.cells[column].textContent;
  const number = Number(text.replace(/[, %]/g, ""));
  return text !== "" && Number.isFinite(number) ? number : text;
}

function compare(a, b) {
  if (typeof a === "number" && typeof b === "number") return a - b;
  return String(a).localeCompare(String(b), "en");
}

/** Sort by the titles of the columns; a second click turns the order round. */
function makeSortable(table) {
  const body = table.tBodies[0];
  let by = -1;
  [...table.tHead.rows[0].cells].forEach((title, column) => {
    if (!title.textContent) return;
    const sorter = make("button", "sort", title.textContent);
    sorter.type = "button";
    title.replaceChildren(sorter);
    sorter.addEventListener("click", () => {
      const sign = by === column ? -1 : 1;
      by = sign < 0 ? -1 : column;
      const rows = [...body.rows].map((row) => [keyOf(row, column), row]);
      rows.sort((a, b) => sign * compare(a[0], b[0]));
      body.append(...rows.map((pair) => pair[1]));
      for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
      title.setAttribute("aria-sort", sign > 0 ? "ascending" : "descending");
    });
  });
}

/** What a row says, names that are shown shortened in full. */
function textOf(row) {
  return [...row.cells].map((cell) => `${cell.textContent} ${cell.title}`).join(" ").toLowerCase();
}

/** Show the rows that contain all words. */
function makeFilterable(table) {
  const field = make("input", "filter");
  field.type = "search";
  field.placeholder = "filter: words that a row must contain";
  field.setAttribute("aria-label", "filter the table");
  table.parentElement.before(field);
  field.addEventListener("input", () => {
    const words = field.value.toLowerCase().split(/\s+/);
    for (const row of table.tBodies[0].rows) {
      const text = textOf(row);
      row.hidden = !words.every((word) => text.includes(word));
    }
  });
}

/** A button that copies a command, or lines of code. */
function makeCopyable(element) {
  const isCode = element.tagName === "PRE" || element.textContent.startsWith("tflm-plan ");
  if (!navigator.clipboard || !isCode) return;
  const copy = make("button", "copy", "copy");
  copy.type = "button";
  const text = element.textContent;
  copy.addEventListener("click", async () => {
    await navigator.clipboard.writeText(text);
    copy.textContent = "copied";
  });
  element.append(" ", copy);
}

const tables = {};
for (const table of document.querySelectorAll("table.operators")) {
  tables[table.dataset.side] = [...table.tBodies[0].rows];
}
for (const svg of document.querySelectorAll("svg.tfm")) {
  makeReadable(svg, tables);
  if (svg.closest("details")) makeZoomable(svg);
}
for (const table of document.querySelectorAll("table.long")) {
  makeSortable(table);
  makeFilterable(table);
}
for (const element of document.querySelectorAll("pre, td.command")) makeCopyable(element);
