// The leaderboard's controls. DataTables, which stands in front of this, sorts, searches and pages; here is what is
// particular to models and benchmarks: which columns are open, what a cell tells, and the choice as an address.
const data = JSON.parse(document.getElementById("data").textContent);
const board = document.getElementById("board");
const form = document.getElementById("controls");
const details = document.getElementById("cell");
const status = document.getElementById("status");
const scores = new Map(data.scores.map((score) => [score.id, score]));
const byName = new Map(data.models.map((model) => [model.model, model]));
const cells = new Map(data.scores.flatMap((score) => score.cells.map((cell) => [`${cell.model}\n${score.id}`, { ...cell, score }])));
const heads = [...board.tHead.rows[0].cells].map((head) => ({ ...head.dataset }));
const names = heads.map((head) => head.name ?? "model"); // which addresses have
const empty = new Set(data.empty);
const MOST = 100; // rows on a page
const defaults = { q: "", benchmark: "", language: "", prompt: "", size: "", items: "", chance: "", open: "", sort: "" };
let state = { ...defaults };

const number = (text) => (text === "" ? NaN : Number(text));
const order = (sign) => (a, b) => {
  const lacking = Number(Number.isNaN(a)) - Number(Number.isNaN(b));
  return lacking || (Number.isNaN(a) ? 0 : sign * (a - b)); // without a value last, whichever way
};
DataTable.type("score", { order: { pre: number, asc: order(1), desc: order(-1) } });

function listed(name, values) {
  const select = form.elements[name];
  for (const [value, label] of values) select.add(new Option(label, value));
}

const families = new Map(heads.filter((head) => head.benchmark).map((head) => {
  const score = data.scores.find((one) => one.id === head.score);
  return [head.benchmark, score ? score.benchmark : head.benchmark];
}));
for (const head of heads) if (head.score) families.set(head.benchmark, scores.get(head.score).benchmark);
listed("benchmark", [...families]);
listed("language", [...new Set(heads.map((head) => head.language).filter(Boolean))].sort().map((code) => [code, code]));
const parts = new Set(data.scores.flatMap((score) => score.cells.map((cell) => cell.part)).filter(Boolean));
listed("items", [...parts].sort().map((part) => [part, part]));

function isShown(head, index) {
  if (index === 0) return true;
  if (state.benchmark && head.benchmark !== state.benchmark) return false;
  if (state.language) return head.language === state.language;
  const open = state.benchmark || state.open.split(",").includes(head.benchmark);
  if (head.summary) return !open;
  return open || !head.inner;
}

const isInner = heads.map((head, index) => (head.inner ? index : -1)).filter((index) => index > 0);
const options = {
  autoWidth: false, info: false, order: [], paging: data.models.length > MOST, pageLength: MOST, searching: true,
  layout: { topStart: null, topEnd: null, bottomStart: null, bottomEnd: data.models.length > MOST ? "paging" : null },
  columnDefs: [
    { targets: isInner, visible: false },
    { targets: heads.map((_, index) => index).slice(1), type: "score", searchable: false },
    { targets: heads.map((head, index) => (head.summary || head.ability || (head.score && scores.get(head.score).higher_is_better) ? index : -1)).filter((index) => index > 0), orderSequence: ["desc", "asc", ""] },
  ],
};
const table = new DataTable(board, options);

// ---------------------------------------------------------------------- cells that tell more

