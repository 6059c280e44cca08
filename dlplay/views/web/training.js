/**
 * The live view of a training: curves on top, below a look inside every layer.
 *
 * The kernel sends whole frames (see frame.py); the newest one is drawn on the next animation
 * frame, and older ones that were not drawn yet are dropped. Numbers written as text change at
 * most four times a second: faster, nobody can read them.
 */

import { accuracyAxis, drawCurves, drawHistogram, lossAxis } from "./curves.js";
import { decode } from "./numbers.js";
import { element, toggle, write } from "./page.js";
import { Plot } from "./plot.js";
import { swatch } from "./style.js";
import { progress, standing, statistics } from "./words.js";

const TEXT_EVERY = 250; // ms between changes of written numbers
const LABEL_EVERY = 1000; // ms between changes of what a screen reader finds
const REPORT_EVERY = 500; // ms between reports to the kernel
const TRAITS = ["log_loss", "layers", "projector", "palette"];
const LOOKS = { activation: "Activations", gradient: "Gradients" };

/** Everything of one place where the widget is displayed. */
class View {
  constructor(model, el) {
    this.model = model;
    this.root = element("div", "dlplay-training", el);
    this.plots = [];
    this.painted = { frames: 0, sum: 0, count: 0, reported: 0, timer: 0 };
    this.textAt = this.labelAt = -Infinity;
    this.build();
    this.observe();
    this.restyle();
    this.take(false);
  }

  build() {
    const bar = element("div", "dlplay-bar", this.root);
    this.status = element("div", "dlplay-status", bar);
    this.state = element("span", "dlplay-state", this.status);
    this.progress = element("span", "", this.status);
    this.toggles = [
      toggle(this.model, "log_loss", "Log loss", bar),
      toggle(this.model, "layers", "Layers", bar),
      toggle(this.model, "projector", "Large", bar),
    ];
    this.message = element("div", "dlplay-message", this.root);
    this.legend = element("div", "dlplay-legend", this.root);
    this.top = element("div", "dlplay-grid", this.root);
    this.loss = this.addPlot("Loss", "", "dlplay-curve", this.top);
    this.accuracy = this.addPlot("Accuracy", "share of right answers", "dlplay-curve", this.top);
    this.layers = element("div", "", this.root);
    this.spoken = element("div", "dlplay-hidden", this.root);
    this.spoken.setAttribute("aria-live", "polite");
    this.rows = [];
  }

  addPlot(caption, unit, kind, parent) {
    const plot = new Plot(caption, unit, kind);
    parent.append(plot.figure);
    this.plots.push(plot);
    this.sizes?.observe(plot.canvas);
    this.sight?.observe(plot.canvas);
    return plot;
  }

  observe() {
    const plotOf = (entry) => this.plots.find((plot) => plot.canvas === entry.target);
    this.sizes = new ResizeObserver((entries) => {
      for (const entry of entries) {
        const plot = plotOf(entry);
        if (plot) [plot.width, plot.height] = [entry.contentRect.width, entry.contentRect.height];
      }
      if (this.look) this.schedule();
      else this.restyle();
    });
    this.sight = new IntersectionObserver((entries) => {
      for (const entry of entries) {
        const plot = plotOf(entry);
        if (plot) plot.visible = entry.isIntersecting;
      }
      this.schedule();
    }, { rootMargin: "100px" });
    for (const plot of this.plots) {
      this.sizes.observe(plot.canvas);
      this.sight.observe(plot.canvas);
    }
    this.theme = new MutationObserver(() => this.restyle());
    this.theme.observe(document.body, { attributes: true, attributeFilter: ["data-jp-theme-light"] });
    this.onFrame = () => this.take(true);
    this.onKnob = () => this.restyle();
    this.model.on("change:frame", this.onFrame);
    for (const trait of TRAITS) {
      this.model.on(`change:${trait}`, this.onKnob);
    }
  }

  /** Take the newest frame; `live` where it comes from the kernel just now. */
  take(live) {
    this.frame = decode(this.model.get("frame"));
    this.fresh = live;
    if (this.frame.state !== this.root.dataset.state) this.enter(this.frame);
    this.schedule();
  }

