"use strict";
// Items are picked by their facets; a link to a score unfolds nothing, so that nobody meets the texts unasked.
for (const box of document.querySelectorAll("details.items")) {
  const choices = [...box.querySelectorAll("select")];
  const items = [...box.querySelectorAll("ol > li")];
  const count = box.querySelector("output");
  const pick = () => {
    for (const item of items) {
      item.hidden = choices.some(({ value, dataset }) => value !== "" &&
        item.getAttribute(dataset.facet === "kind" ? "data-kind" : `data-facet-${dataset.facet}`) !== value);
    }
    count.textContent = `${items.filter((item) => !item.hidden).length} of ${items.length} shown`;
  };
  choices.forEach((choice) => choice.addEventListener("change", pick));
  box.querySelector(".filters").hidden = false;
  pick();
}
