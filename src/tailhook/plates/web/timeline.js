// A session's timeline as a picture: when the agent worked, and when it waited for the person.

import { draw, line, span } from "./words.js";

const LEFT = 76; // width of the lanes' names
const HEIGHT = 26;
const AGENT_HEIGHT = 20; // of a sub-agents' lane
const GAP = 8;
const AXIS = 22;
const LETTER = 7; // about the width of one letter in a bar
const STEPS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400, 172800, 604800];

// Return the daemon's periods, each with an end: a period that has not ended ends now. Times are milliseconds.
export const endPeriods = (periods, now) =>
  periods.map((period) => ({ ...period, end: Math.max(period.start, period.end ?? now) }));

// Return the picture in words: how long the agent worked and how long it waited.
export function summary(parts) {
  const total = (chosen) => parts.filter(chosen).reduce((sum, part) => sum + part.end - part.start, 0);
  const sums = [
    ["worked", total((part) => part.lane === "agent")],
    ["waited for an answer", total((part) => part.status === "awaiting_input")],
    ["waited for approval", total((part) => part.status === "awaiting_approval")],
    ["was in error", total((part) => part.status === "error")],
    ["was idle", total((part) => part.status === "idle")],
  ].filter(([, time]) => time >= 1000);
  return sums.length ? `The agent ${sums.map(([what, time]) => `${what} ${span(time, true)}`).join(", ")}.` : "";
}

// Return the picture of periods with an end, `width` pixels wide, or null if there is nothing to draw.
// agents: the lanes of the sub-agents.
export function timeline(parts, agents, width) {
  if (!parts.length) return null;
  const first = Math.min(...parts.map((part) => part.start));
  const last = Math.max(first + 1000, ...parts.map((part) => part.end));
  const x = (at) => LEFT + ((at - first) / (last - first)) * (width - LEFT - 1);
  const lanes = [{ name: "agent", height: HEIGHT, parts: parts.filter(({ lane }) => lane === "agent") }];
  for (const [at, lane] of agents.entries()) lanes.push({ name: at ? "" : "sub-agents", height: AGENT_HEIGHT, parts: lane });
  lanes.push({ name: "you", height: HEIGHT, parts: parts.filter(({ lane }) => lane === "you") });
  let bottom = 0;
  for (const lane of lanes) {
    lane.y = bottom;
    bottom += lane.height + GAP;
  }
  const height = bottom + AXIS;
  const label = summary(parts) || "The timeline has just begun.";
  const picture = draw("svg", { viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-label": label });
  picture.append(...axis(first, last, x, bottom));
  for (const lane of lanes) {
    picture.append(
      draw("rect", { class: "lane", x: LEFT, y: lane.y, width: width - LEFT, height: lane.height, rx: 4 }),
      draw("text", { class: "name", x: 0, y: lane.y + lane.height / 2 + 4 }, lane.name),
    );
  }
  for (const lane of lanes) picture.append(...lane.parts.filter(({ end }) => end >= first).map((part) => bar(part, lane, x)));
  return picture;
}

function bar(part, { y, height }, x) {
  const left = Math.max(LEFT, x(part.start));
  const width = Math.max(1.5, x(part.end) - left);
  const name = line(part.label, 80);
  const title = `${name}, ${span(part.end - part.start, true)} from ${clock(part.start, true)}`;
  const drawn = draw("g", { class: `bar ${part.lane === "sub-agent" ? "sub" : part.status}${part.tool && " tool"}`, "data-tone": part.tone }, draw("title", {}, title));
  drawn.append(draw("rect", { x: left, y, width, height, rx: Math.min(4, width / 2) }));
  const room = Math.floor((width - 10) / LETTER);
  const label = name.length > room ? `${name.slice(0, room - 1)}…` : name;
  if (label.length <= room && room > 3) drawn.append(draw("text", { x: left + 6, y: y + height / 2 + 4 }, label));
  return drawn;
}

// Return ticks at whole minutes or hours of the browser's time zone.
function axis(first, last, x, y) {
  const room = (seconds) => Math.max(2, Math.floor((x(last) - x(first)) / (seconds < 60 ? 112 : 84))); // for their labels
  const step = (STEPS.find((seconds) => (last - first) / 1000 / seconds <= room(seconds)) ?? STEPS.at(-1)) * 1000;
  const zone = new Date(first).getTimezoneOffset() * 60_000;
  const ticks = [];
  for (let at = Math.ceil((first - zone) / step) * step + zone; at <= last; at += step) {
    const left = x(at);
    ticks.push(draw("line", { class: "tick", x1: left, x2: left, y1: 0, y2: y }));
    const anchor = left > x(last) - 24 ? "end" : left < x(first) + 20 ? "start" : "middle";
    const text = step >= 86_400_000 ? day(at) : clock(at, step < 60_000);
    ticks.push(draw("text", { class: "time", x: left, y: y + 12, "text-anchor": anchor }, text));
    if (ticks.length > 1000) break;
  }
  return ticks;
}

const day = (at) => new Date(at).toLocaleDateString([], { month: "short", day: "numeric" });

// Return a time of day.
export function clock(at, seconds = false) {
  const parts = { hour: "2-digit", minute: "2-digit", hourCycle: "h23" };
  return new Date(at).toLocaleTimeString([], seconds ? { ...parts, second: "2-digit" } : parts);
}