  /** The run has come to a new state: say so at once. */
  enter(frame) {
    this.root.dataset.state = frame.state;
    this.textAt = this.labelAt = -Infinity;
    write(this.spoken, frame.words);
  }

  /** Read colours and sizes from the page, once it holds this view and when its theme changes. */
  restyle() {
    if (!this.root.isConnected) return;
    this.root.classList.toggle("dlplay-projector", Boolean(this.model.get("projector")));
    this.layers.hidden = !this.model.get("layers");
    this.layers.style.display = this.layers.hidden ? "none" : "";
    for (const update of this.toggles) update();
    this.textAt = -Infinity;
    const css = getComputedStyle(this.root);
    const background = css.backgroundColor;
    const [red, green, blue] = background.match(/[\d.]+/g).map(Number);
    const dark = 0.3 * red + 0.6 * green + 0.1 * blue < 128;
    const colours = this.model.get("palette")[dark ? "dark" : "light"];
    colours.forEach((colour, i) => this.root.style.setProperty(`--dlplay-${i}`, colour));
    const unit = Math.max(13, 0.93 * parseFloat(css.fontSize));
    const [grid, line] = ["--dlplay-grid", "--dlplay-line"].map((v) => css.getPropertyValue(v));
    const zoom = this.model.get("projector") ? 1.5 : 1;
    this.look = { unit, zoom, family: css.fontFamily, text: css.color, background, colours, grid, line };
    this.schedule();
  }

  schedule() {
    if (this.look && !this.waiting) this.waiting = requestAnimationFrame((now) => this.draw(now));
  }

  draw(now) {
    this.waiting = 0;
    const { frame, look } = this;
    this.arrange(frame);
    this.writeInTime(now);
    if (this.loss.visible) {
      const axis = lossAxis(frame, this.loss, look, this.model.get("log_loss"));
      drawCurves(this.loss, frame, axis, look, ["loss", "test_loss"]);
    }
    if (this.accuracy.visible) {
      drawCurves(this.accuracy, frame, accuracyAxis(), look, ["accuracy", "test_accuracy"]);
    }
    if (!this.layers.hidden) this.drawLayers();
    if (frame.frame !== this.drawn) this.report(frame, this.fresh);
  }

  drawLayers() {
    this.rows.forEach((row, i) => {
      for (const what of Object.keys(LOOKS)) {
        if (row[what].visible) drawHistogram(row[what], this.frame.rows[i], what, this.look);
      }
    });
  }

  /** Build legend and rows anew where wings or layers have changed. */
  arrange(frame) {
    const cells = frame.rows.map((row) => row.map((c) => [c.style, c.title, c.layer]));
    const signature = JSON.stringify([frame.wings.map((w) => [w.style, w.title]), cells]);
    if (signature === this.signature) return;
    this.signature = signature;
    this.arrangeLegend(frame.wings);
    for (const plot of this.plots.splice(2)) {
      this.sizes.unobserve(plot.canvas);
      this.sight.unobserve(plot.canvas);
    }
    this.layers.replaceChildren();
    // A row of one wing is counted among that wing's rows, a shared one among all.
    const place = (row, i) => frame.rows.slice(0, i).filter((r) => r[0].style === row[0].style).length;
    this.rows = frame.rows.map((row, i) => this.addRow(row, place(row, i) + 1));
    this.textAt = this.labelAt = -Infinity;
  }

  arrangeLegend(wings) {
    this.legend.replaceChildren();
    this.keys = wings.map(({ style, title }) => {
      const key = swatch(style, "line");
      element("b", "", key).textContent = title;
      this.legend.append(key);
      return element("span", "", key);
    });
    if (wings.length) {
      element("span", "", this.legend).textContent = "faint: each training batch \u00b7 thin: smoothed \u00b7 marks: test set";
    }
  }

