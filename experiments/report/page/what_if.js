// SPDX-License-Identifier: BSD-3-Clause
// The schedules again at other costs and sizes, laid out by the page.
class WhatIf {
  constructor(parent) {
    // Of a run that failed at once nothing is known.
    this.runs = data.runs.filter(run => run.orders.length > 0 && run.rows.flat().some(a => a.letter === 'F'));
    if (this.runs.length === 0) return;
    this.section = element('section', undefined, parent, 'what-if');
    element('h2', 'What if', this.section);
    element('p', 'Laid out by this page from the schedules’ orders: not what ran. Costs are of what one rank has; '
      + 'updates take what they took, and messages no time where they were not simulated, until you move them. What directions of a schedule send each other takes latency alone.', this.section, 'faint');
    this.costs = new Map(this.runs.map(run => [run, new Costs(run)]));
    const all = [...this.costs.values()], linked = this.runs.map(run => run.link).filter(link => link);
    this.forward = medianOf(all.map(c => c.forward));
    const ratio = medianOf(all.map(c => Math.round(1000 * c.ratio))) / 1000, link = linked[0] || {latency: 0, occupied: 0};
    const sizes = pick => [...new Set(this.runs.flatMap(run => run.orders.map(pick)))].sort((a, b) => a - b);
    const own = this.runs[0].orders[0];
    this.form = element('div', undefined, this.section, 'sliders');
    this.ratio = this.slider('backward : forward', 0.25, 4, 0.05, ratio, x => x.toFixed(2));
    this.latency = this.slider('latency', 0, 2, 0.05, link.latency / this.forward, x => `${x.toFixed(2)} forwards`);
    this.occupied = this.slider('an activation occupies a port for', 0, 2, 0.05, link.occupied / this.forward, x => `${x.toFixed(2)} forwards`);
    this.ranks = this.choice('ranks', sizes(o => o.ranks), own.ranks);
    this.microbatches = this.choice('microbatches', sizes(o => o.microbatches), own.microbatches);
    const reset = element('button', 'costs of the run', this.form);
    reset.onclick = () => {
      for (const s of [this.ratio, this.latency, this.occupied, this.ranks, this.microbatches]) s.reset();
      this.layOut();
    };
    this.table = element('table', undefined, element('div', undefined, this.section, 'scroll'));
    this.shown = this.runs[0];
    this.place = element('div', undefined, this.section);
    this.layOut();
  }

  slider(label, least, most, step, start, text) {
    return this.input(label, {min: 0, max: 1000, value: 0}, input => {
      const own = start, from = Math.min(least, own), to = Math.max(most, own);
      let moved = false;
      const value = () => moved ? Math.round((from + input.value / 1000 * (to - from)) / step) * step : undefined;
      return {value, text: () => moved ? text(value()) : 'of each run', moves: () => { moved = true; },
        reset: () => { moved = false; input.value = (own - from) / (to - from) * 1000; },
        set: x => { moved = true; input.value = (x - from) / (to - from) * 1000; }};
    });
  }

  choice(label, values, own) {
    return this.input(label, {min: 0, max: values.length - 1, value: 0}, input => ({
      value: () => values[input.value], text: () => String(values[input.value]), moves: () => {},
      reset: () => { input.value = values.indexOf(own); }, set: x => { input.value = values.indexOf(x); }}));
  }

  input(label, limits, make) {
    const line = element('label', label + ' ', this.form), input = element('input', undefined, line);
    const said = element('output', '', line);
    input.type = 'range';
    Object.assign(input, limits);
    const made = make(input);
    made.reset();
    made.tell = () => { said.textContent = made.text(); };
    input.disabled = limits.max === 0;
    input.addEventListener('input', () => {
      made.moves();
      cancelAnimationFrame(this.waiting);
      this.waiting = requestAnimationFrame(() => this.layOut());
    });
    return made;
  }

  orderOf(run) { return run.orders.find(o => o.ranks === this.ranks.value() && o.microbatches === this.microbatches.value()); }

  // Why a run cannot be laid out as the sliders are; empty if it can.
  refusal(run) {
    if (!this.orderOf(run)) return 'not of these sizes here';
    return run.timing === 'virtual' && !run.link && this.latency.value() === undefined
      ? 'its messages are not alike: move the latency' : '';
  }

  // Rows of a run as the sliders have it. What was not moved is as it was in that run; messages of measured runs
  // take no time then.
  rowsOf(run) {
    const order = this.orderOf(run), link = run.link || {latency: 0, occupied: 0}, own = this.costs.get(run);
    const rows = order.rows.map((text, rank) => parsedOrder(text, rank));
    const time = (slider, otherwise) => slider.value() === undefined ? otherwise : Math.round(slider.value() * this.forward);
    return new Layout(rows, {...rulesOf(run), ...own.at(this.ratio.value(), order === run.orders[0], order.ranks / order.stages),
      microbatches: order.microbatches, stages: order.stages, total: order.microbatches * order.steps,
      updateEvery: this.updateEvery(run, order), latency: time(this.latency, link.latency),
      occupied: time(this.occupied, link.occupied)}).run();
  }

  // Of a batch, as many as it was of the run's; of less or more as it was.
  updateEvery(run, order) {
    const every = run.schedule.update_every;
    return every === run.microbatches ? order.microbatches : every;
  }

  // Each schedule gets a line at once and what it says soon: the one that is drawn first.
  layOut() {
    for (const s of [this.ratio, this.latency, this.occupied, this.ranks, this.microbatches]) s.tell();
    this.table.textContent = '';
    const heads = element('tr', undefined, this.table);
    for (const text of ['', 'schedule', 'steps', 'makespan', 'idle', 'held at most']) element('th', text, heads);
    this.lines = new Map(this.runs.map(run => [run, this.lineOf(run)]));
    this.laidOut = new Map();
    this.rest = [this.shown, ...this.runs.filter(run => run !== this.shown)];
    this.layNextOut();
    this.drawShown();
    this.layRestOut();
  }

