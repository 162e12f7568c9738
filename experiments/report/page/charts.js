// SPDX-License-Identifier: BSD-3-Clause
// Losses, memory by use, and loads of experts.

// Losses of all runs, over samples or seconds: in training a line, evaluated a dot for each.
class Losses {
  constructor(parent) {
    this.runs = data.results.runs.map((run, index) => ({run, index, text: data.runs[index] ? data.runs[index].text : run.schedule}))
      .filter(({run}) => run.loss && run.loss.length > 0);
    if (this.runs.length === 0) return;
    const section = element('section', undefined, parent);
    element('h2', 'Losses', section);
    this.note = element('p', '', section, 'faint');
    const buttons = element('div', undefined, section, 'bar');
    for (const over of ['samples', 'seconds']) {
      const made = element('button', 'over ' + over, buttons);
      made.onclick = () => this.show(over);
      made.disabled = over === 'seconds' && !this.runs.some(({run}) => run.loss_seconds);
    }
    const pick = element('select', undefined, element('label', 'each point: ', buttons));
    for (const many of [1, 10, 100]) element('option', many === 1 ? 'a loss' : `mean of ${many}`, pick).value = many;
    pick.onchange = () => { this.many = Number(pick.value); this.show(this.over); };
    this.many = 1;
    this.measures = new Map([['loss', 'loss'], ['gradient_norms', 'gradient norm'], ['learning_rates', 'learning rate']].filter(([key]) => this.runs.some(({run}) => run[key]?.length > 0)));
    this.measure = 'loss';
    const curve = element('select', undefined, element('label', 'curve: ', buttons));
    for (const [key, name] of this.measures) element('option', name, curve).value = key;
    curve.onchange = () => { this.measure = curve.value; this.show(this.over); };
    element('button', 'save CSV', buttons).onclick = () => save('losses.csv', 'text/csv', this.csv());
    this.names = element('p', undefined, section, 'legend names');
    this.outputs = new Map(this.runs.map(({text, index}) => [text, this.addName(text, index)]));
    this.place = element('div', undefined, section, 'chart');
    this.show('samples');
  }

  // A schedule's entry in the legend; returns the element of the values at the pointer.
  addName(text, index) {
    const item = element('span', undefined, this.names);
    swatch(index, item);
    item.append(text);
    return element('output', '', item);
  }

  // Values of all schedules at a row of the chart, in the legend; none if there is no row.
  showValues(row) {
    for (const [text, output] of this.outputs) {
      const of = kind => row ? this.drawn.findIndex(curve => curve.name === text && curve.kind === kind) : -1;
      const values = ['training', 'evaluated'].map(kind => [kind, of(kind) < 0 ? null : row[1 + of(kind)]]).filter(([, loss]) => isNumber(loss));
      output.textContent = values.map(([kind, loss]) => ` ${kind === 'evaluated' ? '● ' : ''}${this.measure === 'loss' ? loss.toFixed(4) : loss.toPrecision(4)}`).join('');
    }
  }

  // [samples, seconds (or undefined), loss] of a run, in training and evaluated. No second is known of evaluations
  // before the first loss, as of a run that began again.
  trained(run, measure = 'loss') { return (run[measure] ?? []).map((value, i) => [run.loss_samples[i], run.loss_seconds?.[i], value]); }
  evaluated(run) {
    const last = {samples: run.loss_samples[run.loss_samples.length - 1], loss: run.evaluation.loss};
    const atEnd = last.loss === null || run.evaluations.some(({samples}) => samples === last.samples) ? [] : [last];
    return [...run.evaluations, ...atEnd].map(({samples, loss}) => {
      const known = run.loss_samples.filter(x => x <= samples).length;
      return [samples, known > 0 ? run.loss_seconds?.[known - 1] : undefined, loss];
    });
  }

  // What is drawn: {name (of the run), kind, text, points: [[x, loss]], style}. A point in training is the mean of so many losses.
  curves(over) {
    const x = over === 'samples' ? 0 : 1, known = points => points.filter(p => p[x] !== undefined && p[2] !== null).map(p => [p[x], p[2]]);
    return this.runs.flatMap(({run, text, index}) => {
      const losses = known(this.trained(run, this.measure)), means = [], color = lineColour(index);
      for (let i = 0; i < losses.length; i += this.many) {
        const some = losses.slice(i, i + this.many);
        means.push([some[some.length - 1][0], sumOf(some.map(p => p[1])) / some.length]);
      }
      return [{name: text, kind: 'training', text, points: means, style: {color, strokePattern: dashes[index % dashes.length]}},
        {name: text, kind: 'evaluated', text: text + ' ●', points: this.measure === 'loss' ? known(this.evaluated(run)) : [], style: {color, strokeWidth: 0, drawPoints: true, pointSize: 3}}];
    }).filter(curve => curve.points.length > 0);
  }

  // A row a place on the axis: where it is, and of each curve its loss there or null.
  rows(curves) {
    const all = new Map();
    curves.forEach(({points}, k) => points.forEach(([x, loss]) => {
      if (!all.has(x)) all.set(x, new Array(curves.length).fill(null));
      all.get(x)[k] = loss;
    }));
    return [...all].sort((a, b) => a[0] - b[0]).map(([x, losses]) => [x, ...losses]);
  }

