// The board: every session's status, live over /stream. The daemon decides order, groups, names and symbols.

import { alert, options } from "./alerts.js";
import { ask, follow } from "./daemon.js";
import { openDetails, plateChanged, shownDetails } from "./details.js";
import { apply } from "./stream.js";
import { clean, line, make, matches, parentFolder, span, statusWords } from "./words.js";

const $ = (selector) => document.querySelector(selector);
const DRAW_DELAY_MS = 40; // in which changes are gathered before they are drawn
const AGE_INTERVAL_MS = 5000; // between two updates of all ages
const UNDO_MS = 10_000; // in which a hidden session can be shown again with one key

const plates = new Map(); // by session id
const sections = new Map(); // the elements of the groups, by the group's id
const rows = new Map(); // the elements of the plates that are shown, by session id
let known = false; // whether all plates have been received once
let withClosed = false;
let undoable = []; // sessions that were hidden within the last UNDO_MS: { id, name }
let drawing = 0;

// ---- the daemon's events ----

const EVENTS = {
  statuses: showStatuses,
  plates: (all) => {
    connected();
    const ids = new Set(all.map((plate) => plate.session_id));
    for (const id of plates.keys()) if (!ids.has(id)) plates.delete(id);
    all.forEach(store);
    known = true;
    drawSoon();
  },
  plate: store,
  names: (data) => applyAndDraw("names", data),
  removed: (data) => applyAndDraw("removed", data),
  catching_up: ({ events }) => {
    if (events) setConnection("wait", `catching up: ${events.toLocaleString("en")} ${events === 1 ? "event" : "events"}`);
    else setConnection("live", "live");
  },
};

function applyAndDraw(name, data) {
  apply(plates, name, data);
  drawSoon();
}

const isOnBoard = (plate) => plate.status !== "closed" && !plate.hidden;

const needsAttention = (plate) => plate.group === "attention";

function store(plate) {
  const before = plates.get(plate.session_id);
  plates.set(plate.session_id, plate);
  if (known && needsAttention(plate) && before?.status !== plate.status) {
    const words = `${line(plate.name)}: ${plate.status_words}`;
    announce(words);
    if (!before || !needsAttention(before)) alert(plate, words, () => openDetails(plate)); // once while it waits
  }
  plateChanged(plate);
  drawSoon();
}

function connected() {
  if (!$("#away").hidden) announce("The daemon answers again.");
  $("#away").hidden = true;
  setConnection("live", "live");
}

const AWAY = "The daemon does not answer. What you see may be old. Trying again. (To start it:  tailhook plates serve)";
const ANOTHER = "To sign in, start the daemon again and open the link that it prints:  tailhook plates serve";
const SIGNED_OUT = {
  none: `This tab is not signed in. ${ANOTHER}`,
  used: `This tab is not signed in: its link was used before, or the daemon was started again since. ${ANOTHER}`,
  ended: `This tab is not signed in any more: the daemon was started again. What you see is old. ${ANOTHER}`,
};

function showAway(words, state) {
  if ($("#away").textContent !== words) $("#away").textContent = words;
  $("#away").hidden = false;
  setConnection("away", state);
}

function setConnection(state, words) {
  const element = $("#connection");
  element.dataset.state = state;
  if (element.textContent !== words) element.textContent = words;
}

// ---- drawing ----

function drawSoon() {
  drawing ||= setTimeout(() => {
    drawing = 0;
    if (!isPressed) drawAll(); // otherwise the release draws
  }, DRAW_DELAY_MS);
}

function drawAll() {
  if (!sections.size) return; // they are drawn when they have come
  const filter = $("#filter").value.trim();
  const all = [...plates.values()];
  const shown = all.filter((plate) => (withClosed || isOnBoard(plate)) && matches(plate, filter));
  shown.sort((a, b) => (a.rank < b.rank ? -1 : 1));
  const focused = document.activeElement?.closest?.("#board li");
  const place = focused && [...document.querySelectorAll("#board li")].indexOf(focused);
  for (const [id, section] of sections) drawSection(section, shown.filter((plate) => plate.group === id));
  const ids = new Set(shown.map((plate) => plate.session_id));
  for (const [id, row] of rows) {
    if (ids.has(id)) continue;
    row.remove();
    rows.delete(id);
  }
  if (focused && !focused.isConnected) focusRow(place);
  else if (focused && !focused.contains(document.activeElement)) focused.querySelector("button").focus();
  drawCounts(all);
  drawEmpty(all.length, shown.length, filter);
}

