// Draws a memory map: operators from left to right, bytes upwards, one rectangle a buffer.
//
// It knows the session's `map` and nothing of boards; whoever calls it says which height is full.

const SVG = "http://www.w3.org/2000/svg";
const [LEFT, RIGHT, BOTTOM, TOP] = [52, 8, 26, 12];
const KINDS = { input: "input", output: "output", activation: "tensor inside", scratch: "scratch" };

export const bytes = (n) => n.toLocaleString("en-US");

function made(name, attributes, ...children) {
  const element = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.append(...children);
  return element;
}

// A round step that makes three to six lines.
function step(most) {
  const wanted = most / 4;
  const unit = 2 ** Math.floor(Math.log2(wanted));
  return wanted / unit > 1.5 ? 2 * unit : unit;
}

// The lines of a block's hover text: name, kind and size, offset, life span.
function hover([name, kind, size, offset, start, end], operators) {
  const last = end - 1;
  const [first, final] = [start, last].map((at) => `${at} ${operators[at] ?? "end"}`);
  const when = start === last ? `operator ${first}` : `operators ${first} to ${final}`;
  return `${name}\n${KINDS[kind]}, ${bytes(size)} B\noffset ${bytes(offset)} to ${bytes(offset + size)}\n${when}`;
}

// map: of the session. wide: pixels that there are. full: bytes of the whole height. limit: bytes of
// SRAM that the head may take, or null. Returns the picture, in which pick.js finds its way.
export function drawing(map, wide, full, limit) {
  const high = Math.round(Math.min(420, Math.max(260, wide / 2)));
  const count = Math.max(map.operators.length, 1);
  const x = (time) => LEFT + ((wide - LEFT - RIGHT) * time) / count;
  const y = (offset) => high - BOTTOM - ((high - BOTTOM - TOP) * offset) / full;
  const picture = made("svg", {
    viewBox: `0 0 ${wide} ${high}`,
    role: "img",
    "aria-label": `Memory map of ${count} operators, ${bytes(map.head)} bytes high.`,
  });
  const area = { x: LEFT, y: TOP, width: wide - LEFT - RIGHT, height: high - BOTTOM - TOP };
  picture.append(made("rect", { class: "plot", ...area, "data-steps": map.operators.length }));
  const every = step(full);
  for (let at = 0; at <= full; at += every) {
    picture.append(
      made("line", { class: "grid", x1: LEFT, x2: wide - RIGHT, y1: y(at), y2: y(at) }),
      made("text", { x: LEFT - 8, y: y(at) + 4, "text-anchor": "end" }, at >= 1024 ? `${at / 1024} K` : `${at}`),
    );
  }
  if (map.peak !== null) {
    picture.append(made("rect", { class: "peak", x: x(map.peak), y: TOP, width: Math.max(x(1) - x(0), 2), height: high - BOTTOM - TOP }));
  }
  const labels = Math.max(1, Math.ceil((count * 44) / (wide - LEFT)));
  for (let time = 0; time < count; time += labels) {
    picture.append(made("text", { x: (x(time) + x(time + 1)) / 2, y: high - 8, "text-anchor": "middle" }, `${time}`));
  }
  const blocks = map.blocks.map((block) => {
    const [, kind, size, offset, start, end] = block;
    const box = {
      class: `b ${kind}`,
      "data-start": start,
      "data-end": end,
      x: x(start),
      width: Math.max(x(end) - x(start), 1),
      y: y(offset + size),
      height: Math.max(y(offset) - y(offset + size), 1),
    };
    return made("rect", box, made("title", {}, hover(block, map.operators)));
  });
  picture.append(...blocks);
  if (limit !== null && limit <= full) {
    picture.append(made("line", { class: "limit", x1: LEFT, x2: wide - RIGHT, y1: y(limit), y2: y(limit) }));
  }
  return picture;
}
