// How long agents waited for the person: a table by day, with a bar of the projects in each row.

import { ask } from "./daemon.js";
import { line, make, span } from "./words.js";

const DAYS = 7;
const MAX_COLOURS = 4; // projects with a colour of their own; the others share one
const REFRESH_MS = 60_000; // while it is shown

const place = document.getElementById("history");
let asking = 0; // the number of the newest request

// Show the table, or hide it.
export function toggleWaits() {
  place.open = !place.open;
  if (place.open) place.querySelector("summary").focus();
}

// Return the local midnights of the last days, and the one at the end of today.
function edges() {
  const now = new Date();
  const midnight = (back) => new Date(now.getFullYear(), now.getMonth(), now.getDate() - back).getTime();
  return Array.from({ length: DAYS + 1 }, (_, at) => midnight(DAYS - 1 - at));
}

async function load() {
  if (!place.open || document.hidden) return;
  const number = ++asking;
  let drawn;
  try {
    const answer = await ask(`/waits?${edges().map((at) => `edge=${at}`).join("&")}`);
    const found = await answer.json();
    if (!answer.ok) throw new Error(found.error);
    drawn = draw(found);
  } catch (error) {
    drawn = [make("p", {}, `The waits could not be loaded: ${line(error.message)}`)];
  }
  if (number === asking) place.querySelector("div").replaceChildren(...drawn);
}

async function open() {
  await load();
  if (place.open) place.scrollIntoView({ block: "nearest" });
}

function draw({ intervals, total }) {
  if (!total) return [make("p", {}, "Nothing is known yet, because no event is stored.")];
  if (!total.waits) return [make("p", {}, `No session has waited for you since ${day(total.start)}.`)];
  const colours = new Map(total.projects.slice(0, MAX_COLOURS).map((project, at) => [project.project_path, at + 1]));
  const most = Math.max(...intervals.map((interval) => interval.waited_ms));
  const head = make("tr", {}, ...["Day", "Projects", "Waited", "Waits", "Median", "Longest"].map((name) => make("th", { scope: "col" }, name)));
  const rows = intervals.map((one) => make("tr", {}, make("th", { scope: "row" }, day(one.start)), barOf(one, most, colours), ...figures(one)));
  const sum = make("tr", {}, make("th", { scope: "row" }, intervals.length === 1 ? "1 day" : `${intervals.length} days`), make("td"), ...figures(total));
  const table = make("table", {}, make("thead", {}, head), make("tbody", {}, ...rows));
  if (intervals.length > 1) table.append(make("tfoot", {}, sum));
  return [legend(total.projects, colours), table, make("p", {}, "Agents that wait at the same time add up, and the night counts.")];
}

// Return the cell with a day's bar, and its parts in words. Its length is in proportion to the longest bar.
function barOf({ projects }, most, colours) {
  const parts = projects.map((project) => ({ ...project, colour: colours.get(project.project_path) ?? 0, words: waited(project) }));
  parts.sort((a, b) => (a.colour || Infinity) - (b.colour || Infinity)); // in the order of the legend
  const bar = make("div", { class: "bar", "aria-hidden": "true" }, ...parts.map(({ waited_ms: ms, colour, words }) => {
    const drawn = make("span", { "data-colour": colour, title: words });
    drawn.style.setProperty("--part", `${(100 * ms) / most}%`);
    return drawn;
  }));
  return make("td", {}, bar, make("span", { class: "unseen" }, parts.map(({ words }) => words).join(", ")));
}

function figures({ waited_ms: ms, waits, median_ms: median, longest_ms: longest }) {
  const cells = waits ? [span(ms, true), waits.toLocaleString("en"), span(median, true), span(longest, true)] : ["-", "-", "-", "-"];
  return cells.map((cell) => make("td", {}, cell));
}

// Return the list of the projects with their colours: the one that waited longest comes first.
function legend(projects, colours) {
  const rest = projects.slice(MAX_COLOURS);
  const ms = rest.reduce((sum, project) => sum + project.waited_ms, 0);
  const named = projects.slice(0, MAX_COLOURS).map((project) => [colours.get(project.project_path), waited(project)]);
  if (rest.length) named.push([0, `${rest.length} more ${span(ms, true)}`]);
  return make("ul", {}, ...named.map(([colour, words]) => make("li", {}, make("i", { "data-colour": colour }), make("bdi", {}, words))));
}

const waited = ({ name, waited_ms: ms }) => `${line(name, 80)} ${span(ms, true)}`;

const day = (at) => new Date(at).toLocaleDateString([], { weekday: "short", day: "numeric", month: "short" });

place.addEventListener("toggle", open);
setInterval(load, REFRESH_MS);
