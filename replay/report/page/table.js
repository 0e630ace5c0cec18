// A table that sorts by its columns. A column is {head, cell(row) -> text or
// element, by(row) -> number or text}; fixed rows stay at the end. A wide column
// is not shown on narrow screens.
function sortable(table, columns, rows, fixed) {
  columns = columns.filter((c) => !c.optional || rows.some((r) => c.cell(r) !== ""));
  let sorted = null, down = true;
  const head = make("tr");
  const body = make("tbody");
  columns.forEach((c, i) => {
    const button = make("button", { type: "button" }, c.head);
    button.addEventListener("click", () => {
      down = sorted === i ? !down : i > 0;
      sorted = i;
      fill();
    });
    head.append(make("th", { scope: "col", class: c.wide ? "wide" : null }, button));
  });
  function line(row) {
    const tr = make("tr", row.attributes || {});
    columns.forEach((c, i) => tr.append(make("td", i === 0 ? { class: "name", title: row.title || null } : { class: c.wide ? "wide" : null }, ...[c.cell(row)].flat())));
    return tr;
  }
  function fill() {
    let list = rows;
    if (sorted !== null) {
      const by = columns[sorted].by;
      list = rows.slice().sort((a, b) => {
        const x = by(a), y = by(b), order = x < y ? -1 : x > y ? 1 : 0;
        return down ? -order : order;
      });
    }
    [...head.children].forEach((th, i) => th.setAttribute("aria-sort", i !== sorted ? "none" : down ? "descending" : "ascending"));
    body.replaceChildren(...list.map(line), ...(fixed || []).map(line));
  }
  table.replaceChildren(make("thead", {}, head), body);
  fill();
}

const swatch = (name) => make("span", { class: "swatch", style: { background: colour(name) } });

// costColumns are those of classes and of kernels.
function costColumns(first) {
  const bounded = report.machine !== null;
  const columns = [
    { head: first, cell: (r) => [swatch(r.class), r.name], by: (r) => r.name },
    { head: "calls", cell: (r) => (r.calls === undefined ? "" : calls(perStep(r.calls))), by: (r) => r.calls || 0 },
    { head: "self ms", cell: (r) => ms(perStep(r.self)), by: (r) => r.self },
    { head: "95 % of median", optional: true, wide: true, cell: (r) => (r.stat && r.stat.n > 1 ? ms(r.stat.lo_ns) + " – " + ms(r.stat.hi_ns) : ""), by: (r) => (r.stat ? r.stat.median_ns : 0) },
    { head: "of wall", cell: (r) => [percent(r.self / Math.max(1, kind.wall_ns)), meter(r)], by: (r) => r.self },
    { head: "of kernels", optional: true, wide: true, cell: (r) => (r.kernels ? percent(r.kernels) : ""), by: (r) => r.kernels || 0 },
    { head: "GB/s", optional: true, wide: true, cell: (r) => figure(r.gb), by: (r) => r.gb || 0 },
    { head: "GFLOP/s", optional: true, wide: true, cell: (r) => figure(r.gflop), by: (r) => r.gflop || 0 },
  ];
  if (bounded) columns.push({ head: "× bound", optional: true, wide: true, cell: (r) => (r.bound ? figure(r.total / r.bound) : ""), by: (r) => (r.bound ? r.total / r.bound : 0) });
  return columns;
}

const meter = (r) => make("span", { class: "meter" }, make("i", { style: { width: Math.min(100, (100 * r.self) / Math.max(1, kind.wall_ns)) + "%", background: colour(r.class) } }));

const costRow = (c, name, title) => ({ name, title: title || name, class: c.class, calls: c.calls, self: c.self_ns, total: c.total_ns, bound: c.bound_ns, stat: c.per_step, kernels: c.share_of_kernels, gb: c.gb_per_s, gflop: c.gflop_per_s, attributes: { "data-class": c.class, "data-self-ns": c.self_ns } });

parts.push(function ledger() {
  const rows = kind.classes.map((c) => costRow(c, c.class));
  const classes = new Set(kind.classes.map((c) => c.class));
  const fixed = [];
  for (const [name, ns] of Object.entries(kind.ledger)) {
    if (classes.has(name) || ns === 0) continue;
    fixed.push({ name, title: gaps[name], class: name, self: ns, attributes: { "data-entry": name, "data-self-ns": ns } });
  }
  fixed.push({ name: "wall", class: "", self: kind.wall_ns, attributes: { class: "total", "data-entry": "wall", "data-self-ns": kind.wall_ns } });
  const columns = costColumns("class");
  const named = columns[0].cell;
  columns[0].cell = (r) => (r.class === "" ? r.name : named(r));
  const wall = columns.find((c) => c.head === "of wall");
  const share = wall.cell;
  wall.cell = (r) => (r.class === "" ? "100.0 %" : share(r));
  sortable(byId("ledger"), columns, rows, fixed);
});

const shownKernels = 40;
let allKernels = false;
parts.push(function kernels() {
  const find = byId("find").value.toLowerCase();
  let rows = (kind.rows || []).map((c) => costRow(c, shortName(c.label), c.label));
  const total = rows.length;
  if (find) rows = rows.filter((r) => r.title.toLowerCase().includes(find) || r.class.includes(find));
  const found = rows.length;
  const note = byId("kernels-note");
  note.replaceChildren(find ? `${found} of ${total}` : `${total} kernels`);
  if (!allKernels && found > shownKernels) {
    rows = rows.slice(0, shownKernels);
    const more = make("button", { type: "button" }, "show all");
    more.addEventListener("click", () => { allKernels = true; kernels(); });
    note.append(`, the ${shownKernels} costliest shown `, make("span", { class: "buttons" }, more));
  }
  sortable(byId("kernels"), costColumns("kernel"), rows);
});
byId("find").addEventListener("input", () => parts.find((p) => p.name === "kernels")());

parts.push(function skew() {
  const comm = kind.comm;
  const shown = Boolean(comm && comm.ranks.length > 1 && !report.shared);
  byId("skew-section").hidden = !shown;
  if (!shown) return;
  const steps = Math.max(1, kind.steps);
  byId("skew-note").textContent = `In collectives, ${ms(perStep(comm.waiting_ns))} ms of a step are waiting for the last rank and ${ms(perStep(comm.transfer_ns))} ms are transfer.`;
  sortable(byId("skew"), [
    { head: "rank", cell: (r) => "rank " + r.rank, by: (r) => r.rank },
    { head: "collectives a step", cell: (r) => calls(r.collectives / steps), by: (r) => r.collectives },
    { head: "waiting ms", cell: (r) => ms(r.waiting_ns / steps), by: (r) => r.waiting_ns },
    { head: "arrives after the first, µs", cell: (r) => (r.lag_ns / Math.max(1, r.collectives) / 1e3).toFixed(1), by: (r) => r.lag_ns },
    { head: "arrives last", cell: (r) => percent(r.last / Math.max(1, r.collectives)), by: (r) => r.last },
  ], comm.ranks);
});

(function host() {
  byId("host-section").hidden = report.host.length === 0;
  sortable(byId("host"), [
    { head: "phase", cell: (r) => r.phase, by: (r) => r.phase },
    { head: "on", cell: (r) => r.lane, by: (r) => r.lane },
    { head: "times", cell: (r) => grouped(r.calls), by: (r) => r.calls },
    { head: "total ms", cell: (r) => ms(r.total_ns), by: (r) => r.total_ns },
    { head: "ms each", cell: (r) => (r.total_ns / r.calls / 1e6).toFixed(4), by: (r) => r.total_ns / r.calls },
  ], report.host);
})();
