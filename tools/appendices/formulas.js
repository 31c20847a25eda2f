/* The formulas: a box that keeps the cards with all typed words, and in each card, when it opens, its letters and a calculator. */
(() => {
  "use strict";
  const make = (tag, attributes, ...children) => {
    const e = Object.assign(document.createElement(tag), attributes);
    e.append(...children);
    return e;
  };
  const cards = [...document.querySelectorAll("details.cx-card")].map((card) => ({ card, place: card.closest("section") }));
  const plain = (text) => text.toLowerCase().replace(/[-_]/g, "");           // "allreduce" asks for all-reduce
  for (const c of cards) c.words = plain(c.place.textContent + " " + c.place.parentElement.querySelector("h2").textContent);
  const groups = [...new Set(cards.map((c) => c.place.parentElement))];

  const box = make("input", { type: "search", placeholder: "bubble, all-reduce, B/s" }), said = make("output", {});
  box.addEventListener("input", () => {
    const asked = plain(box.value).split(/\s+/);
    for (const c of cards) c.place.hidden = !asked.every((word) => c.words.includes(word));
    for (const g of groups) g.hidden = cards.every((c) => c.place.parentElement !== g || c.place.hidden);
    const left = cards.filter((c) => !c.place.hidden).length;
    said.textContent = box.value ? `${left} of ${cards.length}` : "";
  });
  groups[0].before(make("p", { className: "cx-filter" }, make("label", {}, "Find a formula ", box), " ", said));

  // Six digits; what is huge or tiny as the book writes it: 23.9277 GB, 6.22807×10⁻⁶.
  const readable = (x, unit) => x === 0 || Math.abs(x) >= 1e-3 && Math.abs(x) < 1e6 ? `${x.toLocaleString("en", { maximumSignificantDigits: 6 })} ${unit}`
    : cx.show(x, unit, 6);
  function calculator(card) {
    const S = JSON.parse(card.dataset.spec), f = Function(`return ${S.js}`)(), result = make("output", {});
    const inputs = S.args.map(([name, least, most, step]) => make("input", { type: "number", min: least, max: most ?? "", step, required: true, ariaLabel: name }));
    const rows = card.querySelectorAll("tbody tr");
    card.querySelector("thead tr").append(make("th", {}, "Try it"));
    inputs.forEach((input, k) => rows[k].append(make("td", {}, input)));
    const compute = () => {
      const wrong = inputs.findIndex((i) => !i.validity.valid), { ariaLabel: name, value, validity } = inputs[wrong] || {};
      result.textContent = wrong < 0 ? `= ${readable(f(...inputs.map((i) => i.valueAsNumber)), S.unit)}`
        : value === "" && !validity.badInput ? "Type a number in each row; 1e9 is a billion."
        : `${name} = ${value || "no number"}; allowed: ${rows[wrong].cells[3].textContent}.`;
    };
    card.addEventListener("input", compute);
    card.querySelector(".pst-scrollable-table-container, table").after(make("p", { className: "cx-result" }, result));
    compute();
  }
  // All at once they would be a thousand formulas that nobody sees, and as many layouts, for each is measured where it stands.
  function letters(place) {
    for (const e of place.querySelectorAll(".cx-tex")) e.className = "math";
    window.MathJax?.typesetPromise?.([place]).then(() => MathJax.startup.document.lazyTypesetAll());
  }
  for (const { card } of cards) card.addEventListener("toggle", () => { letters(card); calculator(card); }, { once: true });
  addEventListener("beforeprint", () => letters(document.body));

  const reveal = () => { const c = cards.find((c) => "#" + c.place.id === location.hash || c.place.querySelector(`[id="${location.hash.slice(1)}"]`)); if (c) c.card.open = true; };
  addEventListener("hashchange", reveal);
  reveal();
})();
