// ticks returns round values between lo and hi, about n of them.
function ticks(lo, hi, n) {
  const raw = (hi - lo) / Math.max(1, n), power = 10 ** Math.floor(Math.log10(raw || 1));
  const step = [1, 2, 5, 10].map((m) => m * power).find((s) => s >= raw) || power;
  const list = [];
  for (let v = Math.ceil(lo / step) * step; v <= hi + step * 1e-9; v += step) list.push(v);
  return list;
}

const line = (x1, y1, x2, y2, c) => draw("line", { x1, y1, x2, y2, class: c });
const words = (x, y, text, anchor, c) => draw("text", { x, y, "text-anchor": anchor || "start", class: c || "" }, text);

const widthOf = (id) => Math.max(320, byId(id).clientWidth || byId("tiles").clientWidth);

// The roofline: a point a kernel, and what the machine can do above it.
parts.push(function roofline() {
  const points = (kind.rows || []).filter((r) => r.bytes > 0 && r.flops > 0 && r.total_ns > 0)
    .map((r) => ({ row: r, x: r.flops / r.bytes, y: r.gflop_per_s, share: r.self_ns / Math.max(1, kind.device_span_ns) }));
  const section = byId("roofline-section");
  section.hidden = points.length === 0;
  if (section.hidden) return;
  const m = report.machine;
  const read = m ? Math.max(m.read_bytes, m.copy_bytes) / 1e9 : 0;
  const peaks = m ? Object.entries(m.flops).filter(([, f]) => f > 0).map(([pipe, f]) => ({ pipe, f: f / 1e9 })) : [];
  byId("roofline-note").textContent = m
    ? `Each point is a kernel, its size its share of the device's time. Lines are the most that ${m.name} can do: ${figure(read)} GB/s of memory, and the peaks of its pipes. Data that fit a cache can lie above.`
    : "Each point is a kernel, its size its share of the device's time. With --machine the lines of a machine are drawn too.";
  const W = widthOf("roofline"), H = W < 600 ? 300 : 420, L = 60, R = 16, T = 16, B = 44;
  const log = Math.log10;
  const xs = points.map((p) => p.x), ys = points.map((p) => p.y);
  const x0 = Math.floor(log(Math.min(...xs, 0.1))), x1 = Math.ceil(log(Math.max(...xs, 100)));
  const top = peaks.length ? Math.max(...peaks.map((p) => p.f)) : Math.max(...ys);
  const y0 = Math.floor(log(Math.min(...ys))), y1 = Math.max(y0 + 1, Math.ceil(log(Math.max(top, ...ys))));
  const X = (v) => L + ((log(v) - x0) / (x1 - x0)) * (W - L - R);
  const Y = (v) => H - B - ((log(v) - y0) / (y1 - y0)) * (H - T - B);
  const svg = draw("svg", { viewBox: `0 0 ${W} ${H}`, role: "img", "aria-label": "roofline" });
  for (let e = x0; e <= x1; e += Math.ceil((x1 - x0) / (W / 70))) svg.append(line(X(10 ** e), T, X(10 ** e), H - B, "grid"), words(X(10 ** e), H - B + 18, figure(10 ** e), "middle"));
  for (let e = y0; e <= y1; e++) svg.append(line(L, Y(10 ** e), W - R, Y(10 ** e), "grid"), words(L - 8, Y(10 ** e) + 4, figure(10 ** e), "end"));
  svg.append(words((L + W - R) / 2, H - 8, "FLOP a byte", "middle"), words(L + 4, T + 10, "GFLOP/s"));
  if (read > 0) {
    const ceiling = peaks.length ? Math.max(...peaks.map((p) => p.f)) : 10 ** y1;
    const from = Math.max(10 ** x0, 10 ** y0 / read), to = Math.min(10 ** x1, ceiling / read);
    if (to > from) svg.append(draw("line", { x1: X(from), y1: Y(from * read), x2: X(to), y2: Y(to * read), stroke: "var(--soft)", "stroke-width": 1.5 }));
    const seen = new Set();
    for (const p of peaks) {
      if (seen.has(p.f)) continue;
      seen.add(p.f);
      const names = peaks.filter((q) => q.f === p.f).map((q) => q.pipe).join(", ");
      const start = Math.max(10 ** x0, p.f / read);
      if (start < 10 ** x1) svg.append(draw("line", { x1: X(start), y1: Y(p.f), x2: W - R, y2: Y(p.f), stroke: "var(--soft)", "stroke-width": 1.5 }), words(W - R - 4, Y(p.f) - 6, names, "end"));
    }
  }
  for (const p of points.sort((a, b) => b.share - a.share)) {
    const dot = draw("circle", { cx: X(p.x), cy: Y(p.y), r: 4 + 18 * Math.sqrt(Math.min(1, p.share)), fill: colour(p.row.class), "fill-opacity": 0.72, stroke: "var(--ground)", "stroke-width": 1.5 });
    tipOn(dot, p.row.label, [["class", p.row.class], ["of the device", percent(p.share)], ["intensity", figure(p.x) + " FLOP/B"], ["reached", figure(p.y) + " GFLOP/s"], ["memory", figure(p.row.gb_per_s) + " GB/s"], ["times its bound", p.row.bound_ns ? figure(p.row.total_ns / p.row.bound_ns) : ""]]);
    svg.append(dot);
  }
  byId("roofline").replaceChildren(svg);
});

