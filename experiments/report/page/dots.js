// SPDX-License-Identifier: BSD-3-Clause
// Points on a small axis that the rows of a table share.

// The axis of some values: {low, high, share(value): from 0 to 1}. It begins at 0, or where
// the values begin; then it has at least a hundredth of the largest value, so that equal values look equal.
function dotAxis(values, beginsAtZero = true) {
  const known = values.filter(isNumber), most = Math.max(0, ...known), least = known.length ? Math.min(...known) : 0;
  const fromZero = beginsAtZero && least >= 0 || most === 0;
  const missing = Math.max(0, 0.01 * most - (most - least)) / 2;
  const [low, high] = fromZero ? [0, most || 1] : [least - missing, most + missing], {step} = roundTicks(low, high, 4);
  const ends = [fromZero ? 0 : Math.floor(low / step + 1e-9) * step, Math.ceil(high / step - 1e-9) * step];
  return {low: ends[0], high: ends[1], step, share: value => (value - ends[0]) / (ends[1] - ends[0])};
}

// A point in a cell, its number beside it, and optionally a bar of one deviation and the values that the mean is of.
function drawDot(cell, {axis, value, text, index, deviation = 0, values = []}) {
  cell.classList.add('dot');
  const track = element('div', undefined, cell, 'track');
  track.setAttribute('aria-hidden', 'true');
  if (isNumber(value)) {
    const at = x => (100 * Math.min(1, Math.max(0, axis.share(x)))).toFixed(2) + '%';
    if (deviation > 0) {
      const bar = element('b', undefined, track);
      bar.style.cssText = `left: ${at(value - deviation)}; right: calc(100% - ${at(value + deviation)}); background: ${lineColour(index)}`;
    }
    for (const each of values.filter(isNumber)) element('u', undefined, track).style.left = at(each);
    const dot = element('i', undefined, track);
    dot.style.cssText = `left: ${at(value)}; background: ${lineColour(index)}`;
    dot.dataset.value = value;
  }
  element('span', isNumber(value) ? text : '-', cell, 'value');
}

// The ends of an axis, below a column of points.
function dotEnds(cell, axis, text) {
  cell.classList.add('dot');
  const track = element('div', undefined, cell, 'ends');
  element('span', text(axis.low), track);
  element('span', text(axis.high), track);
}
