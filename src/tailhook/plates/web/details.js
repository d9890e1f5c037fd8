// One session's details: its timeline, the agent's last message, and its events.

import { drawAsked, drawBlocks } from "./blocks.js";
import { ask, mark } from "./daemon.js";
import { clock, endPeriods, summary, timeline } from "./timeline.js";
import { commandWords, line, make, span, statusWords } from "./words.js";

const MAX_EVENTS = 1000; // in the timeline
const MAX_LISTED = 200; // events in the list
const LOAD_DELAY_MS = 250; // in which changes are gathered
const RETRY_MS = 2000; // before the next attempt, if the daemon has not answered
const DRAW_INTERVAL_MS = 1000; // between two drawings of the timeline

const dialog = document.getElementById("details");
const part = (selector) => dialog.querySelector(selector);
let shown = null; // the plate
let unseen = false; // whether it has finished, and no person has looked at it since
let events = [];
let periods = [];
let agents = []; // lanes of sub-agents
let moreAgents = 0; // that have no lane
let tools = [];
let context = ""; // how full it is
let tokens = ""; // that it has used
let soon = 0;
let loads = 0; // that were begun
let newest = 0; // the number of the one that is shown

// Return the plate whose details are shown, or were shown last.
export const shownDetails = () => shown;

export function openDetails(plate) {
  if (!plate) return;
  shown = plate;
  unseen = false;
  events = [];
  periods = agents = tools = [];
  context = "";
  tokens = "";
  part(".message").textContent = "";
  part(".asked").hidden = true;
  part(".events").replaceChildren();
  part("figure").querySelector("svg")?.remove();
  part("figcaption").textContent = "";
  drawPlate();
  part(".copied").hidden = true;
  if (!dialog.open) dialog.showModal();
  load();
}

// Update the details if they show this plate.
export function plateChanged(plate) {
  if (!dialog.open || plate.session_id !== shown.session_id) return;
  shown = plate;
  drawPlate();
  refreshDetails(plate.session_id);
}

// Load the details again, if they are of this session.
export function refreshDetails(id) {
  if (dialog.open && id === shown.session_id) loadSoon(LOAD_DELAY_MS);
}

function loadSoon(delay) {
  soon ||= setTimeout(() => {
    soon = 0;
    if (dialog.open) load(); // a closed one's session may be gone
  }, delay);
}

async function load() {
  const before = shown;
  const id = before.session_id;
  const number = ++loads;
  let answer;
  try {
    answer = await ask(`/plates/${encodeURIComponent(id)}?events=${MAX_EVENTS}`);
    const found = await answer.json();
    if (id !== shown.session_id || number < newest) return; // a later one was faster
    newest = number;
    if (answer.status === 404) return markGone();
    if (!answer.ok) throw new Error(found.error);
    if (shown === before) shown = found; // otherwise the stream was faster
    events = found.events;
    ({ periods, agent_lanes: agents, tools } = found);
    moreAgents = found.more_agents;
    context = found.context?.words ?? "";
    tokens = found.tokens?.words ?? "";
    part(".message").replaceChildren(...(found.message.length ? drawBlocks(found.message) : [found.no_message]));
    part(".asked").hidden = !found.asked;
    part(".asked").replaceChildren(...(found.asked ? drawAsked(found.asked) : []));
    unseen = found.unseen;
    markSeen();
    drawPlate();
    drawTools();
    drawEvents();
    drawTimeline();
  } catch (error) {
    if (id !== shown.session_id || number < newest) return;
    part(".message").textContent = `The details could not be loaded: ${line(error.message)}`;
    if (!answer) loadSoon(RETRY_MS);
  }
}

// Show that the session is not on the board any more. What is known of it stays, and no time goes on.
function markGone() {
  if (shown.isGone) return;
  const status_words = `not on the board any more; last: ${shown.status_words}`;
  shown = { ...shown, isGone: true, status: "closed", status_words, tone: "muted", symbol: "·" };
  part(".asked").hidden = true;
  drawPlate();
}

// Report to the daemon that a person has seen what the session did. A page in the background shows it to no person.
function markSeen() {
  if (!unseen || !dialog.open || document.visibilityState !== "visible") return;
  unseen = false;
  mark(shown.session_id, { seen: true }).catch(() => (unseen = true)); // the next load tries again
}

document.addEventListener("visibilitychange", markSeen);

