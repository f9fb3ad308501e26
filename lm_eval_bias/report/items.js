// Items: DataTables, which stands in front of this, sorts, searches and pages; here are the choices of facets.
const table = new DataTable(document.getElementById("items"), {
  autoWidth: false, order: [], pageLength: 50, searching: true,
  layout: { topStart: null, topEnd: null, bottomStart: "info", bottomEnd: "paging" },
});
const form = document.getElementById("controls");
const status = document.getElementById("status");
const facets = [...form.querySelectorAll("select")];
for (const select of facets) {
  const values = table.column(Number(select.dataset.column)).data().unique().sort().toArray();
  for (const value of values) {
    const text = new DOMParser().parseFromString(value, "text/html").documentElement.textContent;
    select.add(new Option(text, text));
  }
}
function choose() {
  table.search(form.elements.q.value);
  for (const select of facets) {
    const column = table.column(Number(select.dataset.column));
    column.search.fixed("facet", select.value && ((text) => text === select.value));
  }
  table.draw();
  status.textContent = `${table.rows({ search: "applied" }).count()} items`;
}
form.addEventListener("submit", (event) => event.preventDefault());
form.addEventListener("input", choose);
form.addEventListener("reset", () => setTimeout(choose));
form.hidden = false;
choose();
