// SPDX-License-Identifier: BSD-3-Clause
// The first figure: one minibatch of each schedule on a common time axis, and measures as points beside it.
class Overview {
  // runs: as data.runs; results: as data.results
  constructor(runs, results, parent) {
    this.results = results;
    const all = runs.map((run, index) => ({run, result: results.runs[index], index, name: run.text}));
    this.rows = all.filter(({run, result}) => result.ending !== 'failed' && run.rows.some(row => row.length > 0));
    if (all.length < 2 || this.rows.length === 0) return;
    for (const row of this.rows) row.window = steadyWindow(row.run.rows, row.run.microbatches, knownEnd(row.run));
    this.most = Math.max(...this.rows.map(({window: [from, to]}) => to - from));
    this.time = unitOfTime(this.rows.map(({window: [from, to]}) => (to - from) / 1e9)); // on all axes of times
    this.section = element('section', undefined, parent, 'overview');
    element('h2', 'One minibatch of each schedule', this.section);
    this.answers = element('ul', undefined, this.section, 'answers');
    this.addLegend();
    this.measures = this.measuresOf();
    this.table = new SortedTable(this.section, [this.nameColumn(), this.pictureColumn(), ...this.measures.map(m => this.pointColumn(m))], this.rows,
      {label: 'one minibatch and measures of each schedule', name: 'figure', mostBest: 0.99});
    this.addAxes();
    this.addAnswers();
    this.addNotes(all);
  }

  addLegend() {
    const rows = this.rows.flatMap(({run}) => run.rows);
    legendOfKinds(rows, data.letters, this.section);
    const idle = element('span', undefined, this.section.querySelector('.legend'));
    element('i', undefined, idle).className = 'hole';
    idle.append('idle');
  }

  // Points: {head, title, value(row), text, short: text at an axis, better, answer (a sentence's beginning)}. Measures
  // that no run has are left out.
  measuresOf() {
    const {results, time} = this, samples = samplesOfLoss(results), seconds = results.runs.find(run => run.after_shortest)?.after_shortest.seconds ?? null;
    const after = unitOfTime([seconds]);
    const period = ({window: [from, to]}) => (to - from) / 1e9 * time.of, memory = ({result}) => inMebibytes(peakBytes(result));
    const timeDigits = decimalsOf(this.rows.map(period)), memoryDigits = decimalsOf(this.rows.map(memory), 1);
    const evaluated = ({result}) => result.evaluation?.loss, isKnown = value => this.rows.some(row => isNumber(value(row)));
    const plain = x => String(Number(x.toPrecision(4))), loss = {text: x => x.toFixed(4), short: plain, better: 'less', isLoss: true};
    return [
      {head: 'minibatch', title: 'Time of the minibatch that is drawn.', value: period, text: x => `${x.toFixed(timeDigits)} ${time.unit}`,
        short: x => `${plain(x)} ${time.unit}`, better: 'less', answer: 'Shortest minibatch'},
      {head: 'bubble', title: 'Idle share of all ranks, over the whole run.', value: ({result}) => hasOwnTimes(result) ? result.bubble : null,
        text: percent, short: x => plain(100 * x) + '%', better: 'less', answer: 'Idles least'},
      isKnown(memory) ? {head: 'memory', title: 'Most memory of a rank.', value: memory, text: x => x.toFixed(memoryDigits) + ' MiB',
        short: x => plain(x) + ' MiB', better: 'less', answer: 'Least memory'}
        : {head: 'activations', title: 'Most activations of a rank, in microbatches of all its stages.', value: ({result}) => heldMicrobatches(result),
          text: plain, short: plain, better: 'less', answer: 'Fewest activations'},
      isKnown(evaluated) ? {...loss, head: 'evaluated loss', title: 'Loss of the evaluation at the end.', value: evaluated, answer: 'Lowest evaluated loss'}
        : {...loss, head: 'loss', title: `Mean loss of the last ${samples} samples.`, value: ({result}) => lastLoss(result, batchOf(results), samples), answer: 'Lowest loss'},
      {...loss, head: seconds === null ? '' : `loss after ${plain(seconds * after.of)}\u00a0${after.unit}`,
        title: 'Mean loss of the last 8 batches, in as many seconds as the fastest schedule took.',
        value: ({result}) => hasOwnTimes(result) ? result.after_shortest?.loss : null, answer: 'Learns most per second'},
    ].filter(({value}) => isKnown(value));
  }

  nameColumn() {
    return {head: 'schedule', value: ({name}) => name, text: ({name}) => name, draw: (cell, {name, index, run, result}) => {
      swatch(index, cell);
      element('a', name + (result.ending === 'finished' ? '' : ` (${result.ending})`), cell).href = '#' + idOf(run);
    }};
  }

