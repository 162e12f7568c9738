// SPDX-License-Identifier: BSD-3-Clause
// Numbers as text, and choices among numbers.

const isNumber = value => typeof value === 'number' && Number.isFinite(value);
const sumOf = numbers => numbers.reduce((a, b) => a + b, 0);

// A field of a CSV file.
const quoted = text => /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;

// Text with at least three significant digits for the smallest of some numbers, and as many decimals for the others.
function decimalsOf(numbers, least = 0) {
  const sizes = numbers.filter(isNumber).map(Math.abs).filter(x => x > 0);
  return sizes.length === 0 ? least : Math.min(9, Math.max(least, 2 - Math.floor(Math.log10(Math.min(...sizes)))));
}

// A number with some decimals, as the terminal prints it: of two numbers that are equally near, the even one.
function fixed(number, digits) {
  const text = number.toFixed(digits), exact = number.toFixed(digits + 30), kept = exact.slice(0, exact.length - (digits === 0 ? 31 : 30));
  return exact.endsWith('5' + '0'.repeat(29)) && '02468'.includes(kept[kept.length - 1]) ? kept : text;
}

const percent = share => fixed(100 * share, 1) + '%';
const mebibytes = bytes => (bytes / 2 ** 20).toFixed(bytes === 0 ? 0 : decimalsOf([bytes / 2 ** 20], 1)) + ' MiB';

// The largest unit of time in which the least of some seconds is at least a tenth: {unit, of (factor)}.
function unitOfTime(seconds) {
  const least = Math.min(...seconds.filter(x => isNumber(x) && x > 0));
  return [{unit: 's', of: 1}, {unit: 'ms', of: 1e3}, {unit: 'us', of: 1e6}].find(({of}) => least * of >= 0.1) ?? {unit: 'ns', of: 1e9};
}

// The best of some numbers. better: 'less' or 'more'; undefined if no number is there.
function bestOf(numbers, better) {
  const known = numbers.filter(isNumber);
  return known.length === 0 ? undefined : known.reduce(better === 'less' ? (a, b) => Math.min(a, b) : (a, b) => Math.max(a, b));
}

// "a", "a and b", "a, b and c"
const listed = texts => texts.length < 2 ? texts.join('') : texts.slice(0, -1).join(', ') + ' and ' + texts[texts.length - 1];

// Round numbers in an interval, at most about `many`: {ticks, step}.
function roundTicks(low, high, many) {
  const raw = (high - low) / Math.max(1, many);
  if (!(raw > 0)) return {ticks: [low], step: Math.abs(low) || 1};
  let step = 10 ** Math.floor(Math.log10(raw));
  step *= [1, 2, 5, 10].find(more => step * more >= raw * (1 - 1e-9));
  const first = Math.ceil(low / step - 1e-9), last = Math.floor(high / step + 1e-9);
  return {ticks: Array.from({length: Math.max(0, last - first + 1)}, (_, i) => (first + i) * step), step};
}

// By a key of each item, the items that have it.
function groupedBy(items, key) {
  const groups = new Map();
  for (const item of items) {
    if (!groups.has(key(item))) groups.set(key(item), []);
    groups.get(key(item)).push(item);
  }
  return groups;
}
