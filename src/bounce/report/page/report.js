// The report of a study: plain SVG and canvas. Every text is set as text, never as markup.
"use strict";
(() => {
const AXES = 12, LINES = 2000, TABLE = 10, CLASSES = 8, LETTER = 7; // LETTER: pixels of a label's letter
const $ = id => document.getElementById(id);
const reduced = () => matchMedia("(max-width: 600px)").matches;
const printing = () => document.documentElement.classList.contains("printing");
let D, T, P, n, sign, view = {chosen: null, brushes: new Map(), hover: -1}, mask, rank, redraws = [], inks;

// Elements

function make(tag, given = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(given)) {
    if (name === "on") for (const [kind, f] of Object.entries(value)) element.addEventListener(kind, f);
    else if (value !== null && value !== false) element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.filter(child => child !== null && child !== undefined).map(c => typeof c === "number" ? String(c) : c));
  return element;
}
function draw(tag, given = {}, text) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(given)) element.setAttribute(name, value);
  if (text !== undefined) element.textContent = text;
  return element;
}
function table(heads, rows, numbers = []) {
  const at = i => numbers.includes(i) ? {class: "number"} : {};
  return make("div", {class: "wide"}, make("table", {},
    make("thead", {}, make("tr", {}, ...heads.map((head, i) => make("th", {scope: "col", ...at(i)}, head)))),
    make("tbody", {}, ...rows.map(row => make("tr", {}, ...row.map((cell, i) => make("td", at(i), cell === null ? "" : cell)))))));
}

// Numbers and text

const short = (text, most = 60) => text.length > most ? text.slice(0, most - 1) + "…" : text;
// A long name with its end, where names often differ.
const both = (text, most) => text.length > most ? text.slice(0, Math.ceil(most / 2) - 1) + "…" + text.slice(-Math.floor(most / 2)) : text;
function shown(x, digits = 6) {
  if (x === null || x === undefined || Number.isNaN(x)) return "";
  if (!Number.isFinite(x)) return String(x);
  return String(Number(x.toPrecision(digits)));
}
// Significant digits of numbers up to some size that differ by a step, 15 at most.
const digitsOf = (size, step, least) => size && step ? Math.max(least, Math.min(15, Math.floor(Math.log10(size)) - Math.floor(Math.log10(step) + 1e-9) + 1)) : least;
// The labels of an axis: with a power of ten where that is not longer, and with the digits that tell them apart.
function labels(xs, least = 4) {
  const size = Math.max(...xs.map(Math.abs)), step = Math.min(...xs.slice(1).map((x, i) => x - xs[i]));
  const digits = digitsOf(size, xs.length > 1 ? step : 0, least);
  const power = x => Number(x.toPrecision(digits)).toExponential().replace("e+", "e"), plain = x => shown(x, digits);
  const large = xs.filter(x => Math.abs(x) >= 1e5), powers = large.every(x => power(x).length <= plain(x).length);
  return xs.map(x => x && (Math.abs(x) < 1e-3 || (powers && Math.abs(x) >= 1e5)) ? power(x) : plain(x));
}
const percent = x => (x >= 0.095 || x <= 0.0005 ? Math.round(100 * x) : (100 * x).toFixed(1)) + " %";
function seconds(x) {
  if (x === null || x === undefined || Number.isNaN(x)) return "unknown";
  return x < 1 ? shown(1000 * x, 3) + " ms" : x < 120 ? shown(x, 3) + " s" : x < 7200 ? shown(x / 60, 3) + " min" : shown(x / 3600, 3) + " h";
}
function unpack(column) {
  const text = atob(column.data), bytes = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++) bytes[i] = text.charCodeAt(i);  // ten times faster than Uint8Array.from
  const kinds = {u1: Uint8Array, u2: Uint16Array, u4: Uint32Array, f4: Float32Array, f8: Float64Array};
  return new kinds[column.kind](bytes.buffer);
}
function ticks(low, high, count = 4) {
  if (!(high > low)) return [low];
  const rough = (high - low) / count, power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map(k => k * power).find(s => s >= rough);
  const first = Math.ceil(low / step - 1e-9), found = Math.floor(high / step + 1e-9) - first + 1;
  return Array.from({length: Math.max(0, found)}, (_, k) => (first + k) * step);
}
function logTicks(low, high) {
  const found = [];
  const skip = Math.max(1, Math.round((Math.log10(high) - Math.log10(low)) / 4));
  for (let e = Math.ceil(Math.log10(low) - 1e-9); e <= Math.log10(high) + 1e-9; e += skip) found.push(10 ** e);
  return found.length > 1 ? found : ticks(low, high);
}

// Scales: where a value of a parameter lies, from 0 to 1

function place(p, x) {
  if (p.choices) return x === 65535 ? NaN : (x + 0.5) / Math.max(1, p.choices.length);
  if (p.log) return (Math.log(x) - Math.log(p.low)) / (Math.log(p.high) - Math.log(p.low));
  return (x - p.low) / (p.high - p.low);
}
function valueAt(p, u) {
  if (p.choices) return p.choices[Math.min(p.choices.length - 1, Math.max(0, Math.floor(u * p.choices.length)))];
  const x = p.log ? Math.exp(Math.log(p.low) * (1 - u) + Math.log(p.high) * u) : p.low + (p.high - p.low) * u;
  return p.whole ? Math.round(x) : x;
}
const textOf = (p, x) => p.choices ? (x === 65535 ? "" : p.choices[x]) : exact(x, p.low, p.high);
// A number with the digits that tell a hundred-thousandth of a range; whole numbers have all of theirs.
const exact = (x, low, high, least = 6) => shown(x, Number.isInteger(x) ? 15 : digitsOf(Math.max(Math.abs(low), Math.abs(high)), (high - low) / 1e5, least));
const valueText = x => exact(x, D.range.low, D.range.high, 8);
// Places and texts of choices, in the letters that fit. If they look alike then, without what all begin with; if they
// still do, or if there are many, some are left out.
function listed(texts, most, fits) {
  const same = prefix(texts), n = texts.length;
  for (let step = Math.ceil(n / most); ; step *= 2) {
    const room = Math.max(3, Math.min(12, fits(step)));
    for (const cut of same > 3 ? [0, same] : [0]) {
      const brief = text => both(cut && text.length > room ? "…" + text.slice(cut) : text, room);
      const found = texts.map((text, i) => [(i + 0.5) / n, brief(text)]).filter((_, i) => i % step === 0);
      if (step >= n || new Set(found.map(([, text]) => text)).size === found.length) return found;
    }
  }
}
function prefix(texts) {
  const least = Math.min(...texts.map(text => text.length));
  let same = 0;
  while (same < least - 1 && texts.every(text => text[same] === texts[0][same])) same++;
  return same;
}
const across = (width, n) => step => Math.floor((width * step / n - 4) / LETTER);
function marks(p, most = 6, fits = () => 12) {
  if (p.choices) return listed(p.choices, most, fits);
  return scaled(p.log ? logTicks(p.low, p.high) : ticks(p.low, p.high), x => place(p, x));
}
// Pixels for the labels beside an axis.
const room = (found, least = 52) => Math.max(least, 10 + LETTER * Math.max(0, ...found.map(([, text]) => text.length)));

