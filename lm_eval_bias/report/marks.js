"use strict";
// Marks of figures say their numbers where the pointer or the keyboard is. A figure is one stop of Tab; arrow keys go
// from mark to mark.
{
  const tip = document.createElement("div");
  tip.className = "tip";
  tip.hidden = true;
  tip.setAttribute("aria-hidden", "true"); // the mark's own name says the same
  document.body.append(tip);
  const show = (mark) => {
    tip.textContent = mark.getAttribute("aria-label");
    tip.hidden = false;
    const box = mark.getBoundingClientRect(), own = tip.getBoundingClientRect();
    const left = Math.min(Math.max(box.left + box.width / 2 - own.width / 2, 4), innerWidth - own.width - 4);
    const above = box.top - own.height - 8;
    tip.style.left = `${left + scrollX}px`;
    tip.style.top = `${(above < 0 ? box.bottom + 8 : above) + scrollY}px`;
  };
  const hide = () => { tip.hidden = true; };
  for (const figure of document.querySelectorAll("figure")) {
    const marks = [...figure.querySelectorAll(".mark")];
    marks.forEach((mark, number) => {
      const title = mark.querySelector("title");
      mark.setAttribute("aria-label", title.textContent);
      title.remove(); // the browser would show it a second time
      mark.setAttribute("tabindex", number ? "-1" : "0");
      mark.addEventListener("pointerenter", () => show(mark));
      mark.addEventListener("pointerleave", hide);
      mark.addEventListener("focus", () => show(mark));
      mark.addEventListener("blur", hide);
    });
    const steps = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 };
    figure.addEventListener("keydown", (event) => {
      const here = marks.indexOf(document.activeElement);
      if (event.key === "Escape") hide();
      if (here < 0) return;
      const ends = { Home: 0, End: marks.length - 1 };
      const next = event.key in steps ? here + steps[event.key] : ends[event.key];
      if (next === undefined || !marks[next]) return;
      event.preventDefault();
      marks[here].setAttribute("tabindex", "-1");
      marks[next].setAttribute("tabindex", "0");
      marks[next].focus();
    });
  }
}
