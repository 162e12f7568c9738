// SPDX-License-Identifier: BSD-3-Clause
// The data of a study: measures as text, combinations of options, and files of numbers.

// How numbers of a measure are written: {name, unit, number(x), text(x) with the unit, scale: factor of drawn numbers,
// short(x): a drawn number at an axis}.
function measureText({key, name, unit}, numbers) {
  const plain = x => String(Number(x.toPrecision(4)));
  const known = numbers.filter(isNumber), isCount = known.every(Number.isInteger) && Math.max(0, ...known) < 1e5;
  const made = (scale, words, digits) => {
    const number = x => (scale * x).toFixed(digits);
    return {name, scale, unit: words, number, text: x => number(x) + words, short: x => plain(x) + words};
  };
  // Four digits of the largest number, and two of the smallest.
  const digitsOf = scale => {
    const sizes = known.map(x => Math.floor(Math.log10(Math.abs(scale * x)))).filter(Number.isFinite);
    return sizes.length === 0 ? 0 : Math.min(9, Math.max(0, 3 - Math.max(...sizes), 1 - Math.min(...sizes)));
  };
  if (unit === 'bytes') return made(2 ** -20, ' MiB', decimalsOf(known.map(x => x / 2 ** 20), 1));
  if (unit === '' && /bubble|accuracy|share/.test(key)) return made(100, '%', Math.max(0, ...known) >= 0.1 ? 1 : 2);
  if (unit === 's') {
    const time = unitOfTime(known);
    return made(time.of, ' ' + time.unit, digitsOf(time.of));
  }
  return made(1, unit ? ' ' + unit : '', isCount ? 0 : /loss/.test(key) ? 4 : digitsOf(1));
}

// Values of an option in order: numbers by size, texts as they came. {values (texts), isNumeric, isLog}
function axisOf(texts) {
  const values = [...new Set(texts)], numbers = values.map(Number), isNumeric = values.length > 0 && values.every(text => text.trim() !== '' && Number.isFinite(Number(text)));
  if (!isNumeric) return {values, isNumeric, isLog: false};
  values.sort((a, b) => a - b);
  const least = Math.min(...numbers), most = Math.max(...numbers);
  const arePowers = base => values.length > 2 && numbers.every(x => x > 0 && Math.abs(Math.log(x) / Math.log(base) - Math.round(Math.log(x) / Math.log(base))) < 1e-9);
  return {values, isNumeric, isLog: least > 0 && (arePowers(2) || arePowers(10) || most > 8 * least)};
}

const combinationOf = (row, varied) => varied.map(option => row.options[option] ?? '').join('\n');
const combinationText = (row, varied) => varied.map(option => `${option} ${row.options[option] ?? '-'}`).join(', ');
