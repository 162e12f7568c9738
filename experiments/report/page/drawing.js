// SPDX-License-Identifier: BSD-3-Clause
// The picture of a timeline: a row a rank on a canvas, of the time from `from` to `to`.
class Drawing {
  // shown: {text, rows, end, severalStages, plan (or null), path, bounds (or null), known: [from, to] of what is
  // known of each rank (or undefined: all)}
  constructor(shown, parent) {
    Object.assign(this, shown);
    this.ranks = this.rows;
    this.left = 46;
    this.small = this.rows.length > 64;
    this.stage = element('div', undefined, parent, 'stage');
    this.canvas = element('canvas', undefined, this.stage);
    this.cursor = element('div', undefined, this.stage, 'cursor');
    this.cursor.hidden = true;
    this.curves = new Map();
  }

  name(a) { return nameOf(a, this.severalStages) + (a.ofExpert ? ' (expert)' : ''); }

  // Where things stand in the row of a rank.
  measure() {
    this.strip = this.small || !strips[view.strip] || this.rows.some(row => row.some(a => a.version === undefined)) && view.strip !== 'held'
      ? null : strips[view.strip];
    this.above = view.plan && this.plan && !this.small ? 8 : 0;
    this.bar = this.small ? Math.max(3, Math.floor(1400 / this.rows.length)) : 19;
    this.row = this.above + this.bar + (this.strip ? 18 : 0) + (this.small ? 0 : 3);
    this.width = this.stage.clientWidth;
    this.height = this.row * this.rows.length + 20;
  }

  barTop(rank) { return rank * this.row + this.above; }
  x(time) { return this.left + (time - this.from) / (this.to - this.from) * (this.width - this.left); }
  time(x) { return this.from + (x - this.left) / (this.width - this.left) * (this.to - this.from); }

  draw() {
    const ratio = window.devicePixelRatio || 1, style = getComputedStyle(document.body);
    this.measure();
    this.canvas.style.height = this.height + 'px';
    this.canvas.width = Math.round(this.width * ratio);
    this.canvas.height = Math.round(this.height * ratio);
    const context = this.canvas.getContext('2d');
    this.colour = name => style.getPropertyValue(name);
    context.scale(ratio, ratio);
    context.font = '11px system-ui, sans-serif';
    context.textBaseline = 'middle';
    context.fillStyle = this.colour('--idle');
    this.rows.forEach((_, rank) => {
      const [start, end] = this.known ? this.known[rank] : [this.from, this.to], place = this.extent({start, end});
      if (place) context.fillRect(place[0], this.barTop(rank), place[1] - place[0], this.bar);
    });
    this.drawAxis(context);
    if (this.strip) this.drawStrips(context);
    if (this.above) this.drawPlan(context);
    this.drawn = 0;
    for (const row of this.rows)
      for (let i = this.firstShown(row); i < row.length && row[i].start <= this.to; ++i) this.drawAction(context, row[i]);
    if (view.path && this.path) this.drawPath(context);
    this.drawRanks(context);
    if (this.marked) this.drawMark(context);
    this.canvas.dataset.drawn = this.drawn;
  }

  // From and to on the canvas, of what is in view; else nothing.
  extent(a) {
    const from = Math.max(this.left, this.x(a.start)), to = Math.min(this.width, this.x(a.end));
    return to < from ? null : [from, to, Math.max(0.4, to - from - (to - from > 4 ? 0.8 : 0))];
  }

  drawAction(context, a) {
    const place = this.extent(a);
    if (!place) return;
    const [from, to, wide] = place, y = this.barTop(a.rank);
    context.fillStyle = colours[a.letter];
    context.fillRect(from, y, wide, this.bar);
    if (a.second) { // a pair is half of each
      context.fillStyle = colours[a.second.letter];
      context.fillRect(from, y + this.bar / 2, wide, this.bar / 2);
    }
    ++this.drawn;
    const label = this.row > 12 && !a.ofExpert ? nameOf(a, this.severalStages) : '';
    if (!label || to - from <= 6.5 * label.length) return;
    context.fillStyle = '#000000';
    context.textAlign = 'center';
    context.fillText(label, (from + to) / 2, y + this.bar / 2);
  }

  drawPlan(context) {
    for (const row of this.plan.rows)
      for (let i = this.firstShown(row); i < row.length && row[i].start <= this.to; ++i) {
        const place = this.extent(row[i]);
        if (!place) continue;
        context.fillStyle = colours[row[i].letter];
        context.globalAlpha = 0.6;
        context.fillRect(place[0], this.barTop(row[i].rank) - this.above + 1, place[2], this.above - 2);
        context.globalAlpha = 1;
      }
  }

