// The timeline of one run: a row a rank on a canvas, moved and zoomed, and a line of text that
// says what is pointed at.
class Timeline {
  constructor(run, parent) {
    this.run = run;
    this.ranks = run.ranks.map(actionsOf);
    const ends = this.ranks.map(row => row.length ? row[row.length - 1].end : 0);
    // Of a record that was cut all ranks are known up to the first end.
    this.end = Math.max(1, run.cut ? Math.min(...ends) : ends.reduce((most, x) => Math.max(most, x), 0));
    this.severalStages = this.ranks.some(row => {
      const stages = new Map();
      for (const a of row) {
        if (stages.has(a.pipeline) && stages.get(a.pipeline) !== a.stage) return true;
        stages.set(a.pipeline, a.stage);
      }
      return false;
    });
    this.reasons = new Reasons(this.ranks, run.timing, a => this.name(a));
    this.left = 46;
    this.row = this.ranks.length <= 64 ? 22 : Math.max(3, Math.floor(1400 / this.ranks.length));
    this.marked = null;
    const section = element('section', undefined, parent);
    element('h2', run.text + endingOf(run), section);
    element('p', this.ofTimes(), section, 'faint');
    const bar = element('div', undefined, section, 'bar');
    const button = (text, label, does) => {
      const made = element('button', text, bar);
      made.setAttribute('aria-label', label);
      made.onclick = does;
    };
    button('one minibatch', 'show one minibatch', () => this.show(...this.minibatch()));
    button('whole run', 'show the whole run', () => this.show(0, this.end));
    button('+', 'zoom in', () => this.zoom(0.5));
    button('−', 'zoom out', () => this.zoom(2));
    this.canvas = element('canvas', undefined, section);
    this.canvas.tabIndex = 0;
    this.canvas.setAttribute('role', 'application');
    this.canvas.setAttribute('aria-label', `timeline of ${run.text}, ${this.ranks.length} ranks; arrows go from action to action`);
    this.said = element('p', '', section, 'said');
    this.heard = element('p', '', section, 'heard'); // for screen readers: marks alone
    this.heard.setAttribute('aria-live', 'polite');
    this.canvas.addEventListener('pointermove', e => this.point(e));
    this.canvas.addEventListener('pointerleave', () => this.say(this.marked));
    this.canvas.addEventListener('pointerdown', e => {
      if (e.button === 0) this.drag = {x: e.clientX, from: this.from, moved: false};
    });
    window.addEventListener('pointermove', e => this.pull(e));
    for (const end of ['pointerup', 'pointercancel']) window.addEventListener(end, () => this.release());
    this.canvas.addEventListener('click', e => { if (!this.pulled) this.mark(this.itemUnder(e)); });
    this.canvas.addEventListener('wheel', e => this.wheel(e), {passive: false});
    this.canvas.addEventListener('keydown', e => this.key(e));
    this.show(...this.minibatch());
  }

  name(a) { return nameOf(a, this.severalStages) + (a.ofExpert ? ' (expert)' : ''); }

  ofTimes() {
    const how = {
      measured: 'Times are measured: a thread for each rank.',
      modelled: 'Times are modelled: the lengths of actions were measured, and laid out as if each rank had a device.',
      shared: 'Times are measured where ranks took turns on fewer threads; idle time is not the schedule’s.',
      virtual: 'Times are the virtual clock’s.'}[this.run.timing];
    const cut = this.run.cut ? ` The first ${this.run.cut} actions of a rank are here.` : '';
    return how + cut + (this.run.failure ? ` The run failed: ${this.run.failure}` : '');
  }

  // From the first start to the last end of the minibatch in the middle.
  minibatch() {
    const size = this.run.microbatches;
    let last = 0;
    for (const row of this.ranks) for (const a of row) if (a.end <= this.end) last = Math.max(last, Math.floor(a.microbatch / size));
    const first = this.ranks[0].length ? Math.floor(this.ranks[0][0].microbatch / size) : 0;
    const middle = Math.floor((first + last + 1) / 2);
    let from = Infinity, to = 0;
    for (const row of this.ranks)
      for (const a of row)
        if (Math.floor(a.microbatch / size) === middle) { from = Math.min(from, a.start); to = Math.max(to, a.end); }
    return to > from ? [from, to] : [0, this.end];
  }

