// SPDX-License-Identifier: BSD-3-Clause
// A timeline that a user moves, zooms and asks: a line of text says what is pointed at.
class Timeline extends Drawing {
  // shown: as Drawing's, and {timing, microbatches, cut, notes: sentences}
  constructor(shown, parent) {
    const section = element('section', undefined, parent);
    if (shown.id) section.id = shown.id;
    element('h2', shown.heading, section);
    for (const note of shown.notes) element('p', note, section, 'faint');
    const bar = element('div', undefined, section, 'bar');
    super(shown, section);
    this.reasons = shown.reasons;
    this.marked = null;
    const button = (text, label, does) => {
      const made = element('button', text, bar);
      made.setAttribute('aria-label', label);
      made.onclick = does;
    };
    button('one minibatch', 'show one minibatch', () => this.show(...this.minibatch()));
    button('whole run', 'show the whole run', () => this.show(0, this.end));
    button('+', 'zoom in', () => this.zoom(0.5));
    button('−', 'zoom out', () => this.zoom(2));
    button('save CSV', 'save the actions as CSV', () => save(this.text + '.csv', 'text/csv', csvOf(this)));
    button('save trace', 'save a trace for Perfetto', () => save(`trace-${this.text}.json`, 'application/json', traceOf(this)));
    this.canvas.tabIndex = 0;
    this.canvas.setAttribute('role', 'application');
    this.canvas.setAttribute('aria-label', `timeline of ${this.text}, ${this.rows.length} ranks; arrows go from action to action`);
    this.said = element('p', '', section, 'said');
    this.heard = element('p', '', section, 'heard'); // for screen readers: marks alone
    this.heard.setAttribute('aria-live', 'polite');
    this.canvas.addEventListener('pointermove', e => this.point(e));
    this.canvas.addEventListener('pointerleave', () => { this.say(this.marked); moveCursor(null); });
    this.canvas.addEventListener('pointerdown', e => {
      if (e.button === 0) this.grasp(e);
    });
    this.canvas.addEventListener('click', e => { if (!this.pulled) this.mark(this.itemUnder(e)); });
    this.canvas.addEventListener('wheel', e => this.wheel(e), {passive: false});
    this.canvas.addEventListener('keydown', e => this.key(e));
    this.show(...this.minibatch());
  }

  minibatch() { return middleOf(this.rows, this.microbatches, this.end); }

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

  // The action of a rank at a time, or the idle time before one. An action of no length is found
  // within a pixel of it, if nothing else is there.
  itemAt(rank, time) {
    const row = this.rows[rank], pixel = (this.to - this.from) / (this.width - this.left);
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
    const row = this.rows[rank];
    return {rank, index, idle: true, start: index > 0 ? row[index - 1].end : 0,
      end: index < row.length ? row[index].start : Math.max(this.end, index > 0 ? row[index - 1].end : 0)};
  }

  itemUnder(event) {
    const box = this.canvas.getBoundingClientRect();
    const rank = Math.floor((event.clientY - box.top) / this.row), x = event.clientX - box.left;
    if (rank < 0 || rank >= this.rows.length || x < this.left) return null;
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
        + `${milliseconds(item.end - item.start)} from ${milliseconds(item.start)}`
        + (this.slip(item)) + (item.version === undefined ? '' : item.letter === 'U' ? `; makes version ${item.version}` : `; reads version ${item.version}`);
    const next = this.rows[item.rank][item.index];
    if (next) return this.reasons.sentence(item.rank, item.start, next);
    return `rank ${item.rank} was idle for ${milliseconds(item.end - item.start)} `
      + (this.cut ? 'at the end of what is here' : 'to the end');
  }

  // How an action began beside the plan, and what the strip says there.
  slip(item) {
    const slip = this.above ? this.plan.slipOf(item) : undefined;
    const late = slip === undefined ? '' : slip === 0 ? ', as planned' : `, ${milliseconds(Math.abs(slip))} ${slip > 0 ? 'later' : 'earlier'} than planned`;
    if (!this.strip) return late;
    const value = valueAt(this.curve(item.rank), item.start);
    return `${late}; ${this.strip.text}: ${value}` + (view.strip === 'held' && this.activations ? `, with about ${mebibytes(value * this.activations[item.rank])} of activations` : '');
  }

  point(event) {
    if (this.drag && this.drag.moved) return;
    const item = this.itemUnder(event);
    if (item) {
      this.say(item);
      moveCursor(this.time(event.clientX - this.canvas.getBoundingClientRect().left));
    }
  }

  // The pointer may leave the canvas while it drags.
  grasp(event) {
    this.release();
    const over = new AbortController(), until = {signal: over.signal};
    this.drag = {x: event.clientX, from: this.from, moved: false, over};
    window.addEventListener('pointermove', e => this.pull(e), until);
    for (const end of ['pointerup', 'pointercancel']) window.addEventListener(end, () => this.release(), until);
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
    if (this.drag) this.drag.over.abort();
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
    const row = this.rows[item.rank];
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
    if (event.ctrlKey || event.metaKey || event.altKey || !this.rows.some(row => row.length)) return;
    const here = this.marked, middle = here ? (Math.max(here.start, this.from) + Math.min(here.end, this.to)) / 2 : (this.from + this.to) / 2;
    const other = by => this.itemAt(Math.min(Math.max(here.rank + by, 0), this.rows.length - 1), middle);
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
