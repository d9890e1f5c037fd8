// Requests to the daemon, with a secret that only this tab and this run of the daemon know.
//
// There is no cookie, because a browser sends cookies to every port of a host. The secret is in the tab's own storage,
// so a reload keeps it, and it goes to the daemon in a header.

const KEY = "tailhook.secret";
const SIGN_IN = "/sign-in";
const RETRY_MS = [500, 1000, 2000, 5000]; // before each attempt to reach the daemon again; the last one repeats

let secret = stored();
let code = ""; // of an opened link that was not exchanged yet
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

// Send a request to the daemon. A redirect is an error: the secret must not go anywhere else.
export function ask(path, options = {}, bearer = secret) {
  const headers = { ...options.headers, Authorization: `Bearer ${bearer}` };
  return fetch(path, { cache: "no-store", credentials: "omit", redirect: "error", ...options, headers });
}

// Take the code out of the link, and out of the address bar and the history.
function takeCode() {
  const found = new URLSearchParams(location.hash.slice(1)).get("once");
  if (found === null) return;
  code = found;
  history.replaceState(null, "", location.pathname);
  wakeUp();
}

// Exchange the link's code for a secret. Returns the reason of a failure, "" after a success.
async function signIn() {
  if (code) {
    const answer = await ask(SIGN_IN, { method: "POST" }, code);
    code = "";
    if (answer.ok) keep((await answer.json()).secret);
    else if (!secret) return "used";
  }
  return secret ? "" : "none";
}

const wait = (milliseconds) =>
  new Promise((resolve) => {
    wakeUp = resolve;
    if (milliseconds) setTimeout(resolve, milliseconds);
  });

// Handle the events of the daemon's stream for ever.
//
// handlers: by the event's name, called with its data.  away: called when the daemon cannot be reached.
// signedOut: called when the tab is not signed in, with "none" if it has no secret, "used" if its link is not valid, and
// "ended" if its secret is not valid any more. Then nothing is sent until another link is opened in the tab.
export async function follow(handlers, { away, signedOut }) {
  takeCode();
  addEventListener("hashchange", takeCode);
  for (let attempts = 0; ; attempts++) {
    try {
      let reason = await signIn();
      if (!reason) {
        const answer = await ask("/stream", { headers: { Accept: "text/event-stream" } });
        if (answer.ok) {
          for await (const [name, data] of events(answer.body)) {
            attempts = 0;
            handle(handlers[name], data);
          }
        } else if (answer.status === 401) {
          keep("");
          reason = "ended";
        }
      }
      if (reason) {
        signedOut(reason);
        if (!code) await wait();
        continue;
      }
    } catch {
      // it is away
    }
    away();
    await wait(RETRY_MS[Math.min(attempts, RETRY_MS.length - 1)]);
  }
}

function handle(handler, data) {
  try {
    handler?.(JSON.parse(data));
  } catch (error) {
    reportError(error); // a fault of the page, not of the connection
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
  let begun = []; // the pieces of the unfinished line, which are joined once
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