// Data

function read(content) {
  D = content;
  T = {};
  for (const [name, column] of Object.entries(D.trials.columns)) T[name] = unpack(column);
  n = T.id.length;
  sign = D.direction === "maximize" ? -1 : 1;
  P = [...D.parameters, ...D.outcomes].filter(p => p.values);
  for (const p of P) {
    p.x = unpack(p.values);
    p.u = new Float32Array(p.x.length);
    for (let i = 0; i < p.x.length; i++) p.u[i] = place(p, p.x[i]);
  }
  const order = [...T.value.keys()].filter(i => !Number.isNaN(T.value[i])).sort((a, b) => sign * (T.value[a] - T.value[b]));
  rank = new Float32Array(n).fill(NaN);
  order.forEach((i, at) => { rank[i] = order.length > 1 ? at / (order.length - 1) : 0; });
  D.order = order;
  D.range = valueRange(order);
  const names = new Set(P.map(p => p.name));
  if (view.chosen) view.chosen = view.chosen.filter(name => names.has(name));
  if (!view.chosen || !view.chosen.length) {
    const most = reduced() ? 6 : AXES, outcomes = D.outcomes.slice(0, most / 3);
    view.chosen = [...P.filter(p => p.type !== "outcome").slice(0, most - outcomes.length), ...outcomes].map(p => p.name);
  }
  for (const name of view.brushes.keys()) if (name !== null && !names.has(name)) view.brushes.delete(name);
  view.hover = -1;
  remask();
}
function valueRange(order) {
  if (!order.length) return {low: 0, high: 1, cut: false, none: true};
  const at = q => T.value[order[Math.min(order.length - 1, Math.floor(q * order.length))]];
  let best = at(0), worst = T.value[order[order.length - 1]];
  const far = best + 1.6 * (at(0.9) - best);
  const cut = sign * (worst - far) > 0 && far !== best;
  if (cut) worst = far;
  if (best === worst) { best -= sign * 0.5; worst += sign * 0.5; }
  const room = 0.04 * (worst - best);
  return {low: Math.min(best - room, worst + room), high: Math.max(best - room, worst + room), cut};
}
const chosen = () => view.chosen.map(name => P.find(p => p.name === name)).filter(Boolean);
function valuePlace(i) {
  const v = T.value[i];
  return Number.isNaN(v) ? NaN : Math.min(1, Math.max(0, (v - D.range.low) / (D.range.high - D.range.low)));
}
function remask() {
  mask = new Uint8Array(n).fill(1);
  for (const [name, [low, high]] of view.brushes) {
    const p = name === null ? null : P.find(each => each.name === name);
    for (let i = 0; i < n; i++) {
      const u = p ? p.u[i] : valuePlace(i);
      if (!(u >= low && u <= high)) mask[i] = 0;
    }
  }
}

// Colours

function colours() {
  const style = getComputedStyle(document.documentElement);
  inks = Object.fromEntries(["ground", "panel", "line", "ink", "soft", "grid", "blue", "orange", "green", "dot", "low", "high"]
    .map(name => [name, style.getPropertyValue("--" + name).trim()]));
  inks.dark = !printing() && matchMedia("(prefers-color-scheme: dark)").matches;
}
const hex = c => [1, 3, 5].map(i => parseInt(c.slice(i, i + 2), 16));
function blend(from, to, t) {
  const a = hex(from), b = hex(to);
  return "rgb(" + a.map((x, i) => Math.round(x + (b[i] - x) * t)).join(",") + ")";
}
// The best are strong, the worst pale: lightness alone carries the order.
const ramp = q => inks.dark ? blend("#ffe7a8", "#3a4a78", Math.sqrt(q)) : blend("#12306b", "#e0c890", Math.sqrt(q));

// A picture: a canvas for many points below an SVG for axes and what is pointed at

function picture(parent, {height, left = 52, right = 12, top = 10, bottom = 24, label, paint, tabindex = "0"}) {
  const canvas = make("canvas"), svg = draw("svg", {"aria-hidden": "true"});
  const box = make("div", {class: "plot", role: "img", "aria-label": label, tabindex}, canvas, svg);
  box.style.height = height + "px";
  parent.append(box);
  const self = {box, canvas, svg, left, right, top, bottom, height};
  self.redraw = () => {
    const width = box.clientWidth;
    if (!width) return;
    const ratio = printing() ? 3 : Math.min(3, window.devicePixelRatio || 1);
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
    const ink = canvas.getContext("2d");
    ink.setTransform(ratio, 0, 0, ratio, 0, 0);
    svg.replaceChildren();
    svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
    Object.assign(self, {width, ink, w: width - left - right, h: height - top - bottom});
    self.X = u => left + u * self.w;
    self.Y = u => top + (1 - u) * self.h;
    paint(self);
  };
  redraws.push(self);
  seen.observe(box);
  return self;
}
// A picture is drawn when it first comes near the screen, and again when its size changes.
const seen = new IntersectionObserver(entries => {
  for (const entry of entries) if (entry.isIntersecting) {
    const self = redraws.find(each => each.box === entry.target);
    if (self && !self.drawn) { self.drawn = true; self.redraw(); }
  }
}, {rootMargin: "300px"});
let waiting = false;
function again() {
  if (waiting) return;
  waiting = true;
  requestAnimationFrame(() => { waiting = false; for (const each of redraws) if (each.drawn) each.redraw(); });
}
function axes(self, xs, ys) {
  for (const [u, text] of ys) {
    self.ink.fillStyle = inks.grid;
    self.ink.fillRect(self.left, Math.round(self.Y(u)), self.w, 1);
    self.svg.append(draw("text", {x: self.left - 6, y: self.Y(u) + 4, "text-anchor": "end"}, text));
  }
  below(self, xs);
  self.svg.append(draw("path", {class: "axis", d: `M${self.left},${self.top}v${self.h}h${self.w}`}));
}
// Labels below a picture; one that would meet the label before it is left out.
function below(self, xs) {
  let free = -Infinity;
  xs.forEach(([u, text], i) => {
    const anchor = u > 0.97 ? "end" : u < 0.03 && i === 0 ? "start" : "middle", wide = LETTER * text.length;
    const start = self.X(u) - {end: wide, start: 0, middle: wide / 2}[anchor];
    if (start < free) return;
    free = start + wide + 3;
    self.svg.append(draw("text", {x: self.X(u), y: self.top + self.h + 16, "text-anchor": anchor}, text));
  });
}
function scaled(xs, place, least) {
  const texts = labels(xs, least);
  return xs.map((x, i) => [place(x), texts[i]]);
}
const valueMarks = () => D.range.none ? [] : scaled(ticks(D.range.low, D.range.high), x => (x - D.range.low) / (D.range.high - D.range.low));
function point(ink, x, y, kind, size = 2.4) {
  ink.beginPath();
  if (kind === "failed") { ink.moveTo(x - 3, y - 3); ink.lineTo(x + 3, y + 3); ink.moveTo(x + 3, y - 3); ink.lineTo(x - 3, y + 3); ink.stroke(); }
  else if (kind === "infeasible") ink.strokeRect(x - 2.5, y - 2.5, 5, 5);
  else if (kind === "beyond") { const s = sign > 0 ? 1 : -1; ink.moveTo(x, y - 4 * s); ink.lineTo(x + 4, y + 3 * s); ink.lineTo(x - 4, y + 3 * s); ink.closePath(); ink.fill(); }
  else { ink.arc(x, y, size, 0, 7); ink.fill(); }
}
const state = i => D.states[T.state[i]];
const kindOf = i => state(i) === "failed" ? "failed" : T.infeasible && T.infeasible[i] ? "infeasible"
  : sign * (T.value[i] - (sign > 0 ? D.range.high : D.range.low)) > 0 ? "beyond" : "value";
