// The page: takes a file, asks the worker, shows answers. It computes nothing about models.

import { bytes, drawing } from "./map.js";

const $ = (id) => document.getElementById(id);
const FIRST_BOARD = "nano33ble";
const LARGEST = 512 * 2 ** 20;

// --- the worker: one answer to each question, in order -------------------------------------------

const worker = new Worker("worker.js", { type: "module" });
const waiting = new Map();
let questions = 0;

function ask(step, more = {}, transfer = []) {
  const id = ++questions;
  worker.postMessage({ id, step, ...more }, transfer);
  return new Promise((resolve, reject) => waiting.set(id, { resolve, reject }));
}

worker.onmessage = ({ data }) => {
  const { resolve, reject } = waiting.get(data.id);
  waiting.delete(data.id);
  data.failed === undefined ? resolve(data.answer) : reject(new Error(data.failed));
};
worker.onerror = (event) => {
  event.preventDefault();
  for (const { reject } of waiting.values()) reject(new Error(event.message || "the worker ended"));
  waiting.clear();
};

// --- what is shown ------------------------------------------------------------------------------

const state = { model: null, planned: {}, detail: null, board: FIRST_BOARD, drawn: "as_is", wide: 0 };
let turn = 0; // of models: answers about an earlier one are dropped

function made(name, attributes = {}, ...children) {
  const element = Object.assign(document.createElement(name), attributes);
  element.append(...children.filter((child) => child !== null));
  return element;
}

const say = (words) => ($("status").textContent = words);

function fail(words) {
  say("");
  $("error").textContent = words;
  $("error").hidden = false;
  $("result").hidden = true;
}

// Names of fused operators are long, and differ at their ends.
const shortened = (name) => (name.length <= 60 ? name : `${name.slice(0, 28)} ... ${name.slice(-28)}`);
const hedge = (bound) => (bound === "at least" || bound === "about" ? `${bound} ` : "");
const SIGNS = { "at least": "≥\u00a0", about: "~\u00a0" };
const MEANINGS = {
  "at least": "nobody has read those kernels, and a board may need more",
  about: "the release of the kernel library is not known, or what an operator of your own needs, and a board may need more or less",
};

function kibibytes(n) {
  return n < 10240 ? `${bytes(n)} B` : `${(n / 1024).toFixed(1)} KiB`;
}

// fits: true, false, or null where that is not known.
function fitting(fits) {
  if (fits === true) return ["fits", "good"];
  return fits === false ? ["does not fit", "bad"] : ["not known to fit", "unsure"];
}

const figure = ({ arena, bound }) => (arena ? `${SIGNS[bound] ?? ""}${bytes(arena)}` : "-");
const current = () => state.model.boards.find(({ id }) => id === state.board);
const plannedFits = (board, planned) =>
  state.model.bytes > board.flash ? false : planned.bound === "about" ? null : planned.arena > board.sram ? false : planned.bound === "at least" ? null : true;

function showVerdict() {
  const board = current();
  const verdict = $("verdict");
  if (board.arena === null) {
    verdict.replaceChildren(made("span", { className: "bad" }, "cannot run"));
    $("summary").textContent = `${state.model.name} on ${board.board}: ${board.remark.replace(/^cannot run: /, "")}.`;
    $("doubt").hidden = true;
    return;
  }
  const [words, style] = fitting(board.fits);
  verdict.replaceChildren(`${hedge(board.bound)}${bytes(board.arena)} bytes: `, made("span", { className: style }, words));
  const flash = state.model.bytes > board.flash ? " The file is larger than the flash." : "";
  $("summary").textContent =
    `${state.model.name} (a file of ${kibibytes(state.model.bytes)}) on ${board.board}, ` +
    `${kibibytes(board.sram)} of SRAM: ${room(board)}.${flash}`;
  const doubt = board.warnings[0] ?? MEANINGS[board.bound];
  $("doubt").textContent = doubt ? `Why not to the byte: ${doubt}.` : "";
  $("doubt").hidden = !doubt || !hedge(board.bound);
}

// Where a board may need more, at most so much is left.
function room({ arena, bound, sram }) {
  if (arena > sram) return `${hedge(bound)}${bytes(arena - sram)} B too many`;
  return `${bound === "at least" ? "at most " : hedge(bound)}${bytes(sram - arena)} B are left`;
}