  addRow(row, number) {
    const names = [...new Set(row.map((cell) => cell.layer))];
    const named = row.map((cell) => (row.length > 1 && names.length === 1 ? "" : cell.title));
    const said = names.length === 1 && row.length > 1 ? names : row.map((c, i) => `${named[i]} ${c.layer}`);
    element("h4", "", this.layers).textContent = `Layer ${number}: ${said.join(" \u00b7 ")}`;
    const pair = element("div", "dlplay-grid", this.layers);
    const made = {};
    for (const [what, caption] of Object.entries(LOOKS)) {
      made[what] = this.addPlot(caption, "share of values", "", pair);
      made[`${what}Stats`] = row.map((cell) => {
        const stat = element("span", "dlplay-stat", made[what].stats);
        stat.append(swatch(cell.style, "bar"));
        return element("span", "", stat);
      });
    }
    return made;
  }

  // ----- words

  /** Write numbers and labels, each at its own pace; what is too early is written later. */
  writeInTime(now) {
    if (now - this.textAt >= TEXT_EVERY) [this.textAt] = [now, this.writeTexts()];
    if (now - this.labelAt >= LABEL_EVERY) [this.labelAt] = [now, this.writeLabels()];
    const seen = this.frame.frame;
    if (this.written === seen && this.labelled === seen) return;
    this.later ??= setTimeout(() => ((this.later = null), this.schedule()), TEXT_EVERY);
  }

  writeTexts() {
    const { frame } = this;
    this.written = frame.frame;
    write(this.state, frame.state);
    write(this.progress, progress(frame));
    write(this.message, frame.message);
    write(this.loss.unit, this.model.get("log_loss") ? "logarithmic axis" : "");
    frame.wings.forEach((wing, i) => write(this.keys[i], standing(wing)));
    this.rows.forEach((row, i) => {
      for (const what of Object.keys(LOOKS)) {
        frame.rows[i].forEach((cell, k) => write(row[`${what}Stats`][k], statistics(cell[what])));
      }
    });
  }

  writeLabels() {
    this.labelled = this.frame.frame;
    this.loss.canvas.setAttribute("aria-label", `Loss by step. ${this.frame.words}`);
    this.accuracy.canvas.setAttribute("aria-label", `Accuracy by step. ${this.frame.words}`);
    this.rows.forEach((row, i) => {
      for (const what of Object.keys(LOOKS)) {
        const said = this.frame.rows[i].map((c) => `${c.title} ${c.layer}: ${statistics(c[what])}`);
        const label = `Histogram of ${what}s of layer ${i + 1}. ${said.join("; ")}.`;
        row[what].canvas.setAttribute("aria-label", label);
      }
    });
  }

  // ----- reports to the kernel

  /** Count a painted frame once it is on the screen, and tell the kernel twice a second. */
  report(frame, live) {
    this.drawn = frame.frame;
    const seen = this.painted;
    setTimeout(() => {
      if (this.gone) return;
      this.root.dataset.frame = frame.frame;
      seen.frames += 1;
      if (live) {
        seen.sum += Date.now() - 1000 * frame.sent;
        seen.count += 1;
      }
      const wait = seen.reported + REPORT_EVERY - Date.now();
      seen.timer ||= setTimeout(() => this.tell(), Math.max(0, wait));
    }, 0);
  }

  tell() {
    const seen = this.painted;
    const latency = seen.count ? seen.sum / seen.count / 1000 : null;
    Object.assign(seen, { sum: 0, count: 0, timer: 0, reported: Date.now() });
    try {
      this.model.send({ kind: "painted", frame: this.drawn, frames: seen.frames, latency });
    } catch {
      // The kernel is gone: the picture stays as it is.
    }
  }

  destroy() {
    this.gone = true;
    cancelAnimationFrame(this.waiting);
    clearTimeout(this.later);
    clearTimeout(this.painted.timer);
    for (const observer of [this.sizes, this.sight, this.theme]) observer.disconnect();
    this.model.off("change:frame", this.onFrame);
    for (const trait of TRAITS) {
      this.model.off(`change:${trait}`, this.onKnob);
    }
    this.root.remove();
  }
}

function render({ model, el }) {
  const view = new View(model, el);
  return () => view.destroy();
}

export default { render };
