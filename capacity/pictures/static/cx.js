/* What the figures of this book share: shapes, objects with the fields that Python gives them, their painter, and a page's
   elements; capacity/pictures/shapes.py and svg.py. Scripts come in any order: figures begin when the page is there. */
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

  // ---- roles as colours
  const COLORS = { compute: "#0072B2", network: "#D55E00", memory: "#009E73", measured: "#CC79A7", limit: "#E69F00", idle: "#999999",
    rank0: "#0072B2", rank1: "#009E73", rank2: "#E69F00", rank3: "#CC79A7" };
  const PAPER = "var(--cx-paper,var(--jp-layout-color0,#fff))", ON = "var(--cx-on-compute,#fff)";
  const OTHER = { other: "currentColor", paper: PAPER, "on:compute": ON, "on:rank0": ON, "on:other": PAPER, "on:paper": "currentColor",
    "on:pale": "var(--cx-on-pale,currentColor)" };
  const HALO = ` paint-order="stroke" stroke="${PAPER}" stroke-width="4" stroke-linejoin="round"`;
  function ink(role) {
    if (OTHER[role]) return OTHER[role];
    const name = role.replace("on:", "");
    if (!COLORS[name]) throw RangeError(`role ${role}`);
    return name === role ? `var(--cx-${role.replace("rank", "r")},${COLORS[role]})` : "#111";
  }
  const pen = (role) => (COLORS[role] ? `color-mix(in srgb,${ink(role)} 58%,currentColor)` : ink(role));

  // ---- shapes and their painter
  const rect = (x, y, w, h, more) => ({ x, y, w, h, ...more }), path = (d, more) => ({ d, ...more });
  const text = (x, y, text, anchor, more) => ({ x, y, text, anchor, ...more }), group = (shapes, more) => ({ shapes, ...more });
  const fill = (color, opacity = 1) => ` fill="${color}"` + (opacity === 1 ? "" : ` fill-opacity="${opacity}"`);
  const style = ({ fill: role, line, opacity, line_opacity: faint = 1, weight = 1, dash }) => (role ? fill(ink(role), opacity) : "") +
    (line ? ` stroke="${ink(line)}" stroke-width="${weight}"${faint === 1 ? "" : ` stroke-opacity="${faint}"`}${dash ? ` stroke-dasharray="${dash}"` : ""}` : "");
  const at = (s) => ` x="${fixed(s.x)}" y="${fixed(s.y)}"`, size = (w, h) => ` width="${fixed(w)}" height="${fixed(h)}"`;
  function one(s) {
    if ("d" in s) return `<path d="${s.d}"${style(s)}/>`;
    if ("text" in s) {
      return `<text${at(s)} text-anchor="${s.anchor || "start"}"${fill(pen(s.color || "other"), s.opacity)}` +
        ((s.size || FONT) === FONT ? "" : ` font-size="${s.size}"`) + (s.bold ? ' font-weight="600"' : "") +
        (s.italic ? ' font-style="italic" font-family="Georgia,serif"' : "") + (s.halo ? HALO : "") +
        (s.spoken === false ? ' aria-hidden="true"' : "") + `>${escape(s.text)}</text>`;
    }
    if (!s.shapes) {
      return `<rect${at(s)}${size(s.w, s.h)}${s.radius ? ` rx="${s.radius}"` : ""}${style(s)}` +
        (s.title ? `><title>${escape(s.title)}</title></rect>` : "/>");
    }
    const name = s.name ? ` class="${s.name}"` : "", inner = paint(s.shapes), { x = 0, y = 0 } = s;
    if (s.clip) return `<svg${name}${at({ x, y })}${size(...s.clip)} stroke-linejoin="round">${inner}</svg>`;
    return `<g${name}${x || y ? ` transform="translate(${fixed(x)} ${fixed(y)})"` : ""}>${inner}</g>`;
  }
  const paint = (shapes) => shapes.map(one).join("");
  const frame = ([shapes, W, H, label]) => `<svg viewBox="0 0 ${W} ${Math.ceil(H)}" width="${W}" height="${Math.ceil(H)}" role="img" ` +
    `fill="none" font-size="${FONT}" aria-label="${escape(label)}">${paint(shapes)}</svg>`;
  function legend(items, W) {
    const out = [];
    let x = 0, y = 13;
    for (const [label, role, dash] of items) {
      const w = 30 + width(label), block = dash === null;
      if (x && x + w > W) { x = 0; y += ROW; }
      out.push(block ? rect(x, y - 10, 12, 12, { fill: role, radius: 2 }) : path(`M${fixed(x)} ${y - 4}h24`, { line: role, weight: 2.5, dash }),
        text(x + (block ? 18 : 30), y, label));
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
  function choice(name, id, options, pick) {               // one of these: a fieldset of radio buttons, the first is on
    const inputs = options.map((_, i) => el("input", { type: "radio", name: id, autocomplete: "off" }));
    const set = el("fieldset", { class: "cx-choice" }, el("legend", {}, name),
      ...inputs.map((input, i) => el("label", {}, input, el("span", {}, String(options[i])))));
    inputs.forEach((input, i) => { input.checked = !i; input.addEventListener("change", () => pick(i)); });
    return Object.assign(set, { inputs });
  }
  // ---- the address carries the settings of all figures, the one moved last first: #name=3_4_1&other=6_9
  const states = () => location.hash.slice(1).split("&").filter((p) => p.includes("=")).map((p) => p.split("="));
  function tell(name, text) {                              // text null: as at the start
    const all = states().filter(([k]) => k !== name).map((p) => p.join("="));
    if (text !== null) all.unshift(`${name}=${text}`);
    history.replaceState(history.state, "", all.length ? "#" + all.join("&") : location.pathname + location.search);
  }
  const asked = (name) => (states().find(([k]) => k === name) || [])[1] || null;
  const leads = (name) => states()[0]?.[0] === name;       // the address leads to the first of them

  // ---- words: "1 pieces" is 1 piece; a number and its unit stay on a line
  const single = (said) => said.replace(/^1 (.*[A-Za-z][A-Za-rt-z]s)$/, (whole, noun) => (/(^|[ -])(times|bus|series)$/.test(noun) ? whole
    : "1 " + noun.replace(/ies$/, "ys").replace(/(ch|sh|ss|x)es$/, "$1s").replace(/s$/, "")));
  const bind = (text) => text.replace(/(\d) (?=(?:%|[kMGTPEµmn]?(?:B|FLOP|s|W|J|Hz)(?:\/s)?|min|h)(?![\w/]))/g, "$1\u00a0");
  const figures = (name, mount) => document.querySelectorAll(`figure.${name}[data-spec]`).forEach(mount);

  return { escape, fixed, width, most, ink, rect, path, text, group, paint, frame, legend, el, choice, tell, asked, leads, single, bind, figures };
})();
