"use strict";
// Pictures of memory in which operators and buffers are picked. The report's page and the page in
// web/ use it alike. Nothing is loaded, and no text becomes markup.
//
// A picture has plots (.plot with data-steps operators and a data-side), each followed by its
// buffers (.b with data-start and data-end; the lines of its <title> are name, kind and size,
// offset, life span).
//
//   click     the operator under the pointer, and the buffer there; once more: nothing is picked
//   ← →       the operator before or after
//   ↑ ↓       the buffer above or below, of those that live while that operator runs
//   Escape    nothing is picked

const HINT =
  "Click an operator, or focus the picture: ← and → go through the operators, ↑ and ↓ through the buffers that live then.";

/** An element with a class and a text. */
function make(tag, style, text) {
  const made = document.createElement(tag);
  if (style) made.className = style;
  if (text !== undefined) made.textContent = text;
  return made;
}

/** A plot of a picture: its buffers, and which operator and which of them are picked. */
class Plot {
  constructor(area) {
    Object.assign(this, { area, blocks: [], step: -1, block: null });
    this.steps = Number(area.dataset.steps);
    this.band = area.cloneNode();
    this.band.setAttribute("class", "band");
  }

  /** The operator at a point of the page; -1 where that is outside. */
  stepAt(x, y) {
    const box = this.area.getBoundingClientRect();
    if (x < box.left || x >= box.right || y < box.top || y > box.bottom) return -1;
    return Math.floor((x - box.left) / (box.width / this.steps));
  }

  /** The buffers that live while the picked operator runs, from the highest address down. */
  get live() {
    const isLive = ({ dataset }) => Number(dataset.start) <= this.step && this.step < Number(dataset.end);
    return this.blocks.filter(isLive).sort((a, b) => Number(a.getAttribute("y")) - Number(b.getAttribute("y")));
  }

  /** Pick an operator (-1: none), and a buffer where it lives then. */
  pick(step, block = null) {
    this.step = Math.max(-1, Math.min(step, this.steps - 1));
    const live = new Set(this.live);
    this.block = live.has(block) ? block : null;
    for (const each of this.blocks) {
      each.classList.toggle("dim", this.step >= 0 && !live.has(each));
      each.classList.toggle("on", each === this.block);
    }
    if (this.step < 0) return this.band.remove();
    const wide = Number(this.area.getAttribute("width")) / this.steps;
    this.band.setAttribute("x", Number(this.area.getAttribute("x")) + this.step * wide);
    this.band.setAttribute("width", wide);
    this.area.after(this.band);
  }

  /** The live buffer so many places below the picked one. */
  neighbour(places) {
    const live = this.live;
    const at = live.indexOf(this.block);
    const next = at < 0 ? (places > 0 ? 0 : live.length - 1) : at + places;
    return live[(next + live.length) % live.length] ?? null;
  }
}

/** The plots of a picture, left to right. */
function plotsOf(svg) {
  const plots = [];
  for (const part of svg.querySelectorAll(".plot, .b[data-start]")) {
    if (part.classList.contains("plot")) plots.push(new Plot(part));
    else plots.at(-1).blocks.push(part);
  }
  return plots;
}

/** Say which operator is picked, and what lives then; of the picked buffer also how long. */
function tell(readout, plot, operator) {
  if (plot.step < 0) return readout.replaceChildren(make("span", "soft", HINT));
  const list = make("ul");
  for (const block of plot.live) {
    const [name, ...lines] = block.querySelector("title").textContent.split("\n");
    const isPicked = block === plot.block;
    list.append(make("li", isPicked ? "on" : "", `${name}: ${lines.slice(0, isPicked ? 3 : 2).join(", ")}`));
  }
  readout.replaceChildren(make("b", "", operator(plot.area.dataset.side, plot.step)), list);
}

/** Let operators and buffers of a picture be picked. operator: side, place -> words. Returns the
 *  element that says what is picked, for the caller to place; null where there is nothing. */
function makePickable(svg, operator) {
  const plots = plotsOf(svg).filter(({ steps }) => steps > 0);
  if (!plots.length) return null;
  const readout = make("div", "readout");
  readout.setAttribute("aria-live", "polite");
  let current = plots.at(-1);
  const pick = (plot, step, block) => {
    for (const other of plots) if (other !== plot) other.pick(-1);
    current = plot;
    plot.pick(step, block);
    tell(readout, plot, operator);
  };
  svg.addEventListener("click", ({ clientX, clientY, target }) => {
    const plot = plots.find((each) => each.stepAt(clientX, clientY) >= 0);
    if (!plot) return;
    const step = plot.stepAt(clientX, clientY);
    const block = plot.blocks.includes(target) ? target : null;
    pick(plot, plot.step === step && plot.block === block ? -1 : step, block);
  });
  svg.addEventListener("keydown", (event) => {
    const { step, block } = current;
    const sideways = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    const down = { ArrowUp: -1, ArrowDown: 1 }[event.key];
    if (sideways) pick(current, Math.max(step + sideways, 0), block);
    else if (down) {
      if (step < 0) current.pick(0);
      pick(current, current.step, current.neighbour(down));
    } else if (event.key === "Escape") pick(current, -1);
    else return;
    event.preventDefault();
  });
  svg.tabIndex = 0;
  tell(readout, current, operator);
  return readout;
}
