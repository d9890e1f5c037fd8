// One connection to the daemon's stream for all tabs of a browser.
//
// A browser opens at most six connections to a host, and a stream uses one of them. So this module is a shared worker.
// In a browser without shared workers, each tab runs it for itself.

const TIMEOUT_MS = 15_000; // for an answer
const RETRY_MS = [500, 1000, 2000, 5000]; // before each attempt to reach the daemon again; the last one repeats

// Send a request to the daemon. A redirect is an error: the secret must not go anywhere else.
export function request(path, bearer, options = {}) {
  const headers = { ...options.headers, Authorization: `Bearer ${bearer}` };
  const signal = AbortSignal.timeout(TIMEOUT_MS);
  return fetch(path, { cache: "no-store", credentials: "omit", redirect: "error", signal, ...options, headers });
}

// Return the daemon's words in an answer that refuses a request.
export const reasonOf = async (answer) => (await answer.json()).error;

// Open the daemon's stream. Its answer must begin in time, and may then last for ever.
async function open(secret) {
  const controller = new AbortController();
  const timer = setTimeout(() => controller.abort(), TIMEOUT_MS);
  try {
    return await request("/stream", secret, { headers: { Accept: "text/event-stream" }, signal: controller.signal });
  } finally {
    clearTimeout(timer);
  }
}

// Apply an event of the stream to the plates, a map by session id.
export function apply(plates, name, data) {
  if (name === "plates") {
    plates.clear();
    for (const plate of data) plates.set(plate.session_id, plate);
  } else if (name === "plate") {
    plates.set(data.session_id, data);
  } else if (name === "removed") {
    plates.delete(data.session_id);
  } else if (name === "names") {
    for (const [id, name] of Object.entries(data)) {
      const plate = plates.get(id);
      if (plate) plates.set(id, { ...plate, name });
    }
  }
}

// Follows the daemon with the secret of one tab, and sends what it receives to every tab that is signed in.
//
// A tab gets the events of the stream, `statuses` before the first `plates`, `away` when the daemon cannot be reached,
// and `refused` with the daemon's reason when its secret is not valid.
export class Stream {
  tabs = new Set();
  plates = new Map();
  backlog = 0;
  secret = ""; // of the open connection; "" without one
  wakeUp = () => {}; // ends the wait for a secret, or for the next attempt

  // Return a function to call with a tab's secret, or with "" when the tab is left. send: called with name and data.
  add(send) {
    const tab = { send, secret: "", isGreeted: false, isListening: false };
    return (secret) => {
      Object.assign(tab, { secret, isGreeted: false, isListening: false });
      if (secret) this.tabs.add(tab);
      else this.tabs.delete(tab);
      this.greet(tab);
      this.wakeUp();
    };
  }

  // Follow the daemon for ever.
  async run() {
    for (let attempts = 0; ; attempts++) {
      const secret = [...this.tabs].at(-1)?.secret;
      if (!secret) {
        await this.wait();
        continue;
      }
      try {
        const answer = await open(secret);
        if (answer.status === 401) {
          this.refuse(secret, await reasonOf(answer));
          continue;
        }
        for await (const [name, data] of answer.ok ? events(answer.body) : []) {
          attempts = 0;
          this.handle(secret, name, JSON.parse(data));
        }
      } catch {
        // it is away
      }
      this.secret = "";
      for (const tab of this.tabs) {
        tab.isListening = false;
        tab.send("away");
      }
      await this.wait(RETRY_MS[Math.min(attempts, RETRY_MS.length - 1)]);
    }
  }

  handle(secret, name, data) {
    apply(this.plates, name, data);
    if (name === "catching_up") this.backlog = data.events;
    if (name === "plates") {
      this.secret = secret;
      this.backlog = 0;
      for (const tab of this.tabs) this.greet(tab);
    } else {
      for (const tab of this.tabs) if (tab.isListening) tab.send(name, data);
    }
  }

  // Send a tab the current state. If its secret was not used yet, the daemon has to accept it first.
  async greet(tab) {
    if (!this.secret || !tab.secret) return;
    const secret = tab.secret;
    if (!tab.isGreeted || secret !== this.secret) {
      try {
        const answer = await request("/statuses", secret);
        if (answer.status === 401) {
          this.refuse(secret, await reasonOf(answer));
          return;
        }
        const statuses = await answer.json();
        if (!this.secret || tab.secret !== secret) return;
        tab.send("statuses", statuses);
        tab.isGreeted = true;
      } catch {
        tab.send("away");
        setTimeout(() => this.greet(tab), RETRY_MS.at(-1));
        return;
      }
    }
    tab.isListening = true;
    tab.send("plates", [...this.plates.values()]);
    if (this.backlog) tab.send("catching_up", { events: this.backlog });
  }

  refuse(secret, reason) {
    for (const tab of this.tabs) {
      if (tab.secret !== secret) continue;
      this.tabs.delete(tab);
      tab.secret = "";
      tab.send("refused", reason);
    }
  }

  wait(milliseconds) {
    return new Promise((resolve) => {
      this.wakeUp = resolve;
      if (milliseconds) setTimeout(resolve, milliseconds);
    });
  }
}

// Yield the server-sent events in a body as [name, data] (HTML, 9.2.6). The daemon sends no ids and no retry times.
export async function* events(body) {
  let name = "";
  let data = [];
  for await (const line of lines(body)) {
    const [, field, value] = /^([^:]*)(?:: ?(.*))?$/s.exec(line);
    if (field === "event") name = value ?? "";
    else if (field === "data") data.push(value ?? "");
    else if (!line) {
      if (data.length) yield [name || "message", data.join("\n")];
      name = "";
      data = [];
    }
  }
}

// Yield the lines of a body as they arrive; each ends with CR LF, LF or CR.
async function* lines(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let begun = []; // the pieces of the unfinished line, joined only once
  let wasReturn = false;
  for (;;) {
    let { value, done } = await reader.read();
    if (done) return;
    if (wasReturn && value.startsWith("\n")) value = value.slice(1);
    wasReturn = value ? value.endsWith("\r") : wasReturn;
    const pieces = value.split(/\r\n|\n|\r/);
    for (const piece of pieces.slice(0, -1)) {
      yield [...begun, piece].join("");
      begun = [];
    }
    begun.push(pieces.at(-1));
  }
}

if ("onconnect" in globalThis) {
  const stream = new Stream();
  globalThis.onconnect = ({ ports: [port] }) => {
    const signIn = stream.add((name, data) => port.postMessage([name, data]));
    port.onmessage = ({ data: secret }) => signIn(secret);
  };
  stream.run();
}
