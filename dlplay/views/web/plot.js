/** Axes, curves, marks and bars on one canvas. */

import { element } from "./page.js";
import { tickLabels } from "./numbers.js";
import { STYLES, trace } from "./style.js";

/** One canvas with axes. Sizes are in CSS pixels; `unit` is the height of the text. */
export class Plot {
  constructor(caption, unit, kind) {
    this.figure = element("figure", kind);
    const title = element("figcaption", "", this.figure);
    element("b", "", title).textContent = caption;
    this.unit = element("span", "", title);
    this.unit.textContent = unit;
    this.stats = element("div", "dlplay-stats", this.figure);
    this.canvas = element("canvas", "", this.figure);
    this.canvas.setAttribute("role", "img");
    this.context = this.canvas.getContext("2d");
    this.width = this.height = 0;
    this.visible = true;
  }

  /** Clear the canvas and draw the axes; say whether there is room to draw. */
  axes(look, x, y) {
    const { context: c, canvas, width, height } = this;
    const ratio = window.devicePixelRatio || 1;
    const size = [Math.round(width * ratio), Math.round(height * ratio)];
    if (canvas.width !== size[0]) canvas.width = size[0];
    if (canvas.height !== size[1]) canvas.height = size[1];
    c.setTransform(ratio, 0, 0, ratio, 0, 0);
    c.clearRect(0, 0, width, height);
    if (width < 60 || height < 60) return false;
    Object.assign(this, { look, x, y });
    c.font = `${look.unit}px ${look.family}`;
    const labels = y.format ? y.ticks.map(y.format) : tickLabels(y.ticks);
    const margin = Math.max(...labels.map((label) => c.measureText(label).width), look.unit);
    this.left = margin + look.unit * 0.6;
    this.right = width - look.unit * 1.2;
    this.top = look.unit * 0.7;
    this.bottom = height - look.unit * 1.7;
    this.drawAxes(labels);
    return true;
  }

  drawAxes(labels) {
    const { context: c, look, x, y, left, right, top, bottom } = this;
    c.lineWidth = 1;
    c.setLineDash([]);
    c.strokeStyle = look.grid;
    for (const value of y.ticks) this.line(left, this.py(value), right, this.py(value));
    c.strokeStyle = look.line;
    this.line(left, bottom, right, bottom);
    this.line(left, top, left, bottom);
    c.fillStyle = look.text;
    c.textBaseline = "middle";
    c.textAlign = "right";
    y.ticks.forEach((v, i) => c.fillText(labels[i], left - look.unit * 0.4, this.py(v)));
    this.drawStepAxis(x);
  }

  drawStepAxis(x) {
    const { context: c, look, right, bottom, height } = this;
    c.textBaseline = "alphabetic";
    c.textAlign = "right";
    const baseline = height - look.unit * 0.35;
    c.fillText(x.title, this.width, baseline);
    const room = this.width - c.measureText(x.title).width - look.unit * 0.7;
    c.textAlign = "center";
    tickLabels(x.ticks).forEach((label, i) => {
      const at = this.px(x.ticks[i]);
      c.strokeStyle = look.line;
      this.line(at, bottom, at, bottom + 4);
      if (at + c.measureText(label).width / 2 < Math.min(room, right + look.unit)) {
        c.fillText(label, at, baseline);
      }
    });
  }

  px(value) {
    return this.left + ((value - this.x.low) / (this.x.high - this.x.low)) * (this.right - this.left);
  }

  py(value) {
    const { low, high, scale } = this.y;
    const place = (scale(value) - scale(low)) / (scale(high) - scale(low));
    return this.bottom - Math.min(1.02, Math.max(0, place)) * (this.bottom - this.top);
  }

  line(x1, y1, x2, y2) {
    const c = this.context;
    c.beginPath();
    c.moveTo(Math.round(x1) + 0.5, Math.round(y1) + 0.5);
    c.lineTo(Math.round(x2) + 0.5, Math.round(y2) + 0.5);
    c.stroke();
  }

  /** A line through the points; it breaks where a value is not finite. */
  curve(x, y, style, width, dash = STYLES[style].dash) {
    const { context: c, look } = this;
    c.strokeStyle = look.colours[style];
    c.lineWidth = width * look.zoom;
    c.lineJoin = c.lineCap = "round";
    c.setLineDash(dash.map((d) => d * look.zoom * (width > 2 ? 1.2 : 1)));
    c.beginPath();
    let open = false;
    for (let i = 0; i < x.length; i++) {
      const finite = Number.isFinite(y[i]);
      if (finite && !open) c.moveTo(this.px(x[i]) - 0.01, this.py(y[i]));
      if (finite) c.lineTo(this.px(x[i]), this.py(y[i]));
      open = finite;
    }
    c.stroke();
    c.setLineDash([]);
  }

