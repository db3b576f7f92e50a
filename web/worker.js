// Python beside the page, so that the page never waits: loads Pyodide and our wheel, then answers.
// After that it takes the network away from itself: a model cannot leave this browser.

const WITHOUT = ["fetch", "XMLHttpRequest", "WebSocket", "WebTransport", "EventSource", "Request"];
let session;
let python;

async function start(base) {
  const { loadPyodide } = await import(new URL("pyodide.mjs", base).href);
  const fetched = (name) => fetch(new URL(name, import.meta.url)).then((found) => found.arrayBuffer());
  const [runtime, planner, glue] = await Promise.all([
    loadPyodide({ indexURL: base }),
    fetched("planner.zip"),
    fetched("answer.py"),
  ]);
  python = runtime;
  python.FS.writeFile("/planner.zip", new Uint8Array(planner));
  python.FS.writeFile("/answer.py", new Uint8Array(glue));
  python.runPython("import sys; sys.path[:0] = ['/planner.zip', '/']; import answer");
  session = python.pyimport("answer").Session();
  for (const name of WITHOUT) self[name] = undefined;
}

const STEPS = {
  start: async ({ base }) => (await start(base), {}),
  open: ({ data, name }) => {
    const bytes = python.toPy(new Uint8Array(data));
    try {
      return JSON.parse(session.ask("opened", bytes, name));
    } finally {
      bytes.destroy();
    }
  },
  plan: () => JSON.parse(session.ask("planned")),
  detail: ({ board }) => JSON.parse(session.ask("detailed", board)),
};

self.onmessage = async ({ data: message }) => {
  try {
    self.postMessage({ id: message.id, answer: await STEPS[message.step](message) });
  } catch (error) {
    self.postMessage({ id: message.id, failed: String(error.message ?? error) });
  }
};