function ring(self, x, y) {
  self.svg.append(draw("circle", {cx: x, cy: y, r: 6, fill: "none", stroke: inks.ink, "stroke-width": 2, class: "hovered"}));
}

// What is pointed at

function tell(i, x, y) {
  const tip = $("tip");
  if (i < 0) { tip.hidden = true; return; }
  const value = Number.isNaN(T.value[i]) ? state(i) : valueText(T.value[i]) + (T.sem && T.sem[i] > 0 ? " ± " + shown(T.sem[i], 3) : "");
  tip.replaceChildren(make("b", {}, `Trial ${T.id[i]}: ${value}`));
  if (kindOf(i) === "infeasible") tip.append(make("div", {}, "infeasible"));
  const error = D.trials.error_of[T.id[i]], note = D.trials.notes[T.id[i]];
  if (error !== undefined) tip.append(make("div", {}, D.trials.errors[error]));
  for (const p of chosen().slice(0, 12)) tip.append(make("div", {}, `${both(p.name, 40)} = ${short(textOf(p, p.x[i]), 60)}`));
  if (P.length > 12) tip.append(make("div", {class: "soft"}, `and ${P.length - Math.min(12, chosen().length)} more parameters`));
  if (note) tip.append(make("div", {}, note));
  tip.hidden = false;
  const width = tip.offsetWidth, height = tip.offsetHeight;
  tip.style.left = Math.max(4, x + 16 + width > innerWidth ? x - 16 - width : x + 16) + "px";
  tip.style.top = Math.max(4, Math.min(innerHeight - height - 4, y + 12)) + "px";
}
function hover(i, x, y) {
  if (i !== view.hover) { view.hover = i; again(); }
  tell(i, x, y);
}
function pointing(self, nearest) {
  self.box.addEventListener("pointermove", event => {
    if (self.dragging) return;
    const at = self.box.getBoundingClientRect();
    hover(nearest(event.clientX - at.left, event.clientY - at.top), event.clientX, event.clientY);
  });
  self.box.addEventListener("pointerleave", () => hover(-1));
  self.box.addEventListener("blur", () => hover(-1));
  self.box.addEventListener("keydown", event => {
    const step = {ArrowRight: 1, ArrowLeft: -1, PageDown: 25, PageUp: -25}[event.key];
    if (event.key === "Escape") { hover(-1); return; }
    if (step === undefined && event.key !== "Home" && event.key !== "End") return;
    event.preventDefault();
    const last = n - 1, now = view.hover < 0 ? (step > 0 ? -1 : n) : view.hover;
    const to = event.key === "Home" ? 0 : event.key === "End" ? last : Math.max(0, Math.min(last, now + step));
    const box = self.box.getBoundingClientRect();
    hover(to, box.left + box.width / 2, Math.max(0, box.top));
  });
}
function closest(self, x, y, where, most = 26) {
  let found = -1, least = most * most;
  for (let i = 0; i < n; i++) {
    const at = where(i);
    if (!at) continue;
    const far = (at[0] - x) ** 2 + (at[1] - y) ** 2;
    if (far < least) { least = far; found = i; }
  }
  return found;
}

// Brushes: a range of a parameter (or of the value, whose name is null)

function brush(name, range) {
  if (range === null) view.brushes.delete(name);
  else view.brushes.set(name, [Math.max(0, Math.min(...range)), Math.min(1, Math.max(...range))]);
  remask();
  selection();
  again();
}
function dragging(self, start, at, name) {
  self.box.addEventListener("pointerdown", event => {
    if (event.button) return;
    const box = self.box.getBoundingClientRect(), x = event.clientX - box.left, y = event.clientY - box.top;
    const of = name(x, y);
    if (of === undefined) return;
    const from = at(x, y);
    self.dragging = true;
    let moved = false;
    const key = of === null ? null : of.name;
    const move = e => {
      const to = at(e.clientX - box.left, e.clientY - (self.box.getBoundingClientRect().top));
      if (Math.abs(to - from) * self.h > 4) { moved = true; hover(-1); brush(key, [from, to]); }
    };
    const end = () => {
      self.dragging = false;
      window.removeEventListener("pointermove", move);
      window.removeEventListener("pointerup", end);
      window.removeEventListener("pointercancel", end);
      if (!moved && view.brushes.has(key)) brush(key, null);
    };
    window.addEventListener("pointermove", move);
    window.addEventListener("pointerup", end);
    window.addEventListener("pointercancel", end);
  });
}
function keys(event, name) {
  const step = {ArrowUp: 0.05, ArrowDown: -0.05}[event.key], now = view.brushes.get(name);
  if (event.key === "Enter" || event.key === " ") brush(name, now ? null : [0.5, 1]);
  else if (event.key === "Escape" && now) brush(name, null);
  else if (step && now) brush(name, event.shiftKey ? [now[0], Math.max(now[0] + 0.02, now[1] + step)] : [now[0] + step, now[1] + step]);
  else return;
  event.preventDefault();
  event.stopPropagation();
}