const labels = heads.map((head) => (head.score ? `${scores.get(head.score).task}: ${scores.get(head.score).label}` : families.get(head.benchmark) + (head.ability ? ", ability" : "")));
// every cell with its row's model and its column, also of columns and pages that aren't shown; asked for once
function places() {
  const indexes = table.rows().indexes().toArray();
  const names = new Map(table.rows().nodes().toArray().map((row, at) => {
    row.dataset.model = row.cells[0].firstChild.textContent;
    return [indexes[at], row.dataset.model];
  }));
  const nodes = table.cells().nodes().toArray();
  return table.cells().indexes().toArray().map(({ row, column }, at) => ({ node: nodes[at], model: names.get(row), column }));
}
for (const { node, model, column } of places()) {
  if (column > 0) node.dataset.label = labels[column];
  if (!cells.has(`${model}\n${heads[column].score}`)) continue;
  node.dataset.cell = heads[column].score;
  node.tabIndex = -1;
}
for (const row of table.rows().nodes().toArray()) {
  const link = document.createElement("a"); // a model's address
  link.href = `#${new URLSearchParams({ q: row.dataset.model })}`;
  link.textContent = row.dataset.model;
  row.cells[0].firstChild.replaceWith(link);
}
for (const head of board.tHead.querySelectorAll("[data-summary]")) {
  const open = document.createElement("button");
  open.type = "button";
  open.className = "open";
  open.textContent = "open";
  open.setAttribute("aria-label", `open the tasks of ${families.get(head.dataset.benchmark)}`);
  head.append(open);
}

function line(list, term, text) {
  if (text === undefined || text === null || text === "") return;
  const key = document.createElement("dt");
  const value = document.createElement("dd");
  key.textContent = term;
  if (String(text).startsWith("https://")) {
    const link = document.createElement("a");
    link.href = text;
    link.textContent = text;
    value.append(link);
  } else value.textContent = text;
  list.append(key, value);
}

function tell(cell, place) {
  const { score } = cell;
  const run = byName.get(cell.model)?.runs[cell.run ?? 0];
  const title = document.createElement("p");
  const strong = document.createElement("strong");
  strong.textContent = `${cell.model}, ${score.label}`;
  const shown = [...place.childNodes].filter((node) => !node.matches?.("svg, small, #cell")).map((node) => node.textContent);
  title.append(strong, ` ${shown.join(" ")}`);
  const list = document.createElement("dl");
  line(list, "Task", `${score.task}: ${score.measures}`);
  line(list, "Says", [cell.badge, cell.part].filter(Boolean).join(", "));
  line(list, "Reads", score.reads);
  line(list, "Rests on", cell.n && `${cell.n} records of ${cell.documents} items (of ${cell.items ?? "?"})` + (cell.prompts ? `, ${cell.prompts} different prompts` : ""));
  const said = [cell.warning, cell.note].filter(Boolean).join("; ");
  const none = said.includes(cell.no_rank) ? "" : cell.no_rank;
  line(list, "Rank", cell.rank ? `${cell.rank[0]} to ${cell.rank[1]} of ${cell.ranked} that were asked the same` : none);
  line(list, "Unsure", said);
  line(list, "Source", cell.source);
  line(list, "Made by", cell.conventions);
  line(list, "Departs", cell.deviations);
  line(list, "Command", run?.command);
  line(list, "File", run && `${run.file} (SHA-256 ${run.sha256 ?? "unknown"})`);
  line(list, "Further runs", cell.others);
  line(list, "Paper", score.paper);
  details.replaceChildren(title, list);
  place.append(details); // where Tab goes on to its links
  details.classList.toggle("held", place === held);
  details.showPopover();
  const box = place.getBoundingClientRect();
  const below = box.bottom + details.offsetHeight < innerHeight;
  details.style.left = `${Math.max(8, Math.min(box.left, innerWidth - details.offsetWidth - 8))}px`;
  details.style.top = `${below ? box.bottom : Math.max(8, box.top - details.offsetHeight)}px`;
}