  drawPath(context) {
    context.strokeStyle = context.fillStyle = this.colour('--path');
    context.lineWidth = 2;
    let before;
    for (const a of this.path.steps) {
      const place = this.extent(a), y = this.barTop(a.rank) + this.bar - 3;
      if (place) context.fillRect(place[0], y, Math.max(1, place[1] - place[0]), 3);
      if (before && a.start >= this.from && before.end <= this.to && (before.rank !== a.rank || before.end < a.start)) {
        context.beginPath();
        context.moveTo(Math.max(this.left, this.x(before.end)), this.barTop(before.rank) + this.bar - 1.5);
        context.lineTo(this.x(a.start), y + 1.5);
        context.stroke();
      }
      before = a;
    }
    context.lineWidth = 1;
  }

  curve(rank) {
    const key = view.strip + ' ' + rank;
    if (!this.curves.has(key)) this.curves.set(key, this.strip.steps(this.rows[rank]));
    return this.curves.get(key);
  }

  // The largest value of a strip, over all ranks: all have one scale.
  scale() {
    let most = view.strip === 'held' && this.bounds ? Math.max(...this.bounds) : 1;
    this.rows.forEach((_, rank) => { for (const [, value] of this.curve(rank)) most = Math.max(most, value); });
    return most;
  }

  drawStrips(context) {
    const most = this.scale(), tall = 15;
    this.rows.forEach((_, rank) => {
      const bottom = this.barTop(rank) + this.bar + 17, steps = this.curve(rank);
      context.fillStyle = this.colour('--strip');
      for (let i = 0; i < steps.length; ++i) {
        const until = i + 1 < steps.length ? steps[i + 1][0] : this.end;
        if (until < this.from || steps[i][0] > this.to || steps[i][1] <= 0) continue;
        const place = this.extent({start: steps[i][0], end: until});
        if (place) context.fillRect(place[0], bottom - steps[i][1] / most * tall, Math.max(0.5, place[1] - place[0]), steps[i][1] / most * tall);
      }
      if (view.strip !== 'held' || !this.bounds) return;
      const y = Math.round(bottom - this.bounds[rank] / most * tall) + 0.5;
      context.strokeStyle = this.colour('--ink');
      context.setLineDash([3, 3]);
      context.beginPath();
      context.moveTo(this.left, y);
      context.lineTo(this.width, y);
      context.stroke();
      context.setLineDash([]);
    });
  }

  drawRanks(context) {
    context.fillStyle = this.colour('--faint');
    context.textAlign = 'left';
    this.rows.forEach((_, rank) => {
      if (!this.small || rank % 10 === 0) context.fillText('rank ' + rank, 0, this.barTop(rank) + this.bar / 2);
    });
  }

  drawAxis(context) {
    const y = this.row * this.rows.length, span = this.to - this.from;
    const labels = Math.max(1, (this.width - this.left) / 90);
    let step = 10 ** Math.floor(Math.log10(span / labels));
    step *= [1, 2, 5, 10].find(more => span / (step * more) <= labels);
    const digits = Math.max(0, 6 - Math.floor(Math.log10(step)));
    context.fillStyle = this.colour('--faint');
    context.strokeStyle = this.colour('--line');
    context.textAlign = 'left';
    for (let t = Math.ceil(this.from / step) * step; t <= this.to; t += step) {
      const x = this.x(t);
      context.beginPath();
      context.moveTo(x, 0);
      context.lineTo(x, y + 4);
      context.stroke();
      if (x < this.width - 55) context.fillText(milliseconds(t, digits), x + 3, y + 11);
    }
  }

  drawMark(context) {
    const {rank, start, end} = this.marked;
    context.strokeStyle = this.colour('--mark');
    context.lineWidth = 2;
    context.strokeRect(this.x(start), this.barTop(rank) + 1, Math.max(2, this.x(end) - this.x(start)), Math.max(1, this.bar - 1));
    context.lineWidth = 1;
  }

  // A line at a time, as far as that is in view.
  drawCursor(time) {
    this.cursor.hidden = time === null || time < this.from || time > this.to;
    this.cursor.style.left = this.x(time) + 'px';
    this.cursor.style.height = this.height - 16 + 'px';
  }

  // Index of the first action of a row that ends at a time or later.
  firstEnding(row, time) {
    let low = 0, high = row.length;
    while (low < high) {
      const half = (low + high) >> 1;
      if (row[half].end < time) low = half + 1; else high = half;
    }
    return low;
  }
  firstShown(row) { return this.firstEnding(row, this.from); }
}