// Sections

function section(id, title, intro) {
  const found = make("section", {id}, make("h2", {}, title), intro ? make("p", {class: "soft"}, intro) : null);
  $("main").append(found);
  $("contents").append(make("a", {href: "#" + id}, title));
  return found;
}
function key(kind, colour, text) {
  const svg = draw("svg", {viewBox: "0 0 16 12", "aria-hidden": "true"});
  if (kind === "line") svg.append(draw("path", {d: "M0,9h8v-6h8", stroke: colour, fill: "none", "stroke-width": 2}));
  else if (kind === "failed") svg.append(draw("path", {d: "M5,3l6,6m0,-6l-6,6", stroke: colour, "stroke-width": 1.5}));
  else if (kind === "infeasible") svg.append(draw("rect", {x: 5, y: 3, width: 6, height: 6, stroke: colour, fill: "none"}));
  else if (kind === "beyond") svg.append(draw("path", {d: sign > 0 ? "M8,2l4,7h-8z" : "M8,10l4,-7h-8z", fill: colour}));
  else svg.append(draw("circle", {cx: 8, cy: 6, r: 3, fill: colour}));
  return make("span", {class: "key"}, svg, text);
}

function facts() {
  const s = D.status, list = make("ul", {class: "facts"});
  const add = (value, label) => list.append(make("li", {}, make("b", {}, value), make("span", {}, label)));
  add(D.best ? valueText(Number(D.best.value)) : "none yet", `best value (${D.direction})`);
  add(`${s.done} of ${s.planned}`, "done");
  if (s.failed) add(s.failed, "failed");
  if (s.pending) add(s.pending, "pending");
  if (s.added) add(s.added, "added");
  add(s.remaining, "left to ask");
  add(s.parameters, s.parameters === 1 ? "parameter" : "parameters");
  if (s.seconds_eval !== null) add(seconds(s.seconds_eval), "per evaluation");
  $("main").append(list);
  if (s.runner) $("main").append(make("p", {class: "soft"}, `Being run by ${s.runner}.`));
  if (D.left_out) $("main").append(make("p", {class: "warning"}, `${D.left_out} older trials are counted but not shown.`));
}

function progress() {
  const here = section("progress", "Progress");
  const first = n ? T.id[0] : 0, last = n ? T.id[n - 1] : 1;
  const u = i => last > first ? (T.id[i] - first) / (last - first) : 0.5;
  const edge = sign > 0 ? 1 : 0;
  const self = picture(here, {height: 300, left: room(valueMarks()), label: `Values of ${n} trials and the best so far. Arrow keys move from trial to trial.`, paint});
  const where = i => Number.isNaN(T.value[i]) ? (state(i) === "failed" ? [self.X(u(i)), self.Y(edge)] : null) : [self.X(u(i)), self.Y(valuePlace(i))];
  function paint() {
    axes(self, ticks(first, last, 6).filter(x => x === Math.round(x)).map(x => [last > first ? (x - first) / (last - first) : 0.5, String(x)]), valueMarks());
    const ink = self.ink;
    if (T.sem) {
      ink.strokeStyle = inks.dot; ink.globalAlpha = 0.5; ink.beginPath();
      for (let i = 0; i < n; i++) if (T.sem[i] > 0 && where(i)) {
        const half = T.sem[i] / (D.range.high - D.range.low), y = valuePlace(i);
        ink.moveTo(self.X(u(i)), self.Y(Math.min(1, y + half))); ink.lineTo(self.X(u(i)), self.Y(Math.max(0, y - half)));
      }
      ink.stroke(); ink.globalAlpha = 1;
    }
    for (let i = 0; i < n; i++) {
      const at = where(i);
      if (!at) continue;
      const kind = kindOf(i);
      ink.globalAlpha = mask[i] ? 0.9 : 0.15;
      ink.fillStyle = ink.strokeStyle = kind === "failed" || kind === "infeasible" ? inks.orange : inks.dot;
      point(ink, at[0], at[1], kind, n > 2000 ? 1.6 : 2.4);
    }
    ink.globalAlpha = 1;
    let best = NaN, d = "";
    for (let i = 0; i < n; i++) {
      if (Number.isNaN(T.value[i]) || (T.infeasible && T.infeasible[i])) continue;
      if (Number.isNaN(best) || sign * (T.value[i] - best) < 0) {
        best = T.value[i];
        d += (d ? `H${self.X(u(i)).toFixed(1)}V` : `M${self.X(u(i)).toFixed(1)},`) + self.Y(valuePlace(i)).toFixed(1);
      }
    }
    if (d) self.svg.append(draw("path", {class: "mean", d: d + "H" + self.X(1).toFixed(1)}));
    if (view.hover >= 0) { const at = where(view.hover); if (at) ring(self, ...at); }
  }
  pointing(self, (x, y) => closest(self, x, y, where));
  const keysOf = D.best ? [key("value", inks.dot, "value")] : [];
  if (D.order.some(i => !(T.infeasible && T.infeasible[i]))) keysOf.unshift(key("line", inks.blue, "best so far"));
  if (D.status.failed) keysOf.push(key("failed", inks.orange, "failed"));
  if (T.infeasible) keysOf.push(key("infeasible", inks.orange, "infeasible"));
  if (D.range.cut) keysOf.push(key("beyond", inks.dot, sign > 0 ? "above the picture" : "below the picture"));
  here.append(make("div", {class: "row"}, ...keysOf));
}

function best() {
  const here = section("best", "Best configuration");
  if (!D.best) { here.append(make("p", {}, "No trial has a value yet.")); return; }
  here.append(make("p", {}, `Trial ${D.best.id}, value ${D.best.value}` + (D.best.sem ? ` ± ${D.best.sem}` : "") + "."));
  if (D.best.outcomes.length) here.append(table(["limit", "measured", ""], D.best.outcomes, [1]));
  if (D.best.command !== null) here.append(make("p", {class: "soft"}, "As a command:"), make("pre", {}, D.best.command));
  const rows = D.best.rows.map(([name, text]) => [name, text]);
  const whole = table(["parameter", "value"], rows);
  if (rows.length <= 24) here.append(whole);
  else here.append(make("details", {open: false}, make("summary", {}, `${rows.length} settings`), whole));
}

