// The leaderboard: one benchmark at a time, what the reader picks, an address that keeps it, CSV of what is shown.
{
  const filters = document.querySelector("[role=search]");
  const [words, kind] = filters.querySelectorAll("input, select");
  const tabs = [...document.querySelectorAll("[role=tab]")];
  const panels = [...document.querySelectorAll("[role=tabpanel]")].map((panel) => ({
    panel,
    name: panel.id.replace("board-", ""),
    heads: [...panel.querySelector("thead").querySelectorAll(".number")],
    rows: () => [...panel.querySelector("table").tBodies].flatMap((body) => [...body.rows]),
    boxes: [...panel.querySelectorAll("input")],
  }));
  let open = 0;
  const show = () => {
    tabs.forEach((tab, number) => {
      tab.setAttribute("aria-selected", number === open);
      tab.tabIndex = number === open ? 0 : -1;
      panels[number].panel.hidden = number !== open;
    });
    const { panel, heads, rows, boxes } = panels[open];
    const asked = words.value.toLowerCase().split(/\s+/);
    const reach = [heads, ...rows().map((row) => [...row.cells].slice(1))];
    for (const cells of reach) cells.forEach((cell, place) => { cell.hidden = !boxes[place].checked; });
    for (const row of rows()) {
      row.hidden = !row.querySelector("td:not([hidden], .absent)") || !row.parentElement.id.endsWith(kind.value)
        || !asked.every((word) => row.cells[0].textContent.toLowerCase().includes(word));
    }
    const columns = boxes.filter((box) => box.checked).length;
    panel.querySelector("summary").textContent = `Columns: ${columns} of ${boxes.length}`;
    filters.querySelector("output").textContent =
      `${rows().filter((row) => !row.hidden).length} of ${rows().length} models`;
  };
  const update = () => {
    show();
    const state = new URLSearchParams({ tab: panels[open].name, model: words.value, kind: kind.value });
    for (const { name, boxes } of panels) {
      const picks = (how) => String(boxes.filter((box) => box[how]).map((box) => box.value));
      if (picks("checked") !== picks("defaultChecked")) state.set(name, picks("checked"));
    }
    history.replaceState(null, "", `#${state}`);
  };
  const read = () => {
    const hash = location.hash.slice(1), state = new URLSearchParams(hash);
    const found = panels.findIndex(({ panel, name }) => panel.id === hash || name === state.get("tab"));
    if (found >= 0) open = found;
    if (state.has("tab")) {
      words.value = state.get("model") ?? "";
      kind.value = state.get("kind") ?? "";
      for (const { name, boxes } of panels) {
        const picked = state.get(name)?.split(",");
        for (const box of boxes) box.checked = picked?.includes(box.value) ?? box.defaultChecked;
      }
    }
    show();
  };
  const choose = (event, number) => {
    event.preventDefault();
    open = (number + tabs.length) % tabs.length;
    tabs[open].focus();
    update();
  };
  tabs.forEach((tab, number) => {
    tab.addEventListener("click", (event) => choose(event, number));
    tab.addEventListener("keydown", (event) => {
      const steps = { ArrowRight: number + 1, ArrowLeft: number - 1, Home: 0, End: -1, " ": number };
      if (event.key in steps) choose(event, steps[event.key]);
    });
  });
  const text = (part) => part?.textContent.trim() ?? "";
  // as escaping.py has it: no spreadsheet takes a text for a formula
  const quoted = (cell) => `"${/^'* *[=+@\t\r\n-](?!\d*\.?\d+$)/.test(cell) ? "'" : ""}${cell.replaceAll('"', '""')}"`;
  filters.querySelector("button").addEventListener("click", () => {
    const { name, heads, rows } = panels[open];
    const shown = (cells) => cells.filter((cell) => !cell.hidden);
    const titles = shown(heads).map((head) => `${text(head.firstChild)}: ${head.querySelector("button").title}`);
    const lines = shown(rows()).map(({ cells: [model, ...cells] }) => [
      model.title, [...model.querySelectorAll("small")].map(text).join("; "),
      ...shown(cells).flatMap((cell) => cell.matches(".absent") ? ["", "", ""] : [
        text(cell.firstChild), text(cell.querySelector("span")), text(cell.querySelector("small")).replace("rank ", ""),
      ]),
    ]);
    lines.unshift(["model", "about", ...titles.flatMap((title) => [title, `${title}, 95% interval`, `${title}, rank`])]);
    const csv = lines.map((line) => `${line.map(quoted).join()}\n`);
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob(csv, { type: "text/csv" }));
    link.download = `${name}.csv`;
    link.click();
  });
  for (const part of [filters, ...document.querySelectorAll(".picker")]) {
    part.hidden = false;
    part.addEventListener("input", update);
  }
  addEventListener("hashchange", read);
  read();
}
