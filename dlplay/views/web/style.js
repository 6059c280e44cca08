/** How the wings are told apart: dashes, marks and bars beside the colours. */

import { element } from "./page.js";

/** How each wing is told apart without colour, by style number. */
export const STYLES = [
  { dash: [], mark: "circle", filled: true },
  { dash: [8, 5], mark: "square", filled: false },
  { dash: [2, 4], mark: "triangle", filled: false },
  { dash: [12, 4, 2, 4], mark: "diamond", filled: false },
];

/** Trace a mark's outline around (x, y). */
export function trace(c, mark, x, y, r) {
  if (mark === "circle") c.arc(x, y, r, 0, 2 * Math.PI);
  else if (mark === "square") c.rect(x - r * 0.9, y - r * 0.9, r * 1.8, r * 1.8);
  else {
    const turns = mark === "triangle" ? [0, 1 / 3, 2 / 3] : [0, 1 / 4, 1 / 2, 3 / 4];
    for (const turn of turns) {
      const angle = 2 * Math.PI * turn;
      c.lineTo(x + 1.25 * r * Math.sin(angle), y - 1.25 * r * Math.cos(angle));
    }
    c.closePath();
  }
}

/** A wing's line and mark (`"line"`) or bar (`"bar"`), as a small picture. */
export function swatch(style, kind) {
  const { dash, mark, filled } = STYLES[style];
  const colour = `var(--dlplay-${style})`;
  const holder = element("span", "dlplay-key");
  const fill = filled ? colour : "var(--jp-layout-color1, #fff)";
  const marks = {
    circle: `<circle cx="22" cy="8" r="5"/>`,
    square: `<rect x="17.5" y="3.5" width="9" height="9"/>`,
    triangle: `<path d="M22 2 L28 12 L16 12 Z"/>`,
    diamond: `<path d="M22 2 L28 8 L22 14 L16 8 Z"/>`,
  };
  const line = `<path d="M1 8 H43" stroke-dasharray="${dash.join(" ")}" stroke-width="2.75"/>`;
  const bar = `<path d="M2 14 V7 H8 V2 H14 V14 Z" fill="${filled ? colour : "none"}" fill-opacity="0.4"/>`;
  const inner = kind === "bar" ? bar : `${line}<g fill="${fill}">${marks[mark]}</g>`;
  holder.innerHTML =
    `<svg viewBox="0 0 ${kind === "bar" ? 16 : 44} 16" aria-hidden="true" fill="none" ` +
    `stroke="${colour}" stroke-width="2">${inner}</svg>`;
  return holder;
}
