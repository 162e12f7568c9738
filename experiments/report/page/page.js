// Draws what page.cpp wrote: a table of the runs, and for each run a timeline in which
// idle time can be asked for its reason. No network, no library.
'use strict';

const data = JSON.parse(document.getElementById('data').textContent);
const colours = {F: '#56b4e9', B: '#e69f00', I: '#f0e442', W: '#009e73', U: '#cc79a7', R: '#999999'};
const meanings = {F: 'forward', B: 'backward', I: 'input gradient', W: 'weight gradient', U: 'update',
  R: 'forward that runs again'};

function element(kind, text, parent, name) {
  const made = document.createElement(kind);
  if (text !== undefined) made.textContent = text;
  if (name) made.className = name;
  if (parent) parent.append(made);
  return made;
}

function milliseconds(ns) {
  const ms = ns / 1e6;
  return (ms < 0.01 ? ms.toFixed(6) : ms < 10 ? ms.toFixed(3) : ms.toFixed(1)) + ' ms';
}

// Actions of a rank from the seven numbers of each that page.cpp writes.
function actionsOf(rank) {
  const all = [];
  for (let i = 0, before = 0; i < rank.length; i += 7) {
    const [letter, stage, microbatch, pipeline, version, idle, takes] = rank.slice(i, i + 7);
    const start = before + idle;
    before = start + takes;
    const a = {letter: data.letters[letter], stage, microbatch, pipeline, version, start, end: before};
    const last = all[all.length - 1];
    if (takes === 0 && 'BI'.includes(a.letter) && last && last.letter === 'F' && last.end === start && last.end > last.start)
      last.pair = a; // a forward and a backward in one, which the forward is charged for
    all.push(a);
  }
  return all;
}

const nameOf = a => a.letter + a.microbatch + (a.pair ? '&' + nameOf(a.pair) : '');

// The timeline of one run.
class Timeline {
  constructor(run, parent) {
    this.run = run;
    this.ranks = run.ranks.map(actionsOf);
    this.ranks.forEach((row, rank) => row.forEach(a => { a.rank = rank; }));
    this.end = Math.max(1, ...this.ranks.map(row => row.length ? row[row.length - 1].end : 0));
    this.left = 46;
    this.row = this.ranks.length <= 64 ? 22 : Math.max(3, Math.floor(1400 / this.ranks.length));
    this.marked = null;
    this.section = element('section', undefined, parent);
    element('h2', run.text, this.section);
    element('p', this.ofTimes(), this.section, 'faint');
    const bar = element('div', undefined, this.section, 'bar');
    const button = (text, does) => { element('button', text, bar).onclick = does; };
    button('one minibatch', () => this.show(...this.minibatch()));
    button('whole run', () => this.show(0, this.end));
    button('+', () => this.zoom(0.5));
    button('−', () => this.zoom(2));
    this.canvas = element('canvas', undefined, this.section);
    this.canvas.tabIndex = 0;
    this.canvas.setAttribute('role', 'img');
    this.canvas.setAttribute('aria-label', `timeline of ${run.text}, ${this.ranks.length} ranks`);
    this.said = element('p', '', this.section, 'said');
    this.said.setAttribute('aria-live', 'polite');
    this.canvas.addEventListener('pointermove', e => this.move(e));
    this.canvas.addEventListener('pointerdown', e => this.press(e));
    this.canvas.addEventListener('pointerup', () => { this.drag = null; });
    this.canvas.addEventListener('click', e => this.mark(this.at(e)));
    this.canvas.addEventListener('wheel', e => this.wheel(e), {passive: false});
    this.canvas.addEventListener('keydown', e => this.key(e));
    this.show(...this.minibatch());
  }

  ofTimes() {
    const how = {
      measured: 'Times are measured: a thread for each rank.',
      modelled: 'Times are modelled: the lengths of actions were measured, and laid out as if each rank had a device.',
      shared: 'Times are measured where ranks took turns on fewer threads; idle time is not the schedule’s.',
      virtual: 'Times are the virtual clock’s.'}[this.run.timing];
    return how + (this.run.cut ? ` The first ${this.run.cut.toLocaleString('en')} actions of a rank are here.` : '');
  }

