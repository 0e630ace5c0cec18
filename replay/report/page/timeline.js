// The timeline of one step. Spans are unpacked from columns: see spans.go for
// their layout. Spans of a lane nest; each depth is a row on which nothing
// overlaps, so that what is visible is found by bisection.
async function unpackSpans() {
  const text = byId("spans").textContent.trim();
  if (!text) return null;
  const bytes = Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  const buffer = await new Response(stream).arrayBuffer();
  const n = page.spans;
  let at = 0;
  const take = (type) => { const a = new type(buffer, at, n); at += a.byteLength; at = (at + 7) & ~7; return a; };
  return { start: take(Uint32Array), length: take(Uint32Array), kernel: take(Uint32Array), bytes: take(Float32Array), flops: take(Float32Array), call: take(Int32Array), lane: take(Uint16Array), layer: take(Int16Array) };
}

function timeline(spans) {
  const canvas = byId("timeline"), box = byId("timeline-box"), g = canvas.getContext("2d");
  const select = byId("step");
  const laneGap = 7, axis = 26, labels = () => (canvas.clientWidth < 560 ? 84 : 148);
  let rowHeight = 15, step = null, rows = [], lanes = [], from = 0, to = 1, css = {};

  function styles() {
    const s = getComputedStyle(document.documentElement);
    css = (name) => s.getPropertyValue(name).trim();
    const cache = new Map();
    css.of = (k) => {
      if (!cache.has(k)) cache.set(k, css(page.kernels[k].class === "host" ? (page.kernels[k].name === "step" ? "--gap" : "--gap2") : variable(page.kernels[k].class)));
      return cache.get(k);
    };
    css.on = (c) => { // dark or light text, whichever is read better on a colour
      const [r, g, b] = [1, 3, 5].map((i) => (parseInt(c.slice(i, i + 2), 16) / 255) ** 2.2);
      return 0.2126 * r + 0.7152 * g + 0.0722 * b > 0.3 ? "#1c1b19" : "#ffffff";
    };
  }

  // open lays a step's spans out in rows.
  function open(s) {
    step = s;
    const byLane = new Map();
    for (let i = s.first; i < s.first + s.count; i++) {
      const l = spans.lane[i];
      if (!byLane.has(l)) byLane.set(l, []);
      byLane.get(l).push(i);
    }
    rows = []; lanes = [];
    rowHeight = byLane.size <= 4 ? 26 : 16;
    let y = axis;
    for (const l of [...byLane.keys()].sort((a, b) => a - b)) {
      const depths = [], open = [];
      for (const i of byLane.get(l)) { // by start, longer first
        const start = spans.start[i], end = start + spans.length[i];
        while (open.length && open[open.length - 1] <= start) open.pop();
        const d = open.length;
        open.push(end);
        (depths[d] = depths[d] || []).push(i);
      }
      lanes.push({ y, height: depths.length * rowHeight, lane: page.lanes[l] });
      for (const list of depths) { rows.push({ y, list: Uint32Array.from(list) }); y += rowHeight; }
      y += laneGap;
    }
    canvas.style.height = y + "px";
    all();
  }

  const span = () => Math.max(1, step.end_ns);
  const X = (t) => labels() + ((t - from) / (to - from)) * (canvas.clientWidth - labels());
  const timeAt = (x) => from + ((x - labels()) / (canvas.clientWidth - labels())) * (to - from);
  function all() { from = 0; to = span(); render(); }
  function view(a, b) {
    const width = Math.min(span(), Math.max(20, b - a));
    from = Math.min(Math.max(0, a), span() - width);
    to = from + width;
    paint();
  }
  const zoom = (factor, x) => { const t = timeAt(x === undefined ? (labels() + canvas.clientWidth) / 2 : x); view(t - (t - from) * factor, t + (to - t) * factor); };

  let waiting = false;
  function paint() {
    if (!waiting) { waiting = true; requestAnimationFrame(() => { waiting = false; render(); }); }
  }

  function render() {
    if (!step) return;
    const scale = devicePixelRatio || 1, w = canvas.clientWidth, h = canvas.clientHeight;
    if (canvas.width !== Math.round(w * scale) || canvas.height !== Math.round(h * scale)) { canvas.width = Math.round(w * scale); canvas.height = Math.round(h * scale); }
    g.setTransform(scale, 0, 0, scale, 0, 0);
    g.clearRect(0, 0, w, h);
    g.font = "11px system-ui, sans-serif";
    g.textBaseline = "middle";
    const left = labels();
    g.textAlign = "center";
    const unit = [[1e9, "s"], [1e6, "ms"], [1e3, "µs"], [1, "ns"]].find(([n]) => (to - from) * step.unit > 3 * n) || [1, "ns"];
    for (const t of ticks(from, to, Math.max(2, (w - left) / 110))) {
      const x = X(t);
      g.fillStyle = css("--line");
      g.fillRect(x, axis - 4, 1, h);
      g.fillStyle = css("--soft");
      if (x > left + 16 && x < w - 24) g.fillText(+((t * step.unit) / unit[0]).toFixed(3) + " " + unit[1], x, 11);
    }
    g.save();
    g.beginPath(); g.rect(left, 0, w - left, h); g.clip();
    let painted = 0;
    for (const row of rows) painted += paintRow(row, left, w);
    canvas.dataset.painted = painted;
    g.restore();
    g.textAlign = "left";
    let rank = null;
    for (const l of lanes) {
      const name = (l.lane.rank === rank ? "" : l.lane.rank < 0 ? "" : "rank " + l.lane.rank + " ") + l.lane.name;
      rank = l.lane.rank;
      g.fillStyle = css("--soft");
      g.fillText(name.length > left / 6 ? name.slice(0, left / 6 - 1) + "…" : name, 10, l.y + rowHeight / 2, left - 14);
    }
  }

  function firstVisible(list) {
    let a = 0, b = list.length;
    while (a < b) { const m = (a + b) >> 1; if (spans.start[list[m]] + spans.length[list[m]] < from) a = m + 1; else b = m; }
    return a;
  }

  function paintRow(row, left, w) {
    const perNS = (w - left) / (to - from);
    let lastX = -1, lastColour = "", painted = 0;
    for (let k = firstVisible(row.list); k < row.list.length; k++) {
      const i = row.list[k], start = spans.start[i];
      if (start > to) break;
      const x = left + (start - from) * perNS, width = spans.length[i] * perNS, c = css.of(spans.kernel[i]);
      const px = Math.floor(x * 2);
      if (width < 0.5 && px === lastX && c === lastColour) continue;
      lastX = px; lastColour = c;
      painted++;
      g.fillStyle = c;
      g.fillRect(x, row.y, Math.max(0.5, width > 3 ? width - 0.7 : width), rowHeight - 2);
      if (width > 30) {
        const a = Math.max(x, left), room = Math.min(x + width, w) - a - 8;
        const name = page.kernels[spans.kernel[i]].short, fit = Math.floor(room / 5.8);
        if (fit > 3) { g.fillStyle = css.on(c); g.textAlign = "left"; g.fillText(name.length > fit ? name.slice(0, fit - 1) + "…" : name, a + 4, row.y + rowHeight / 2 - 1); }
      }
    }
    return painted;
  }

  function hit(x, y) {
    const row = rows.find((r) => y >= r.y && y < r.y + rowHeight);
    if (!row || x < labels()) return -1;
    const slack = ((to - from) / (canvas.clientWidth - labels())) * 2, t = timeAt(x);
    let best = -1, distance = slack;
    let a = 0, b = row.list.length;
    while (a < b) { const m = (a + b) >> 1; if (spans.start[row.list[m]] + spans.length[row.list[m]] < t - slack) a = m + 1; else b = m; }
    for (let k = a; k < row.list.length && spans.start[row.list[k]] <= t + slack; k++) {
      const i = row.list[k], d = Math.max(0, spans.start[i] - t, t - spans.start[i] - spans.length[i]);
      if (d === 0) return i;
      if (d < distance) { best = i; distance = d; }
    }
    return best;
  }

  function facts(i) {
    const k = page.kernels[spans.kernel[i]], ns = spans.length[i] * step.unit, lane = page.lanes[spans.lane[i]];
    return [["class", k.class], ["lane", (lane.rank < 0 ? "" : "rank " + lane.rank + ", ") + lane.name], ["duration", duration(ns)], ["starts at", duration(spans.start[i] * step.unit)],
      ["layer", spans.layer[i] < 0 ? "" : spans.layer[i]], ["call", spans.call[i] < 0 ? "" : spans.call[i]],
      ["memory", spans.bytes[i] ? scaled(spans.bytes[i], "B") + ", " + figure(spans.bytes[i] / Math.max(1, ns)) + " GB/s" : ""],
      ["work", spans.flops[i] ? scaled(spans.flops[i], "FLOP") + ", " + figure(spans.flops[i] / Math.max(1, ns)) + " GFLOP/s" : ""]];
  }

  // Pointers: one drags, two pinch.
  const pointers = new Map();
  canvas.addEventListener("pointerdown", (e) => { pointers.set(e.pointerId, e.offsetX); canvas.setPointerCapture(e.pointerId); canvas.focus({ preventScroll: true }); hideTip(); });
  for (const name of ["pointerup", "pointercancel"]) canvas.addEventListener(name, (e) => pointers.delete(e.pointerId));
  canvas.addEventListener("pointermove", (e) => {
    if (!pointers.has(e.pointerId)) {
      const i = hit(e.offsetX, e.offsetY);
      if (i < 0) hideTip(); else showTip(e, page.kernels[spans.kernel[i]].name, facts(i));
      return;
    }
    const before = [...pointers.values()];
    pointers.set(e.pointerId, e.offsetX);
    const after = [...pointers.values()];
    const perPixel = (to - from) / (canvas.clientWidth - labels());
    if (after.length === 1) view(from - (after[0] - before[0]) * perPixel, to - (after[0] - before[0]) * perPixel);
    else if (Math.abs(after[1] - after[0]) > 4) zoom(Math.abs(before[1] - before[0]) / Math.abs(after[1] - after[0]), (after[0] + after[1]) / 2);
  });
  canvas.addEventListener("pointerleave", hideTip);
  canvas.addEventListener("wheel", (e) => {
    const perPixel = (to - from) / (canvas.clientWidth - labels());
    if (e.ctrlKey || e.metaKey) { e.preventDefault(); zoom(Math.exp(e.deltaY * (e.deltaMode ? 0.05 : 0.0025)), e.offsetX); }
    else if (Math.abs(e.deltaX) > Math.abs(e.deltaY)) { e.preventDefault(); view(from + e.deltaX * perPixel, to + e.deltaX * perPixel); }
  }, { passive: false });
  canvas.addEventListener("dblclick", (e) => zoom(0.4, e.offsetX));
  canvas.addEventListener("keydown", (e) => {
    const move = (to - from) / 8;
    const act = { ArrowLeft: () => view(from - move, to - move), ArrowRight: () => view(from + move, to + move), "+": () => zoom(0.7), "=": () => zoom(0.7), "-": () => zoom(1 / 0.7), 0: all }[e.key];
    if (act) { e.preventDefault(); act(); }
  });
  byId("zoom-in").addEventListener("click", () => zoom(0.6));
  byId("zoom-out").addEventListener("click", () => zoom(1 / 0.6));
  byId("zoom-all").addEventListener("click", all);
  const stepBy = (d) => { const i = select.selectedIndex + d; if (i >= 0 && i < select.options.length) { select.selectedIndex = i; open(page.steps[select.value]); } };
  byId("earlier").addEventListener("click", () => stepBy(-1));
  byId("later").addEventListener("click", () => stepBy(1));
  select.addEventListener("change", () => open(page.steps[select.value]));
  new ResizeObserver(paint).observe(box);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { styles(); paint(); });

  for (const k of page.kernels) k.short = shortName(k.name);
  styles();
  parts.push(function steps() {
    const list = page.steps.map((s, i) => [s, i]).filter(([s]) => s.kind === kind.kind);
    select.replaceChildren(...list.map(([s, i]) => make("option", { value: i }, `${s.step} · ${ms(s.wall_ns)} ms` + (s.mark ? ` · ${s.mark}` : ""))));
    byId("timeline-section").hidden = list.length === 0;
    const some = list.length < kind.steps ? `${grouped(list.length)} of ${grouped(kind.steps)} steps are in this page` : "";
    byId("timeline-note").textContent = [some, page.note].filter(Boolean).join(" · ");
    if (!list.length) return;
    const middle = list.findIndex(([s]) => s.mark === "median");
    select.selectedIndex = Math.max(0, middle);
    open(page.steps[select.value]);
  });
}

unpackSpans().then((spans) => {
  if (spans) timeline(spans); else byId("timeline-section").hidden = true;
  choose(kind);
  document.documentElement.dataset.ready = "yes";
});