  /** What every batch measured, faintly: a line, and the range where many batches share a place. */
  faint(series, style) {
    const { context: c } = this;
    c.globalAlpha = 0.3;
    this.curve(series.x, series.y, style, 1, []);
    if (series.low) this.band(series, style);
    c.globalAlpha = 1;
    if (series.low) this.spikes(series, style);
  }

  /** A single high value among many is a hair in the band: draw it so that it is seen. */
  spikes({ x, y, high }, style) {
    high.forEach((value, i) => {
      if (value > 3 * y[i]) this.curve([x[i], x[i]], [y[i], value], style, 1.5, []);
    });
  }

  band({ x, low, high }, style) {
    const { context: c, look } = this;
    c.fillStyle = look.colours[style];
    c.beginPath();
    for (let i = 1; i < x.length; i++) {
      if (![low[i - 1], high[i - 1], high[i], low[i]].every(Number.isFinite)) continue;
      c.moveTo(this.px(x[i - 1]), this.py(low[i - 1]));
      c.lineTo(this.px(x[i - 1]), this.py(high[i - 1]));
      c.lineTo(this.px(x[i]), this.py(high[i]));
      c.lineTo(this.px(x[i]), this.py(low[i]));
    }
    c.fill();
  }

  /** A mark at each point that is far enough from the one before; always at the last one. */
  marks(x, y, style) {
    const { context: c, look } = this;
    let before = Infinity;
    for (let i = x.length - 1; i >= 0; i--) {
      const at = this.px(x[i]);
      if (!Number.isFinite(y[i]) || before - at < look.unit * 1.4) continue;
      before = at;
      c.beginPath();
      trace(c, STYLES[style].mark, at, this.py(y[i]), 4.5 * look.zoom);
      c.fillStyle = STYLES[style].filled ? look.colours[style] : look.background;
      c.fill();
      c.strokeStyle = look.colours[style];
      c.lineWidth = 2 * look.zoom;
      c.stroke();
    }
  }

  /** A cross and words where the first value was that is not finite. */
  trouble(bad, title, style, place) {
    const { context: c, look } = this;
    const [step, kind] = bad;
    const at = Math.min(this.px(step), this.right);
    const size = look.unit * 0.4;
    const high = this.top + look.unit * (0.8 + 1.4 * place);
    c.strokeStyle = look.colours[style];
    c.lineWidth = 3 * look.zoom;
    c.beginPath();
    for (const side of [-1, 1]) {
      c.moveTo(at - size, high - side * size);
      c.lineTo(at + size, high + side * size);
    }
    c.stroke();
    c.lineWidth = 1;
    c.setLineDash([2, 3]);
    this.line(at, high + size, at, this.bottom);
    c.setLineDash([]);
    c.fillStyle = look.text;
    c.textBaseline = "middle";
    const words = `${title}: ${kind} from step ${step}`;
    const fits = at + size * 2 + c.measureText(words).width < this.width;
    c.textAlign = fits ? "left" : "right";
    c.fillText(words, at + (fits ? 2 : -2) * size, high);
  }

  /** Bars without gaps: filled, or as an outline only. */
  bars(shares, style) {
    const { context: c, look, x } = this;
    const width = (x.high - x.low) / shares.length;
    c.beginPath();
    c.moveTo(this.px(x.low), this.bottom);
    shares.forEach((share, i) => {
      c.lineTo(this.px(x.low + i * width), this.py(share));
      c.lineTo(this.px(x.low + (i + 1) * width), this.py(share));
    });
    c.lineTo(this.px(x.high), this.bottom);
    c.lineJoin = "miter";
    c.strokeStyle = c.fillStyle = look.colours[style];
    if (STYLES[style].filled) {
      c.globalAlpha = 0.4;
      c.fill();
      c.globalAlpha = 1;
    }
    c.lineWidth = (STYLES[style].filled ? 1.25 : 2) * look.zoom;
    c.stroke();
  }

  /** Words in the middle. */
  hint(words) {
    const { context: c, look } = this;
    c.fillStyle = look.text;
    c.textAlign = "center";
    c.textBaseline = "middle";
    c.font = `${look.unit * 1.3}px ${look.family}`;
    c.fillText(words, (this.left + this.right) / 2, (this.top + this.bottom) / 2);
  }
}