  show(from, to) {
    const least = Math.max(1, this.end / 1e7);
    const span = Math.min(Math.max(to - from, least), this.end);
    this.from = Math.min(Math.max(0, from), this.end - span);
    this.to = this.from + span;
    this.draw();
  }

  zoom(by, around = (this.from + this.to) / 2) {
    this.show(around - (around - this.from) * by, around + (this.to - around) * by);
  }

  x(time) { return this.left + (time - this.from) / (this.to - this.from) * (this.width - this.left); }
  time(x) { return this.from + (x - this.left) / (this.width - this.left) * (this.to - this.from); }

  draw() {
    const ratio = window.devicePixelRatio || 1;
    this.width = this.canvas.parentElement.clientWidth;
    const height = this.row * this.ranks.length + 20;
    this.canvas.style.height = height + 'px';
    this.canvas.width = Math.round(this.width * ratio);
    this.canvas.height = Math.round(height * ratio);
    const context = this.canvas.getContext('2d'), style = getComputedStyle(document.body);
    this.colour = name => style.getPropertyValue(name);
    context.scale(ratio, ratio);
    context.font = '11px system-ui, sans-serif';
    context.textBaseline = 'middle';
    this.bar = this.row - (this.row > 8 ? 3 : 0);
    context.fillStyle = this.colour('--idle');
    this.ranks.forEach((_, rank) => context.fillRect(this.left, rank * this.row, this.width - this.left, this.bar));
    this.drawAxis(context);
    this.drawn = 0;
    for (const row of this.ranks)
      for (let i = this.firstShown(row); i < row.length && row[i].start <= this.to; ++i) this.drawAction(context, row[i]);
    this.drawRanks(context);
    if (this.marked) this.drawMark(context);
    this.canvas.dataset.drawn = this.drawn;
  }