function bar(each) {
  const svg = draw("svg", {viewBox: "0 0 160 16", "aria-hidden": "true"}), [low, high] = each.total_interval;
  svg.append(draw("rect", {class: "bar-soft", x: 0, y: 3, width: 160 * each.total, height: 10}));
  svg.append(draw("rect", {class: "bar", x: 0, y: 3, width: 160 * Math.min(each.first, each.total), height: 10}));
  svg.append(draw("path", {class: "whisker", d: `M${160 * low},8H${160 * high}`}));
  svg.append(draw("circle", {class: "data", cx: 160 * each.data, cy: 8, r: 3}));
  return svg;
}
function alternatives(names, most = 4) {
  if (!names.length) return "";
  const more = names.length > most ? ` and ${names.length - most} more` : "";
  return `: not told apart from ${names.slice(0, most).map(name => both(name, 30)).join(", ")}${more}`;
}
function importance() {
  const I = D.importance;
  const here = section("importance", "What matters", I ? "Shares of the variance over the whole space, by a model of the results." : null);
  if (!I) { here.append(make("p", {}, "There are too few different values to say what matters: 8 are needed.")); return; }
  if (I.quality < 0.5) here.append(make("p", {class: "warning"}, "The model predicts little, so these shares are not to be relied on. More results help."));
  const row = each => [make("span", {title: each.name}, short(each.name)), bar(each), percent(each.total), `${percent(each.total_interval[0])} – ${percent(each.total_interval[1])}`, percent(each.first), percent(each.data),
    make("span", {class: "verdict-" + each.verdict}, each.verdict + alternatives(each.substitutes))];
  const heads = ["parameter", "", "total", "5 % – 95 %", "alone", "data", "verdict"];
  here.append(table(heads, I.parameters.slice(0, AXES).map(row), [2, 3, 4, 5]));
  if (I.parameters.length > AXES) {
    const rest = make("details", {}, make("summary", {}, `${I.parameters.length - AXES} more parameters`));
    rest.addEventListener("toggle", () => { if (rest.children.length === 1) rest.append(table(heads, I.parameters.slice(AXES).map(row), [2, 3, 4, 5])); });
    here.append(rest);
  }
  here.append(make("p", {class: "soft"}, "Dark bar: alone. Pale bar: also together with others. Line: from the 5 % to the 95 % quantile of the total. Orange dot: importance from the data alone. " +
    `The model was fitted to ${I.observations} results and predicts ${percent(Math.max(0, I.quality))} of their variance.`));
  const pairs = I.pairs.filter(pair => pair.share >= 0.005);
  if (pairs.length) here.append(make("h3", {}, "Strongest pairs: what two do only together"),
    table(["pair", "share"], pairs.slice(0, 6).map(pair => [pair.names.map(name => short(name, 40)).join(" × "), percent(pair.share)]), [1]));
}

function effects() {
  const I = D.importance;
  if (!I || !I.effects.length) return;
  const here = section("effects", "Effects", "What the model expects at each value, on average over all other parameters. Bands and lines: one standard deviation.");
  const grid = make("div", {class: "grid"});
  here.append(grid);
  const all = I.effects.slice(0, AXES).flatMap(e => e.mean.flatMap((m, i) => [m - e.deviation[i], m + e.deviation[i]]));
  const low = Math.min(...all), high = Math.max(...all), y = v => high > low ? (v - low) / (high - low) : 0.5;
  const byName = new Map(D.parameters.map(p => [p.name, p])), heights = scaled(ticks(low, high, 3), y, 3);
  for (const effect of I.effects.slice(0, AXES)) {
    const p = byName.get(effect.name) || {choices: effect.values}; // the order of two items has no column
    const cell = make("div", {}, make("h3", {}, short(effect.name)));
    grid.append(cell);
    picture(cell, {height: 150, left: room(heights), label: `Effect of ${effect.name}: from ${shown(Math.min(...effect.mean), 4)} to ${shown(Math.max(...effect.mean), 4)}`, tabindex: "-1", paint: self => {
      const many = effect.values.length;
      const at = i => p.choices ? (i + 0.5) / many : Math.min(1, Math.max(0, place(p, effect.values[i])));
      axes(self, p.choices ? listed(effect.values.map(String), 5, across(self.w, many)) : marks(p, 4), heights);
      const order = [...effect.values.keys()];
      if (p.choices && p.type !== "ordinal") {
        const wide = Math.min(30, 0.6 * self.w / many);
        for (const i of order) {
          const u = y(effect.mean[i]), top = Math.max(u, 0);
          self.svg.append(draw("rect", {class: "bar-soft", x: self.X(at(i)) - wide / 2, y: self.Y(top), width: wide, height: Math.max(1, self.Y(0) - self.Y(top))}));
          self.svg.append(draw("path", {class: "whisker", d: `M${self.X(at(i))},${self.Y(y(effect.mean[i] - effect.deviation[i]))}V${self.Y(y(effect.mean[i] + effect.deviation[i]))}`}));
        }
        return;
      }
      const line = f => order.map(i => `${self.X(at(i)).toFixed(1)},${self.Y(y(f(i))).toFixed(1)}`);
      const upper = line(i => effect.mean[i] + effect.deviation[i]), lower = line(i => effect.mean[i] - effect.deviation[i]).reverse();
      self.svg.append(draw("path", {class: "band", d: "M" + upper.concat(lower).join("L") + "Z"}));
      self.svg.append(draw("path", {class: "mean", d: "M" + line(i => effect.mean[i]).join("L")}));
    }});
  }
  const surfaces = I.surfaces.filter((_, i) => I.pairs[i] && I.pairs[i].share >= 0.005);
  if (!surfaces.length) return;
  here.append(make("h3", {}, "Pairs"));
  const pairs = make("div", {class: "grid"});
  here.append(pairs);
  for (const surface of surfaces) pairs.append(contours(surface, byName));
}
function contours(surface, byName) {
  const [px, py] = surface.names.map(name => byName.get(name));
  const cell = make("div", {}, make("h3", {}, surface.names.map(name => short(name, 30)).join(" × ")));
  const values = surface.mean.flat(), low = Math.min(...values), high = Math.max(...values);
  const at = (p, axis, i) => p && !p.choices ? Math.min(1, Math.max(0, place(p, axis[i]))) : (i + 0.5) / axis.length;
  const [xs, ys] = surface.values, up = py && !py.choices ? marks(py, 4) : listed(ys.map(String), 5, () => 10);
  picture(cell, {height: 220, left: room(up), label: `Joint effect of ${surface.names.join(" and ")}: from ${shown(low, 4)} to ${shown(high, 4)}`, tabindex: "-1", paint: self => {
    const us = xs.map((_, i) => at(px, xs, i)), vs = ys.map((_, j) => at(py, ys, j));
    const edge = (list, i) => i <= 0 ? 0 : i >= list.length ? 1 : (list[i - 1] + list[i]) / 2;
    const ink = self.ink;
    surface.mean.forEach((row, i) => row.forEach((mean, j) => {
      const q = high > low ? (mean - low) / (high - low) : 0, a = self.X(edge(us, i)), b = self.X(edge(us, i + 1));
      const c = self.Y(edge(vs, j + 1)), d = self.Y(edge(vs, j));
      ink.fillStyle = ramp(sign > 0 ? q : 1 - q);
      ink.fillRect(a, c, b - a + 0.6, d - c + 0.6);
    }));
    const numeric = px && py && !px.choices && !py.choices;
    if (numeric) for (let k = 1; k < 6; k++) {
      const level = low + (high - low) * k / 6;
      self.svg.append(draw("path", {class: "contour", d: isoline(surface.mean, us.map(self.X), vs.map(self.Y), level)}));
    }
    below(self, px && !px.choices ? marks(px, 4) : listed(xs.map(String), 5, across(self.w, xs.length)));
    for (const [u, text] of up) self.svg.append(draw("text", {x: self.left - 6, y: self.Y(u) + 4, "text-anchor": "end"}, text));
  }});
  cell.append(make("div", {class: "row"}, make("span", {}, `across: ${short(surface.names[0], 30)}; up: ${short(surface.names[1], 30)}; from ${shown(low, 4)} to ${shown(high, 4)}, the best is strongest`)));
  return cell;
}
function isoline(grid, xs, ys, level) {
  let d = "";
  for (let i = 0; i + 1 < xs.length; i++) for (let j = 0; j + 1 < ys.length; j++) {
    const corners = [[i, j], [i + 1, j], [i + 1, j + 1], [i, j + 1]], cuts = [];
    for (let k = 0; k < 4; k++) {
      const [a, b] = [corners[k], corners[(k + 1) % 4]], fa = grid[a[0]][a[1]], fb = grid[b[0]][b[1]];
      if (fa < level === fb < level) continue;
      const t = (level - fa) / (fb - fa);
      cuts.push([xs[a[0]] + t * (xs[b[0]] - xs[a[0]]), ys[a[1]] + t * (ys[b[1]] - ys[a[1]])]);
    }
    for (let k = 0; k + 1 < cuts.length; k += 2) d += `M${cuts[k].map(c => c.toFixed(1))}L${cuts[k + 1].map(c => c.toFixed(1))}`;
  }
  return d || "M0,0";
}

