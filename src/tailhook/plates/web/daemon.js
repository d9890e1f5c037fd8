// Requests to the daemon, with a secret that is known only to this tab and this run of the daemon.
//
// There is no cookie, because a browser sends cookies to every port of a host. The secret is in the tab's own storage,
// so a reload keeps it, and it goes to the daemon in a header.

import { reasonOf, request, Stream } from "./stream.js";

export { events } from "./stream.js";

const KEY = "tailhook.secret";
const SIGN_IN = "/sign-in";
const WORKER = "/web/stream.js";
const VERSION = document.documentElement.dataset.version; // of the daemon that served this page
const RETRY_MS = 2000; // before the next attempt to sign in, or to start the worker

let secret = stored();
let code = ""; // of an opened link, until it is exchanged
let wakeUp = () => {}; // ends the wait for a link, or for the next attempt

function stored() {
  try {
    return sessionStorage.getItem(KEY) ?? "";
  } catch {
    return ""; // the browser stores nothing for this page
  }
}

function keep(value) {
  secret = value;
  try {
    if (value) sessionStorage.setItem(KEY, value);
    else sessionStorage.removeItem(KEY);
  } catch {
    // the secret holds until the page is closed
  }
}

// Send a request to the daemon with this tab's secret.
export const ask = (path, options) => request(path, secret, options);

// Mark a session on all boards: { hidden } or { seen }. Returns the daemon's answer.
export const mark = (id, marks) =>
  ask(`/plates/${encodeURIComponent(id)}`, {
    method: "PATCH",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(marks),
  });

// Take the code out of the link, and out of the address bar and the history.
function takeCode() {
  const found = new URLSearchParams(location.hash.slice(1)).get("once");
  if (found === null) return;
  code = found;
  history.replaceState(null, "", location.pathname);
  wakeUp();
}

// Return whether a daemon of another version answers. It has a page of its own.
async function isReplaced() {
  try {
    return (await (await request("/health", "")).json()).version !== VERSION;
  } catch {
    return false; // it is away
  }
}

// Exchange the link's code for a secret. Returns the daemon's reason of a failure, null without a code, "" after a success.
async function signIn() {
  if (code) {
    const answer = await request(SIGN_IN, code, { method: "POST" });
    code = "";
    if (answer.ok) keep((await answer.json()).secret);
    else if (!secret) return reasonOf(answer);
  }
  return secret ? "" : null;
}

const wait = (milliseconds) =>
  new Promise((resolve) => {
    wakeUp = resolve;
    if (milliseconds) setTimeout(resolve, milliseconds);
  });

// Handle the events of the daemon's stream for ever.
//
// handlers: by the event's name, called with its data. `statuses` comes before the first `plates`.
// away: called when the daemon cannot be reached.
// signedOut: called when the tab is not signed in, with the daemon's reason, and with whether it was signed in before.
// The reason is null if the tab has neither a secret nor a link. Afterwards nothing is sent until another link is
// opened in the tab.
export async function follow(handlers, { away, signedOut }) {
  let ended = null; // why the tab's secret is no longer valid
  const sendSecret = connect((name, data) => {
    if (name === "away") {
      away();
    } else if (name === "refused") {
      ended = data;
      keep("");
      wakeUp();
    } else {
      handlers[name]?.(data);
    }
  });
  takeCode();
  addEventListener("hashchange", async () => ((await isReplaced()) ? location.reload() : takeCode()));
  addEventListener("pagehide", () => sendSecret(""));
  addEventListener("pageshow", (event) => event.persisted && secret && sendSecret(secret));
  for (;;) {
    try {
      const reason = await signIn();
      if (reason === "") {
        ended = null;
        sendSecret(secret);
      } else {
        signedOut(reason ?? ended, ended !== null);
      }
      if (!code) await wait();
    } catch {
      away();
      await wait(RETRY_MS);
    }
  }
}

// Connect the tab to the stream that all tabs of the daemon's version share: a tab of an older one may still be open.
// Returns a function that sends the stream this tab's secret.
function connect(receive) {
  if (!globalThis.SharedWorker) {
    const stream = new Stream();
    stream.run();
    return stream.add(receive);
  }
  const trusted = globalThis.trustedTypes?.createPolicy("tailhook", { createScriptURL: () => WORKER });
  let sent = "";
  let worker = null;
  const start = () => {
    worker = new SharedWorker(trusted?.createScriptURL("") ?? WORKER, { type: "module", name: `tailhook ${VERSION}` });
    worker.port.onmessage = ({ data: [name, data] }) => receive(name, data);
    worker.onerror = () => {
      receive("away");
      setTimeout(start, RETRY_MS);
    };
    if (sent) worker.port.postMessage(sent);
  };
  start();
  return (value) => {
    sent = value;
    worker.port.postMessage(value);
  };
}