  csv() {
    const lines = ['schedule,loss,samples,seconds,value'];
    for (const {run, text} of this.runs)
      for (const [kind, points] of [['training', this.trained(run)], ['evaluated', this.evaluated(run)]])
        for (const [samples, seconds, loss] of points) lines.push([quoted(text), kind, samples, seconds ?? '', loss].join(','));
    return lines.join('\n') + '\n';
  }

  show(over) {
    this.over = over;
    const every = this.many * Math.max(...this.runs.map(({run}) => run.loss_every));
    this.note.textContent = (every > 1 ? `Each point is the mean of up to ${every} losses. ` : '')
      + (over === 'seconds' ? 'Seconds are of the clock that the timelines have.' : 'Samples that the run had seen by then.')
      + (this.measure === 'gradient_norms' ? ' Norm of the mean gradient before clipping.' : '')
      + (this.measure === 'loss' && this.runs.some(({run}) => run.evaluations.length > 0 || run.evaluation.loss !== null)
        ? ` A line is training, a dot an evaluation on ${data.results.data.evaluates_training_data ? 'data that training sees too' : 'held-out data'}.` : '');
    if (typeof Dygraph === 'undefined') {
      this.place.textContent = 'troupe was built without dygraphs, so there are no curves here; results.json has the losses.';
      return;
    }
    const curves = this.curves(over), series = Object.fromEntries(curves.map(({text, style}) => [text, style]));
    if (this.chart) this.chart.destroy();
    const rows = this.rows(curves);
    this.drawn = curves;
    this.showValues();
    this.chart = new Dygraph(this.place, rows, {labels: [over, ...curves.map(({text}) => text)], series,
      highlightCallback: (event, x, points, row) => this.showValues(rows[row]), unhighlightCallback: () => this.showValues(),
      connectSeparatedPoints: true, legend: 'never', strokeWidth: 1.5, xRangePad: 5, xlabel: over, ylabel: this.measures.get(this.measure),
      highlightSeriesOpts: {strokeWidth: 3}, axes: {x: {pixelsPerLabel: 70}}});
  }

  resize() { if (this.chart) this.chart.resize(); }
}

const useColours = {parameters: '#0072b2', gradients: '#e69f00', optimizer: '#009e73', activations: '#56b4e9', passing: '#cc79a7', checkpoint: '#999999'};

// The peak of each use of a rank's memory. Uses peak at different times, so a bar may be longer than the rank's peak.
function memoryOf(parent) {
  const runs = data.results.runs.map((run, i) => ({run, text: data.runs[i] ? data.runs[i].text : run.schedule})).filter(({run}) => run.peak_bytes_of && run.peak_bytes.length);
  if (runs.length === 0) return;
  const section = element('section', undefined, parent);
  element('h2', 'Memory by use', section);
  element('p', 'The most that each use had of a rank’s memory; not all at one time. The line is the most of the rank.', section, 'faint');
  legend(Object.entries(useColours).map(([use, colour]) => [colour, use]), section);
  const digits = decimalsOf(runs.map(({run}) => peakBytes(run) / 2 ** 20), 1), sized = bytes => (bytes / 2 ** 20).toFixed(digits) + ' MiB';
  const longest = Math.max(...runs.flatMap(({run}) => run.peak_bytes.map((_, rank) => Object.values(run.peak_bytes_of).reduce((sum, of) => sum + of[rank], 0))));
  for (const {run, text} of runs) {
    element('h3', text, section);
    run.peak_bytes.forEach((peak, rank) => {
      const line = element('div', undefined, section, 'memory');
      element('span', 'rank ' + rank, line, 'faint');
      const whole = element('div', undefined, line);
      for (const [use, of] of Object.entries(run.peak_bytes_of)) {
        const part = element('i', undefined, whole);
        part.style.cssText = `width: ${100 * of[rank] / longest}%; background: ${useColours[use]}`;
        part.title = `${use}: ${mebibytes(of[rank])}`;
      }
      element('b', undefined, whole).style.left = 100 * peak / longest + '%';
      element('span', sized(peak), line, 'faint');
    });
  }
}

// How tokens fell to experts: a row an expert, a column an entry of steps, dark where one got more than its share.
function expertsOf(parent) {
  data.results.runs.forEach((run, i) => {
    if (!run.experts) return;
    const section = element('section', undefined, parent);
    element('h2', `Loads of experts, ${data.runs[i] ? data.runs[i].text : run.schedule}`, section);
    for (const {block, steps, loads, dropped} of run.experts) {
      const all = sumOf(loads.flat()), drops = sumOf(dropped);
      element('p', `${block}: ${loads[0].length} experts, a column ${steps === 1 ? 'a step' : 'for ' + steps + ' steps'}; `
        + `${(100 * drops / Math.max(1, all + drops)).toFixed(1)}% of choices were dropped. Black is twice an equal share.`, section, 'faint');
      const canvas = element('canvas', undefined, section, 'experts');
      Object.assign(canvas, {width: loads.length, height: loads[0].length});
      canvas.style.height = 12 * loads[0].length + 'px';
      const context = canvas.getContext('2d');
      loads.forEach((row, x) => {
        const mean = sumOf(row) / row.length || 1;
        row.forEach((load, y) => {
          const dark = Math.round(255 * (1 - Math.min(1, load / mean / 2)));
          context.fillStyle = `rgb(${dark}, ${dark}, ${dark})`;
          context.fillRect(x, y, 1, 1);
        });
      });
      canvas.setAttribute('aria-label', `loads of the experts of ${block}`);
    }
  });
}