// Alone and in place: two dots a class, joined.
// Tables that are what they are, of all kinds of steps.
for (const t of page.tables || []) {
  const row = (tag) => (cells) => make("tr", {}, ...t.head.map((_, i) => make(tag, i ? {} : { class: "name" }, cells[i] || "")));
  const body = t.rows.filter((r) => r).map(row("td"));
  byId("tables").append(make("section", {}, make("h2", {}, t.title), ...t.notes.map((n) => make("p", { class: "note" }, n)),
    make("div", { class: "scroll" }, make("table", {}, make("thead", {}, row("th")(t.head)), make("tbody", {}, ...body)))));
}

parts.push(function isolated() {
  const found = (page.isolated || []).find((i) => i.kind === kind.kind || i.kind === "");
  byId("isolated-section").hidden = !found;
  if (!found) return;
  const rows = found.rows.slice().sort((a, b) => b.in_place_ns - a.in_place_ns);
  const sum = (key) => rows.reduce((s, r) => s + r[key], 0);
  byId("isolated-note").textContent = `Each class in the step (filled) and its calls each alone, with a cold cache (ring). Alone they explain ${percent(sum("cold_ns") / Math.max(1, found.wall_ns))} of the step's wall time.`;
  const W = widthOf("isolated"), row = 26, L = 130, R = 70, H = rows.length * row + 34;
  const most = Math.max(...rows.flatMap((r) => [r.in_place_ns, r.cold_ns, r.warm_ns]), 1);
  const X = (ns) => L + (ns / most) * (W - L - R);
  const svg = draw("svg", { viewBox: `0 0 ${W} ${H}`, role: "img", "aria-label": "isolated and in place" });
  for (const t of ticks(0, most / 1e6, 6)) svg.append(line(X(t * 1e6), 6, X(t * 1e6), H - 24, "grid"), words(X(t * 1e6), H - 8, figure(t) ? figure(t) + " ms" : "0", "middle"));
  rows.forEach((r, i) => {
    const y = 20 + i * row, c = colour(r.label);
    const g = draw("g", {},
      words(L - 12, y + 4, r.label, "end", "strong"),
      draw("line", { x1: X(r.cold_ns), y1: y, x2: X(r.in_place_ns), y2: y, stroke: c, "stroke-width": 2, "stroke-opacity": 0.5 }),
      draw("circle", { cx: X(r.cold_ns), cy: y, r: 5, fill: "var(--ground)", stroke: c, "stroke-width": 2 }),
      draw("circle", { cx: X(r.in_place_ns), cy: y, r: 6, fill: c }),
      words(Math.max(X(r.in_place_ns), X(r.cold_ns)) + 12, y + 4, r.cold_ns ? figure(r.in_place_ns / r.cold_ns) + " ×" : ""));
    tipOn(g, r.label, [["in place", ms(r.in_place_ns) + " ms"], ["alone, cold", ms(r.cold_ns) + " ms"], ["alone, warm", ms(r.warm_ns) + " ms"], ["left out, the step changes by", r.marginal_ns ? ms(r.marginal_ns) + " ms" : ""], ["bound", r.bound_ns ? ms(r.bound_ns) + " ms" : ""]]);
    svg.append(g);
  });
  byId("isolated").replaceChildren(svg);
});

