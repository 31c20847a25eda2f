/* A page of the site made ready for paper; the (level, id, text) of its headings. */
({ page, book, address, site }) => {
  const article = document.querySelector(".bd-article"), all = (s, e = article) => [...e.querySelectorAll(s)];
  const make = (tag, attributes, ...children) => {
    const e = document.createElement(tag);
    for (const k in attributes) e.setAttribute(k, attributes[k]);
    e.append(...children);
    return e;
  };
  document.documentElement.dataset.theme = "light";
  document.documentElement.dataset.code = "argument";
  article.dataset.kind = page.replace(/^(appendices\/)?/, "").split("/")[0];
  document.getElementById("jb-print-docs-body")?.remove();
  all(".headerlink, button.copybtn, .toctree-wrapper").forEach((e) => e.remove());

  // ---- a target before a heading would let a page end between it and the heading above
  for (const target of all("section > span[id]:empty")) target.parentElement.querySelector(":scope > :is(h1, h2, h3, h4)")?.prepend(target);

  // ---- marks get numbers; the sentences of the programs behind them stand at the end of the chapter
  const said = (proof) => make("span", {}, ...proof.querySelector("summary > span").cloneNode(true).childNodes);
  const noted = new Set(), notes = make("ol", {}), rest = make("ul", {});
  all("a.cx-qed").forEach((a, k) => {
    const proof = document.getElementById(a.getAttribute("aria-controls"));
    noted.add(proof);
    notes.append(make("li", { id: `mark-${k + 1}` }, said(proof)));
    a.href = `#mark-${k + 1}`;
    a.append(make("sup", {}, k + 1));
  });
  all(".cx-proof").filter((p) => !noted.has(p)).forEach((p) => rest.append(make("li", {}, said(p))));
  const end = make("section", { id: "marks", class: "cx-notes" });
  if (notes.children.length + rest.children.length) {
    end.append(make("h2", {}, "What the marks stand for"),
      make("p", {}, "Each sentence is a program in ", make("code", {}, `${page}.ipynb`), ", ∎ proved, ✓ tested, that would have stopped this book by failing."), notes);
    if (rest.children.length) end.append(make("p", {}, "Further ones, without a mark in the text:"), rest);
  }

  // ---- a quick question is answered where the reader does not see it at once
  const answers = make("ol", {});
  for (const q of all(".cx-quiz > ol > li")) {
    const right = q.querySelector("li[data-right='1']"), button = right.querySelector("button");
    const why = make("span", {}, ...right.querySelector("[role=status] p").cloneNode(true).childNodes);
    why.querySelector("b").remove();
    answers.append(make("li", {}, make("b", {}, ...right.querySelector(".cx-option").cloneNode(true).childNodes), ". ", why));
    button.click();
  }
  if (answers.children.length) end.append(make("h2", { id: "answers" }, "Answers to the quick questions"), answers);
  if (end.children.length) (article.querySelector("section") || article).append(end);

  // ---- an explorer stands with its table, but for the one table that is a chart of its own
  for (const foot of all(".cx-foot")) {
    const table = foot.querySelector("table");
    if (table && table.rows.length <= 12) foot.before(make("div", { class: "cx-values" }, table.cloneNode(true)));
  }

  // ---- what a slider sets stands beside its name
  for (const label of all(".cx-controls label")) {
    const pair = make("span", { class: "cx-pair" }), value = label.nextElementSibling;
    label.before(pair);
    pair.append(label, value);
  }

  // ---- exercises without their checks
  if (page.startsWith("exercises/")) {
    article.querySelector("h1 + p").replaceChildren("Each exercise waits with a check in ", make("code", {}, `${page}.ipynb`), ".");
    all(".cell").filter((c) => /^\s*# check/.test(c.textContent) || c.matches(".tag_check")).forEach((c) => c.remove());
    all("p").filter((p) => p.textContent.trim() === "Your answer:").forEach((p) => p.remove());
  }

  // ---- links to what is not on paper; a place for every link of the others
  for (const a of all("a[href]")) {
    const there = a.href.split("#")[0];
    if (!a.href.startsWith(address) || book.includes(there)) continue;
    if (site) a.href = site + a.href.slice(address.length);
    else a.replaceWith(...a.childNodes);
  }
  const targets = make("div", { hidden: "" });
  for (const e of all("[id]")) if (!e.closest("svg, mjx-container")) targets.append(make("a", { href: "#" + encodeURIComponent(e.id) }));
  article.append(targets);

  // ---- what is wider than the text is made smaller, when the page has the width of paper
  window.cxFit = () => {
    const math = all("div.math"), tables = all("table"), ratio = (e, room) => room.clientWidth/e.scrollWidth;
    const parts = [...math.map((e) => [e, "fontSize", ratio(e, e)]), ...tables.map((e) => [e, "zoom", ratio(e, e.parentElement)])];
    for (const [e, what, part] of parts) if (part < .995 && part > 0) e.style[what] = `${Math.floor(98*part)}%`;
  };

  return all("h1, h2, h3").map((h) => {
    const copy = h.cloneNode(true);
    copy.querySelectorAll("mjx-container").forEach((m) => m.replaceWith(m.querySelector("math").textContent));
    return [Number(h.tagName[1]), h.id || h.closest("section").id, copy.textContent.trim()];
  });
}
