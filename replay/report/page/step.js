// The head of the page, and one step as a bar.
(function head() {
  byId("source").textContent = report.source;
  const [first, ...others] = report.findings;
  byId("headline").textContent = first ? first.text : "What a step costs";
  document.title = first ? first.text : "What a step costs";
  byId("findings").append(...others.map((f) => make("li", {}, f.text)));
  byId("warnings").append(...report.warnings.map((w) => make("li", {}, w)));
  const link = make("a", { download: "report.json", href: "data:application/json," + encodeURIComponent(JSON.stringify(report)) }, "report.json");
  byId("foot").append(`${grouped(report.rows)} rows of a timeline · times are means over steps and ranks · `, link);
  const kinds = byId("kinds");
  kinds.hidden = report.kinds.length < 2;
  kinds.append(...report.kinds.map((k) => {
    const button = make("button", { type: "button", role: "tab" }, `${k.kind} · ${grouped(k.steps)}`);
    button.addEventListener("click", () => choose(k));
    parts.push(() => button.setAttribute("aria-selected", k === kind));
    return button;
  }));
})();

parts.push(function tiles() {
  const self = kind.classes.reduce((sum, c) => sum + c.self_ns, 0) + (kind.ledger.overlap || 0);
  const tile = (figure, unit, text, data) => make("div", { class: "tile", ...data }, make("b", {}, figure, make("small", {}, unit)), make("span", {}, text));
  const w = kind.wall;
  byId("tiles").replaceChildren(
    tile(ms(perStep(kind.wall_ns)), "ms", kind.steps > 1 ? `wall time of a step; median ${ms(w.median_ns)}, 95 % ${ms(w.lo_ns)} – ${ms(w.hi_ns)}` : "wall time of the step", { "data-total": "wall", "data-ns": kind.wall_ns }),
    tile(ms(perStep(kind.device_span_ns)), "ms", "from the first kernel's start to the last one's end", { "data-total": "device", "data-ns": kind.device_span_ns }),
    tile(percent(self / Math.max(1, kind.wall_ns)), "", "of the wall time kernels run", {}),
    tile(grouped(kind.steps), kind.steps === 1 ? "step" : "steps", kind.ranks === 1 ? "on one rank" : report.shared ? `on ${kind.ranks} ranks that share one machine` : `on ${kind.ranks} ranks`, {}),
  );
});

parts.push(function bar() {
  const entries = Object.entries(kind.ledger).filter(([, ns]) => ns > 0);
  const byClass = new Map(kind.classes.map((c) => [c.class, c]));
  const bar = byId("bar"), legend = byId("legend");
  const facts = (name, ns) => {
    const c = byClass.get(name);
    const list = [["self", ms(perStep(ns)) + " ms"], ["of the wall", percent(ns / kind.wall_ns)]];
    if (c) list.push(["of the device", percent(c.share)], ["calls a step", calls(perStep(c.calls))], ["rate", c.gb_per_s ? figure(c.gb_per_s) + " GB/s" : ""]);
    else list.push(["", gaps[name] || ""]);
    return list;
  };
  const light = (name) => { for (const e of [...bar.children, ...legend.children]) e.classList.toggle("dim", name !== null && e.dataset.name !== name); };
  const watch = (e, name, ns) => {
    e.dataset.name = name;
    tipOn(e, name, facts(name, ns));
    e.addEventListener("pointerenter", () => light(name));
    e.addEventListener("pointerleave", () => light(null));
    return e;
  };
  bar.replaceChildren(...entries.map(([name, ns]) => watch(make("i", { style: { flexGrow: ns / kind.wall_ns, flexBasis: "0", background: colour(name) } }), name, ns)));
  const shown = entries.filter(([, ns]) => ns / kind.wall_ns >= 0.004);
  legend.replaceChildren(...shown.map(([name, ns]) => watch(make("li", {}, swatch(name), make("b", {}, name), percent(ns / kind.wall_ns)), name, ns)));
  const small = entries.length - shown.length;
  byId("step-note").textContent = `A mean ${kind.kind === "step" ? "" : kind.kind + " "}step of ${ms(perStep(kind.wall_ns))} ms; grey is time in which the device idled` + (small ? `, ${small} parts below 0.4 % are not named.` : ".");
});
