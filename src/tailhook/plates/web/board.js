// The board: every session, live over /stream. The daemon decides order, groups, names and symbols.

import { alert, options } from "./alerts.js";
import { ask, follow, mark } from "./daemon.js";
import { openDetails, plateChanged, refreshDetails, shownDetails } from "./details.js";
import { RESUME_TITLE, fillAge, fillRow, makeRow } from "./rows.js";
import { apply } from "./stream.js";
import { toggleWaits } from "./waits.js";
import { clean, commandWords, line, make, matches } from "./words.js";

const $ = (selector) => document.querySelector(selector);
const DRAW_DELAY_MS = 40; // in which changes are gathered before they are drawn
const AGE_INTERVAL_MS = 5000; // between two updates of all ages
const UNDO_MS = 10_000; // in which a hidden session can be shown again with one key
const NEWS_MS = 8000; // in which a copied command is shown, or why something failed
const STILL_MS = 1500; // after the pointer has moved over the list: so long no row moves
const MOVE_MS = 150; // in which a row moves to its new place
const HOUR_MS = 3_600_000;
const MAX_MOVING = 200; // rows that glide to their new places
const MAX_RESTING = 10; // sessions at rest that are shown unless more are asked for
const MAX_ROWS = 200; // that are drawn unless more are asked for
const CLOSED_PAGE = "/plates?status=closed&limit=200"; // of the closed sessions, newest first
const MAX_CLOSED_PAGES = 5;

const plates = new Map(); // by session id
const sections = new Map(); // the elements of the sections, by key
const rows = new Map(); // the elements of the plates that are shown, by session id
const closing = new Map(); // plates that have closed since the last drawing in order: their rows may still be there
const only = new Set(); // the groups that are shown; empty: all
let groups = []; // the daemon's
let longWaitHours = 0; // longer waits stand in one line, until they are asked for
let arriving = null; // all open plates by session id, while the daemon sends them; null between
let known = false; // whether all open plates have been received once
let connection = "wait"; // with the daemon: "wait", "live", or "away" if it does not answer or the tab is signed out
let closedCount = 0; // closed plates that the daemon has
let withClosed = false;
let asked = null; // the closed ones by session id when they were asked for, null for a removed one; null without a request
let lacksClosed = false; // whether the last request for the closed ones has failed
let maxRows = MAX_ROWS;
let byProject = false;
const withAll = new Set(); // the keys of the sections whose folded rows are shown
let undoable = []; // sessions that were hidden within the last UNDO_MS: { id, name, isDone }
let drawing = 0;

// ---- the daemon's events ----

const EVENTS = {
  statuses: showStatuses,
  plates: (page) => {
    arriving = new Map();
    addPage(page);
  },
  more: addPage,
  closed: ({ sessions }) => {
    connected();
    if (arriving) takeAll();
    else if (withClosed && lacksClosed) loadClosed();
    closedCount = sessions;
    known = true;
    drawSoon();
  },
  plate: store,
  names: (data) => applyEach("names", data),
  tokens: (data) => applyEach("tokens", data),
  removed: (data) => {
    asked?.set(data.session_id, null);
    applyAndDraw("removed", data);
    refreshDetails(data.session_id);
  },
  catching_up: ({ events }) => {
    if (events) setConnection("wait", `catching up: ${events.toLocaleString("en")} ${events === 1 ? "event" : "events"}`);
    else setConnection("live", "live");
  },
};

// Add open plates that the daemon sends as a part of all. Those of the first time are shown at once.
function addPage(page) {
  for (const plate of page) arriving.set(plate.session_id, plate);
  if (known) return;
  page.forEach(store);
  connected();
  if (plates.size === page.length) drawAll(); // the first rows are seen at once
}

// Put the plates that have arrived in place of the open ones.
function takeAll() {
  const before = [...plates.values()];
  for (const { session_id, status } of before) {
    if (status === "closed" || arriving.has(session_id)) continue;
    plates.delete(session_id);
    refreshDetails(session_id); // it has closed or is gone
  }
  arriving.forEach(store);
  if (withClosed) loadClosed();
  arriving = null;
}