let held = null; // the cell that was tapped, whose details stay
function hide() {
  held = null;
  if (details.matches(":popover-open")) details.hidePopover();
}
function found(event) {
  const place = event.target.closest?.("td[data-cell]");
  const row = place?.closest("tr");
  return place && [cells.get(`${row.dataset.model}\n${place.dataset.cell}`), place];
}
// one cell of a table is in the order of Tab, and arrows lead to the others
function enter(cell) {
  for (const other of board.querySelectorAll("td[tabindex='0']")) other.tabIndex = -1;
  if (cell) cell.tabIndex = 0;
}
const STEPS = { ArrowLeft: "previousElementSibling", ArrowRight: "nextElementSibling", ArrowUp: "previousElementSibling", ArrowDown: "nextElementSibling" };
function beside(cell, key) {
  let next = cell;
  do {
    if (key === "ArrowUp" || key === "ArrowDown") next = next.parentElement[STEPS[key]]?.cells[cell.cellIndex];
    else next = next[STEPS[key]];
  } while (next && !next.dataset.cell);
  return next;
}
board.addEventListener("mouseover", (event) => { const at = found(event); if (at && !held && !details.contains(event.target)) tell(...at); });
board.addEventListener("mouseout", () => { if (!held) hide(); });
board.addEventListener("focusin", (event) => {
  const at = found(event);
  if (!at || details.contains(event.target)) return;
  enter(at[1]);
  held = at[1];
  tell(...at);
});
board.addEventListener("focusout", (event) => { if (!held?.contains(event.relatedTarget)) hide(); });
board.addEventListener("click", (event) => { const at = found(event); if (at && !details.contains(event.target)) { held = at[1]; tell(...at); } });
board.addEventListener("keydown", (event) => {
  const next = event.target.dataset.cell && STEPS[event.key] && beside(event.target, event.key);
  if (!next) return;
  event.preventDefault();
  next.focus();
});
document.addEventListener("keydown", (event) => { if (event.key === "Escape") hide(); });

// ---------------------------------------------------------------------- the choice

const isWithin = (parameters, size) => {
  const [low, high] = size.split("-").map(Number);
  return parameters !== null && parameters >= low && parameters < high;
};
let visible = [];
function fits(model) {
  if (state.q && !model.model.toLowerCase().includes(state.q.toLowerCase())) return false;
  if (state.prompt && model.prompt !== state.prompt) return false;
  if (state.size && !isWithin(model.parameters, state.size)) return false;
  if (!state.items && !state.chance && !state.benchmark && !state.language) return true;
  const own = visible.map((id) => cells.get(`${model.model}\n${id}`)).filter(Boolean);
  return own.some((cell) => (!state.items || (cell.part || "whole") === state.items) && !(state.chance && empty.has(cell.badge)));
}
table.search.fixed("choice", (_, __, index) => fits(data.models[index]));

function apply() {
  const shown = heads.map(isShown);
  const inner = (index) => heads[index].score;
  visible = heads.filter((head, index) => head.score && (shown[index] || (head.inner && shown.some((is, at) => is && heads[at].summary && heads[at].benchmark === head.benchmark)))).map((head) => head.score);
  const every = table.columns().indexes().toArray();
  const on = every.filter((index) => shown[index] && !table.column(index).visible());
  const off = every.filter((index) => !shown[index] && table.column(index).visible());
  if (off.length) table.columns(off).visible(false, false);
  if (on.length) table.columns(on).visible(true, false);
  const at = state.sort.lastIndexOf(":"); // of a column's name and a direction
  const column = names.indexOf(state.sort.slice(0, at));
  table.order(column < 0 ? [] : [[column, state.sort.slice(at + 1)]]);
  table.draw();
  document.body.classList.toggle("no-chance", Boolean(state.chance));
  if (!board.querySelector("td[tabindex='0']")) enter(board.querySelector("td[data-cell]"));
  const number = table.rows({ search: "applied" }).count();
  status.textContent = `${number} of ${data.models.length} models`;
  document.getElementById("nothing").hidden = number > 0;
  document.getElementById("models").classList.toggle("empty", number === 0);
  for (const [name, value] of Object.entries(state)) {
    const field = form.elements[name];
    if (field?.type === "checkbox") field.checked = Boolean(value);
    else if (field) field.value = value;
  }
  const kept = Object.entries(state).filter(([name, value]) => value !== defaults[name]);
  history.replaceState(null, "", kept.length ? `#${new URLSearchParams(kept)}` : location.pathname + location.search);
}
function set(changes) {
  state = { ...state, ...changes };
  apply();
}
form.addEventListener("submit", (event) => event.preventDefault());
form.addEventListener("input", (event) => {
  const field = event.target;
  set({ [field.name]: field.type === "checkbox" ? (field.checked ? "1" : "") : field.value });
});
const reset = () => { state = { ...defaults }; apply(); };
form.addEventListener("reset", (event) => { event.preventDefault(); reset(); });
document.getElementById("again").addEventListener("click", reset);
table.on("order", () => {
  const [[column, direction] = []] = table.order();
  const sort = column === undefined || !direction ? "" : `${names[column]}:${direction}`;
  if (sort !== state.sort) set({ sort });
});
for (const button of board.tHead.querySelectorAll(".open")) {
  button.addEventListener("click", (event) => {
    event.stopPropagation(); // which would sort
    const { benchmark } = button.closest("th").dataset;
    set({ open: [...state.open.split(",").filter(Boolean), benchmark].join(",") });
  });
  button.addEventListener("keydown", (event) => event.stopPropagation());
}