function drawSection(section, wanted) {
  section.hidden = !wanted.length;
  section.querySelector(".count").textContent = wanted.length;
  const list = section.querySelector("ul");
  wanted.forEach((plate, at) => {
    const row = rowOf(plate);
    if (list.children[at] !== row) list.insertBefore(row, list.children[at] ?? null);
  });
}

function rowOf(plate) {
  let row = rows.get(plate.session_id);
  if (!row) {
    const cell = (name) => make("span", { class: name });
    const open = make("button", { type: "button", class: "open", "aria-haspopup": "dialog" });
    open.append(...["sign", "status", "project", "folder", "branch", "tool", "todo", "age"].map(cell));
    open.querySelector(".project").append(cell("name"), cell("title"));
    open.querySelector(".sign").setAttribute("aria-hidden", "true");
    open.querySelector(".folder").append(make("bdi", { dir: "ltr" })); // it is cut on the left, and read from the left
    const gone = make("button", { type: "button", class: "dismiss" }, "✕");
    row = make("li", {}, open, gone);
    row.dataset.id = plate.session_id;
    open.addEventListener("click", () => openDetails(plates.get(row.dataset.id)));
    gone.addEventListener("click", () => toggleHidden(row.dataset.id));
    rows.set(plate.session_id, row);
  }
  if (row.plate !== plate) fill(row, plate);
  return row;
}

function fill(row, plate) {
  row.plate = plate;
  const name = line(plate.name);
  row.dataset.status = plate.status;
  row.dataset.tone = plate.tone;
  row.toggleAttribute("data-hidden", plate.hidden);
  put(row, "sign", plate.symbol);
  put(row, "status", statusWords(plate));
  put(row, "name", name);
  put(row, "title", plate.title ? ` ${line(plate.title)}` : "");
  row.toggleAttribute("data-titled", Boolean(plate.title));
  put(row, "folder bdi", parentFolder(plate.project_path));
  put(row, "branch", line(plate.git_branch));
  put(row, "tool", line(plate.detail));
  put(row, "todo", line(plate.todo_progress, 20));
  put(row, "age", age(plate));
  row.querySelector(".dismiss").setAttribute("aria-label", `${plate.hidden ? "Show" : "Hide"} ${name}`);
  put(row, "dismiss", plate.hidden ? "↺" : "✕");
}

// Show text in a cell of a row.
function put(row, cell, text) {
  const element = row.querySelector(`.${cell}`);
  if (element.textContent !== text) element.textContent = text;
}

const age = (plate) => span(Date.now() - Date.parse(plate.since));

function drawAges() {
  for (const row of rows.values()) {
    put(row, "age", age(row.plate));
    put(row, "status", statusWords(row.plate));
  }
}

function drawCounts(all) {
  const waiting = all.filter(needsAttention).length;
  document.title = waiting ? `(${waiting}) tailhook` : "tailhook";
  $("#closed .count").textContent = all.filter((plate) => !isOnBoard(plate)).length || "";
}

function drawEmpty(total, shown, filter) {
  const words = filter
    ? `No session matches “${clean(filter, 100)}”.`
    : total
      ? "All sessions are closed or hidden."
      : "No sessions yet. A session appears here with its next event, once its hooks are installed:  tailhook install --with plates";
  $("#empty").hidden = !known || shown > 0;
  $("#empty").textContent = words;
}

// ---- what the person does ----

function announce(words) {
  $("#said").textContent = words;
}

// Hide a session until its next prompt, or show a hidden one again. Nothing is deleted.
async function toggleHidden(id) {
  const plate = plates.get(id);
  if (!plate) return;
  const name = line(plate.name);
  if (!(await hide(id, !plate.hidden))) return;
  if ($("#details").open && shownDetails() === id) $("#details").close();
  undoable = undoable.filter((one) => one.id !== id);
  if (!plate.hidden) {
    const one = { id, name };
    undoable.push(one);
    setTimeout(() => forget(one), UNDO_MS);
  }
  drawUndo();
}

