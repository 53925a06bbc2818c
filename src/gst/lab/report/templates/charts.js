// ---- charts: the nearest point under the pointer, or the arrow keys
const tip = $("#tip");
const hide = () => {
  tip.hidden = true;
  for (const chart of $$("svg.chart.dim")) chart.classList.remove("dim");
  for (const node of $$("svg.chart .hot, svg.chart .here")) node.classList.remove("hot", "here");
};
const show = (chart, mark) => {
  hide();
  const group = mark.closest("g.line");
  chart.classList.add("dim");
  group.classList.add("hot");
  mark.classList.add("here");
  for (const twin of $$("g.line", chart)) if (twin.dataset.name === group.dataset.name) twin.classList.add("hot");
  tip.replaceChildren(el("b", {}, group.dataset.name), mark.dataset.tip);
  tip.hidden = false;
  const box = mark.getBoundingClientRect();
  const left = Math.min(Math.max(8, box.left + box.width / 2 - tip.offsetWidth / 2), innerWidth - tip.offsetWidth - 8);
  const above = box.top - tip.offsetHeight - 10;
  tip.style.left = `${left}px`;
  tip.style.top = `${above > 4 ? above : box.bottom + 10}px`;
};
const marks = (chart) => $$("g.line:not(.off) [data-tip]", chart);
const wire = (chart) => {
  chart.addEventListener("pointermove", (event) => {
    let best = null, nearest = 30 ** 2;
    for (const mark of marks(chart)) {
      const box = mark.getBoundingClientRect();
      const inside = mark.classList.contains("bar") && event.clientX >= box.left && event.clientX <= box.right;
      const d = inside ? 0 : (event.clientX - box.left - box.width / 2) ** 2 + (event.clientY - box.top - box.height / 2) ** 2;
      if (d < nearest) { nearest = d; best = mark; }
    }
    if (best) show(chart, best); else hide();
  });
  chart.addEventListener("pointerleave", hide);
  chart.addEventListener("blur", hide);
  chart.addEventListener("keydown", (event) => {
    const steps = { ArrowRight: [1, 0], ArrowLeft: [-1, 0], ArrowDown: [0, 1], ArrowUp: [0, -1] };
    if (event.key === "Escape") return hide();
    if (!steps[event.key]) return;
    event.preventDefault();
    const all = marks(chart);
    if (!all.length) return;
    const here = all.find((m) => m.classList.contains("here"));
    if (!here) return show(chart, all[all.length - $$("[data-tip]", all[all.length - 1].closest("g.line")).length]);
    const [along, across] = steps[event.key];
    const groups = [...new Set(all.map((m) => m.closest("g.line")))];
    const group = here.closest("g.line");
    const points = $$("[data-tip]", group);
    const bars = here.classList.contains("bar");
    if (along || bars) {
      const row = bars ? all : points;
      show(chart, row[(row.indexOf(here) + (along || across) + row.length) % row.length]);
    } else {
      const next = $$("[data-tip]", groups[(groups.indexOf(group) + across + groups.length) % groups.length]);
      show(chart, next[Math.min(points.indexOf(here), next.length - 1)]);
    }
  });
};
$$("svg.chart").forEach(wire);