// ---------------------------------------------------------------------- files

function save(name, kind, text) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text], { type: kind }));
  link.download = name;
  link.click();
  URL.revokeObjectURL(link.href);
}
function chosen() {
  const models = table.rows({ search: "applied", order: "applied" }).indexes().toArray().map((index) => data.models[index]);
  const found = models.flatMap((model) => visible.map((id) => [model, scores.get(id), cells.get(`${model.model}\n${id}`)]));
  return { models, rows: found.filter(([, , cell]) => cell) };
}
const FIELDS = ["model", "prompt", "parameters", "task", "language", "score", "unit", "neutral", "range_low", "range_high",
  "value", "interval_low", "interval_high", "n", "prompts", "badge", "part", "rank_low", "rank_high", "ranked", "file"];
function field(value) {
  let text = value === undefined || value === null ? "" : String(value);
  if (typeof value === "string" && /^'* *[=+\-@\t\r\n]/.test(text)) text = `'${text}`; // no formula of a spreadsheet
  return /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
document.getElementById("csv").addEventListener("click", () => {
  const lines = chosen().rows.map(([model, score, cell]) => [model.model, model.prompt, model.parameters, score.task,
    score.language, score.name, score.unit, score.neutral, score.range?.[0], score.range?.[1], cell.value, cell.interval?.[0], cell.interval?.[1], cell.n,
    cell.prompts, cell.badge, cell.part, cell.rank?.[0], cell.rank?.[1], cell.ranked, model.runs[cell.run ?? 0].file]);
  save("leaderboard.csv", "text/csv", [FIELDS, ...lines].map((row) => row.map(field).join(",")).join("\n") + "\n");
});
document.getElementById("json").addEventListener("click", () => {
  const { models, rows } = chosen();
  const names = new Set(rows.map(([model]) => model.model));
  const kept = data.scores.filter((score) => visible.includes(score.id));
  const shown = kept.map((score) => ({ ...score, cells: score.cells.filter((cell) => names.has(cell.model)) }));
  save("leaderboard.json", "application/json", JSON.stringify({ ...data, scores: shown, models }, null, 1) + "\n");
});
document.getElementById("copy").addEventListener("click", async () => {
  try {
    await navigator.clipboard.writeText(location.href);
    status.textContent = "The link is copied.";
  } catch {
    status.textContent = location.href;
  }
});

function read() {
  const given = Object.fromEntries(new URLSearchParams(location.hash.slice(1)));
  state = { ...defaults };
  for (const name of Object.keys(defaults)) if (name in given) state[name] = given[name];
  if (innerWidth <= 640 && !state.benchmark) state.benchmark = heads[1]?.benchmark ?? ""; // a card a model, one benchmark
  apply();
}
addEventListener("hashchange", read);
form.hidden = false;
document.body.classList.add("with-script");
read();