  lineOf(run) {
    const line = element('tr', undefined, this.table), pick = element('input', undefined, element('td', undefined, line));
    Object.assign(pick, {type: 'radio', name: 'what-if', checked: run === this.shown});
    pick.setAttribute('aria-label', 'draw ' + run.text);
    pick.onchange = () => {
      this.shown = run;
      if (!this.laidOut.has(run)) {
        this.rest = [run, ...this.rest.filter(other => other !== run)];
        this.layNextOut();
      }
      this.drawShown();
    };
    element('td', run.text, line);
    return line;
  }

  // One after another: a slider that moves again need not wait for all.
  layRestOut() {
    clearTimeout(this.resting);
    if (this.rest.length === 0) return;
    this.resting = setTimeout(() => {
      if (this.rest.length > 0) this.layNextOut(); // somebody may have been faster
      this.layRestOut();
    });
  }

  layNextOut() {
    const run = this.rest.shift(), why = this.refusal(run), line = this.lines.get(run);
    this.laidOut.set(run, why ? undefined : this.rowsOf(run));
    if (why) {
      element('td', why, line).colSpan = 4;
      return;
    }
    const rows = this.laidOut.get(run), {makespan, idle} = measuresOf(rows);
    const held = Math.max(...rows.map(row => Math.max(0, ...strips.held.steps(row).map(s => s[1]))));
    element('td', String(this.orderOf(run).steps), line);
    element('td', milliseconds(makespan, 3), line);
    bar(element('td', undefined, line), idle, (100 * idle).toFixed(1) + '%');
    element('td', String(held), line);
  }

  drawShown() {
    const rows = this.laidOut.get(this.shown), view = this.timeline && [this.timeline.from / this.timeline.end, this.timeline.to / this.timeline.end];
    this.place.textContent = '';
    this.timeline = undefined;
    if (!rows) return;
    rows.forEach(row => row.forEach((a, i) => {
      a.index = i;
      if (i > 0 && row[i - 1].pair) { a.first = row[i - 1]; row[i - 1].second = a; }
    }));
    this.timeline = new Timeline(shownOf({text: this.shown.text, timing: 'virtual', microbatches: this.microbatches.value(), cut: 0, bounds: null, link: null},
      rows, {heading: this.shown.text + ', laid out', notes: []}), this.place);
    if (view && this.shown === this.drawn) this.timeline.show(view[0] * this.timeline.end, view[1] * this.timeline.end);
    this.drawn = this.shown;
  }
}

// "0F0 1:0B0": the actions of an order.
function parsedOrder(text, rank) {
  return text === '' ? [] : text.split(' ').map(cell => {
    const [, direction, stage, letter, microbatch, pair] = /^(?:(\d+):)?(\d+)([A-Z])(\d+)(\+?)$/.exec(cell);
    return {letter, rank, stage: Number(stage), microbatch: Number(microbatch), pipeline: Number(direction || 0), pair: pair === '+'};
  });
}

// What the actions of a run take: the median of each kind at each stage, by what was recorded.
class Costs {
  constructor(run) {
    this.run = run;
    const all = run.rows.flat().filter(a => !a.first || a.start < a.end);
    this.of = new Map();
    for (const [key, same] of groupedBy(all, a => `${a.letter}${a.second ? '+' : ''} ${a.stage}`)) {
      const whole = groupedBy(same, a => `${a.pipeline} ${a.microbatch}`); // its parts together
      this.of.set(key, medianOf([...whole.values()].map(parts => parts.reduce((sum, a) => sum + a.end - a.start, 0))));
    }
    const each = letter => Array.from({length: run.schedule.stages}, (_, s) => this.of.get(`${letter} ${s}`)).filter(x => x !== undefined);
    const aRank = letter => each(letter).length ? medianOf(each(letter)) * run.schedule.stages / run.ranks.length : undefined;
    this.pair = medianOf(each('F+').length ? each('F+') : [0]);
    this.forward = Math.max(1, Math.round(aRank('F') ?? aRank('F+') / 3));
    this.backward = aRank('B') ?? (aRank('I') !== undefined ? aRank('I') + (aRank('W') ?? 0) : 2 * this.forward);
    this.ratio = this.backward / this.forward;
  }

  // The costs of a layout. Of the run's sizes with its own ratio, what its actions took.
  // ratio: undefined for its own; share: the part of what a rank has that a stage is
  at(moved, isOwn, share) {
    const unchanged = moved === undefined, ratio = moved ?? this.ratio;
    const uniform = {F: this.forward, R: this.forward, B: ratio * this.forward, I: ratio / 2 * this.forward, W: ratio / 2 * this.forward};
    const cost = a => {
      const key = `${a.letter} ${a.stage}`, recorded = this.of.get(isOwn ? key : `${a.letter} 0`);
      if (a.letter === 'U') return recorded ?? 0;
      if (isOwn && recorded !== undefined && (unchanged || 'FR'.includes(a.letter))) return recorded;
      const forward = isOwn ? this.of.get(`F ${a.stage}`) : undefined;
      return forward !== undefined ? Math.round({F: 1, R: 1, B: ratio, I: ratio / 2, W: ratio / 2}[a.letter] * forward)
        : Math.floor(uniform[a.letter] * share);
    };
    const pairCost = (a, b) => isOwn && unchanged && this.of.get(`F+ ${a.stage}`) || cost(a) + cost(b);
    return {cost, pairCost, secondCost: () => 0};
  }
}