// Over the job: one series a plot, each with its own axis.
function job() {
  const rows = page.job || [];
  byId("job-section").hidden = rows.length < 2;
  if (rows.length < 2) return;
  const plot = (id, key, name, c) => {
    const W = widthOf(id), H = 200, L = 54, R = 12, T = 10, B = 28;
    const end = rows[rows.length - 1].end_ns, most = Math.max(...rows.map((r) => r[key]), 1e-9);
    const X = (ns) => L + (ns / end) * (W - L - R), Y = (v) => H - B - (v / most) * (H - T - B);
    const svg = draw("svg", { viewBox: `0 0 ${W} ${H}`, role: "img", "aria-label": name });
    for (const t of ticks(0, most, 4)) svg.append(line(L, Y(t), W - R, Y(t), "grid"), words(L - 8, Y(t) + 4, figure(t) || "0", "end"));
    for (const t of ticks(0, end / 1e9, W / 90)) svg.append(words(X(t * 1e9), H - 8, (figure(t) || "0") + " s", "middle"));
    let d = "";
    for (const r of rows) d += (d ? "L" : "M") + X(r.start_ns).toFixed(1) + " " + Y(r[key]).toFixed(1) + "L" + X(r.end_ns).toFixed(1) + " " + Y(r[key]).toFixed(1);
    svg.append(draw("path", { d, fill: "none", stroke: c, "stroke-width": 2, "stroke-linejoin": "round" }), line(L, H - B, W - R, H - B, "axis"));
    const mark = draw("line", { y1: T, y2: H - B, class: "axis", visibility: "hidden" });
    svg.append(mark);
    svg.addEventListener("pointermove", (e) => {
      const box = svg.getBoundingClientRect(), at = (((e.clientX - box.left) / box.width) * W - L) / (W - L - R) * end;
      const r = rows.find((r) => at < r.end_ns) || rows[rows.length - 1];
      const x = X((r.start_ns + r.end_ns) / 2);
      mark.setAttribute("x1", x); mark.setAttribute("x2", x); mark.setAttribute("visibility", "visible");
      showTip(e, duration(r.start_ns), [["steps", figure(r.steps)], ["sequences in a step", figure(r.sequences)], ["tokens computed", figure(r.tokens_per_s) + " /s"], ["tokens sampled", figure(r.sampled_per_s) + " /s"]]);
    });
    svg.addEventListener("pointerleave", () => { hideTip(); mark.setAttribute("visibility", "hidden"); });
    byId(id).replaceChildren(svg);
  };
  plot("job-batch", "sequences", "sequences in a step over the job", "var(--c0)");
  plot("job-rate", "tokens_per_s", "tokens computed per second over the job", "var(--c1)");
}
parts.push(job);

// Plots are as wide as the page.
let lastWidth = innerWidth, resized = 0;
addEventListener("resize", () => {
  if (innerWidth === lastWidth) return;
  lastWidth = innerWidth;
  clearTimeout(resized);
  resized = setTimeout(() => { for (const p of parts) if (["roofline", "isolated", "job"].includes(p.name)) p(); }, 120);
});
