"use strict";
// What the page adds where scripts may run: operators of a memory map can be picked, maps zoomed,
// long tables sorted and filtered. Without it everything can be read all the same. Nothing is
// loaded, and no text becomes markup: elements are made, and texts set, one by one.

const SVG = "http://www.w3.org/2000/svg";

/** An element with a class and a text. */
function make(tag, style, text) {
  const made = document.createElement(tag);
  if (style) made.className = style;
  if (text !== undefined) made.textContent = text;
  return made;
}

/** A button in a row of buttons. */
function button(row, text, label, action) {
  const made = make("button", "", text);
  made.type = "button";
  made.setAttribute("aria-label", label);
  made.addEventListener("click", action);
  row.append(made);
}

// --- memory maps ---

/** A plot of a map: its blocks, and what lives while the picked operator runs. */
class Plot {
  constructor(svg, area, blocks, rows, readout) {
    Object.assign(this, { svg, area, blocks, rows, readout });
    this.steps = Number(area.dataset.steps);
    this.picked = -1;
    this.band = document.createElementNS(SVG, "rect");
    this.band.setAttribute("class", "band");
    for (const side of ["y", "height"]) this.band.setAttribute(side, area.getAttribute(side));
  }

  /** Whether a point of the page is inside, and at which operator. */
  stepAt(x, y) {
    const box = this.area.getBoundingClientRect();
    if (x < box.left || x >= box.right || y < box.top || y > box.bottom) return -1;
    return Math.floor((x - box.left) / (box.width / this.steps));
  }

  pick(step) {
    this.picked = step;
    const live = [];
    for (const block of this.blocks) {
      const isLive = Number(block.dataset.start) <= step && step < Number(block.dataset.end);
      block.classList.toggle("dim", step >= 0 && !isLive);
      if (isLive) live.push(block);
    }
    if (step < 0) this.band.remove();
    else this.mark(step);
    this.tell(step, live);
  }

  mark(step) {
    const wide = Number(this.area.getAttribute("width")) / this.steps;
    this.band.setAttribute("x", Number(this.area.getAttribute("x")) + step * wide);
    this.band.setAttribute("width", wide);
    this.area.after(this.band);
  }

  /** The picked operator in words, and what is live, what began to live last first. */
  tell(step, live) {
    this.readout.replaceChildren();
    if (step < 0) return;
    const cells = this.rows[step] ? [...this.rows[step].cells].map((c) => c.textContent) : [];
    const words = cells.length ? `operator ${cells[0]}, ${cells[1]} ${cells[2]}` : `operator ${step}`;
    this.readout.append(make("b", "", words));
    const list = make("ul");
    for (const block of live.reverse()) {
      const [name, ...more] = (block.querySelector("title") || block).textContent.split("\n");
      const item = make("li", "", `${name}: ${more.slice(0, 2).join(", ")}`);
      list.append(item);
    }
    this.readout.append(list);
  }
}

/** The plots of a picture, left to right, each with the rows of its operators' table. */
function plotsOf(svg, tables, readout) {
  const plots = [];
  for (const part of svg.querySelectorAll(".plot, .b[data-start]")) {
    if (!part.classList.contains("plot")) {
      plots[plots.length - 1].blocks.push(part);
      continue;
    }
    const side = part.dataset.side || String(plots.length);
    plots.push(new Plot(svg, part, [], tables[side] || [], readout));
  }
  return plots;
}

/** Pick operators by pointer and by the arrow keys. */
function makePickable(svg, tables) {
  const readout = make("div", "readout");
  readout.setAttribute("aria-live", "polite");
  const plots = plotsOf(svg, tables, readout);
  if (!plots.length) return;
  svg.closest(".picture").after(readout);
  readout.append(make("span", "soft", "Click an operator, or focus the picture and use ← and →: what lives then is listed here."));
  let current = plots[plots.length - 1];
  const pick = (plot, step) => {
    for (const other of plots) if (other !== plot) other.pick(-1);
    current = plot;
    plot.pick(Math.max(-1, Math.min(step, plot.steps - 1)));
  };
  svg.addEventListener("click", (event) => {
    for (const plot of plots) {
      const step = plot.stepAt(event.clientX, event.clientY);
      if (step >= 0) return pick(plot, plot.picked === step ? -1 : step);
    }
  });
  svg.tabIndex = 0;
  svg.addEventListener("keydown", (event) => {
    const way = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (!way && event.key !== "Escape") return;
    pick(current, way ? Math.max(current.picked + way, 0) : -1);
    event.preventDefault();
  });
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
      const text = row.textContent.toLowerCase();
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
  makePickable(svg, tables);
  if (svg.closest("details")) makeZoomable(svg);
}
for (const table of document.querySelectorAll("table.long")) {
  makeSortable(table);
  makeFilterable(table);
}
for (const element of document.querySelectorAll("pre, td.command")) makeCopyable(element);