  pictureColumn() {
    const {ticks} = this.timeTicks();
    return {head: 'one steady minibatch', value: ({window: [from, to]}) => to - from, text: () => '', draw: (cell, {name, run, window}) => {
      cell.classList.add('picture');
      const picture = drawSteady(run.rows, window, this.most, ticks, cell);
      picture.setAttribute('aria-label', `${name}: a minibatch of ${milliseconds(window[1] - window[0])} on ${run.rows.length} ranks`);
      picture.dataset.from = window[0];
    }};
  }

  pointColumn(measure) {
    measure.axis = dotAxis(this.rows.map(measure.value), !measure.isLoss);
    return {head: measure.head, title: measure.title, value: measure.value, text: row => measure.text(measure.value(row)), better: measure.better,
      draw: (cell, row) => drawDot(cell, {axis: measure.axis, value: measure.value(row), index: row.index,
        text: isNumber(measure.value(row)) ? measure.text(measure.value(row)) : ''})};
  }

  timeTicks() { return roundTicks(0, this.most, 5); }

  // A row below the table with the ends of all axes.
  addAxes() {
    const line = element('tr', undefined, element('tfoot', undefined, this.table.table));
    element('td', undefined, line);
    const times = element('div', undefined, element('td', undefined, line, 'picture'), 'times'), {unit, of} = this.time;
    for (const t of this.timeTicks().ticks) {
      const label = element('span', `${Number((t / 1e9 * of).toPrecision(4))} ${unit}`, times);
      label.style.left = 100 * t / this.most + '%';
      if (t > 0.93 * this.most) label.className = 'last';
    }
    for (const {axis, short} of this.measures) dotEnds(element('td', undefined, line), axis, short);
  }

  // The best schedules of each measure, in words.
  addAnswers() {
    this.measures.forEach((measure, i) => {
      const text = this.table.best[i + 2].get('');
      if (text === undefined) return;
      const best = this.rows.filter(row => isNumber(measure.value(row)) && measure.text(measure.value(row)) === text).map(({name}) => name);
      const item = element('li', measure.answer + ': ', this.answers);
      element('b', best.length > 4 ? listed([...best.slice(0, 3), `${best.length - 3} others`]) : listed(best), item);
      item.append(` (${text})`);
    });
  }

  addNotes(all) {
    const note = (text, name = 'faint') => element('p', text, this.section, name);
    note('Each row begins with a minibatch’s first forward and ends with the next minibatch’s first forward, so a shorter row trains faster. '
      + 'Ranks stand below each other. ★ marks the best of a column; a click on a head sorts.');
    const together = lieTogether(this.rows.filter(({result}) => result.loss && result.loss.length > 0));
    if (together.length > 0) note(`The same losses to six digits, by one mathematics: ${together.map(names => listed(names)).join('; ')}.`);
    const unfair = sharingRates(all);
    if (unfair) note(unfair, 'unfair');
    for (const {run, result, name} of all) {
      if (result.ending === 'failed') note(`${name} is not drawn: the run failed.`);
      else if (!run.rows.some(row => row.length > 0)) note(`${name} is not drawn: nothing of the run was recorded.`);
    }
    for (const [why, same] of groupedBy(this.results.left_out || [], ({why}) => why)) note(`Not run: ${listed(same.map(({schedule}) => schedule))}, as ${why}`);
  }
}

// Place of a run's timeline on the page.
const idOf = run => 'run-' + data.runs.indexOf(run);

// The time up to which all ranks of a run are known.
function knownEnd({rows, cut}) {
  const ends = rows.map(row => row.length ? row[row.length - 1].end : 0);
  return Math.max(1, cut ? Math.min(...ends) : ends.reduce((most, x) => Math.max(most, x), 0));
}

// Names of schedules whose losses agree to six digits: lists of two names or more.
function lieTogether(rows) {
  const close = (a, b) => a.length === b.length && a.every((x, i) => x === b[i] || Math.abs(x - b[i]) <= 1e-6 * Math.abs(x));
  const groups = [];
  for (const {name, result} of rows) {
    const group = groups.find(({loss}) => close(loss, result.loss));
    if (group) group.names.push(name);
    else groups.push({loss: result.loss, names: [name]});
  }
  return groups.map(({names}) => names).filter(names => names.length > 1);
}

// A sentence where asynchronous schedules ran at the learning rate of another run; else an empty text.
function sharingRates(all) {
  const rateOf = ({result}) => result.options && result.options['--lr'];
  const shares = row => rateOf(row) && !row.run.schedule.flushes && all.some(other => other !== row && rateOf(other) === rateOf(row));
  const sharing = all.filter(shares);
  if (sharing.length === 0) return '';
  const {name} = sharing[0], rate = rateOf(sharing[0]);
  return `Unfair to ${listed(sharing.map(row => row.name))}: asynchronous schedules update by older gradients and need rates of their own, but ran at the rate `
    + `of other schedules (${[...new Set(sharing.map(rateOf))].join(', ')}). A rate for one schedule: ${name}${name.includes(':') ? ',' : ':'}lr=${Number(rate) / 2}.`;
}