// Which parameters are shown

function choose(here, changed) {
  const details = make("details", {class: "select"}, make("summary", {}, `Choose parameters (${view.chosen.length} of ${P.length})`));
  details.addEventListener("toggle", () => {
    if (details.children.length > 1) return;
    const filter = make("input", {type: "search", placeholder: "filter by name", "aria-label": "filter by name"});
    const list = make("div", {class: "choose"});
    const fill = () => {
      const wanted = filter.value.toLowerCase();
      list.replaceChildren(...P.filter(p => p.name.toLowerCase().includes(wanted)).slice(0, 300).map(p => {
        const box = make("input", {type: "checkbox", checked: view.chosen.includes(p.name)});
        box.addEventListener("change", () => {
          view.chosen = P.map(each => each.name).filter(name => name === p.name ? box.checked : view.chosen.includes(name));
          details.firstChild.textContent = `Choose parameters (${view.chosen.length} of ${P.length})`;
          if (!box.checked) view.brushes.delete(p.name);
          remask(); changed(); selection();
        });
        return make("label", {}, box, " " + short(p.name));
      }));
    };
    filter.addEventListener("input", fill);
    fill();
    details.append(make("div", {class: "row"}, filter), list);
  });
  here.append(details);
}

let changed = () => {};
function parallel() {
  const here = section("trials", "All trials", `Each line is a trial; strong lines are good ones. ${D.outcomes.length ? "Dashes: limits of an outcome. " : ""}Drag along an axis to select a range, click it to clear. With the keyboard: Tab to an axis, Enter, then the arrow keys (with Shift, only the upper end).`);
  choose(here, () => changed());
  const holder = make("div"), slices = make("div", {class: "grid"});
  here.append(holder, make("div", {class: "row", id: "selection", role: "status"}), make("div", {id: "chosen"}), make("h3", {}, "Value against each parameter"), slices);
  changed = () => {
    redraws = redraws.filter(each => !holder.contains(each.box) && !slices.contains(each.box));
    holder.replaceChildren();
    slices.replaceChildren();
    coordinates(holder);
    for (const p of chosen()) slice(slices, p);
  };
  changed();
}
function drawn() {
  // Of many trials, the best and an even choice of the others.
  if (D.order.length <= LINES) return D.order;
  const best = D.order.slice(0, 200), step = (D.order.length - 200) / (LINES - 200);
  for (let k = 0; k < LINES - 200; k++) best.push(D.order[200 + Math.floor(k * step)]);
  return best;
}
function coordinates(holder) {
  const shownAxes = [...chosen(), null], lines = drawn();
  const many = shownAxes.length, tall = 320;
  const scroll = make("div", {class: "wide"}), inner = make("div");
  inner.style.minWidth = Math.min(2400, many * 84) + "px";
  scroll.append(inner);
  holder.append(scroll);
  const self = picture(inner, {height: tall, left: 40, right: room(valueMarks(), 50), top: 34, bottom: 16, label: `Parallel coordinates of ${lines.length} trials`, paint});
  const X = k => self.left + (many > 1 ? k / (many - 1) : 0.5) * self.w;
  const U = (k, i) => shownAxes[k] ? shownAxes[k].u[i] : valuePlace(i);
  function path(i) {
    let started = false;
    for (let k = 0; k < many; k++) {
      const u = U(k, i);
      if (Number.isNaN(u)) { started = false; continue; }
      if (started) self.ink.lineTo(X(k), self.Y(u)); else self.ink.moveTo(X(k), self.Y(u));
      started = true;
    }
  }
  function paint() {
    const ink = self.ink, some = view.brushes.size > 0;
    ink.lineWidth = 1;
    if (some) {
      ink.globalAlpha = 0.25; ink.strokeStyle = inks.line; ink.beginPath();
      for (const i of lines) if (!mask[i]) path(i);
      ink.stroke();
    }
    const classes = Array.from({length: CLASSES}, () => []);
    for (const i of lines) if (mask[i]) classes[Math.min(CLASSES - 1, Math.floor(rank[i] * CLASSES))].push(i);
    for (let c = CLASSES - 1; c >= 0; c--) {
      ink.globalAlpha = lines.length > 500 ? (c === 0 ? 0.5 : 0.3) : c === 0 ? 0.8 : 0.6;
      ink.strokeStyle = ramp((c + 0.5) / CLASSES);
      ink.beginPath();
      for (const i of classes[c]) path(i);
      ink.stroke();
    }
    ink.globalAlpha = 1;
    if (view.hover >= 0) { ink.strokeStyle = inks.orange; ink.lineWidth = 3; ink.beginPath(); path(view.hover); ink.stroke(); }
    shownAxes.forEach((p, k) => axis(p, k));
  }
  function axis(p, k) {
    const name = p ? p.name : "value", x = X(k), range = view.brushes.get(p ? p.name : null);
    const g = draw("g", {class: "handle"});
    g.append(draw("line", {class: "axis", x1: x, x2: x, y1: self.top, y2: self.top + self.h}));
    g.append(draw("text", {class: "name", x, y: k % 2 ? 10 : 24, "text-anchor": k === 0 ? "start" : k === many - 1 ? "end" : "middle"}, both(name, 14)));
    for (const [u, text] of p ? marks(p, 5, () => Math.floor((self.w / Math.max(1, many - 1) - 6) / LETTER)) : valueMarks()) g.append(draw("text", {x: x + 3, y: self.Y(u) + 4, "paint-order": "stroke", stroke: inks.ground, "stroke-width": 3}, text));
    for (const limit of p && p.limits || []) g.append(draw("path", {class: "limit", d: `M${x - 9},${self.Y(place(p, limit))}h18`}));
    if (range) g.append(draw("rect", {class: "brush", x: x - 7, width: 14, y: self.Y(range[1]), height: Math.max(2, self.Y(range[0]) - self.Y(range[1]))}));
    self.svg.append(g);
  }
  const nearestAxis = x => Math.max(0, Math.min(many - 1, Math.round((x - self.left) / (self.w / Math.max(1, many - 1)))));
  dragging(self, null, (x, y) => 1 - (y - self.top) / self.h, x => Math.abs(X(nearestAxis(x)) - x) < 16 ? shownAxes[nearestAxis(x)] : undefined);
  pointing(self, (x, y) => {
    const k = Math.max(0, Math.min(many - 2, Math.floor((x - self.left) / (self.w / Math.max(1, many - 1))))), t = (x - X(k)) / Math.max(1, X(k + 1) - X(k));
    let found = -1, least = 8;
    for (const i of lines) {
      if (!mask[i]) continue;
      const far = Math.abs(self.Y(U(k, i) * (1 - t) + U(Math.min(many - 1, k + 1), i) * t) - y);
      if (far < least) { least = far; found = i; }
    }
    return found;
  });
  // For the keyboard: one button for each axis.
  holder.append(make("div", {class: "row screen"}, ...shownAxes.map(p => {
    const name = p ? p.name : null;
    return make("button", {type: "button", "aria-label": `Select a range of ${name === null ? "value" : name}`, on: {keydown: event => keys(event, name), click: event => { if (event.detail) brush(name, view.brushes.has(name) ? null : [0.5, 1]); }}}, both(name === null ? "value" : name, 18));
  }), make("button", {type: "button", on: {click: () => { view.brushes.clear(); remask(); selection(); again(); }}}, "Clear all")));
}
function slice(grid, p) {
  const cell = make("div", {}, make("h3", {}, short(p.name)));
  grid.append(cell);
  const self = picture(cell, {height: 170, left: room(valueMarks()), label: `Value against ${p.name}. Arrow keys move from trial to trial.`, paint});
  const where = i => Number.isNaN(T.value[i]) || Number.isNaN(p.u[i]) ? null : [self.X(p.u[i] + (p.choices ? spread(i) / p.choices.length : 0)), self.Y(valuePlace(i))];
  function paint() {
    axes(self, marks(p, 4, across(self.w, p.choices ? p.choices.length : 1)), valueMarks());
    const range = view.brushes.get(p.name);
    for (const x of p.limits || []) self.svg.append(draw("path", {class: "limit", d: `M${self.X(place(p, x))},${self.top}v${self.h}`}));
    if (range) self.svg.append(draw("rect", {class: "brush", x: self.X(range[0]), width: self.X(range[1]) - self.X(range[0]), y: self.top, height: self.h}));
    const ink = self.ink, size = n > 1000 ? 1.5 : 2.2;
    for (const pass of [0, 1]) for (let i = 0; i < n; i++) {
      const at = where(i);
      if (!at || mask[i] !== pass) continue;
      ink.globalAlpha = pass ? 0.85 : 0.12;
      ink.fillStyle = ink.strokeStyle = kindOf(i) === "infeasible" ? inks.orange : pass ? ramp(Math.min(0.8, rank[i])) : inks.dot;
      point(ink, at[0], at[1], kindOf(i), size);
    }
    ink.globalAlpha = 1;
    if (view.hover >= 0) { const at = where(view.hover); if (at) ring(self, ...at); }
  }
  dragging(self, null, x => (x - self.left) / self.w, () => p);
  pointing(self, (x, y) => closest(self, x, y, where, 18));
}
const spread = i => ((T.id[i] * 0.618034) % 1 - 0.5) * 0.6;

