/* What the players of this book share: the width of text, pieces of SVG and the elements of a page; capacity/pictures/svg.py,
   function by function. Scripts come in any order: the players begin when the page is there, and so is this. */
var cx = (() => {
  "use strict";
  const FONT = 12.5, ROW = 19, fixed = (v) => v.toFixed(1);
  const escape = (s) => s.replace(/[&<>"']/g, (c) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#x27;" })[c]);
  const most = (list, least) => list.reduce((a, b) => Math.max(a, b), least);

  function width(text) {
    let w = 0;
    for (const c of text) w += " .,:;'|!ijlftr()[]/·-".includes(c) ? .31 : "mwMW%@".includes(c) ? .87 : c >= "A" && c <= "Z" ? .69 : .58;
    return FONT*w;
  }

  // ---- pieces of SVG
  const COLORS = { compute: "#0072B2", network: "#D55E00", memory: "#009E73", measured: "#CC79A7", limit: "#E69F00", idle: "#999999" };
  const PAPER = "var(--cx-paper,var(--jp-layout-color0,#fff))";
  const HALO = `paint-order="stroke" stroke="${PAPER}" stroke-width="4" stroke-linejoin="round"`;
  const BLACK = 'fill="currentColor"', SOFT = BLACK + ' fill-opacity=".8"', BOLD = BLACK + ' font-weight="600" ' + HALO;
  const ink = (c) => (c === "other" ? "currentColor" : `var(--cx-${c},${COLORS[c]})`);
  const pen = (c) => (c === "other" ? "currentColor" : `color-mix(in srgb,${ink(c)} 58%,currentColor)`);
  const on = (c) => (c === "compute" ? "var(--cx-on-compute,#fff)" : c === "other" ? PAPER : "#111");
  const words = (x, y, text, anchor, more) => `<text x="${fixed(x)}" y="${fixed(y)}" text-anchor="${anchor}" ${more}>${escape(text)}</text>`;
  const stroke = (d, color, weight, dash = "", more = "") =>
    `<path d="${d}" stroke="${color}" stroke-width="${weight}" stroke-dasharray="${dash}" ${more}/>`;
  const frame = (S, W, H, inner, says) => `<svg viewBox="0 0 ${W} ${H}" width="${W}" height="${H}" role="img" fill="none" ` +
    `font-size="${FONT}" aria-label="${escape(S.title + ". " + says)}">${inner}</svg>`;
  function legend(items, W) {
    let out = "", x = 0, y = 13;
    for (const [label, color, dash] of items) {
      const w = 30 + width(label), block = dash === null;
      if (x && x + w > W) { x = 0; y += ROW; }
      out += block ? `<rect x="${fixed(x)}" y="${y - 10}" width="12" height="12" rx="2" fill="${ink(color)}"/>`
        : stroke(`M${fixed(x)} ${y - 4}h24`, ink(color), 2.5, dash);
      out += words(x + (block ? 18 : 30), y, label, "start", BLACK);
      x += w + (block ? 6 : 18);
    }
    return [out, y + 9];
  }

  // ---- the page
  function el(tag, attributes, ...children) {
    const e = document.createElement(tag);
    for (const k in attributes || {}) e.setAttribute(k, attributes[k]);
    e.append(...children);
    return e;
  }
  const figures = (name, mount) => document.querySelectorAll(`figure.${name}[data-spec]`).forEach(mount);

  return { escape, fixed, width, most, words, stroke, frame, legend, el, figures, ink, pen, on, PAPER, HALO, BLACK, SOFT, BOLD };
})();
