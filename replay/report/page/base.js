// Data, words and colours that all parts use.
const report = JSON.parse(document.getElementById("report-json").textContent);
const page = JSON.parse(document.getElementById("page-json").textContent);
const byId = (id) => document.getElementById(id);

// make builds an element; children are elements or text.
function make(tag, attributes, ...children) {
  const e = document.createElement(tag);
  for (const [k, v] of Object.entries(attributes || {})) {
    if (v === null || v === undefined) continue;
    if (k === "style") Object.assign(e.style, v);
    else e.setAttribute(k, v);
  }
  e.append(...children);
  return e;
}

function draw(tag, attributes, ...children) {
  const e = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [k, v] of Object.entries(attributes || {})) e.setAttribute(k, v);
  e.append(...children);
  return e;
}

// Figures: integer nanoseconds and bytes come in, scaled words go out.
const ms = (ns) => (ns / 1e6).toFixed(3);
const percent = (f) => (100 * f).toFixed(1) + " %";
const grouped = (n) => String(n).replace(/\B(?=(\d{3})+(?!\d))/g, ",");
function figure(f) {
  if (!f) return "";
  if (f >= 100) return grouped(Math.round(f));
  if (f >= 10) return f.toFixed(1);
  if (f >= 0.01) return f.toFixed(2);
  return f.toPrecision(2);
}
const calls = (f) => (Number.isInteger(f) ? grouped(f) : f.toFixed(1));
function duration(ns) {
  if (ns >= 1e9) return (ns / 1e9).toFixed(3) + " s";
  if (ns >= 1e6) return (ns / 1e6).toFixed(3) + " ms";
  if (ns >= 1e3) return (ns / 1e3).toFixed(3) + " µs";
  return Math.round(ns) + " ns";
}
function scaled(n, unit) {
  for (const [limit, prefix] of [[1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"]]) if (n >= limit) return figure(n / limit) + " " + prefix + unit;
  return figure(n) + " " + unit;
}

// Each class keeps its colour in every kind of step: the largest have one of
// their own, the others share a grey. A cast of the cache is an alarm.
const palette = ["--c0", "--c1", "--c2", "--c3", "--c4", "--c5", "--c6"];
const colours = new Map();
for (const c of report.classes) {
  if (c.class === "kv.cast") colours.set(c.class, "--alarm");
  else if (palette.length) colours.set(c.class, palette.shift());
}
const gaps = { "gap.host": "the host was in a phase, or had launched nothing more", "gap.launch": "what came next was not launched yet", "gap.wait": "the same, and the host was in a call that waits for the device", "gap.queue": "what came next was launched, and not begun", "gap.dependency": "the same, and work of another stream ended first", "gap.peers": "done, other ranks were not", "gap.profiler": "a profiler held the host up", "other steps": "work of other steps ran, or of none", overlap: "several classes at once", unexplained: "no known reason" };
// Idle time is grey, and told apart by its pattern.
const hatch = (angle) => `repeating-linear-gradient(${angle}deg, var(--gap) 0 3px, var(--gap2) 3px 5px)`;
const patterns = { "gap.host": "var(--gap)", "gap.launch": hatch(45), "gap.peers": hatch(-45), "gap.profiler": hatch(90), "gap.wait": hatch(20), "gap.queue": hatch(-20), "gap.dependency": hatch(70), "other steps": hatch(-70), overlap: hatch(0) };
const variable = (name) => (name in gaps ? (name === "overlap" || name === "unexplained" || name === "other steps" ? "--gap2" : "--gap") : colours.get(name) || "--rest");
const colour = (name) => patterns[name] || "var(" + variable(name) + ")";

// shortName leaves out what tells least from a kernel's long name.
function shortName(name) {
  let s = name.replace(/^void |\(anonymous namespace\)::|<unnamed>::|at::native::|c10::|std::/g, "");
  if (s.endsWith(")")) {
    let depth = 0;
    for (let i = s.length - 1; i > 0; i--) {
      if (s[i] === ")") depth++;
      else if (s[i] === "(" && --depth === 0) { s = s.slice(0, i); break; }
    }
  }
  return s;
}

// A tip follows the pointer.
const tip = byId("tip");
function showTip(event, title, facts) {
  tip.replaceChildren(make("b", {}, title));
  const list = make("dl");
  for (const [k, v] of facts) if (v !== "" && v !== null && v !== undefined) list.append(make("dt", {}, k), make("dd", {}, String(v)));
  tip.append(list);
  tip.hidden = false;
  const w = tip.offsetWidth, h = tip.offsetHeight, x = event.clientX, y = event.clientY;
  tip.style.left = Math.max(8, Math.min(x + 14, innerWidth - w - 8)) + "px";
  tip.style.top = (y + h + 24 < innerHeight ? y + 16 : Math.max(8, y - h - 12)) + "px";
}
const hideTip = () => { tip.hidden = true; };
function tipOn(e, title, facts) {
  e.addEventListener("pointermove", (event) => showTip(event, title, facts));
  e.addEventListener("pointerleave", hideTip);
}

// What is shown is of one kind of step; parts redraw when another is chosen.
const parts = [];
let kind = report.kinds.reduce((a, b) => (b.wall_ns > a.wall_ns ? b : a));
function choose(k) {
  kind = k;
  for (const part of parts) part();
}
const perStep = (sum) => sum / Math.max(1, kind.rank_steps);
