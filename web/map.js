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

function said([name, kind, size, offset, start, end], operators) {
  const last = end - 1;
  const when =
    start === last
      ? `at operator ${start} (${operators[start] ?? ""})`
      : `from operator ${start} (${operators[start] ?? ""}) to ${last} (${operators[last] ?? ""})`;
  return `${KINDS[kind]} ${name}: ${bytes(size)} B at ${bytes(offset)}, ${when}`;
}

// map: of the session. wide: pixels that there are. full: bytes of the whole height. limit: bytes of
// SRAM that the head may take, or null. say: is told of the block that is pointed at. Returns the
// picture.
export function drawing(map, wide, full, limit, say) {
  const high = Math.round(Math.min(420, Math.max(260, wide / 2)));
  const count = Math.max(map.operators.length, 1);
  const x = (time) => LEFT + ((wide - LEFT - RIGHT) * time) / count;
  const y = (offset) => high - BOTTOM - ((high - BOTTOM - TOP) * offset) / full;
  const picture = made("svg", {
    viewBox: `0 0 ${wide} ${high}`,
    role: "img",
    tabindex: "0",
    "aria-label": `Memory map of ${count} operators, ${bytes(map.head)} bytes high. Arrow keys walk through the blocks.`,
  });
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
    return made("rect", {
      class: `b ${kind}`,
      x: x(start),
      width: Math.max(x(end) - x(start), 1),
      y: y(offset + size),
      height: Math.max(y(offset) - y(offset + size), 1),
    });
  });
  picture.append(...blocks);
  if (limit !== null && limit <= full) {
    picture.append(made("line", { class: "limit", x1: LEFT, x2: wide - RIGHT, y1: y(limit), y2: y(limit) }));
  }
  listen(picture, blocks, map, say);
  return picture;
}

function listen(picture, blocks, map, say) {
  // Arrow keys go through the blocks in the order in which they begin to live.
  const order = map.blocks
    .map((block, place) => ({ block, place }))
    .sort((a, b) => a.block[4] - b.block[4] || a.block[3] - b.block[3])
    .map(({ place }) => place);
  let at = -1;
  const show = (place) => {
    for (const block of picture.querySelectorAll(".on")) block.classList.remove("on");
    blocks[place].classList.add("on");
    say(said(map.blocks[place], map.operators), map.blocks[place][1]);
  };
  picture.addEventListener("pointerover", ({ target }) => {
    const place = blocks.indexOf(target);
    if (place >= 0) show(place);
  });
  picture.addEventListener("keydown", (event) => {
    const moved = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    if (moved === undefined || !order.length) return;
    event.preventDefault();
    at = (at + moved + order.length) % order.length;
    show(order[at]);
  });
}
