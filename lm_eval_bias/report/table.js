"use strict";
// Sorting by the buttons in table headings: rows without a value stay last, equal rows keep their order.
for (const table of document.querySelectorAll("table.sortable")) {
  const heads = [...[...table.tHead.rows].at(-1).cells];
  const words = new Intl.Collator(undefined, { numeric: true });
  const key = (row, column) => {
    const cell = row.cells[column];
    if (cell.dataset.value !== undefined) return Number(cell.dataset.value);
    return heads[column].classList.contains("number") ? NaN : cell.textContent.trim();
  };
  heads.forEach((head, column) => {
    head.querySelector("button").addEventListener("click", () => {
      const up = head.getAttribute("aria-sort") !== "ascending";
      heads.forEach((other) => other.setAttribute("aria-sort", other === head ? (up ? "ascending" : "descending") : "none"));
      for (const body of table.tBodies) {
        const keyed = [...body.rows].map((row) => [key(row, column), row]);
        keyed.sort(([a], [b]) => {
          const lacking = Number(Number.isNaN(a)) - Number(Number.isNaN(b));
          if (lacking || Number.isNaN(a)) return lacking;
          const order = typeof a === "number" && typeof b === "number" ? a - b : words.compare(String(a), String(b));
          return up ? order : -order;
        });
        body.append(...keyed.map(([, row]) => row));
      }
    });
  });
}
// Search, where a page has it: rows of other models are hidden.
document.querySelector("input[type=search]")?.addEventListener("input", ({ target }) => {
  for (const row of document.querySelectorAll(".models tbody tr")) {
    row.hidden = !row.cells[0].textContent.toLowerCase().includes(target.value.toLowerCase());
  }
});