  drawAction(context, a) {
    const from = Math.max(this.left, this.x(a.start)), to = Math.min(this.width, this.x(a.end));
    if (to < from) return;
    const y = a.rank * this.row, wide = Math.max(0.4, to - from - (to - from > 4 ? 0.8 : 0));
    context.fillStyle = colours[a.letter];
    context.fillRect(from, y, wide, this.bar);
    if (a.second) {
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

  drawRanks(context) {
    context.fillStyle = this.colour('--faint');
    context.textAlign = 'left';
    this.ranks.forEach((_, rank) => {
      if (this.row > 10 || rank % 10 === 0) context.fillText('rank ' + rank, 0, rank * this.row + this.bar / 2);
    });
  }

  drawAxis(context) {
    const y = this.row * this.ranks.length, span = this.to - this.from;
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
    context.strokeRect(this.x(start), rank * this.row + 1, Math.max(2, this.x(end) - this.x(start)), Math.max(1, this.bar - 1));
    context.lineWidth = 1;
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

  // The action of a rank at a time, or the idle time before one. An action of no length is found
  // within a pixel of it, if nothing else is there.
  itemAt(rank, time) {
    const row = this.ranks[rank], pixel = (this.to - this.from) / (this.width - this.left);
    let i = this.firstEnding(row, time);
    while (i < row.length && row[i].end <= time && row[i].start < row[i].end) ++i;
    if (i < row.length && row[i].start <= time && row[i].start < row[i].end) return row[i];
    for (let near = this.firstEnding(row, time - pixel); near < row.length && row[near].start <= time + pixel; ++near)
      if (row[near].start === row[near].end && !row[near].first) return row[near];
    while (i < row.length && row[i].end <= time) ++i;
    if (i < row.length && row[i].start <= time) return row[i];
    return this.idleBefore(rank, i);
  }

  idleBefore(rank, index) {
    const row = this.ranks[rank];
    return {rank, index, idle: true, start: index > 0 ? row[index - 1].end : 0,
      end: index < row.length ? row[index].start : Math.max(this.end, index > 0 ? row[index - 1].end : 0)};
  }

  itemUnder(event) {
    const box = this.canvas.getBoundingClientRect();
    const rank = Math.floor((event.clientY - box.top) / this.row), x = event.clientX - box.left;
    if (rank < 0 || rank >= this.ranks.length || x < this.left) return null;
    return this.itemAt(rank, this.time(x));
  }

  mark(item) {
    this.marked = item;
    this.say(item);
    this.heard.textContent = this.said.textContent;
    this.draw();
  }

  say(item) { this.said.textContent = item ? this.sentence(item) : ''; }

  sentence(item) {
    if (!item.idle)
      return `${this.name(item)}: ${meanings[item.letter]} of stage ${item.stage}`
        + (item.second ? ` and ${meanings[item.second.letter]} of stage ${item.second.stage}` : '') + ` on rank ${item.rank}, `
        + `${milliseconds(item.end - item.start)} from ${milliseconds(item.start)}; `
        + (item.letter === 'U' ? `makes version ${item.version}` : `reads version ${item.version}`);
    const next = this.ranks[item.rank][item.index];
    if (next) return this.reasons.sentence(item.rank, item.start, next);
    return `rank ${item.rank} was idle for ${milliseconds(item.end - item.start)} `
      + (this.run.cut ? 'at the end of what is here' : 'to the end');
  }

  point(event) {
    if (this.drag && this.drag.moved) return;
    const item = this.itemUnder(event);
    if (item) this.say(item);
  }

  pull(event) {
    if (!this.drag || Math.abs(event.clientX - this.drag.x) < 3 && !this.drag.moved) return;
    this.drag.moved = true;
    const by = (this.drag.x - event.clientX) / (this.width - this.left) * (this.to - this.from);
    this.show(this.drag.from + by, this.drag.from + by + this.to - this.from);
  }

  // The click that ends a drag marks nothing.
  release() {
    this.pulled = Boolean(this.drag && this.drag.moved);
    this.drag = null;
  }

  wheel(event) {
    if (!event.ctrlKey && !event.metaKey) return; // the page scrolls
    event.preventDefault();
    const box = this.canvas.getBoundingClientRect(), x = Math.max(this.left, event.clientX - box.left);
    this.zoom(event.deltaY > 0 ? 1.25 : 0.8, this.time(x));
  }

  // What lies behind or before an item of a rank, idle times included.
  neighbour(item, step) {
    const row = this.ranks[item.rank];
    if (step > 0) {
      if (item.idle) return row[item.index] || item;
      const idle = this.idleBefore(item.rank, item.index + 1);
      return idle.end > idle.start ? idle : row[item.index + 1] || item;
    }
    if (item.idle) return row[item.index - 1] || item;
    const idle = this.idleBefore(item.rank, item.index);
    return idle.end > idle.start ? idle : row[item.index - 1] || item;
  }

  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || !this.ranks.some(row => row.length)) return;
    const here = this.marked, middle = here ? (Math.max(here.start, this.from) + Math.min(here.end, this.to)) / 2 : (this.from + this.to) / 2;
    const other = by => this.itemAt(Math.min(Math.max(here.rank + by, 0), this.ranks.length - 1), middle);
    const steps = {ArrowRight: () => this.neighbour(here, 1), ArrowLeft: () => this.neighbour(here, -1),
      ArrowDown: () => other(1), ArrowUp: () => other(-1)};
    if (steps[event.key]) {
      event.preventDefault();
      this.mark(here ? steps[event.key]() : this.itemAt(0, this.from));
      const span = this.to - this.from;
      if (this.marked.start < this.from || this.marked.end > this.to) this.show(this.marked.start - span / 4, this.marked.start + 3 * span / 4);
    } else if (event.key === '+' || event.key === '=') {
      this.zoom(0.5, middle);
    } else if (event.key === '-') {
      this.zoom(2, middle);
    } else if (event.key === '0') {
      this.show(0, this.end);
    }
  }
}
