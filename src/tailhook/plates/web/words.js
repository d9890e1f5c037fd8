// Text of a session made safe for the page, durations, and elements.

const UNSEEN = /[\p{Cc}\p{Cf}\p{Co}\p{Cs}\u2028\u2029]/gu;
const ORDINARY = "\n\t\u200c\u200d"; // newline, tab, and the joiners that Persian and emoji need

// Return text of a session for display: replace invisible characters, changes of direction, and control characters.
// Lines stay lines.
export function clean(text, maxLetters = 10_000) {
  const shown = String(text ?? "").slice(0, maxLetters);
  return shown.replace(UNSEEN, (letter) => (ORDINARY.includes(letter) ? letter : "\uFFFD"));
}

// Return the same on one line.
export const line = (text, maxLetters = 300) => clean(text, maxLetters).replaceAll(/[\n\t]/g, " ");

const UNITS = [["d", 86_400_000], ["h", 3_600_000], ["m", 60_000], ["s", 1000]];

// Return a duration in its largest unit: "42s", "5m", "3h", "2d"; exact: with the next unit too, "5m 12s".
export function span(ms, exact = false) {
  const at = Math.max(0, UNITS.findIndex(([, size]) => ms >= size));
  const [unit, size] = ms >= 1000 ? UNITS[at] : UNITS[3];
  const whole = Math.max(0, Math.floor(ms / size));
  const rest = exact && UNITS[at + 1] && ms >= 1000 ? Math.floor((ms % size) / UNITS[at + 1][1]) : 0;
  return `${whole}${unit}${rest ? ` ${rest}${UNITS[at + 1][0]}` : ""}`;
}

// Return the words for a plate's status, or for how long there was no sign of its session.
export function statusWords(plate) {
  const since = plate.silent_since;
  return since ? `${plate.status_words} for ${span(Date.now() - Date.parse(since))}` : plate.status_words;
}

// Return whether every word of the filter occurs in the text that the daemon provides for it.
export function matches(plate, filter) {
  return filter.toLowerCase().split(/\s+/).every((word) => plate.search.includes(word));
}

// Return a new element with attributes and content: text or elements.
export function make(tag, attributes = {}, ...inside) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...inside);
  return made;
}

// Return a command as text and elements. A line breaks between its words; only a word that is longer than a line breaks
// anywhere. Otherwise a browser would break an option after its hyphens.
export function commandWords(text) {
  const isWhole = (part) => /^[\p{L}\p{N}\s]*$/u.test(part);
  return text.split(/(\s+)/).map((part) => (isWhole(part) ? part : make("span", { class: "word" }, part)));
}

export const SVG = "http://www.w3.org/2000/svg";

// Return a new SVG element.
export function draw(tag, attributes = {}, ...inside) {
  const made = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...inside);
  return made;
}