function applyAndDraw(name, data) {
  apply(plates, name, data);
  drawSoon();
}

// Apply names or tokens, by session id. Details whose tokens are not known any more keep the last ones.
function applyEach(name, data) {
  applyAndDraw(name, data);
  for (const [id, value] of Object.entries(data)) if (value && plates.has(id)) plateChanged(plates.get(id));
}

// Return the plate of a row. It may have closed or gone while the row could not move away.
const plateOf = (id) => plates.get(id) ?? closing.get(id) ?? rows.get(id)?.plate;

const isOnBoard = (plate) => plate.status !== "closed" && !plate.hidden;

const needsAttention = (plate) => plate.group === "waits";

function store(plate) {
  const before = plates.get(plate.session_id);
  if (withClosed || plate.status !== "closed") plates.set(plate.session_id, plate);
  else {
    plates.delete(plate.session_id);
    closing.set(plate.session_id, plate);
  }
  if (known && needsAttention(plate) && before?.status !== plate.status) {
    const words = `${line(plate.name)}: ${plate.status_words}`;
    announce(words);
    if (!before || !needsAttention(before)) alert(plate, words, () => openDetails(plate)); // once while it waits
  }
  plateChanged(plate);
  drawSoon();
}

function connected() {
  if (connection === "away") announce("The daemon answers again.");
  setConnection("live", "live");
}

const AWAY = "The daemon does not answer. What you see may be old. Trying again. (To start it:  tailhook plates serve)";
const NO_LINK = "To sign in, duplicate a signed-in tab, or open the link that this command prints:  tailhook plates link";

function showSignedOut(reason, wasSignedIn) {
  let words = reason === null ? `This tab is not signed in. ${NO_LINK}` : `This tab is not signed in: ${line(reason)}`;
  if (wasSignedIn) words = `What you see is old. This tab is not signed in any more: ${line(reason)}`;
  showAway(words, "signed out");
}

function showAway(words, state) {
  if ($("#away").textContent !== words) $("#away").textContent = words;
  setConnection("away", state);
}

function setConnection(state, words) {
  connection = state;
  if ($("#connection").textContent !== words) $("#connection").textContent = words;
  drawSoon();
}

// Show whether the board is live. Its words stand above the rows, so they come and go only while rows may move.
function drawConnection() {
  $("#connection").dataset.state = connection;
  $("#away").hidden = connection !== "away";
}

// ---- drawing ----

function drawSoon() {
  drawing ||= setTimeout(() => {
    drawing = 0;
    if (isPressed) return; // the release draws
    if (!isStill()) drawConnection();
    drawAll();
  }, DRAW_DELAY_MS);
}

// Draw all that has changed. While the pointer moves over the list, rows change their content and stay in their places.
function drawAll() {
  if (!groups.length) return; // they have not come yet
  const filter = $("#filter").value.trim();
  const all = [...plates.values()];
  const found = all.filter((plate) => (withClosed || isOnBoard(plate)) && matches(plate, filter));
  const shown = found.filter((plate) => !only.size || only.has(plate.group)).sort((a, b) => (a.rank < b.rank ? -1 : 1));
  const parts = cut(byProject ? projectsOf(shown) : groupsOf(shown, all, filter));
  if (isStill()) drawInPlace(parts);
  else drawInOrder(parts);
  drawCounts(all, found);
  drawEmpty(all.length + closedCount, shown.length, filter);
}

// Return the parts without the rows after the first maxRows, and show how many those are.
function cut(parts) {
  let left = maxRows;
  let cutOff = 0;
  for (const part of parts) {
    cutOff += Math.max(0, part.plates.length - left);
    part.plates = part.plates.slice(0, left);
    left -= part.plates.length;
  }
  $("#more").hidden = !cutOff;
  $("#more").textContent = `${cutOff.toLocaleString("en")} more ▾`;
  return parts.filter((part) => part.plates.length || part.folds || part.leftOut);
}

