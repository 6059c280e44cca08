/** What the training view draws in its plots. */

import { linear, logTicks, rebin, roundUp, smooth, text, ticks } from "./numbers.js";

const SHARES = [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1];
const UNTRAINED = { ready: "Press Train", preparing: "Preparing \u2026" };

/** The step axis grows with the run, so that a long run can be seen from its beginning. */
export function stepAxis(frame, plot, look) {
  const wanted = Math.max(20, roundUp(Math.max(frame.step, 1) * 1.05));
  const high = frame.steps ? Math.min(frame.steps, wanted) : wanted;
  const count = plot.width / (look.unit * 6);
  return { low: 0, high, ticks: ticks(0, high, count).filter(Number.isInteger), title: "step" };
}

export function lossAxis(frame, plot, look, log) {
  const values = frame.wings.flatMap(({ series }) => [
    ...series.loss.low,
    ...series.loss.high,
    ...series.test_loss.y,
  ]);
  const usable = values.filter((v) => Number.isFinite(v) && (!log || v > 0));
  const count = plot.height / (look.unit * 3);
  const top = usable.reduce((a, b) => Math.max(a, b), 0);
  if (!log) {
    const high = top > 0 ? roundUp(top / 4) * Math.ceil((top * 1.001) / roundUp(top / 4)) : 1;
    const low = Math.min(0, usable.reduce((a, b) => Math.min(a, b), 0));
    return { low, high, scale: linear, ticks: ticks(low, high, count) };
  }
  const bottom = usable.reduce((a, b) => Math.min(a, b), top || 1);
  const high = roundUp((top || 1) * 1.001);
  const low = Math.min(bottom * 0.9, high / 10);
  const scale = (v) => Math.log10(Math.max(v, low));
  return { low, high, scale, ticks: logTicks(low, high, count), format: text };
}

export function accuracyAxis() {
  const format = (v) => `${Math.round(100 * v)}\u2009%`;
  const values = [0, 0.2, 0.4, 0.6, 0.8, 1];
  return { low: 0, high: 1, scale: linear, ticks: values, format };
}

/** The curves of all wings: training thin, test thick and with marks. */
export function drawCurves(plot, frame, y, look, [train, tested]) {
  if (!plot.axes(look, stepAxis(frame, plot, look), y)) return;
  const started = frame.wings.some(({ series }) => series.loss.x.length);
  if (!started && UNTRAINED[frame.state]) plot.hint(UNTRAINED[frame.state]);
  let troubles = 0;
  for (const { series, style } of frame.wings) {
    plot.faint(series[train], style);
  }
  for (const { series, style } of frame.wings) {
    const { x, y: values } = series[train];
    plot.curve(x, smooth(values), style, 1.75);
  }
  for (const { series, style, title } of frame.wings) {
    const test = series[tested];
    plot.curve(test.x, test.y, style, 2.75);
    plot.marks(test.x, test.y, style);
    const bad = series[train].bad || test.bad;
    if (bad) plot.trouble(bad, title, style, troubles++);
  }
}

/** The range of all summaries, out to round numbers, so that it seldom changes. */
export function valueAxis(summaries, plot, look) {
  let low = Math.min(...summaries.map((s) => s.low));
  let high = Math.max(...summaries.map((s) => s.high));
  const spread = high - low || Math.abs(low) || 1;
  if (high - low < 1e-6 * spread) [low, high] = [low - spread / 2, high + spread / 2];
  const step = roundUp((high - low) / 10);
  const axis = { low: Math.floor(low / step) * step, high: Math.ceil(high / step) * step };
  const count = plot.width / (look.unit * 6);
  return { ...axis, ticks: ticks(axis.low, axis.high, count), title: "value" };
}

/** One layer's activations or gradients, of all wings in the same bins and scales. */
export function drawHistogram(plot, cells, what, look) {
  const drawn = cells.filter((cell) => cell[what] && Number.isFinite(cell[what].high - cell[what].low));
  const summaries = drawn.map((cell) => cell[what]);
  const x = summaries.length
    ? valueAxis(summaries, plot, look)
    : { low: -1, high: 1, ticks: [], title: "value" };
  const bins = Math.max(1, ...summaries.map((s) => s.shares.length));
  const shares = summaries.map((s) => rebin(s, x.low, x.high, bins));
  const most = Math.max(0.01, ...shares.flatMap((s) => [...s]));
  const high = SHARES.find((s) => s >= most) ?? 1;
  const wanted = SHARES.filter((s) => s <= high).reverse();
  const y = {
    low: 0,
    high,
    scale: Math.sqrt,
    ticks: wanted.filter((_, i) => i % 2 === 0),
    format: (v) => `${Math.round(100 * v)}\u2009%`,
  };
  if (!plot.axes(look, x, y)) return;
  drawn.forEach((cell, i) => plot.bars(shares[i], cell.style));
  if (!drawn.length) plot.hint(cells.some((c) => c[what]) ? "no finite values" : "not measured");
}
