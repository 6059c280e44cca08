/** The training in words, beside the drawing. */

import { percent, text } from "./numbers.js";

/** Where the run is, in a line. */
export function progress(frame) {
  const parts = [];
  if (frame.steps) parts.push(`step ${frame.step} of ${frame.steps}`);
  if (frame.epochs) parts.push(`epoch ${frame.epoch} of ${frame.epochs}`);
  if (frame.learning_rate) parts.push(`learning rate ${text(frame.learning_rate)}`);
  if (frame.elapsed) parts.push(`${duration(frame.elapsed)} so far`);
  if (frame.remaining && frame.state === "running") parts.push(`${duration(frame.remaining)} left`);
  return parts.length ? ` \u00b7 ${parts.join(" \u00b7 ")}` : "";
}

export function duration(seconds) {
  if (seconds < 60) return `${Math.round(seconds)} s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ${Math.round(seconds % 60)} s`;
  return `${Math.floor(seconds / 3600)} h ${Math.round((seconds % 3600) / 60)} min`;
}

/** How a wing does, in a line. */
export function standing({ series, step_seconds: step }) {
  const parts = [];
  const [loss, test] = [series.loss.y.at(-1), series.test_accuracy.y.at(-1)];
  if (loss !== undefined) parts.push(`loss ${Number.isNaN(loss) ? "not finite" : text(loss)}`);
  if (test !== undefined) parts.push(`test accuracy ${percent(test)}`);
  if (step) parts.push(`${(1000 * step).toFixed(1)} ms a step`);
  return parts.join(" \u00b7 ");
}

export function statistics(summary) {
  if (!summary) return "not measured";
  const { mean, std, zeros } = summary;
  return `${text(mean)} \u00b1 ${text(std)} \u00b7 zeros ${percent(zeros)}`;
}