function showSaving() {
  const board = current();
  const planned = state.planned[state.board];
  const output = state.model.name.replace(/\.[^.]*$/, "") + "_small.tflite";
  $("command").textContent = `tflm-plan ${quoted(state.model.name)} ${quoted(output)} --target ${state.board}`;
  // The command would refuse the model, too.
  $("command").parentElement.hidden = $("searching").hidden = board.arena === null;
  if (board.arena === null) $("saving").textContent = "First the model must be one that runs there.";
  else if (!planned) $("saving").textContent = "Looking for an order and a plan ...";
  else if (planned.error) $("saving").textContent = planned.error;
  else if (planned.arena >= board.arena) $("saving").textContent = "Order and plan alone save nothing here: the memory is packed as tightly as this order needs.";
  else {
    const saved = board.arena - planned.arena;
    const [words, style] = fitting(plannedFits(board, planned));
    $("saving").replaceChildren(
      "With operators in the best order and an offline plan, at most: ",
      made("b", {}, `${hedge(planned.bound)}${bytes(planned.arena)} B`),
      `, ${hedge(planned.bound) && "about "}${bytes(saved)} B (${Math.round((100 * saved) / board.arena)} %) less, `,
      made("span", { className: style }, words),
      ".",
    );
  }
}

// A word that shells take as one.
const quoted = (word) => (/^[\w.@%+=:,/-]+$/.test(word) && !word.startsWith("-") ? word : `'${word.replaceAll("'", `'"'"'`)}'`);

function showBoards() {
  const wanted = $("filter").value.trim().toLowerCase();
  const rows = state.model.boards
    .filter((b) => [b.id, b.board, b.vendor, b.kernels].some((word) => word.toLowerCase().includes(wanted)))
    .map((board) => {
      const planned = state.planned[board.id];
      const [words, style] = board.arena === null ? ["cannot run", "bad"] : fitting(board.fits);
      const later = board.fits === false && planned?.arena && plannedFits(board, planned);
      const button = made("button", { type: "button", onclick: () => choose(board.id) }, board.board);
      const cell = (text) => made("td", { className: "n" }, text);
      const row = made(
        "tr",
        { onclick: () => choose(board.id) },
        made("td", {}, button),
        cell(bytes(board.sram)),
        cell(figure(board)),
        cell(board.arena === null ? "-" : planned ? figure(planned) : "..."),
        made("td", { className: later ? "good" : style, title: board.remark || board.warnings.join("; ") }, later ? "fits planned" : words),
      );
      if (board.id === state.board) row.setAttribute("aria-current", "true");
      return row;
    });
  const none = made("tr", {}, made("td", { colSpan: 5 }, "No board is like that."));
  $("boards").tBodies[0].replaceChildren(...(rows.length ? rows : [none]));
  const signs = Object.keys(SIGNS).filter((bound) => state.model.boards.some((board) => board.bound === bound));
  $("signs").textContent = signs.map((bound) => ` ${SIGNS[bound]}is ${bound}: ${MEANINGS[bound]}.`).join("");
}

const PARTS = [
  ["head", "head", "tensors and scratch"],
  ["tail", "tail", "what stays: structures and parameters"],
  ["temporary", "temporary", "while TensorFlow Lite Micro plans"],
  ["alignment", "alignment", "between head and tail"],
];
/** The parts that one of the arenas has. */
const partsOf = (...arenas) => PARTS.filter(([part]) => arenas.some((arena) => arena[part] > 0));

function bar(title, arena, full, sram) {
  const track = made("div", { className: "track" });
  for (const [part, style] of partsOf(arena)) {
    const piece = made("i", { className: style, title: `${part}: ${bytes(arena[part])} B` });
    piece.style.width = `${(100 * arena[part]) / full}%`;
    track.append(piece);
  }
  const limit = made("span", { className: "limit", title: `SRAM: ${bytes(sram)} B` });
  limit.style.left = `${(100 * sram) / full}%`;
  track.append(limit);
  return made("div", { className: "bar" }, made("p", {}, made("span", {}, title), made("b", {}, `${hedge(arena.bound)}${bytes(arena.arena)} B`)), track);
}

function showBars() {
  const { as_is: asIs, planned } = state.detail;
  const sram = current().sram;
  const shown = [asIs, planned].filter((arena) => !arena.error);
  const full = 1.02 * Math.max(sram, ...shown.map(({ arena }) => arena));
  const keys = partsOf(...shown).map(([part, style]) => made("span", { className: "key" }, made("i", { className: style }), part));
  $("bars").replaceChildren(
    ...(asIs.error ? [] : [bar("As it is", asIs, full, sram)]),
    ...(planned.error ? [] : [bar("Planned", planned, full, sram)]),
    shown.length ? made("p", { className: "soft" }, ...keys, made("span", { className: "key" }, `dashed line: SRAM, ${bytes(sram)} B`)) : "",
  );
}

function showMap() {
  for (const which of ["as_is", "planned"]) {
    $(`show-${which.replace("_", "-")}`).setAttribute("aria-pressed", String(state.drawn === which));
  }
  const shown = state.detail[state.drawn];
  if (shown.error) {
    $("map").replaceChildren();
    $("picked").replaceChildren();
    $("map-caption").textContent = shown.error;
    return;
  }
  const heads = ["as_is", "planned"].map((which) => state.detail[which].map?.head ?? 0);
  const full = 1.04 * Math.max(...heads, 1);
  const room = current().sram - shown.tail;
  const { operators, peak, head, left_out: out } = shown.map;
  state.wide = $("map").clientWidth;
  const picture = drawing(shown.map, Math.max(state.wide, 300), full, room > 0 ? room : null);
  $("map").replaceChildren(picture);
  // makePickable is pick.js's, which the report has too: both pictures are picked in alike.
  $("picked").replaceChildren(makePickable(picture, (_, step) => `operator ${step}, ${operators[step]}`) ?? "");
  $("map-caption").replaceChildren(
    ...[["input", "input"], ["output", "output"], ["activation", "tensor inside"], ["scratch", "scratch"]].map(([style, words]) =>
      made("span", { className: "key" }, made("i", { className: style }), words),
    ),
    made("br"),
    `Head of ${bytes(head)} B over ${operators.length} operators` +
      (peak === null ? "." : `; the shaded one, ${peak} (${operators[peak]}), needs most.`) +
      (out ? ` The ${out} smallest buffers are not drawn.` : ""),
  );
}

function showParts() {
  const shown = state.detail.as_is;
  const rows = [];
  if (!shown.error) {
    for (const [part, style, words] of partsOf(shown)) {
      rows.push(row(made("td", {}, made("i", { className: style }), ` ${part}: ${words}`), shown[part], true));
      if (part === "tail") {
        for (const [name, size] of Object.entries(shown.tail_parts).slice(0, 6)) rows.push(row(made("td", { className: "soft" }, name), size));
      }
    }
  }
  $("parts").tBodies[0].replaceChildren(...rows);
  $("parts-missing").textContent = shown.error ?? "";
  $("parts-missing").hidden = !shown.error;
  const map = shown.map;
  const peaks = map && map.peak !== null ? map.at_peak.slice(0, 8).map(([name, size]) => row(made("td", { title: name }, shortened(name)), size)) : [];
  if (map?.scratch_at_peak) peaks.push(row(made("td", {}, "scratch of the kernel"), map.scratch_at_peak));
  $("peak").textContent = map && map.peak !== null ? `Operator ${map.peak}, ${map.operators[map.peak]}: ${bytes(map.live[map.peak])} B must exist at once.` : "";
  $("tensors").tBodies[0].replaceChildren(...peaks);
  $("peak-title").hidden = !peaks.length;
  const notes = [...new Set([...(shown.cannot_run ?? []), ...(shown.notes ?? [])])];
  $("notes").replaceChildren(...notes.map((note) => made("li", {}, note)));
  $("notes-section").hidden = !notes.length;
}

function row(first, size, strong = false) {
  return made("tr", {}, first, made("td", { className: "n" }, strong ? made("b", {}, bytes(size)) : bytes(size)));
}

// --- what happens -------------------------------------------------------------------------------

const ready = (async () => {
  const base = new URL(document.querySelector("meta[name=pyodide]").content, document.baseURI).href;
  const model = fetch("example.tflite").then((found) => (found.ok ? found.arrayBuffer() : null));
  await ask("start", { base });
  return { example: await model };
})();

say("Loading Python for the browser; you can choose a file already.");
ready.then(
  ({ example }) => {
    if (!state.model && !turn) say("Ready.");
    document.body.dataset.ready = "true";
    $("example").hidden = !example;
  },
  (error) => fail(`The page could not load: ${error.message}. Reload it, or use the command: tflm-plan arena MODEL`),
);

async function open(name, data) {
  const mine = ++turn;
  const current_ = () => mine === turn;
  $("error").hidden = true;
  say(`Reading ${name} ...`);
  try {
    await ready;
    const answer = await ask("open", { name, data }, [data]);
    if (!current_()) return;
    if (answer.error) return fail(`${name}: ${answer.error}`);
    Object.assign(state, { model: answer, planned: {}, detail: null, drawn: "as_is" });
    $("version").textContent = `tflm_planner ${answer.version}`;
    fillBoards();
    showVerdict();
    showSaving();
    showBoards();
    $("result").hidden = false;
    say(`${name}: ${$("verdict").textContent} on ${current().board}.`);
    $("verdict").focus({ preventScroll: true });
    $("verdict").scrollIntoView({ block: "start" });
    await showDetail();
    const planned = await ask("plan");
    if (!current_()) return;
    state.planned = planned;
    showSaving();
    showBoards();
    document.body.dataset.answered = name;
  } catch (error) {
    if (current_()) fail(`${name}: the page failed (${error.message}). Please report it with the model, or use the command: tflm-plan arena MODEL`);
  }
}

function fillBoards() {
  const groups = new Map();
  for (const { id, board, vendor } of state.model.boards) {
    if (!groups.has(vendor)) groups.set(vendor, made("optgroup", { label: vendor }));
    groups.get(vendor).append(made("option", { value: id, selected: id === state.board }, board));
  }
  $("board").replaceChildren(...groups.values());
}

async function showDetail() {
  const mine = turn;
  const board = state.board;
  const detail = await ask("detail", { board });
  if (mine !== turn || board !== state.board) return;
  state.detail = detail;
  showBars();
  showMap();
  showParts();
}

async function choose(board) {
  if (!state.model || board === state.board) return;
  state.board = board;
  $("board").value = board;
  showVerdict();
  showSaving();
  showBoards();
  say(`${current().board}: ${$("verdict").textContent}`);
  await showDetail();
}

async function take(file) {
  if (!file) return;
  if (file.size > LARGEST) return fail(`${file.name}: ${kibibytes(file.size)} are more than a microcontroller's flash can hold, and more than this page reads.`);
  await open(file.name, await file.arrayBuffer());
}

function draw(which) {
  state.drawn = which;
  if (state.detail) showMap();
}

$("file").addEventListener("change", ({ target }) => {
  take(target.files[0]);
  target.value = ""; // so that the same file can be chosen again
});
$("example").addEventListener("click", async () => {
  const { example } = await ready;
  if (example) open("example.tflite", example.slice(0));
});
$("board").addEventListener("change", ({ target }) => choose(target.value));
$("filter").addEventListener("input", () => state.model && showBoards());
window.addEventListener("resize", () => {
  // Browsers of phones change the height alone when one scrolls: what is picked then stays.
  if (state.detail && $("map").clientWidth !== state.wide) showMap();
});
$("show-as-is").addEventListener("click", () => draw("as_is"));
$("show-planned").addEventListener("click", () => draw("planned"));
$("copy").addEventListener("click", async () => {
  try {
    await navigator.clipboard.writeText($("command").textContent);
    $("copy").textContent = "Copied";
  } catch {
    // No clipboard where the page did not come over https: then the command is marked, to be copied.
    getSelection().selectAllChildren($("command"));
    $("copy").textContent = "Marked";
  }
  setTimeout(() => ($("copy").textContent = "Copy"), 1500);
});

for (const kind of ["dragenter", "dragover"]) {
  document.addEventListener(kind, (event) => {
    event.preventDefault();
    $("drop").classList.add("over");
  });
}
for (const kind of ["dragleave", "drop"]) document.addEventListener(kind, () => $("drop").classList.remove("over"));
document.addEventListener("drop", (event) => {
  event.preventDefault();
  take(event.dataTransfer.files[0]);
});