// Return the sections of the board: each with its key, title, note, rows and the rows that are folded.
function groupsOf(shown, all, filter) {
  const hidden = all.filter((plate) => plate.hidden && plate.status !== "closed").length;
  const counts = [[closedCount, "closed"], [hidden, "hidden"]].filter(([count]) => count);
  const leftOut = filter || only.size ? "" : counts.map(([count, word]) => `${count.toLocaleString("en")} ${word}`).join(", ");
  return groups.map(({ id, title, note }) => {
    const inside = shown.filter((plate) => plate.group === id);
    const now = Date.now();
    const folds = filter ? () => false : {
      waits: (plate) => now - Date.parse(plate.since) > longWaitHours * HOUR_MS,
      rest: (_, at) => at >= MAX_RESTING,
    }[id] ?? (() => false);
    const isFolded = withAll.has(id) ? () => false : folds;
    const folded = inside.filter(isFolded).length;
    const words = { waits: `older than ${longWaitHours} h`, rest: "more" }[id];
    return { key: id, title, note, plates: inside.filter((plate, at) => !isFolded(plate, at)), count: inside.length,
      folds: inside.filter(folds).length, folded, words, leftOut: id === "rest" ? leftOut : "" };
  });
}

function projectsOf(shown) {
  const byName = new Map();
  for (const plate of shown) {
    if (!byName.has(plate.name)) byName.set(plate.name, []);
    byName.get(plate.name).push(plate);
  }
  return [...byName].map(([name, inside]) => (
    { key: `project ${name}`, title: line(name), note: "", plates: inside, count: inside.length, folds: 0, folded: 0, leftOut: "" }
  ));
}

function drawInOrder(parts) {
  const focused = document.activeElement?.closest?.("#board li");
  const place = focused && [...document.querySelectorAll("#board li")].indexOf(focused);
  const before = topsOfRows();
  const ids = new Set(parts.flatMap((part) => part.plates.map((plate) => plate.session_id)));
  closing.clear();
  for (const [id, row] of rows) {
    row.style.height = "";
    if (ids.has(id)) continue;
    row.remove();
    rows.delete(id);
  }
  const keys = new Set(parts.map((part) => part.key));
  for (const [key, section] of sections) {
    if (keys.has(key)) continue;
    section.remove();
    sections.delete(key);
  }
  parts.forEach((part, at) => {
    const section = sectionOf(part);
    if ($("#board").children[at] !== section) $("#board").insertBefore(section, $("#board").children[at] ?? null);
    drawSection(section, part);
  });
  $("#news").hidden = true;
  moveFrom(before);
  if (focused && !focused.isConnected) focusRow(place);
  else if (focused && !focused.contains(document.activeElement)) focused.querySelector("button").focus();
}

// Update the rows that are there, each in its own height. The others wait for the pointer to rest.
function drawInPlace(parts) {
  for (const [id, row] of rows) {
    const plate = plateOf(id);
    if (row.plate === plate) continue;
    row.style.height ||= `${row.getBoundingClientRect().height}px`;
    fillRow(row, plate);
  }
  const news = parts.flatMap((part) => part.plates).filter((plate) => !rows.has(plate.session_id)).length;
  $("#news").hidden = !news;
  $("#news").textContent = `${news} new ↑`;
}

let numbered = 0; // the sections of projects that were made

function sectionOf({ key }) {
  let section = sections.get(key);
  if (!section) {
    const id = byProject ? `project-${++numbered}` : key; // a project's name may be in any script
    const heading = make("h2", { id: `${id}-title` }, make("span", { class: "name" }), " ", make("span", { class: "count" }));
    const note = make("p", { class: "note" });
    section = make("section", { "aria-labelledby": heading.id }, make("header", {}, heading, note), make("ul"));
    section.id = id;
    sections.set(key, section);
  }
  return section;
}

function drawSection(section, part) {
  section.querySelector(".name").textContent = part.title;
  section.querySelector(".count").textContent = part.count;
  const note = section.querySelector(".note");
  const focused = [...note.children].indexOf(document.activeElement);
  note.replaceChildren(...noteOf(part));
  note.children[focused]?.focus(); // its button was replaced
  const list = section.querySelector("ul");
  list.hidden = !part.plates.length;
  part.plates.forEach((plate, at) => {
    const row = rowOf(plate);
    if (list.children[at] !== row) list.insertBefore(row, list.children[at] ?? null);
  });
}