  // From the first start to the last end of the minibatch in the middle.
  minibatch() {
    const size = this.run.microbatches, all = this.ranks.flat();
    const last = all.reduce((most, a) => Math.max(most, a.microbatch), 0);
    const middle = Math.floor((Math.floor(last / size) + 1) / 2);
    const its = all.filter(a => Math.floor(a.microbatch / size) === middle);
    if (its.length === 0) return [0, this.end];
    return [its.reduce((t, a) => Math.min(t, a.start), Infinity), its.reduce((t, a) => Math.max(t, a.end), 0)];
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

  draw() {
    const ratio = window.devicePixelRatio || 1;
    this.width = this.canvas.parentElement.clientWidth;
    this.height = this.row * this.ranks.length + 20;
    this.canvas.style.height = this.height + 'px';
    this.canvas.width = Math.round(this.width * ratio);
    this.canvas.height = Math.round(this.height * ratio);
    const on = this.canvas.getContext('2d'), style = getComputedStyle(document.body);
    const colour = name => style.getPropertyValue(name);
    on.scale(ratio, ratio);
    on.font = '11px system-ui, sans-serif';
    on.textBaseline = 'middle';
    this.drawn = 0;
    const height = this.row - (this.row > 8 ? 3 : 0);
    on.fillStyle = colour('--idle');
    this.ranks.forEach((_, rank) => on.fillRect(this.left, rank * this.row, this.width - this.left, height));
    this.drawAxis(on, colour);
    this.ranks.forEach((row, rank) => {
      const y = rank * this.row;
      for (let i = this.first(row); i < row.length && row[i].start <= this.to; ++i) {
        const a = row[i], from = Math.max(this.left, this.x(a.start)), to = Math.min(this.width, this.x(a.end));
        if (to < from) continue;
        on.fillStyle = colours[a.letter];
        const wide = Math.max(0.4, to - from - (to - from > 4 ? 0.8 : 0));
        on.fillRect(from, y, wide, height);
        if (a.pair) {
          on.fillStyle = colours[a.pair.letter];
          on.fillRect(from, y + height / 2, wide, height / 2);
        }
        ++this.drawn;
        const label = this.row > 12 ? nameOf(a) : '';
        if (label && to - from > 6.5 * label.length) {
          on.fillStyle = '#000000';
          on.textAlign = 'center';
          on.fillText(label, (from + to) / 2, y + height / 2);
        }
      }
      if (this.row > 10 || rank % 10 === 0) {
        on.fillStyle = colour('--faint');
        on.textAlign = 'left';
        on.fillText('rank ' + rank, 0, y + height / 2);
      }
    });
    if (this.marked) this.drawMark(on, colour);
    this.canvas.dataset.drawn = this.drawn;
  }

  drawAxis(on, colour) {
    const y = this.row * this.ranks.length, span = this.to - this.from;
    const labels = Math.max(1, (this.width - this.left) / 90);
    let step = 10 ** Math.floor(Math.log10(span / labels));
    step *= [1, 2, 5, 10].find(more => span / (step * more) <= labels);
    on.fillStyle = colour('--faint');
    on.strokeStyle = colour('--line');
    on.textAlign = 'left';
    for (let t = Math.ceil(this.from / step) * step; t <= this.to; t += step) {
      const x = this.x(t);
      on.beginPath();
      on.moveTo(x, 0);
      on.lineTo(x, y + 4);
      on.stroke();
      if (x < this.width - 55) on.fillText(milliseconds(t), x + 3, y + 11);
    }
  }

  drawMark(on, colour) {
    const {rank, start, end} = this.marked;
    on.strokeStyle = colour('--mark');
    on.lineWidth = 2;
    on.strokeRect(this.x(start), rank * this.row + 1, Math.max(2, this.x(end) - this.x(start)), this.row - 4);
    on.lineWidth = 1;
  }

  // Index of the first action of a row that ends behind the left edge.
  first(row) {
    let low = 0, high = row.length;
    while (low < high) {
      const half = (low + high) >> 1;
      if (row[half].end < this.from) low = half + 1; else high = half;
    }
    return low;
  }

  // The action, or the idle time between two, of a rank at a time.
  found(rank, time) {
    const row = this.ranks[rank];
    let before = {end: 0}, index = 0;
    for (; index < row.length && row[index].end <= time; ++index) before = row[index];
    if (index < row.length && row[index].start <= time) return row[index];
    return {rank, start: before.end, end: index < row.length ? row[index].start : this.end, next: row[index]};
  }

  at(event) {
    const box = this.canvas.getBoundingClientRect();
    const rank = Math.floor((event.clientY - box.top) / this.row), x = event.clientX - box.left;
    if (rank < 0 || rank >= this.ranks.length || x < this.left) return null;
    return this.found(rank, this.from + (x - this.left) / (this.width - this.left) * (this.to - this.from));
  }

  mark(what) {
    this.marked = what;
    this.said.textContent = what ? this.sentence(what) : '';
    this.draw();
  }

  sentence(what) {
    if (what.letter)
      return `${nameOf(what)}: ${meanings[what.letter]} of stage ${what.stage} on rank ${what.rank}, `
        + `${milliseconds(what.end - what.start)} from ${milliseconds(what.start)}; `
        + (what.letter === 'U' ? `makes version ${what.version}` : `reads version ${what.version}`);
    return this.reason(what);
  }

  // What an action's input came from.
  cause(a) {
    if (!this.sources) {
      this.sources = new Map();
      for (const b of this.ranks.flat())
        if ('FBI'.includes(b.letter))
          this.sources.set(`${b.letter === 'F' ? 'F' : 'B'} ${b.pipeline} ${b.stage} ${b.microbatch}`, b);
    }
    const from = (kind, stage) => this.sources.get(`${kind} ${a.pipeline} ${stage} ${a.microbatch}`);
    if (a.letter === 'F') return from('F', a.stage - 1);
    if (a.letter === 'B' || a.letter === 'I' || a.letter === 'R') return from('B', a.stage + 1) || from('F', a.stage);
    return undefined;
  }

  // Who was waited for in idle time, down to who began it.
  reason(idle) {
    const said = `rank ${idle.rank} waited ${milliseconds(idle.end - idle.start)}`;
    if (!idle.next) return said.replace('waited', 'was done, and idle for') + ' to the end';
    let text = `${said} for the input of ${nameOf(idle.next)} (stage ${idle.next.stage})`;
    let of = idle.next;
    for (let steps = 0; steps < 6; ++steps) {
      const cause = this.cause(of);
      if (!cause || cause.rank === of.rank || cause.end > of.start) {
        if (cause || of.letter !== 'F') return text + this.meeting(of);
        return text + `, ${nameOf(of)} being the first of its pipeline`;
      }
      text += `, which ${nameOf(cause)} on rank ${cause.rank} ended ${milliseconds(of.start - cause.end)} before`;
      const row = this.ranks[cause.rank], index = row.indexOf(cause);
      const before = index > 0 ? row[index - 1].end : 0;
      if (cause.start - before <= 0.02 * (cause.end - cause.start)) {
        const busy = index > 0 ? `; rank ${cause.rank} was busy until then, with ${nameOf(row[index - 1])} before` : '';
        return text + busy;
      }
      text += `; rank ${cause.rank} itself had waited ${milliseconds(cause.start - before)}`;
      of = cause;
    }
    return text + ', and so on';
  }

  meeting(of) {
    return of.letter === 'U' ? ', which waits for the gradients of others' : '';
  }

  move(event) {
    if (this.drag) {
      const by = (this.drag.x - event.clientX) / (this.width - this.left) * (this.to - this.from);
      this.show(this.drag.from + by, this.drag.from + by + this.to - this.from);
      return;
    }
    const what = this.at(event);
    if (what) this.said.textContent = this.sentence(what);
  }

  press(event) {
    if (event.pointerType !== 'touch') this.drag = {x: event.clientX, from: this.from};
  }

  wheel(event) {
    if (!event.ctrlKey && !event.metaKey) return; // the page scrolls
    event.preventDefault();
    const box = this.canvas.getBoundingClientRect(), x = Math.max(this.left, event.clientX - box.left);
    this.zoom(event.deltaY > 0 ? 1.25 : 0.8, this.from + (x - this.left) / (this.width - this.left) * (this.to - this.from));
  }

  // Arrows go from action to action, idle times between them included.
  key(event) {
    const here = this.marked || this.found(0, this.from);
    const middle = (Math.max(here.start, this.from) + Math.min(here.end, this.to)) / 2;
    const step = {
      ArrowRight: () => this.found(here.rank, Math.min(here.end, this.end - 0.5)),
      ArrowLeft: () => this.found(here.rank, Math.max(0, here.start - 0.5)),
      ArrowDown: () => this.found(Math.min(here.rank + 1, this.ranks.length - 1), middle),
      ArrowUp: () => this.found(Math.max(here.rank - 1, 0), middle)}[event.key];
    if (step) {
      event.preventDefault();
      this.mark(step());
      const span = this.to - this.from;
      if (this.marked.start < this.from || this.marked.end > this.to)
        this.show(this.marked.start - span / 4, this.marked.start + 3 * span / 4);
    } else if (event.key === '+' || event.key === '=') {
      this.zoom(0.5, middle);
    } else if (event.key === '-') {
      this.zoom(2, middle);
    } else if (event.key === '0') {
      this.show(0, this.end);
    }
  }
}

function table(parent) {
  const columns = [
    ['schedule', r => r.text], ['times', r => r.timing], ['makespan ms', r => fixed(r.makespan * 1e3, 3)],
    ['bubble', r => r.bubble === null ? '' : fixed(r.bubble * 100, 1) + '%'],
    ['activations', r => most(r.peak_activations)],
    ['MiB a rank', r => r.peak_bytes ? fixed(most(r.peak_bytes) / 2 ** 20, 1) : ''],
    ['versions', r => most(r.weight_versions)], ['staleness', r => r.staleness ? most(r.staleness.max) : ''],
    ['samples/s', r => fixed(r.samples_per_second, 0)], ['last loss', r => r.loss ? fixed(r.loss[r.loss.length - 1], 4) : ''],
    ['evaluated loss', r => fixed(r.evaluation.loss, 4)], ['accuracy', r => r.evaluation.accuracy === null ? '' : fixed(r.evaluation.accuracy * 100, 1) + '%']];
  const fixed = (x, digits) => x === null || x === undefined ? '' : x.toFixed(digits);
  const most = all => all && all.length ? Math.max(...all) : '';
  const used = columns.filter(([, of]) => data.results.runs.some(r => of(r) !== ''));
  const made = element('table', undefined, element('div', undefined, parent, 'scroll'));
  const head = element('tr', undefined, element('thead', undefined, made));
  used.forEach(([name]) => element('th', name, head));
  const body = element('tbody', undefined, made);
  data.results.runs.forEach(run => {
    const row = element('tr', undefined, body);
    used.forEach(([, of]) => element('td', String(of(run)), row));
  });
}

function legend(parent) {
  const made = element('p', undefined, parent, 'legend');
  const there = new Set(data.runs.flatMap(run => run.ranks.flatMap(rank => rank.filter((_, i) => i % 7 === 0))));
  Array.from(data.letters).forEach((letter, i) => {
    if (!there.has(i)) return;
    const item = element('span', undefined, made);
    element('i', undefined, item).style.background = colours[letter];
    item.append(`${letter} ${meanings[letter]}`);
  });
}

const body = document.body;
element('h1', 'troupe: ' + data.runs.map(run => run.text).join(', '), body);
element('code', data.results.command.join(' '), element('p', undefined, body));
element('p', `troupe ${data.results.troupe}, seed ${data.results.seed}`, body, 'faint');
data.results.runs.forEach((run, i) => { run.text = data.runs[i].text; });
table(body);
legend(body);
element('p', 'Point at an action, or at idle time, to be told of it; click to keep it marked. Drag moves a timeline, Ctrl '
  + 'with the wheel zooms; so do the arrow keys, +, − and 0 where it has the focus.', body, 'hint faint');
const timelines = data.runs.map(run => new Timeline(run, body));
let waiting = 0;
const redraw = () => timelines.forEach(t => t.draw());
window.addEventListener('resize', () => { cancelAnimationFrame(waiting); waiting = requestAnimationFrame(redraw); });
matchMedia('(prefers-color-scheme: dark)').addEventListener('change', redraw);
document.documentElement.dataset.ready = timelines.length;
