/** Frames as arrays, numbers as text, round ticks: all that needs no page. */

/** Join a frame's header with its buffer: arrays instead of places. */
export function decode(frame) {
  const [header, data] = [JSON.parse(frame.header), frame.data];
  const bytes = data.buffer.slice(data.byteOffset, data.byteOffset + data.byteLength);
  const floats = new Float32Array(bytes);
  const wings = header.wings.map((wing) => ({
    ...wing,
    series: Object.fromEntries(
      Object.entries(wing.series).map(([name, series]) => [name, decodeSeries(series, floats)]),
    ),
  }));
  const rows = header.rows.map((row) =>
    row.map((cell) => ({
      ...cell,
      activation: decodeSummary(cell.activation, floats),
      gradient: decodeSummary(cell.gradient, floats),
    })),
  );
  return { ...header, wings, rows };
}

export function decodeSeries({ at, n, band, bad }, floats) {
  const part = (i) => floats.subarray(at + i * n, at + (i + 1) * n);
  return { x: part(0), y: part(1), low: band ? part(2) : null, high: band ? part(3) : null, bad };
}

export function decodeSummary(place, floats) {
  if (!place) return null;
  const [at, bins] = place;
  const [low, high, mean, std, zeros] = floats.subarray(at, at + 5);
  return { low, high, mean, std, zeros, shares: floats.subarray(at + 5, at + 5 + bins) };
}

/** A number in three significant digits, short. */
export function text(value) {
  if (!Number.isFinite(value)) return Number.isNaN(value) ? "NaN" : "infinite";
  const size = Math.abs(value);
  if (size !== 0 && (size < 1e-3 || size >= 1e5)) return minus(value.toExponential(1).replace(".0", ""));
  return minus(String(Number(value.toPrecision(3))));
}

export const minus = (string) => string.replace("-", "\u2212").replace("e-", "e\u2212").replace("e+", "e");
export const percent = (share) => (Number.isFinite(share) ? `${(100 * share).toFixed(1)}\u2009%` : "NaN");

/** The smallest of 1, 2, 5 times a power of ten that is at least `value`. */
export function roundUp(value) {
  const power = 10 ** Math.floor(Math.log10(value));
  return power * [1, 2, 5, 10].find((m) => m * power >= value * (1 - 1e-9));
}

/** Ticks at round numbers, about `count` of them. */
export function ticks(low, high, count) {
  const step = roundUp((high - low) / Math.max(count, 1));
  const first = Math.ceil(low / step - 1e-9);
  const n = Math.floor(high / step + 1e-9) - first + 1;
  return Array.from({ length: Math.max(n, 0) }, (_, i) => (first + i) * step || 0);
}

/** Ticks as text, with the digits that tell them apart. */
export function tickLabels(values) {
  const largest = Math.max(...values.map(Math.abs), 0);
  const step = values.length > 1 ? Math.abs(values[1] - values[0]) : largest;
  const digits = Math.max(0, -Math.floor(Math.log10(step) + 1e-9));
  if (!step || largest >= 1e5 || (digits > 3 && largest < 1e-2)) return values.map(text);
  return values.map((value) => minus(value.toFixed(Math.min(digits, 20))));
}

/** Ticks at powers of ten; with 2 and 5 between them where there are few. */
export function logTicks(low, high, count) {
  const [from, to] = [Math.floor(Math.log10(low)), Math.ceil(Math.log10(high))];
  const every = Math.max(1, Math.ceil((to - from) / count));
  const between = to - from <= 2 ? [1, 2, 5] : [1];
  const values = [];
  for (let e = from; e <= to; e += every) for (const m of between) values.push(m * 10 ** e);
  return values.filter((v) => v >= low * 0.999 && v <= high * 1.001);
}

/** The mean of each point with its neighbours, about a thirtieth of all; it breaks at NaN. */
export function smooth(values) {
  const reach = Math.floor(values.length / 60);
  return values.map((value, i) => {
    if (!Number.isFinite(value)) return NaN;
    const near = values.subarray(Math.max(0, i - reach), i + reach + 1).filter(Number.isFinite);
    return near.reduce((sum, v) => sum + v, 0) / near.length;
  });
}

/** Spread a histogram over `bins` equal bins from `low` to `high`; its mass stays the same. */
export function rebin(summary, low, high, bins) {
  const out = new Float64Array(bins);
  const width = (high - low) / bins;
  const n = summary.shares.length;
  const own = (summary.high - summary.low) / n;
  for (let i = 0; i < n; i++) {
    const start = (summary.low + i * own - low) / width;
    const end = start + own / width;
    const from = Math.min(bins - 1, Math.max(0, Math.floor(start)));
    const to = Math.min(bins - 1, Math.max(from, Math.ceil(end) - 1));
    for (let k = from; k <= to; k++) {
      const part = from === to ? 1 : (Math.min(end, k + 1) - Math.max(start, k)) / (end - start);
      out[k] += summary.shares[i] * part;
    }
  }
  return out;
}

/** A scale that changes nothing. */
export const linear = (value) => value;
