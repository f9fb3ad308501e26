// The leaderboard's filters: words in a model's name, its family and source, and the tasks by benchmark and language.
for (const filters of document.querySelectorAll(".board-filters")) {
  const table = document.querySelector("table.board");
  const [groups, heads] = table.tHead.rows;
  let next = 1;
  const tasks = [...groups.cells].slice(1).map((head) => {
    const first = next;
    next += head.colSpan;
    return { head, first, last: next, shown: true };
  });
  const rows = [...table.tBodies[0].rows].map((row) => ({
    row,
    name: row.querySelector(".full").textContent.toLowerCase(),
    has: tasks.map((task) => row.cells[task.first].hasChildNodes()),
  }));
  const chosen = (name) => filters.querySelector(`[name=${name}]`).value;
  const agrees = (given, own) => given === "" || given === own;
  const show = (task, shown) => {
    if (shown === task.shown) return;
    task.shown = shown;
    task.head.hidden = !shown;
    for (const row of [heads, ...table.tBodies[0].rows]) {
      for (let column = task.first; column < task.last; column++) row.cells[column].hidden = !shown;
    }
  };
  const update = () => {
    const words = chosen("model").toLowerCase().split(/\s+/);
    for (const task of tasks) {
      const { benchmark, language } = task.head.dataset;
      show(task, agrees(chosen("benchmark"), benchmark) && agrees(chosen("language"), language));
    }
    let count = 0;
    for (const { row, name, has } of rows) {
      const shown = words.every((word) => name.includes(word)) && agrees(chosen("family"), row.dataset.family)
        && agrees(chosen("kind"), row.dataset.kind) && tasks.some((task, place) => task.shown && has[place]);
      row.hidden = !shown;
      count += shown;
    }
    const across = tasks.filter((task) => task.shown).length;
    filters.querySelector("output").textContent =
      `${count} of ${rows.length} rows, ${across} of ${tasks.length} tasks${count ? "" : ": no row matches"}`;
  };
  filters.addEventListener("input", update);
  filters.querySelector("button").addEventListener("click", () => {
    for (const field of filters.querySelectorAll("input, select")) field.value = "";
    update();
  });
  // what the tab key reaches isn't covered by the headings, however high they are
  const box = table.parentElement;
  new ResizeObserver(() => { box.style.scrollPaddingTop = `${table.tHead.offsetHeight + 8}px`; }).observe(table.tHead);
  filters.hidden = false;
  update();  // a browser may keep what was chosen when the page is loaded again
}
