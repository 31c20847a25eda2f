/* The formulas: a box that keeps the cards with all typed words, and a calculator in each card. */
(() => {
  "use strict";
  const make = (tag, attributes, ...children) => {
    const e = Object.assign(document.createElement(tag), attributes);
    e.append(...children);
    return e;
  };
  const cards = [...document.querySelectorAll("details.cx-card")].map((card) => ({ card, place: card.closest("section") }));
  for (const c of cards) c.words = (c.place.textContent + " " + c.place.parentElement.querySelector("h2").textContent).toLowerCase();
  const groups = [...new Set(cards.map((c) => c.place.parentElement))];

  const box = make("input", { type: "search", placeholder: "bubble, all-reduce, B/s" }), said = make("output", {});
  box.addEventListener("input", () => {
    const asked = box.value.toLowerCase().split(/\s+/);
    for (const c of cards) c.place.hidden = !asked.every((word) => c.words.includes(word));
    for (const g of groups) g.hidden = cards.every((c) => c.place.parentElement !== g || c.place.hidden);
    const left = cards.filter((c) => !c.place.hidden).length;
    said.textContent = box.value ? `${left} of ${cards.length}` : "";
  });
  groups[0].before(make("p", { className: "cx-filter" }, make("label", {}, "Find a formula ", box), " ", said));

  function calculator(card) {
    const S = JSON.parse(card.dataset.spec), f = Function(`return ${S.js}`)(), result = make("output", {});
    const inputs = S.args.map(([name, least, most, step]) => make("input", { type: "number", min: least, max: most ?? "", step, required: true, ariaLabel: name }));
    const rows = card.querySelectorAll("tbody tr");
    card.querySelector("thead tr").append(make("th", {}, "Try it"));
    inputs.forEach((input, k) => rows[k].append(make("td", {}, input)));
    const compute = () => {
      const wrong = inputs.find((i) => !i.validity.valid);
      const value = wrong ? NaN : f(...inputs.map((i) => i.valueAsNumber));
      result.textContent = !wrong ? `= ${Number(value.toPrecision(6)).toLocaleString("en", { maximumSignificantDigits: 6 })} ${S.unit}`
        : wrong.validity.valueMissing ? "Type a number in each row; 1e9 is a billion." : `${wrong.ariaLabel}: ${wrong.validationMessage}`;
    };
    card.addEventListener("input", compute);
    card.querySelector(".pst-scrollable-table-container, table").after(make("p", { className: "cx-result" }, result));
    compute();
  }
  for (const { card } of cards) card.addEventListener("toggle", () => calculator(card), { once: true });

  const reveal = () => { const c = cards.find((c) => "#" + c.place.id === location.hash || c.place.querySelector(`[id="${location.hash.slice(1)}"]`)); if (c) c.card.open = true; };
  addEventListener("hashchange", reveal);
  reveal();
})();
