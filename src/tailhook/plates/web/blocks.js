// The blocks of an agent's Markdown, and what a session asks, as elements. All text of a session becomes text nodes.

import { clean, commandWords, line, make } from "./words.js";

const TAGS = { code: "code", strong: "strong", emphasis: "em", text: "span" };
const MAX_CODE = 100_000; // letters
const COMMAND_NAMES = ["", "command"]; // of the inputs of a tool

// Return the elements for blocks. Items that follow each other are one list.
export function drawBlocks(blocks) {
  const drawn = [];
  let list = null;
  for (const block of blocks) {
    if (block.kind !== "item") {
      list = null;
      drawn.push(drawBlock(block));
      continue;
    }
    if (!list) drawn.push((list = make("ul")));
    const mark = make("span", { class: "mark", "aria-hidden": block.mark === "•" }, line(block.mark));
    list.append(make("li", { "data-level": block.level }, mark, make("div", {}, ...texts(block.texts))));
  }
  return drawn;
}

function drawBlock({ kind, texts: parts, rows, mark }) {
  if (kind === "code") return drawCode(parts.map(({ text }) => text).join(""), mark);
  if (kind === "rule") return make("hr");
  if (kind === "table") return drawTable(rows);
  const tag = { heading: "h4", quote: "blockquote" }[kind] ?? "p";
  return make(tag, {}, ...texts(parts));
}

const texts = (parts) => parts.map(({ kind, text }) => make(TAGS[kind] ?? "span", {}, clean(text, MAX_CODE)));

const drawCode = (text, language = "") =>
  make("pre", language ? { "data-language": line(language, 40) } : {}, make("code", {}, clean(text, MAX_CODE)));

const drawCommand = (text) => make("pre", {}, make("code", {}, ...commandWords(clean(text, MAX_CODE))));

function drawTable([head, ...rows]) {
  const drawRow = (cells, tag) => make("tr", {}, ...cells.map((cell) => make(cell.length ? tag : "td", {}, ...texts(cell))));
  return make("table", {}, make("thead", {}, drawRow(head, "th")), make("tbody", {}, ...rows.map((row) => drawRow(row, "td"))));
}

// Return the elements for what a session waits for.
export function drawAsked({ words, tool, questions, inputs, plan }) {
  const head = make("p", { class: "what" }, line(words), " ", make("span", { class: "tool" }, line(tool)));
  const given = inputs.map(({ name, text }) =>
    make("div", { class: "input" }, ...(name ? [make("h4", {}, line(name))] : []), (COMMAND_NAMES.includes(name) ? drawCommand : drawCode)(text)),
  );
  return [head, ...questions.map(drawQuestion), ...given, ...drawBlocks(plan)];
}

function drawQuestion({ header, text, takes_many, choices }) {
  const head = make("p", { class: "question" }, make("strong", {}, clean(text, MAX_CODE)));
  if (header) head.prepend(make("span", { class: "chip" }, line(header)), " ");
  if (takes_many) head.append(" ", make("small", {}, "several may be chosen"));
  const items = choices.map(({ label, description }) =>
    make("li", {}, make("span", { class: "label" }, line(label)), " ", make("small", {}, clean(description, MAX_CODE))),
  );
  return make("div", {}, head, make("ol", { class: "choices" }, ...items));
}