// Return what stands at the right of a heading: the order, and buttons for what is folded.
function noteOf({ key, note, folds, folded, words, leftOut }) {
  const toggle = (text, isOpen, act) => {
    const button = make("button", { type: "button", class: "fold", "aria-expanded": String(isOpen) }, `${text} ${isOpen ? "▾" : "▸"}`);
    button.addEventListener("click", act);
    return button;
  };
  const found = note ? [note] : [];
  if (folds) found.push(toggle(`${folds} ${words}`, !folded, () => toggleFold(key)));
  if (leftOut) found.push(toggle(leftOut, withClosed, toggleClosed));
  return found.flatMap((one, at) => (at ? [" · ", one] : [one]));
}

function toggleFold(key) {
  if (!withAll.delete(key)) withAll.add(key);
  stillUntil = 0;
  drawAll();
}

function rowOf(plate) {
  let row = rows.get(plate.session_id);
  if (!row) {
    row = makeRow(plate.session_id, {
      open: (id) => openDetails(plateOf(id)),
      copy: (id) => copyResume(plateOf(id)),
      hide: (id) => toggleHidden(plateOf(id)),
    });
    rows.set(plate.session_id, row);
  }
  fillRow(row, plate);
  return row;
}

const topsOfRows = () =>
  new Map(rows.size > MAX_MOVING ? [] : [...rows.values()].map((row) => [row, row.getBoundingClientRect().top]));

// Let the rows glide from where they were.
function moveFrom(before) {
  if (matchMedia("(prefers-reduced-motion: reduce)").matches) return;
  for (const [row, top] of before) {
    const by = row.isConnected ? top - row.getBoundingClientRect().top : 0;
    if (by) row.animate([{ transform: `translateY(${by}px)` }, { transform: "none" }], { duration: MOVE_MS, easing: "ease-out" });
  }
}

function drawAges() {
  for (const row of rows.values()) fillAge(row);
}

// Show how many sessions each group has, in the head, in the title and in the icon.
function drawCounts(all, found) {
  for (const { id, summary, summary_of_one } of groups) {
    const count = found.filter((plate) => plate.group === id && isOnBoard(plate)).length;
    const button = $(`#counts [data-group="${id}"]`);
    if (!button) continue;
    button.querySelector("b").textContent = count;
    button.querySelector("span").textContent = count === 1 ? summary_of_one : summary;
    button.toggleAttribute("data-some", count > 0);
    button.setAttribute("aria-pressed", String(only.has(id)));
  }
  const waiting = all.filter(needsAttention).length;
  document.title = waiting ? `(${waiting}) tailhook` : "tailhook";
  drawIcon(waiting);
}

let icon = 0; // the number in the icon

function drawIcon(waiting) {
  if (waiting === icon) return;
  icon = waiting;
  const link = $("link[rel=icon]");
  if (!waiting) {
    link.href = "/web/icon.svg";
    return;
  }
  const canvas = make("canvas", { width: 32, height: 32 });
  const pen = canvas.getContext("2d");
  pen.fillStyle = "#f0a92e";
  pen.arc(16, 16, 16, 0, 2 * Math.PI);
  pen.fill();
  pen.fillStyle = "#15191d";
  pen.font = "bold 20px system-ui, sans-serif";
  pen.textAlign = "center";
  pen.textBaseline = "middle";
  pen.fillText(waiting > 9 ? "9+" : String(waiting), 16, 17);
  link.href = canvas.toDataURL();
}

function toggleOnly(id) {
  if (!only.delete(id)) only.add(id);
  stillUntil = 0;
  drawAll();
}

function toggleProjects() {
  byProject = !byProject;
  $("#projects").setAttribute("aria-pressed", String(byProject));
  for (const section of sections.values()) section.remove();
  sections.clear();
  stillUntil = 0;
  drawAll();
}

