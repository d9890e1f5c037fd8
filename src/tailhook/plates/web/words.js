// How a plate is said: its status, its names, its times.

// status: [symbol, words, the section it stands in]; as the terminal's board has them.
export const STATUS = {
  awaiting_input: ["?", "awaiting input", "attention"],
  awaiting_approval: ["!", "awaiting approval", "attention"],
  error: ["✗", "error", "attention"],
  running: ["●", "running", "running"],
  starting: ["◌", "starting", "rest"],
  idle: ["○", "idle", "rest"],
  closed: ["·", "closed", "rest"],
};

export const sectionOf = (plate) => (STATUS[plate.status] ?? STATUS.idle)[2];

const UNSEEN = /[\p{Cc}\p{Cf}\p{Co}\p{Cs}\u2028\u2029]/gu;
const ORDINARY = "\n\t\u200c\u200d"; // lines, tabs, and what joins or parts the letters of Persian and of emoji

// Return text of a session for display: replace characters that are invisible, that change the direction of what
// follows, or that a terminal obeys. Lines stay lines.
export function clean(text, longest = 10_000) {
  const shown = String(text ?? "").slice(0, longest);
  return shown.replace(UNSEEN, (letter) => (ORDINARY.includes(letter) ? letter : "\uFFFD"));
}

// The same on one line.
export const line = (text, longest = 300) => clean(text, longest).replaceAll(/[\n\t]/g, " ");

// A project's name and the folder it is in.
export function names(path) {
  const parts = line(path, 1000).split("/");
  while (parts.length > 1 && !parts.at(-1)) parts.pop();
  const name = parts.pop() || "/";
  return [name, parts.join("/").replace(/^\/(home|Users)\/[^/]+/, "~") || "/"];
}

const UNITS = [["d", 86_400_000], ["h", 3_600_000], ["m", 60_000], ["s", 1000]];

// Milliseconds in a few letters: "42s", "5m", "3h", "2d"; exact: with the next unit, "5m 12s".
export function span(ms, exact = false) {
  const at = Math.max(0, UNITS.findIndex(([, size]) => ms >= size));
  const [unit, size] = ms >= 1000 ? UNITS[at] : UNITS[3];
  const whole = Math.max(0, Math.floor(ms / size));
  const rest = exact && UNITS[at + 1] && ms >= 1000 ? Math.floor((ms % size) / UNITS[at + 1][1]) : 0;
  return `${whole}${unit}${rest ? ` ${rest}${UNITS[at + 1][0]}` : ""}`;
}

// Whether the plate has all of the filter's words.
export function matches(plate, filter) {
  const fields = [
    plate.project_path, plate.git_branch, STATUS[plate.status]?.[1], plate.last_tool, plate.host, plate.user,
    plate.session_id,
  ];
  const text = fields.join("\n").toLowerCase();
  return filter.toLowerCase().split(/\s+/).every((word) => text.includes(word));
}

// An element with attributes and what is in it: text, or more of them.
export function make(tag, attributes = {}, ...inside) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...inside);
  return made;
}

export const SVG = "http://www.w3.org/2000/svg";

// The same for a picture.
export function draw(tag, attributes = {}, ...inside) {
  const made = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...inside);
  return made;
}
