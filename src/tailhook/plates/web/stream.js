// One connection to the daemon's stream for all tabs of a browser.
//
// A browser opens at most six connections to a host, and a stream uses one of them. So this module is a shared worker.
// In a browser without shared workers, each tab runs it for itself.

const TIMEOUT_MS = 15_000; // for an answer
const SILENCE_MS = 40_000; // of an open stream, before it counts as lost; the daemon sends a ping every 15 s
const PAGE_PLATES = 100; // in one message to a tab
const RETRY_MS = [500, 1000, 2000, 5000]; // before each attempt to reach the daemon again; the last one repeats

// Send a request to the daemon. A redirect is an error: the secret must not go anywhere else.
export function request(path, bearer, options = {}) {
  const headers = { ...options.headers, Authorization: `Bearer ${bearer}` };
  const signal = AbortSignal.timeout(TIMEOUT_MS);
  return fetch(path, { cache: "no-store", credentials: "omit", redirect: "error", signal, ...options, headers });
}

// Return the daemon's words in an answer that refuses a request.
export const reasonOf = async (answer) => (await answer.json()).error;

// Ends a request from which nothing comes for a time. Without a network a connection may stay open for hours.
class Patience {
  controller = new AbortController();
  timer = 0;

  // Wait for so many milliseconds from now on; 0: for ever.
  lasts(milliseconds) {
    clearTimeout(this.timer);
    if (milliseconds) this.timer = setTimeout(() => this.controller.abort(), milliseconds);
  }
}

// Apply an event of the stream to the open plates, a map by session id.
export function apply(plates, name, data) {
  if (name === "plates") plates.clear();
  if (name === "plates" || name === "more") {
    for (const plate of data) plates.set(plate.session_id, plate);
  } else if (name === "plate") {
    if (data.status === "closed") plates.delete(data.session_id);
    else plates.set(data.session_id, data);
  } else if (name === "removed") {
    plates.delete(data.session_id);
  } else if (name === "names") {
    for (const [id, name] of Object.entries(data)) {
      const plate = plates.get(id);
      if (plate) plates.set(id, { ...plate, name });
    }
  } else if (name === "tokens") {
    for (const [id, tokens_used] of Object.entries(data)) {
      const plate = plates.get(id);
      if (plate) plates.set(id, { ...plate, tokens_used });
    }
  }
}

// Follows the daemon with the secret of one tab, and sends what it receives to every tab that is signed in.
//
// A tab gets the events of the stream, `statuses` before the first `plates`, `away` when the daemon cannot be reached,
// and `refused` with the daemon's reason when its secret is not valid. `closed` shows that the daemon answers, and that
// all plates have been sent.
export class Stream {
  tabs = new Set();
  plates = new Map(); // the open ones
  isWhole = false; // whether all open ones have been received
  closed = 0; // the number of closed ones
  backlog = 0;
  lastId = ""; // of the newest event; "" until all plates have been received
  secret = ""; // of the open connection; "" without one
  wakeUp = () => {}; // ends the wait for a secret, or for the next attempt
  silenceMs = SILENCE_MS;

  // A tab: `asking` is the secret that the daemon is asked about; `isListening`: whether the stream's events go to it.
  //
  // Return a function to call with a tab's secret, or with "" when the tab is left. send: called with name and data.
  add(send) {
    const tab = { send, secret: "", asking: "", isGreeted: false, isListening: false };
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
      const patience = new Patience();
      try {
        patience.lasts(TIMEOUT_MS);
        // With the id of the newest event that is known, only what changed since is sent; with "" all is.
        const headers = { Accept: "text/event-stream", "Last-Event-ID": this.lastId };
        const answer = await request("/stream", secret, { headers, signal: patience.controller.signal });
        const listen = () => patience.lasts(this.silenceMs);
        listen();
        if (answer.status === 401) {
          this.refuse(secret, await reasonOf(answer));
          continue;
        }
        for await (const [name, data, id] of answer.ok ? events(answer.body, listen) : []) {
          attempts = 0;
          this.handle(secret, name, JSON.parse(data));
          this.lastId = id;
        }
      } catch {
        // it is away
      } finally {
        patience.lasts(0);
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
    if (name === "plates") Object.assign(this, { isWhole: false, backlog: 0 });
    if (name === "closed") Object.assign(this, { isWhole: true, closed: data.sessions });
    const isFirst = !this.secret && (name === "plates" || name === "closed");
    if (isFirst) {
      this.secret = secret;
      for (const tab of this.tabs) this.greet(tab);
    }
    for (const tab of this.tabs) if (tab.isListening) tab.send(name, data);
  }

  // Send a tab the statuses once, and the current state if the stream is open. The daemon has to accept its secret first.
  async greet(tab) {
    const secret = tab.secret;
    if (!secret || tab.asking === secret) return;
    if (!tab.isGreeted || (this.secret && secret !== this.secret)) {
      tab.asking = secret;
      try {
        const answer = await request("/statuses", secret);
        if (answer.status === 401) {
          this.refuse(secret, await reasonOf(answer));
          return;
        }
        const statuses = await answer.json();
        if (tab.secret !== secret) return;
        tab.send("statuses", statuses);
        tab.isGreeted = true;
      } catch {
        tab.send("away");
        if (this.secret) setTimeout(() => this.greet(tab), RETRY_MS.at(-1)); // without a stream, its next one greets
        return;
      } finally {
        if (tab.asking === secret) tab.asking = "";
      }
    }
    if (!this.secret) return;
    tab.isListening = true;
    const all = [...this.plates.values()];
    tab.send("plates", all.slice(0, PAGE_PLATES));
    for (let at = PAGE_PLATES; at < all.length; at += PAGE_PLATES) tab.send("more", all.slice(at, at + PAGE_PLATES));
    if (this.isWhole) tab.send("closed", { sessions: this.closed });
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

// Yield the server-sent events in a body as [name, data, last id] (HTML, 9.2.6). The daemon sends no retry times.
// heard: called whenever something arrives.
export async function* events(body, heard = () => {}) {
  let name = "";
  let id = "";
  let data = [];
  for await (const line of lines(body, heard)) {
    const [, field, value] = /^([^:]*)(?:: ?(.*))?$/s.exec(line);
    if (field === "event") name = value ?? "";
    else if (field === "data") data.push(value ?? "");
    else if (field === "id") id = value ?? "";
    else if (!line) {
      if (data.length) yield [name || "message", data.join("\n"), id];
      name = "";
      data = [];
    }
  }
}

// Yield the lines of a body as they arrive; each ends with CR LF, LF or CR.
async function* lines(body, heard) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let begun = []; // the pieces of the unfinished line, joined only once
  let wasReturn = false;
  for (;;) {
    let { value, done } = await reader.read();
    heard();
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