function drawEmpty(total, shown, filter) {
  const words = filter
    ? `No session matches “${clean(filter, 100)}”.`
    : only.size
      ? "No session is in the chosen groups."
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

let shownNews = 0;

// Show what came of something that the person did, for a short time.
function showNews(...words) {
  const shown = $("#details").open ? $("#details .copied") : $("#copied");
  shown.replaceChildren(...words);
  shown.hidden = false;
  clearTimeout(shownNews);
  shownNews = setTimeout(() => (shown.hidden = true), NEWS_MS);
}

// Copy the command that resumes a session, and show it.
async function copyResume(plate) {
  if (!plate?.resume) return;
  const hint = plate.status === "closed" ? "" : " It is still open: end it there first.";
  let words = "Copied";
  try {
    await navigator.clipboard.writeText(plate.resume);
  } catch {
    words = "The browser did not copy it. Copy it by hand";
  }
  showNews(`${words}: `, make("code", {}, ...commandWords(line(plate.resume, 2000))), hint);
}

// Hide a session until its next prompt, or show a hidden one again. Nothing is deleted.
async function toggleHidden(plate) {
  if (!plate) return;
  const id = plate.session_id;
  const hides = !plate.hidden;
  const one = { id, name: line(plate.name) };
  one.isDone = hide(one, hides);
  if (hides) {
    undoable = [...undoable.filter((other) => other.id !== id), one]; // before the answer: the stream may be faster
    setTimeout(() => forget(one), UNDO_MS);
    drawUndo();
  }
  if (!(await one.isDone)) return forget(one);
  if ($("#details").open && shownDetails().session_id === id) $("#details").close();
  if (!hides) undoable = undoable.filter((other) => other.id !== id);
  drawUndo();
}

// Ask the daemon to hide or show a session. Returns whether it did.
async function hide({ id, name }, hidden) {
  const before = plates.get(id);
  try {
    const answer = await mark(id, { hidden });
    const found = answer.status === 404 ? null : await answer.json();
    if (!found) plates.delete(id);
    else if (!answer.ok) throw new Error(found.error);
    else if (plates.get(id) === before) store(found); // otherwise the stream was faster, and knows the same or more
    drawSoon();
    return answer.ok;
  } catch (error) {
    showNews(`${name} could not be ${hidden ? "hidden" : "shown"}: ${error.message}`);
    return false;
  }
}

async function undo() {
  const last = undoable.pop();
  drawUndo();
  if (await last?.isDone) hide(last, false);
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
  stillUntil = 0;
  if (withClosed) {
    if (known) loadClosed(); // otherwise the end of all open plates does
  } else {
    asked = null;
    for (const { session_id, status } of [...plates.values()]) if (status === "closed") plates.delete(session_id);
  }
  drawAll();
}

// Ask the daemon for the newest closed sessions, page by page, and show them in place of those before. What the stream
// has sent meanwhile is newer, and stays.
async function loadClosed() {
  const before = (asked = new Map([...plates].filter(([, { status }]) => status === "closed")));
  lacksClosed = false;
  let page = CLOSED_PAGE;
  for (let pages = 0; page && pages < MAX_CLOSED_PAGES; pages++) {
    try {
      const answer = await ask(page);
      const found = await answer.json();
      if (!answer.ok) throw new Error(found.error);
      if (asked !== before) return;
      for (const plate of found) {
        const id = plate.session_id;
        if (plates.get(id) === before.get(id)) plates.set(id, plate);
      }
      page = /<([^>]*)>; rel="next"/.exec(answer.headers.get("Link") ?? "")?.[1];
      drawSoon();
    } catch (error) {
      if (asked !== before) return;
      asked = null;
      lacksClosed = true;
      showNews(`The closed sessions are not shown: ${error.message}`);
      return;
    }
  }
  for (const [id, plate] of before) if (plate && plates.get(id) === plate) plates.delete(id);
  asked = null;
  drawSoon();
}

// On a phone the filter and what stands right of it have a line of their own. It is shown on request.
function openFilter() {
  $("#find").ariaExpanded = "true";
  $("#filter").focus();
}

function closeFilter() {
  $("#find").ariaExpanded = "false";
  $("#filter").value = "";
  drawAll();
}

function openHelp() {
  if (!$("#helping").open) $("#helping").showModal();
}

// Rows could move while a person aims. So no row moves while the pointer or a finger moves over the list, and between a
// press and its release: a click acts on the pressed row.
let isPressed = false;
let stillUntil = 0; // milliseconds, by performance.now
let resting = 0;

const isStill = () => isPressed || performance.now() < stillUntil;

function keepStill() {
  stillUntil = performance.now() + STILL_MS;
  resting ||= setTimeout(rest, STILL_MS);
}

function rest() {
  const left = stillUntil - performance.now();
  resting = left > 0 ? setTimeout(rest, left) : 0;
  if (!resting) drawSoon();
}

function release() {
  isPressed = false;
  drawSoon();
}

$("#board").addEventListener("pointermove", keepStill);
$("#board").addEventListener("pointerdown", () => (isPressed = true));
for (const end of ["pointerup", "pointercancel", "blur"]) addEventListener(end, () => isPressed && release());

$("#news").addEventListener("click", () => {
  stillUntil = 0;
  drawAll();
  scrollTo({ top: 0 });
});

// Call a function with the plate whose row has the focus.
function withFocused(act) {
  const row = document.activeElement?.closest?.("#board li");
  if (row) act(plateOf(row.dataset.id));
}

const KEYS = {
  ArrowDown: () => move(1),
  ArrowUp: () => move(-1),
  Home: () => focusRow(0),
  End: () => focusRow(Infinity),
  "/": openFilter,
  c: toggleClosed,
  g: toggleProjects,
  "?": openHelp,
  d: () => withFocused(toggleHidden),
  y: () => withFocused(copyResume),
  u: undo,
  w: toggleWaits,
};

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if ($("#details").open) {
    if (event.key === "d" && !shownDetails().isGone) toggleHidden(shownDetails());
    if (event.key === "y") copyResume(shownDetails());
    return;
  }
  if ($("#helping").open) return;
  if (event.target === $("#filter")) {
    if (event.key === "Escape") closeFilter();
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
$("#find").addEventListener("click", () => ($("#find").ariaExpanded === "true" ? closeFilter() : openFilter()));
$("#projects").addEventListener("click", toggleProjects);
$("#more").addEventListener("click", () => {
  maxRows += MAX_ROWS;
  stillUntil = 0;
  drawAll();
});
$("#help").addEventListener("click", openHelp);
$("#details .resume").title = RESUME_TITLE;
$("#details .resume").addEventListener("click", () => copyResume(shownDetails()));
$("#details .dismiss").addEventListener("click", () => toggleHidden(shownDetails()));
$("#undo button").addEventListener("click", undo);
for (const dialog of document.querySelectorAll("dialog")) {
  dialog.querySelector(".close").addEventListener("click", () => dialog.close());
  dialog.addEventListener("click", (event) => event.target === dialog && dialog.close());
}
// Take the groups as the daemon has them now. Make the counters and fill in the help, once.
function showStatuses({ groups: all, statuses, marks, filter_fields, long_wait_hours }) {
  const wasThere = groups.length > 0;
  groups = all;
  longWaitHours = long_wait_hours;
  if (wasThere) return drawSoon();
  for (const { id, tone } of all) {
    if (id === "rest") continue;
    const button = make("button", { type: "button", class: "count", "data-tone": tone, "data-group": id }, make("b"), " ", make("span"));
    button.addEventListener("click", () => toggleOnly(id));
    $("#counts").append(button);
  }
  for (const { symbol, words, tone } of [...statuses, ...marks]) {
    const sign = make("dt", { "data-tone": tone, "aria-hidden": "true" }, make("span", { class: "sign" }, symbol));
    $("#helping .signs").append(make("div", {}, sign, make("dd", {}, words)));
  }
  $("#filter-fields").textContent = filter_fields;
  drawSoon();
}

options();
follow(EVENTS, {
  away: () => showAway(AWAY, "away"),
  signedOut: showSignedOut,
});
setInterval(drawAges, AGE_INTERVAL_MS);
