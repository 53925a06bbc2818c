// ---- list of runs
const columns = [
  ["run", null, (r) => el("a", { href: `#run-${r.index}` }, `${r.dataset} · ${backbones.get(r.backbone) || r.backbone}`), (r) => `${r.dataset} ${r.backbone}`],
  ["method", null, (r) => nameOf(r), (r) => nameOf(r)],
  ["removed", 1, (r) => percent(r.sparsity), (r) => r.sparsity],
  ["seed", 1, (r) => r.seed, (r) => r.seed],
  ["varied", null, (r) => r.variation || "", (r) => r.variation],
  ["val", 1, (r) => number(r.val), (r) => r.val],
  ["test", 1, (r) => number(r.test), (r) => r.test],
  ["fresh", 1, (r) => number(r.retrain_test), (r) => r.retrain_test],
  ["warm", 1, (r) => number(r.warm_test), (r) => r.warm_test],
  ["frozen", 1, (r) => number(r.frozen_test), (r) => r.frozen_test],
  ["dense", 1, (r) => number(r.dense_test), (r) => r.dense_test],
  ["seconds", 1, (r) => number(r.seconds), (r) => r.seconds],
  ["experiment", null, (r) => r.experiment, (r) => r.experiment],
  ["profile", null, (r) => r.profile, (r) => r.profile],
  ["status", null, (r) => r.status, (r) => r.status],
];
const SIZE = 25;
let page = 0, sort = null, down = false, shown = runs;
const heads = $("#runtable thead tr");
columns.forEach(([name, numeric], n) => {
  const button = el("button", { type: "button" }, name);
  button.addEventListener("click", () => {
    down = sort === n ? !down : false;
    sort = n;
    for (const th of heads.children) th.removeAttribute("aria-sort");
    button.parentElement.setAttribute("aria-sort", down ? "descending" : "ascending");
    list();
  });
  heads.append(el("th", { scope: "col", ...(numeric ? { class: "number" } : {}) }, button));
});
const list = () => {
  const terms = $("#search").value.toLowerCase().split(/\s+/).filter(Boolean);
  shown = runs.filter((run) => passes(run) && terms.every((term) =>
    `${run.dataset} ${run.backbone} ${nameOf(run)} ${run.method} ${run.sparsity} ${run.variation} ${run.experiment} ${run.profile} ${run.status} seed${run.seed}`.toLowerCase().includes(term)));
  if (sort !== null) {
    const of = columns[sort][3];
    const missing = (v) => v === null || v === undefined || v === "";
    shown.sort((a, b) => {
      const x = of(a), y = of(b);
      if (missing(x) || missing(y)) return missing(x) - missing(y);
      return (x < y ? -1 : x > y ? 1 : a.index - b.index) * (down ? -1 : 1);
    });
  }
  const pages = Math.max(1, Math.ceil(shown.length / SIZE));
  page = Math.min(page, pages - 1);
  $("#runtable tbody").replaceChildren(...shown.slice(page * SIZE, (page + 1) * SIZE).map((run) =>
    el("tr", {}, ...columns.map(([, numeric, cell]) => el("td", numeric ? { class: "number" } : {}, cell(run) ?? "")))));
  $("#place").textContent = `${shown.length.toLocaleString("en")} runs, page ${page + 1} of ${pages}`;
  $("#back").disabled = page === 0;
  $("#forth").disabled = page === pages - 1;
};
$("#back").addEventListener("click", () => { page -= 1; list(); });
$("#forth").addEventListener("click", () => { page += 1; list(); });
$("#search").addEventListener("input", () => { page = 0; list(); });
$("#allruns").addEventListener("click", () => save("runs.csv", "text/csv", csv([data.columns, ...shown.map((run) => data.columns.map((name) => run[name]))])));