function selection() {
  const line = $("selection"), holder = $("chosen");
  if (!line) return;
  if (!view.brushes.size) { line.textContent = "Nothing is selected: all trials are shown."; holder.replaceChildren(); return; }
  const found = D.order.filter(i => mask[i]);
  const said = [...view.brushes].map(([name, [low, high]]) => {
    const p = name === null ? null : P.find(each => each.name === name);
    const ends = p ? [valueAt(p, low), valueAt(p, high)] : [low, high].map(u => D.range.low + u * (D.range.high - D.range.low));
    return `${short(name === null ? "value" : name, 30)} from ${ends.map(x => typeof x === "number" ? (p ? exact(x, p.low, p.high, 4) : exact(x, D.range.low, D.range.high, 4)) : short(x, 20)).join(" to ")}`;
  });
  line.textContent = `${found.length} of ${D.order.length} trials selected: ${said.join(", ")}`;
  const columns = chosen().slice(0, 8);
  holder.replaceChildren(table(["trial", "value", ...columns.map(p => short(p.name, 20))],
    found.slice(0, TABLE).map(i => [String(T.id[i]), valueText(T.value[i]), ...columns.map(p => short(textOf(p, p.x[i]), 24))]), [0, 1]));
}

function search() {
  const here = section("search", "The search", "A stage looks at a space of bins, each a group of variables that move together. Bins are split from stage to stage.");
  const groups = new Map();
  for (let i = 0; i < n; i++) {
    if (["added", "queued"].includes(state(i))) continue;
    const name = `${T.restart[i]}/${T.stage[i]}`, g = groups.get(name) || {stage: T.stage[i], restart: T.restart[i], bins: T.bins[i], count: 0, failed: 0, best: NaN};
    g.count++; g.bins = T.bins[i];
    if (state(i) === "failed") g.failed++;
    if (!Number.isNaN(T.value[i]) && !(sign * (T.value[i] - g.best) >= 0)) g.best = T.value[i];
    groups.set(name, g);
  }
  const heads = ["stage", "bins", "trials", "failed", "best value"], restarts = [...groups.values()].some(g => g.restart);
  if (groups.size) here.append(table(restarts ? ["restart", ...heads] : heads, [...groups.values()].map(g => [...(restarts ? [g.restart] : []), g.stage, g.bins, g.count, g.failed || "", valueText(g.best)]), [0, 1, 2, 3, 4, 5]));
  const s = D.status, region = [];
  if (s.radius) region.push(`up to ${shown(s.radius, 3)} combinatorial bins may change`);
  if (s.side) region.push(`reals within ${shown(s.side, 3)} of their range`);
  here.append(make("p", {}, `Now: ${s.target_dim} bins for ${s.dimensions} variables; trust region: ${region.join(", ") || "the whole space"}.`));
  const grid = make("div", {class: "grid"});
  here.append(grid);
  chart(grid, "Bins", [["bins", T.bins, "blue"]]);
  if (T.radius.some(x => x > 0)) chart(grid, "Trust region: combinatorial bins that may change", [["radius", T.radius, "blue"]]);
  if (T.side.some(x => x > 0)) chart(grid, "Trust region: share of the range of reals", [["side", T.side, "blue"]]);
  chart(grid, "Seconds of each ask and evaluation", [["ask", T.ask, "blue"], ["evaluation", T.eval, "orange"]], true);
  const bins = D.importance ? D.importance.bins : [];
  if (bins.length) {
    const leaf = (b, tag = "li") => make(tag, {}, make("span", {class: "share"}, percent(b.total)), names(b.names));
    const names = list => list.slice(0, 12).join(", ") + (list.length > 12 ? ` and ${list.length - 12} more` : "");
    here.append(make("h3", {}, "Bins, and the share of the variance that each explains"),
      make("ul", {class: "bins"}, ...bins.slice(0, 40).map(b => { const item = leaf(b); if (b.parts.length) item.append(make("ul", {}, ...b.parts.slice(0, 40).map(part => leaf(part)))); return item; })));
    here.append(make("p", {class: "soft"}, bins.some(b => b.parts.length) ? "The bins of the first stage, and those of the present one that they were split into." : "The bins of the stage."));
  }
}
function chart(grid, title, series, log = false) {
  const cell = make("div", {}, make("h3", {}, title));
  const usable = x => log ? x > 0 : !Number.isNaN(x);
  const all = series.flatMap(([, xs]) => [...xs].filter((x, i) => usable(x) && state(i) !== "added"));
  if (!all.length) return;
  grid.append(cell);
  let low = Infinity, high = -Infinity;
  for (const x of all) { if (x < low) low = x; if (x > high) high = x; }
  if (!log) low = Math.min(0, low);
  if (low === high) { high = log ? high * 2 : high + 1; low = log ? low / 2 : low; }
  const y = x => log ? Math.log(x / low) / Math.log(high / low) : (x - low) / (high - low);
  const first = n ? T.id[0] : 0, last = n ? T.id[n - 1] : 1, u = i => last > first ? (T.id[i] - first) / (last - first) : 0.5;
  const heights = scaled(log ? logTicks(low, high) : ticks(low, high, 3), y, 3);
  picture(cell, {height: 150, left: room(heights), label: title, tabindex: "-1", paint: self => {
    axes(self, ticks(first, last, 3).filter(Number.isInteger).map(x => [last > first ? (x - first) / (last - first) : 0.5, String(x)]), heights);
    for (const [, xs, colour] of series) {
      self.ink.fillStyle = inks[colour];
      for (let i = 0; i < n; i++) if (usable(xs[i]) && state(i) !== "added") point(self.ink, self.X(u(i)), self.Y(y(xs[i])), "value", n > 1000 ? 1 : 1.8);
    }
  }});
  if (series.length > 1) cell.append(make("div", {class: "row"}, ...series.map(([name, , colour]) => key("value", inks[colour], name))));
}

