// The row of a session: its headline, what it asks, does or did last, and its age.

import { commandWords, line, make, span, statusWords } from "./words.js";

// The hosts' tools for shell commands: commands are cut on the right, paths on the left.
const SHELLS = ["Bash", "bash", "powershell", "run_shell_command", "Shell", "Execute", "exec", "run_in_terminal"];
const BOXED = ["waits", "finished", "stuck"]; // groups in whose rows the activity stands in a box of its own
export const RESUME_TITLE = "Copies the command that resumes the session in a terminal";

// Return the row of a session without its content. Its buttons call the functions with the session's id.
export function makeRow(id, { open, copy, hide }) {
  const cell = (name, ...inside) => make("span", { class: name }, ...inside);
  const where = cell("where", cell("project"), cell("branch"));
  const button = make("button", { type: "button", class: "open", "aria-haspopup": "dialog" });
  button.append(cell("sign"), cell("status unseen"), cell("headline"), where, cell("tool"), cell("marks"), cell("age"));
  button.querySelector(".sign").setAttribute("aria-hidden", "true");
  const gone = make("button", { type: "button", class: "dismiss" });
  const resume = make("button", { type: "button", class: "resume", title: RESUME_TITLE }, "Copy command to resume");
  const row = make("li", {}, button, resume, gone);
  row.dataset.id = id;
  button.addEventListener("click", () => open(id));
  // Until a row that has moved is drawn again, its content gets no clicks (content-visibility).
  row.addEventListener("click", (event) => event.target === row && open(id));
  resume.addEventListener("click", () => copy(id));
  gone.addEventListener("click", () => hide(id));
  return row;
}

// Show a session in its row.
export function fillRow(row, plate) {
  if (row.plate === plate) return;
  row.plate = plate;
  const name = line(plate.name);
  Object.assign(row.dataset, { group: plate.group, status: plate.status, tone: plate.tone });
  row.toggleAttribute("data-hidden", plate.hidden);
  row.toggleAttribute("data-titled", Boolean(plate.headline));
  put(row, "sign", plate.symbol);
  put(row, "headline", line(plate.headline));
  put(row, "project", name);
  put(row, "branch", line(plate.git_branch));
  row.querySelector(".tool").replaceChildren(...activity(plate));
  row.querySelector(".marks").replaceChildren(...marks(plate));
  row.querySelector(".dismiss").setAttribute("aria-label", `${plate.hidden ? "Show" : "Hide"} ${name}`);
  row.toggleAttribute("data-resumes", Boolean(plate.resume));
  row.querySelector(".resume").hidden = !plate.resume;
  row.querySelector(".resume").setAttribute("aria-label", `Copy command to resume ${name}`);
  put(row, "dismiss", plate.hidden ? "↺" : "✕");
  fillAge(row);
}

// Show how long the session has had its status, has worked or has been silent.
export function fillAge(row) {
  put(row, "status", statusWords(row.plate));
  put(row, "age", age(row.plate));
  const silence = row.querySelector(".silence");
  if (silence) silence.textContent = statusWords(row.plate);
}

function put(row, cell, text) {
  const element = row.querySelector(`.${cell}`);
  if (element.textContent !== text) element.textContent = text;
}

// Return how long a session has waited, rested, worked on its turn or been quiet; of a finished one, how long ago that was.
function age(plate) {
  const since = { stuck: plate.quiet_since, working: plate.turn_since }[plate.group] ?? plate.since;
  return span(Date.now() - Date.parse(since)) + (hasWorked(plate) ? " ago" : "");
}

const hasWorked = (plate) => plate.group === "finished" && plate.turn_since && plate.turn_until;

const minutes = { hour: "2-digit", minute: "2-digit", hourCycle: "h23" };

// Return what a session asks, does or did last, as elements.
function activity(plate) {
  if (plate.hidden || plate.status === "closed") return [plate.hidden ? "hidden" : ""];
  const { words, tool, text, choices, is_code } = plate.activity;
  const isBoxed = BOXED.includes(plate.group);
  const found = [];
  const drawn = (kind, shown) => (kind === "code" ? commandWords(shown) : [shown]);
  const add = (kind, content) => content && found.push(make("span", { class: kind }, ...drawn(kind, line(content, 1000))), " ");
  if (plate.group === "stuck" && plate.quiet_since) {
    const at = new Date(plate.quiet_since).toLocaleTimeString([], minutes);
    add("key", tool || text ? `quiet since ${at} in` : `quiet since ${at}`);
  } else if (plate.silent_since) add("key silence", statusWords(plate));
  if (words !== "asks" || !text) add("key", words);
  add(isBoxed ? "name" : "code", tool);
  if (is_code && text && tool && !SHELLS.includes(tool)) found.push(make("span", { class: "code path" }, make("bdi", { dir: "ltr" }, line(text, 1000))), " ");
  else add(is_code || !isBoxed ? "code" : "said", text);
  choices.forEach((choice, at) => {
    found.push(make("span", { class: "choice" }, make("kbd", {}, `${at + 1}`), " ", line(choice, 1000)), " ");
  });
  return found;
}

// Return the marks beside the age: sub-agents, the context, the tokens, the to-do list, how long a finished turn took.
function marks(plate) {
  const found = [];
  if (plate.agents) found.push(make("span", { class: "agents" }, `${plate.agents} sub-agent${plate.agents > 1 ? "s" : ""}`));
  if (plate.context_used && plate.group !== "rest") {
    found.push(make("span", { class: "context" }, `${plate.context_used} context`));
  }
  if (plate.tokens_used && plate.group !== "rest") {
    found.push(make("span", { class: "tokens" }, `${plate.tokens_used} tokens`));
  }
  if (hasWorked(plate)) {
    const worked = span(Date.parse(plate.turn_until) - Date.parse(plate.turn_since));
    found.push(make("span", { class: "worked" }, `worked ${worked}`));
  }
  const [done, of] = (plate.todo_progress ?? "").split("/").map(Number);
  if (of) {
    const bar = make("span", { class: "bar", "aria-hidden": "true" });
    bar.style.setProperty("--done", `${Math.min(100, (100 * done) / of)}%`);
    found.push(make("span", { class: "todo" }, bar, `${done} of ${of}`));
  }
  return found;
}