function drawPlate() {
  part("#details-title").textContent = line(shown.name);
  part(".resume").hidden = !shown.resume;
  part(".dismiss").hidden = Boolean(shown.isGone);
  part(".dismiss").textContent = shown.hidden ? "Show" : "Hide";
  const status = part(".status");
  status.dataset.tone = shown.tone;
  const sign = make("span", { class: "sign", "aria-hidden": "true" }, shown.symbol);
  status.replaceChildren(sign, make("span", { class: "words" }, statusWords(shown)));
  if (shown.error) status.append(make("span", { class: "error" }, line(shown.error)));
  const facts = [
    ["Title", shown.title],
    ["Prompt", shown.prompt],
    ["Project", shown.project_path],
    ["Folder", shown.folder],
    ["Branch", shown.git_branch],
    ["Tool", shown.last_tool],
    ["To do", shown.todo_progress && `${shown.todo_progress} done`],
    ["Context", context],
    ["Tokens", tokens],
    ["Began", when(shown.created_at)],
    ["Since", when(shown.since)],
    ["Host", shown.host],
    ["User", shown.user],
    ["Process", shown.pid],
    ["Resume", shown.resume, commandWords],
    ["Session", shown.session_id],
    ["Transcript", shown.transcript_path],
  ].filter(([, value]) => value);
  part("dl").replaceChildren(
    ...facts.map(([name, value, drawn = (text) => [text]]) =>
      make("div", {}, make("dt", {}, name), make("dd", {}, make("bdi", {}, ...drawn(line(value, 1000))))),
    ),
  );
}

const when = (stamp) => new Date(stamp).toLocaleString([], { dateStyle: "medium", timeStyle: "medium", hourCycle: "h23" });

function drawTools() {
  part(".tools").replaceChildren(...tools.map(toolLine));
  part(".no-tools").hidden = tools.length > 0;
}

function toolLine({ name, about, agent_id, start, end, error }) {
  const runs = end === null;
  const [symbol, words, tone] = error ? ["✗", "failed", "error"] : runs ? ["●", "runs", "running"] : ["✓", "done", "muted"];
  const sign = make("span", { class: "sign", "data-tone": tone, role: "img", "aria-label": words, title: words }, symbol);
  const time = make("time", { datetime: new Date(start).toISOString() }, clock(start, true));
  const lasted = make("span", { class: "lasted" }, span((end ?? Date.now()) - start, true));
  const shown = make("li", {}, sign, time, lasted, make("span", { class: "tool" }, line(name, 100)));
  if (agent_id) shown.append(make("small", {}, "sub-agent"));
  shown.append(make("bdi", { class: "about" }, line(about)));
  if (error) shown.append(make("bdi", { class: "error" }, line(error)));
  return shown;
}

function drawEvents() {
  part(".count-of-events").textContent = String(events.length);
  const newest = events.slice(-MAX_LISTED).reverse();
  part(".events").replaceChildren(...newest.map(eventLine));
  part(".events").start = events.length;
}

function eventLine({ ts, words, tool_name, about, status, symbol, status_words, tone }) {
  const said = make("li", {}, make("time", { datetime: new Date(ts).toISOString() }, clock(ts, true)));
  said.append(make("span", { class: "what" }, line(words, 100)));
  said.append(make("span", { class: "tool" }, line(tool_name, 100)), make("bdi", { class: "about" }, line(about)));
  if (status) {
    const sign = make("span", { class: "sign", "data-tone": tone }, symbol);
    sign.title = status_words;
    sign.setAttribute("role", "img");
    sign.setAttribute("aria-label", sign.title);
    said.prepend(sign);
  } else {
    said.prepend(make("span", { class: "sign" }));
  }
  return said;
}

function drawTimeline() {
  const figure = part("figure");
  const width = Math.floor(figure.clientWidth);
  if (!dialog.open || width < 100) return;
  const now = Date.now();
  const pieces = endPeriods(periods, now);
  const lanes = agents.map((lane) => endPeriods(lane, now));
  const picture = timeline(pieces, lanes, width);
  const before = figure.querySelector("svg");
  if (before && picture) before.replaceWith(picture);
  else if (picture) figure.prepend(picture);
  else before?.remove();
  const more = moreAgents ? ` ${moreAgents} more sub-agent${moreAgents > 1 ? "s" : ""} worked at the same time.` : "";
  const words = summary(pieces) + more;
  if (part("figcaption").textContent !== words) part("figcaption").textContent = words;
}

new ResizeObserver(drawTimeline).observe(part("figure"));
setInterval(() => {
  if (!dialog.open || shown.status === "closed") return;
  part(".status .words").textContent = statusWords(shown);
  if (tools.some(({ end }) => end === null)) drawTools();
  drawTimeline();
}, DRAW_INTERVAL_MS);