function rest() {
  const changes = section("history", "Corrections");
  if (D.history.length) changes.append(table(["time (UTC)", "action", "trial", "change", "reason"], D.history.map(row => row.map(cell => cell === null ? "" : String(cell))), [2]));
  else changes.append(make("p", {}, "Nothing was changed by hand."));
  const resume = section("resume", "How to continue");
  for (const command of D.resume) resume.append(make("pre", {}, command));
  const versions = section("versions", "Versions and options");
  versions.append(table(["", ""], D.versions), make("h3", {}, "Options of the run"), table(["option", "value"], D.options));
  if (D.constraints.length) versions.append(make("h3", {}, "Constraints of the space"), ...D.constraints.map(text => make("pre", {}, text)));
}

// All together

function show() {
  colours();
  redraws = [];
  seen.disconnect();
  $("main").replaceChildren();
  $("contents").replaceChildren();
  $("made").textContent = `A study by Bounce. ${D.live ? "Live, last change" : "Made"} ${D.made}.`;
  facts(); progress(); best(); importance(); effects();
  if (P.length && D.order.length) parallel();
  search(); rest(); selection();
}
function live() {
  let tag = null;
  const next = async () => {
    try {
      const answer = await fetch("content.json", {headers: tag ? {"If-None-Match": tag} : {}, cache: "no-store"});
      if (answer.status === 200) {
        const content = await answer.json();
        tag = answer.headers.get("ETag");
        const y = scrollY;
        const open = [...document.querySelectorAll("details.select")].some(d => d.open);
        if (!open && !redraws.some(each => each.dragging)) { read(content); show(); scrollTo(0, y); }
        else tag = null;
      }
    } catch { $("made").textContent = "The server no longer answers: this is the last state it sent."; }
    setTimeout(next, 2000);
  };
  setTimeout(next, 2000);
}
read(JSON.parse($("content").textContent));
show();
let width = innerWidth;
addEventListener("resize", () => { if (innerWidth !== width) { width = innerWidth; again(); } });
// On paper: the width of a sheet, ink on white, and the settings of the best trial although they are folded away.
let unfolded = [];
addEventListener("beforeprint", () => {
  if (printing()) return;
  document.documentElement.classList.add("printing");
  unfolded = [...document.querySelectorAll("#best details:not([open])")];
  for (const each of unfolded) each.open = true;
  hover(-1);
  colours();
  for (const each of redraws) { each.drawn = true; each.redraw(); }
});
addEventListener("afterprint", () => {
  document.documentElement.classList.remove("printing");
  for (const each of unfolded) each.open = false;
  colours();
  again();
});
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { if (!printing()) show(); });
if (D.live) live();
})();
