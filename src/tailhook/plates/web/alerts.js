// A sound and a desktop notification when a session starts to need attention; both are off by default.

import { line } from "./words.js";

const WANTED = ["sound", "notify"];
const NOT_SHOWN = "The browser does not let this page show notifications.";
const notes = new Map(); // the last notification of each session
let audio = null;

const key = (name) => `tailhook.${name}`;

function wants(name) {
  try {
    return localStorage.getItem(key(name)) === "1";
  } catch {
    return false; // the browser stores nothing for this page
  }
}

function keep(name, value) {
  try {
    localStorage.setItem(key(name), value ? "1" : "0");
  } catch {
    // the choice holds until the page is closed
  }
}

// Play the sound and show the notification, if the person wants them. shown: called when it is clicked.
export function alert(plate, words, shown) {
  if (wants("sound")) chime();
  if (!wants("notify") || globalThis.Notification?.permission !== "granted") return;
  notes.get(plate.session_id)?.close();
  const note = notification(words, line(plate.project_path), `${plate.session_id} ${plate.since}`);
  if (!note) return;
  notes.set(plate.session_id, note);
  note.onclick = () => {
    window.focus();
    note.close();
    shown();
  };
}

// Return a new notification, or null if the browser shows none (Chrome on Android: only a service worker may).
// tag: one with the tag of another replaces it in silence, so that several tabs show it once.
function notification(words, body, tag) {
  try {
    return new Notification(words, { body, tag });
  } catch {
    document.getElementById("refused").textContent = NOT_SHOWN;
    return null;
  }
}

// Play two short notes. A browser plays them only after the person has used the page.
function chime() {
  audio ??= new AudioContext();
  audio.resume();
  for (const [at, pitch] of [[0, 660], [0.16, 880]]) {
    const tone = audio.createOscillator();
    const loudness = audio.createGain();
    const start = audio.currentTime + at;
    tone.frequency.value = pitch;
    loudness.gain.setValueAtTime(0.0001, start);
    loudness.gain.exponentialRampToValueAtTime(0.2, start + 0.02);
    loudness.gain.exponentialRampToValueAtTime(0.0001, start + 0.3);
    tone.connect(loudness).connect(audio.destination);
    tone.start(start);
    tone.stop(start + 0.32);
  }
}

// Connect the two check boxes in the help.
export function options() {
  for (const name of WANTED) {
    const box = document.getElementById(name);
    box.checked = wants(name);
    box.addEventListener("change", async () => {
      if (name === "notify" && box.checked && !(await allowed())) box.checked = false;
      keep(name, box.checked);
      if (name === "sound" && box.checked) chime();
    });
  }
}

async function allowed() {
  const answer = await globalThis.Notification?.requestPermission();
  const refused = document.getElementById("refused");
  refused.textContent = answer === "granted" ? "" : NOT_SHOWN;
  return answer === "granted";
}