// Ask the daemon to hide or show a session. Returns whether it did.
async function hide(id, hidden) {
  const headers = { "content-type": "application/json" };
  try {
    const answer = await ask(`/plates/${encodeURIComponent(id)}`, { method: "PATCH", headers, body: JSON.stringify({ hidden }) });
    if (answer.status === 404) plates.delete(id);
    else if (answer.ok) store(await answer.json());
    else throw new Error((await answer.json()).error);
    drawSoon();
    return answer.ok;
  } catch (error) {
    announce(`${line(plates.get(id)?.name)} could not be ${hidden ? "hidden" : "shown"}: ${error.message}`);
    return false;
  }
}

function undo() {
  const last = undoable.pop();
  drawUndo();
  if (last) hide(last.id, false);
}

function forget(one) {
  undoable = undoable.filter((other) => other !== one);
  drawUndo();
}

function drawUndo() {
  const last = undoable.at(-1);
  $("#undo").hidden = !last;
  $("#undo p").textContent = last ? `Hidden: ${last.name}` : "";
}

function focusRow(at) {
  const all = [...document.querySelectorAll("#board li")];
  const row = all[Math.min(Math.max(at, 0), all.length - 1)];
  row?.querySelector("button").focus();
  row?.scrollIntoView({ block: "nearest" });
}

function move(by) {
  const all = [...document.querySelectorAll("#board li")];
  const at = all.indexOf(document.activeElement?.closest?.("#board li"));
  focusRow(at < 0 ? (by > 0 ? 0 : all.length - 1) : at + by);
}

function toggleClosed() {
  withClosed = !withClosed;
  $("#closed").setAttribute("aria-pressed", String(withClosed));
  drawAll();
}

function openHelp() {
  if (!$("#helping").open) $("#helping").showModal();
}

// Rows could move while a person aims. So no row moves between a press of the pointer and its release: a click acts on
// the pressed row.
let isPressed = false;

function release() {
  isPressed = false;
  drawSoon();
}

$("#board").addEventListener("pointerdown", () => (isPressed = true));
for (const end of ["pointerup", "pointercancel", "blur"]) addEventListener(end, () => isPressed && release());

const KEYS = {
  ArrowDown: () => move(1),
  ArrowUp: () => move(-1),
  Home: () => focusRow(0),
  End: () => focusRow(Infinity),
  "/": () => $("#filter").focus(),
  c: toggleClosed,
  "?": openHelp,
  d: () => {
    const row = document.activeElement?.closest?.("#board li");
    if (row) toggleHidden(row.dataset.id);
  },
  u: undo,
};

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if ($("#details").open) {
    if (event.key === "d") toggleHidden(shownDetails());
    return;
  }
  if ($("#helping").open) return;
  if (event.target === $("#filter")) {
    if (event.key === "Escape") {
      $("#filter").value = "";
      drawAll();
    }
    if (["Escape", "Enter", "ArrowDown"].includes(event.key)) {
      event.preventDefault();
      focusRow(0);
      if (event.target === document.activeElement) event.target.blur();
    }
    return;
  }
  const act = KEYS[event.key];
  if (!act) return;
  event.preventDefault();
  act();
});

$("#filter").addEventListener("input", drawAll);
$("#closed").addEventListener("click", toggleClosed);
$("#help").addEventListener("click", openHelp);
$("#details .dismiss").addEventListener("click", () => toggleHidden(shownDetails()));
$("#undo button").addEventListener("click", undo);
for (const dialog of document.querySelectorAll("dialog")) {
  dialog.querySelector(".close").addEventListener("click", () => dialog.close());
  dialog.addEventListener("click", (event) => event.target === dialog && dialog.close());
}
// Make the sections of the groups and fill in the help, once.
function showStatuses({ groups, statuses, filter_fields }) {
  if (sections.size) return;
  for (const { id, title } of groups) {
    const heading = make("h2", { id: `${id}-title` }, `${title} `, make("span", { class: "count" }));
    const section = make("section", { id, "aria-labelledby": heading.id, hidden: "" }, heading, make("ul"));
    $("#empty").before(section);
    sections.set(id, section);
  }
  for (const { symbol, words, tone } of statuses) {
    const sign = make("dt", { "data-tone": tone, "aria-hidden": "true" }, make("span", { class: "sign" }, symbol));
    $("#helping .signs").append(make("div", {}, sign, make("dd", {}, words)));
  }
  $("#filter-fields").textContent = filter_fields;
  drawSoon();
}

options();
follow(EVENTS, {
  away: () => showAway(AWAY, "away"),
  signedOut: (reason) => showAway(SIGNED_OUT[reason], "signed out"),
});
setInterval(drawAges, AGE_INTERVAL_MS);
