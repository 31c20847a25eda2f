/* The ranking and the results of the search page, over the index that Sphinx writes. Sphinx itself counts neither how rare a word is
   nor whether a page is a chapter or a solution. */
;(() => {                                                // Sphinx puts this behind an expression that has no semicolon
  "use strict";
  const WORTH = [["chapters/", 1], ["appendices/hardware", .9], ["appendices/glossary", .8], ["appendices/package", .3], ["appendices/corrections", .3],
    ["appendices/bibliography", .3], ["appendices/formulas", .4], ["appendices/", .7], ["exercises/", .3], ["solutions/", .25], ["plan", 1], ["", .7]];
  const SHOWN = 10;
  const words = (text) => text.toLowerCase().split(/[^\p{L}\p{N}]+/u).filter(Boolean);
  const list = (x) => x === undefined ? [] : [].concat(x);

  // How much of a name was asked for, whatever joins its words: "allreduce" and "all reduce" ask for the whole of "All-reduce".
  function closeness(asked, name) {
    const parts = words(name);
    return parts.some((_, i) => parts.slice(i).join("").startsWith(asked)) ? asked.length/parts.join("").length : 0;
  }

  // The pages that have every word, the best first: { page, title, heading, anchor, score }. If none has, those with the most.
  function rank(query) {
    const { docnames, titles, alltitles, indexentries, terms, titleterms } = Search._index, stemmer = new Stemmer();
    const asked = words(query).join(""), stems = [...new Set(words(query).filter((w) => !stopwords.includes(w)).map((w) => stemmer.stemWord(w)))];
    const pages = docnames.map((page, k) => ({ page, title: titles[k], heading: "", anchor: "", name: 0, text: 0, has: 0, keys: new Set() }));
    if (!asked) return [];
    for (const [name, places] of Object.entries(alltitles)) {
      const close = closeness(asked, name.replace(/^\d+[ab]?(\.\d+)? /, ""));
      for (const [k, id] of places) {
        const value = close*(name === titles[k] ? 40 : 30);
        if (value > pages[k].name) Object.assign(pages[k], { name: value, anchor: name === titles[k] ? "" : "#" + id, heading: name === titles[k] ? "" : name });
      }
    }
    for (const [name, places] of Object.entries(indexentries)) {
      const close = closeness(asked, name), parts = words(name).map((w) => stemmer.stemWord(w));
      for (const [k, id] of places) {
        parts.forEach((w) => pages[k].keys.add(w));
        if (40*close > pages[k].name) Object.assign(pages[k], { name: 40*close, anchor: id && docnames[k] === "appendices/glossary" ? "#" + id : "", heading: "" });
      }
    }
    const known = Object.keys(terms);
    const found = stems.map((w) => {
      const forms = terms[w] !== undefined || titleterms[w] !== undefined || w.length < 3 ? [w] : known.filter((t) => t.startsWith(w));
      const text = new Set(forms.flatMap((t) => list(terms[t]))), heading = new Set(forms.flatMap((t) => list(titleterms[t])));
      const title = new Set(pages.flatMap((p, k) => words(p.title).some((t) => stemmer.stemWord(t) === w) ? [k] : []));
      const place = pages.map((p, k) => title.has(k) ? 10 : heading.has(k) || p.keys.has(w) ? 6 : text.has(k) ? 2 : 0);
      return { place, rare: Math.log(1 + pages.length/(1 + place.filter(Boolean).length)) };
    });
    const all = found.reduce((sum, f) => sum + f.rare, 0);
    pages.forEach((p, k) => found.forEach((f) => { p.text += f.place[k]*f.rare/all; p.has += f.place[k] > 0; }));
    const most = pages.some((p) => p.name) ? stems.length : Math.max(...pages.map((p) => p.has));
    return pages.filter((p) => p.name || p.has && p.has >= most).map(({ page, title, heading, anchor, name, text }) =>
      ({ page, title, heading, anchor, named: name > 12, score: WORTH.find(([start]) => page.startsWith(start))[1]*(name + text) }))
      .sort((a, b) => b.score - a.score || (a.page < b.page ? -1 : 1));
  }

  const begun = (some) => new RegExp(`(?<![\\p{L}\\p{N}])(${some})`, "iu");     // "ring" begins "rings" and is no part of "brings"

  // A sentence or two of the page that have the most of the words; neither its contents nor its code nor its formulas.
  function quote(source, anchor, asked) {
    const page = new DOMParser().parseFromString(source, "text/html"), article = page.querySelector("article.bd-article");
    const there = anchor && page.getElementById(anchor.slice(1)), from = there ? there.closest("section, dl") : article;
    const pick = (within) => [...within.querySelectorAll("p, li, dd, td")].filter((e) => !e.closest("nav, .cx-under, .cell_input, pre")).map((e) => {
      const text = e.textContent.replace(/\\[()]/g, "").replace(/\s+/g, " ").trim();
      return { text, from: e, has: asked.filter((w) => begun(w).test(text)).length - (text.length < 60 ? .3 : 0) - (/\\[({a-z]/.test(text) ? .5 : 0) };
    }).reduce((best, one) => one.has > best.has ? one : best, { text: "", has: 0 });
    // What has the words in its code or its heading alone is quoted from its beginning.
    const begin = (within) => [...within.querySelectorAll("p")].filter((e) => !e.closest(".cx-under")).map((from) => ({ text: from.textContent.replace(/\s+/g, " ").trim(), from }))
      .find(({ text }) => text.length > 60 && !text.includes("\\"));
    const best = [pick(from), !there && pick(article)].find((one) => one.has > 0) ?? begin(from) ?? begin(article) ?? { text: "" }, parts = [];
    const places = asked.map((w) => best.text.search(begun(w))).filter((i) => i >= 0), at = places.length ? Math.min(...places) : 0;
    const start = at > 60 ? best.text.lastIndexOf(" ", at - 40) + 1 : 0, end = start + 200 < best.text.length ? best.text.lastIndexOf(" ", start + 200) : best.text.length;
    for (const part of `${start ? "… " : ""}${best.text.slice(start, end)}${end < best.text.length ? " …" : ""}`.split(begun(asked.join("|") || "$^"))) {
      const is = asked.includes(part.toLowerCase());
      parts.push(is ? Object.assign(document.createElement("mark"), { textContent: part }) : part);
    }
    const section = best.from?.closest("section[id], dt[id]");
    return { parts: best.text ? parts : [], section: section && !section.querySelector("h1") ? "#" + section.id : "" };
  }

  // Exercises and their solutions begin with the same sentences: one result, which leads to both.
  function withoutTwins(results) {
    const solved = new Map(results.filter((r) => r.page.startsWith("solutions/")).map((r) => [r.page.slice(10), r.page]));
    const asked = new Set(results.filter((r) => r.page.startsWith("exercises/")).map((r) => r.page.slice(10)));
    return results.filter((r) => !r.page.startsWith("solutions/") || !asked.has(r.page.slice(10)))
      .map((r) => r.page.startsWith("exercises/") ? { ...r, solution: solved.get(r.page.slice(10)) } : r);
  }

  Search.rank = rank;
  Search.query = (query) => {
    const results = withoutTwins(rank(query)), asked = words(query).filter((w) => !stopwords.includes(w));
    // From a file nothing can be fetched: there the results have no quotations. Elsewhere a page is fetched when its result is seen.
    const seen = location.protocol === "file:" ? null : new IntersectionObserver((entries) => entries.filter((e) => e.isIntersecting).forEach(async ({ target }) => {
      seen.unobserve(target);
      const link = target.firstChild, { parts, section } = quote(await (await fetch(link.href.split("#")[0])).text(), link.hash, asked);
      if (!link.hash && !("named" in link.dataset)) link.hash = section;       // a page that is not called so: to where it says so
      target.lastChild.append(...parts);
    }));
    function show(some) {
      for (const { page, title, heading, anchor, named, solution } of some) {
        const li = document.createElement("li"), a = document.createElement("a");
        a.href = page + DOCUMENTATION_OPTIONS.LINK_SUFFIX + anchor;
        a.textContent = new DOMParser().parseFromString(heading ? `${title} › ${heading}` : title, "text/html").body.textContent;
        if (named) a.dataset.named = "";
        li.append(a);
        if (solution) li.append(" ", Object.assign(document.createElement("small"), { innerHTML: ` · <a href="${solution + DOCUMENTATION_OPTIONS.LINK_SUFFIX}">with its solutions</a>` }));
        if (seen) li.append(Object.assign(document.createElement("p"), { className: "context" }));    // as high empty as filled
        Search.output.append(li);
        seen?.observe(li);
      }
    }
    Search.stopPulse();
    Search.title.innerText = "Results";
    Search.status.innerText = results.length ? `${results.length} page${results.length > 1 ? "s" : ""} found.` : "No page found. Try one word, or another one.";
    show(results.slice(0, SHOWN));
    if (results.length <= SHOWN) return;
    const more = Object.assign(document.createElement("button"), { className: "btn btn-sm", textContent: `Show the other ${results.length - SHOWN}` });
    more.style.cssText = "color: inherit; border-color: currentColor";
    more.addEventListener("click", () => { more.remove(); show(results.slice(SHOWN)); Search.output.children[SHOWN].firstChild.focus(); });
    Search.output.after(more);
  };
})();
