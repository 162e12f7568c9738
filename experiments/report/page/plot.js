// SPDX-License-Identifier: BSD-3-Clause
// Lines with bands over an axis, as SVG.

// An axis with round ends for values from low to high: from 0 if the least mean is near 0,
// whatever a deviation says; from `low` without a least mean.
function plotRange(low, high, least) {
  const begins = least >= 0 && least < 0.6 * high ? 0 : low, ends = high - begins > 1e-6 * Math.abs(high) ? high : begins + (0.01 * Math.abs(begins) || 1);
  const {step} = roundTicks(begins, ends, 8);
  return {low: Math.floor(begins / step + 1e-9) * step, high: Math.ceil(ends / step - 1e-9) * step};
}

class Plot {
  // axes: {x: {values (texts; undefined: numbers from low to high), isNumeric, isLog, low, high, name}, y: {low, high, short(number)}, height}
  // series: [{index (colour), name, points: [{x (number, or place of a category), mean, low, high, text}]}]; y is in drawn units
  constructor(parent, axes, series, label) {
    Object.assign(this, axes, {series, width: Math.max(220, parent.clientWidth)});
    this.left = 52;
    this.bottom = this.height - 34;
    this.right = this.width - 12;
    this.svg = shape('svg', {viewBox: `0 0 ${this.width} ${this.height}`, class: 'plot', role: 'img', 'aria-label': label}, parent);
    this.drawAxes();
    for (const one of series) if (this.x.isNumeric) this.drawBand(one);
    for (const one of series) this.drawSeries(one);
  }

  xAt(value) {
    const {x} = this, inner = this.right - this.left - 24;
    const [low, high, at] = x.isLog ? [Math.log(x.low), Math.log(x.high), Math.log(value)] : [x.low, x.high, value];
    return this.left + 12 + (high > low ? (at - low) / (high - low) : 0.5) * inner;
  }
  yAt(value) { return this.bottom - (Math.max(value, this.y.low) - this.y.low) / (this.y.high - this.y.low) * (this.bottom - 10); }

  drawAxes() {
    const {x, y} = this, {ticks} = roundTicks(y.low, y.high, 5);
    for (const tick of ticks) {
      shape('path', {d: `M${this.left} ${this.yAt(tick)}H${this.right}`, class: 'grid'}, this.svg);
      this.write(y.short(tick), this.left - 5, this.yAt(tick) + 4, 'end');
    }
    const marks = x.values ? x.values.map((text, i) => [x.isNumeric ? Number(text) : i, text]) : roundTicks(x.low, x.high, this.width / 90).ticks.map(t => [t, x.short(t)]);
    let free = -Infinity; // where the label before ends
    for (const [value, text] of marks) {
      const at = this.xAt(value), half = 3.4 * text.length;
      shape('path', {d: `M${at} ${this.bottom}v4`, class: 'grid'}, this.svg);
      if (at - half < free) continue;
      this.write(text, at, this.bottom + 15, 'middle');
      free = at + half + 4;
    }
    this.write(x.name, (this.left + this.right) / 2, this.height - 4, 'middle', 'name');
  }

  write(text, x, y, anchor, name = '') { shape('text', {x, y, 'text-anchor': anchor, class: name}, this.svg).textContent = text; }

  // Points of categories stand side by side.
  placeOf(point, one) {
    const shift = this.x.isNumeric ? 0 : (this.series.indexOf(one) - (this.series.length - 1) / 2) * Math.min(12, (this.right - this.left) / (this.x.values.length * this.series.length + 1));
    return this.xAt(point.x) + shift;
  }

  // Stretches of a series without a hole.
  stretches({points}) {
    const result = [[]];
    for (const point of points)
      if (point === null) result.push([]);
      else result[result.length - 1].push(point);
    return result.filter(stretch => stretch.length > 0);
  }

  drawBand(one) {
    for (const stretch of this.stretches(one)) {
      const known = stretch.filter(p => p.high > p.low);
      if (known.length === 0) continue;
      const up = stretch.map(p => `${this.placeOf(p, one)} ${this.yAt(p.high)}`), down = stretch.map(p => `${this.placeOf(p, one)} ${this.yAt(p.low)}`).reverse();
      shape('path', {d: `M${[...up, ...down].join('L')}z`, fill: lineColour(one.index), class: 'band'}, this.svg);
    }
  }

  drawSeries(one) {
    const group = shape('g', {class: 'series', stroke: lineColour(one.index), fill: lineColour(one.index)}, this.svg);
    if (this.x.isNumeric)
      for (const stretch of this.stretches(one))
        shape('path', {d: 'M' + stretch.map(p => `${this.placeOf(p, one)} ${this.yAt(p.mean)}`).join('L'), class: 'line', 'stroke-dasharray': lineDash(one.index)}, group);
    if (!one.hasMarks) return;
    for (const point of one.points.filter(p => p !== null)) {
      const at = this.placeOf(point, one);
      if (point.high > point.low) shape('path', {d: `M${at} ${this.yAt(point.low)}V${this.yAt(point.high)}`, class: 'whisker'}, group);
      const mark = shape('circle', {cx: at, cy: this.yAt(point.mean), r: 3.5, 'data-mean': point.value}, group);
      shape('title', {}, mark).textContent = point.text;
      point.mark = mark;
    }
  }
}
