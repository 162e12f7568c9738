// SPDX-License-Identifier: BSD-3-Clause
// The page of a study: a measure over options, its numbers, losses, and combinations that cannot run.
const data = JSON.parse(document.getElementById('data').textContent);
const {varied, runs, summary} = data;
const measures = data.measures.filter(({key}) => summary.some(row => row.measure === key && isNumber(row.mean))); // that a run has
const schedules = [...new Set(runs.map(run => run.schedule))];
const indexOf = schedule => schedules.indexOf(schedule);
const measureOf = new Map(measures.map(measure => [measure.key, {...measure, ...measureText(measure, summary.filter(row => row.measure === measure.key).map(row => row.mean))}]));

// A label with a choice among [value, text].
function choice(label, options, parent, chosen) {
  const pick = element('select', undefined, element('label', label + ' ', parent));
  for (const [value, text] of options) element('option', text, pick).value = value;
  pick.value = options[0][0];
  pick.onchange = () => chosen(pick.value);
  return pick;
}

const meanText = (measure, {mean, deviation}) => !isNumber(mean) ? '-'
  : measure.number(mean) + (isNumber(deviation) ? ' ± ' + measure.number(deviation) : '') + measure.unit;
const differenceText = (measure, {mean, deviation}) => (mean > 0 ? '+' : mean < 0 ? '−' : '') + meanText(measure, {mean: Math.abs(mean), deviation});
const seedsText = n => `${n} ${n === 1 ? 'seed' : 'seeds'}`;

// The measure over the first varied option, in a picture for each value of the second; other options are chosen.
class StudyFigure {
  constructor(parent) {
    this.section = element('section', undefined, parent, 'study-figure');
    element('h2', 'Measures', this.section);
    this.hidden = new Set();
    if (measures.length === 0) {
      element('p', 'No run has finished, so there are no numbers.', this.section);
      return;
    }
    this.answers = element('ul', undefined, this.section, 'answers');
    const form = element('p', undefined, this.section, 'bar settings');
    this.measure = choice('measure:', measures.map(({key, name}) => [key, name]), form, () => this.draw());
    this.further = new Map(varied.slice(2).map(option => [option, choice(option + ':', axisOf(runs.map(run => run.options[option])).values.map(text => [text, text]), form, () => this.draw())]));
    this.addLegend();
    this.heading = element('h3', '', this.section);
    const beside = element('div', undefined, this.section, varied.length > 0 ? 'beside' : '');
    this.panels = element('div', undefined, beside, 'panels');
    this.panels.tabIndex = 0;
    this.panels.setAttribute('role', 'group');
    this.panels.setAttribute('aria-label', 'arrows go from point to point; the numbers are in the table');
    this.panels.onkeydown = event => this.key(event);
    this.said = element('p', '', this.section, 'said');
    this.said.setAttribute('aria-live', 'polite');
    element('p', (varied.length > 0 ? 'A band is one deviation over seeds on each side of the mean; a line ends where a combination cannot run. ' : '')
      + `★ marks the best ${varied.length > 0 ? 'of a combination' : 'of the column'}; a click on a head sorts. Differences are to ${data.reference}, of runs with the same seed.`, this.section, 'faint');
    this.numbers = element('div', undefined, beside, 'numbers');
    this.addAnswers();
    this.draw();
  }

  addLegend() {
    const line = element('p', undefined, this.section, 'legend toggles');
    for (const schedule of schedules) {
      const button = element('button', undefined, line);
      swatch(indexOf(schedule), button);
      button.append(schedule);
      button.title = 'shows or hides this schedule';
      button.setAttribute('aria-pressed', 'true');
      button.onclick = () => {
        const isHidden = this.hidden.delete(schedule);
        if (!isHidden) this.hidden.add(schedule);
        button.setAttribute('aria-pressed', String(isHidden));
        this.draw();
        losses.draw();
      };
    }
  }

  // Of each main measure the schedule that is best in most combinations: idle time, memory, and learning.
  addAnswers() {
    const main = ['bubble', 'peak_bytes', 'evaluation_loss_nats', 'loss_after_shortest_nats', 'target_samples', 'target_seconds'];
    if (!measures.some(({key}) => key === 'peak_bytes')) main.push('peak_microbatches');
    for (const {key, name, better} of measures.filter(({key}) => main.includes(key))) {
      const measure = measureOf.get(key), wins = new Map();
      const groups = groupedBy(summary.filter(row => row.measure === key && isNumber(row.mean)), row => combinationOf(row, varied));
      let count = 0;
      for (const rows of groups.values()) {
        const text = row => measure.text(row.mean), best = bestOf(rows.map(row => row.mean), better), chosen = rows.filter(row => text(row) === text(rows.find(r => r.mean === best)));
        if (chosen.length === rows.length) continue;
        ++count;
        for (const {schedule} of chosen) wins.set(schedule, (wins.get(schedule) || 0) + 1);
      }
      if (count === 0) continue;
      const most = Math.max(...wins.values()), first = schedules.filter(schedule => wins.get(schedule) === most);
      const item = element('li', `${better === 'less' ? 'Least' : 'Most'} ${name}: `, this.answers);
      element('b', listed(first), item);
      if (varied.length > 0) item.append(` (in ${most} of ${count} combinations)`);
    }
  }

  // Rows of the summary that are shown.
  shownRows() {
    return summary.filter(row => row.measure === this.measure.value && isNumber(row.mean) && !this.hidden.has(row.schedule)
      && [...this.further].every(([option, pick]) => row.options[option] === pick.value));
  }

  draw() {
    if (measures.length === 0) return;
    const rows = this.shownRows(), measure = measureOf.get(this.measure.value);
    this.panels.replaceChildren();
    this.heading.textContent = varied.length === 0 ? '' : [`${measure.name} over ${varied[0]}`, ...[...this.further].map(([option, pick]) => `${option} ${pick.value}`)].join(', ');
    this.said.textContent = '';
    this.marks = [];
    if (rows.length === 0) element('p', 'No number is shown: all schedules are hidden, or no run of this choice has finished.', this.panels);
    else if (varied.length > 0) this.drawPanels(rows, measure);
    this.drawTable(rows, measure);
  }

  // All pictures have the same axes, those of all schedules, so that nothing jumps when one is hidden.
  drawPanels(rows, measure) {
    const [first, second] = varied, of = option => axisOf(summary.filter(row => isNumber(row.mean)).map(row => row.options[option])), axis = of(first);
    const ends = rows.flatMap(row => [row.mean - (row.deviation || 0), row.mean + (row.deviation || 0)]).map(x => x * measure.scale);
    const least = Math.min(...rows.map(row => row.mean * measure.scale)), y = {...plotRange(Math.min(...ends), Math.max(...ends), least), short: measure.short};
    const numbers = axis.isNumeric ? axis.values.map(Number) : axis.values.map((_, i) => i), margin = axis.isNumeric ? 0 : 0.5;
    const x = {...axis, low: Math.min(...numbers) - margin, high: Math.max(...numbers) + margin, name: first};
    const values = second ? of(second).values : [undefined], panels = values.map(() => element('figure', undefined, this.panels)); // all, as they share the width
    values.forEach((value, k) => {
      const panel = panels[k];
      if (value !== undefined) element('figcaption', `${second} ${value}`, panel);
      const same = rows.filter(row => value === undefined || row.options[second] === value);
      const series = schedules.map(schedule => ({index: indexOf(schedule), name: schedule, hasMarks: true, points: axis.values.map((text, i) => {
        const row = same.find(one => one.schedule === schedule && one.options[first] === text);
        return row ? this.pointOf(row, measure, numbers[i]) : null;
      })})).filter(({points}) => points.some(point => point !== null));
      new Plot(panel, {x, y, height: values.length > 1 ? 240 : 320}, series, `${measure.name} over ${first}` + (value === undefined ? '' : `, ${second} ${value}`));
      for (const {points} of series) this.marks.push(points.filter(point => point !== null));
    });
  }

  pointOf(row, measure, x) {
    const [mean, deviation] = [row.mean * measure.scale, (row.deviation || 0) * measure.scale];
    return {x, mean, low: mean - deviation, high: mean + deviation, value: row.mean,
      text: `${row.schedule}, ${combinationText(row, varied)}: ${measure.name} ${meanText(measure, row)}, ${seedsText(row.n)}`};
  }

  // Arrows: left and right in a series, up and down between series.
  key(event) {
    const steps = {ArrowRight: [0, 1], ArrowLeft: [0, -1], ArrowDown: [1, 0], ArrowUp: [-1, 0]}, step = steps[event.key];
    if (!step || this.marks.length === 0) return;
    event.preventDefault();
    const clamp = (x, most) => Math.min(Math.max(x, 0), most - 1), [series, place] = this.at || [0, -1];
    const next = clamp(series + step[0], this.marks.length);
    this.at = [next, clamp(place + step[1], this.marks[next].length)];
    for (const {mark} of this.marks.flat()) mark.classList.remove('marked');
    const point = this.marks[this.at[0]][this.at[1]];
    point.mark.classList.add('marked');
    this.said.textContent = point.text;
  }

  drawTable(rows, measure) {
    this.numbers.replaceChildren();
    const difference = row => row.schedule === data.reference ? null : row.difference?.mean ?? null;
    const columns = [
      {head: 'schedule', value: row => row.schedule, text: row => row.schedule, draw: (cell, row) => { swatch(indexOf(row.schedule), cell); cell.append(row.schedule); }},
      ...varied.slice(0, 2).map(option => ({head: option, numeric: true, text: row => row.options[option] ?? '-',
        value: row => Number.isFinite(Number(row.options[option])) ? Number(row.options[option]) : row.options[option]})),
      ...(varied.length > 0 ? [{head: measure.name, title: 'Mean and one deviation over seeds.', numeric: true, better: measure.better, value: row => row.mean, text: row => measure.text(row.mean),
        draw: (cell, row) => { element('span', meanText(measure, row), cell, 'value').dataset.mean = row.mean; }}]
        : measures.map(one => this.dotColumn(measureOf.get(one.key)))),
      {head: 'n', title: 'Seeds that finished.', numeric: true, value: row => row.n, text: row => String(row.n)},
      {head: `${varied.length > 0 ? '' : measure.name + ', '}difference to ${data.reference}`, title: `Mean and deviation of the difference to ${data.reference}, seed by seed.`, numeric: true, value: difference,
        text: row => differenceText(measure, row.difference)},
    ].filter(({value}) => value !== difference || rows.some(row => difference(row) !== null));
    const label = `${measure.name}: mean, deviation and difference`;
    this.table = new SortedTable(this.numbers, columns, varied.length > 0 ? rows : this.onePerSchedule(rows), {label, name: varied.length > 0 ? '' : 'figure',
      groupOf: row => combinationOf(row, varied), mostBest: 0.99});
    if (varied.length === 0) this.addAxes(columns);
  }

  // Without a varied option each schedule has one row, also where the chosen measure is unknown.
  onePerSchedule(rows) {
    return schedules.filter(schedule => !this.hidden.has(schedule)).map(schedule => rows.find(row => row.schedule === schedule)
      ?? {...summary.find(row => row.schedule === schedule), schedule, options: {}, mean: null, difference: null}).filter(row => row.measure);
  }

  // A row below the table with the ends of the axes.
  addAxes(columns) {
    const line = element('tr', undefined, element('tfoot', undefined, this.table.table));
    for (const {axis, measure} of columns) {
      const cell = element('td', undefined, line);
      if (axis) dotEnds(cell, axis, measure.short);
    }
  }

  dotColumn(measure) {
    const rows = summary.filter(row => row.measure === measure.key), of = schedule => rows.find(row => row.schedule === schedule);
    const seeds = schedule => runs.filter(run => run.schedule === schedule).map(run => run.measures?.[measure.key]).filter(isNumber);
    const axis = dotAxis(schedules.flatMap(seeds).concat(rows.map(row => row.mean)).map(x => isNumber(x) ? x * measure.scale : x), !/loss/.test(measure.key));
    const scaled = {...axis, share: x => axis.share(x * measure.scale)}, mean = row => of(row.schedule)?.mean ?? null;
    return {axis, measure, head: measure.name, title: 'Mean, one deviation on each side, and the seeds.', better: measure.better, value: mean, text: row => measure.text(mean(row)),
      draw: (cell, row) => drawDot(cell, {axis: scaled, value: mean(row), text: of(row.schedule) ? meanText(measure, of(row.schedule)) : '', index: indexOf(row.schedule),
        deviation: of(row.schedule)?.deviation ?? 0, values: seeds(row.schedule)})};
  }
}

// Combinations without numbers: a sentence, and all that it is said of.
function refusedOf(parent) {
  const without = runs.filter(run => run.ending !== 'finished');
  if (without.length === 0) return;
  const section = element('section', undefined, parent, 'refused');
  element('h2', 'Combinations without numbers', section);
  for (const [ending, ended] of groupedBy(without, run => run.ending))
    for (const [error, same] of groupedBy(ended, run => run.error || '')) {
      element('p', `${ending}${error ? ': ' + error : ''}`, section);
      const list = element('ul', undefined, section, 'combinations');
      for (const [schedule, all] of groupedBy(same, run => run.schedule)) {
        const texts = [...new Set(all.map(run => combinationText(run, varied)))].filter(text => text);
        element('li', `${schedule}${texts.length > 0 ? ': ' + texts.join('; ') : ''}` + (ending === 'refused' ? '' : ` (${all.length} ${all.length === 1 ? 'run' : 'runs'})`), list);
      }
    }
}

const main = element('main', undefined, document.body);
element('h1', `Study of ${listed(schedules)}` + (varied.length > 0 ? ` over ${listed(varied)}` : ''), main);
document.title = 'troupe: ' + main.firstChild.textContent;
element('code', data.command.join(' '), element('p', undefined, main));
const counted = [...groupedBy(runs, run => run.ending)].map(([ending, all]) => `${all.length} ${ending}`);
element('p', `troupe ${data.troupe}; ${data.program} in ${data.clock} time${data.clock === 'real' && data.timings.length > 0 ? ` (times ${listed(data.timings)})` : ''}; ${data.seeds === null ? '' : seedsText(data.seeds) + '; '}${runs.length} runs: ${listed(counted)}`, main, 'faint');
if (data.warning) element('p', data.warning[0].toUpperCase() + data.warning.slice(1) + '.', main, 'alarm');
const figure = new StudyFigure(main);
const losses = new StudyLosses(main);
refusedOf(main);
const files = element('section', undefined, main);
element('h2', 'Data', files);
element('p', 'runs.csv has a row a run, summary.csv a row a combination and measure, with all digits. Both also lie beside this page.', files, 'faint');
const saving = element('p', undefined, files, 'bar');
element('button', 'save runs.csv', saving).onclick = () => save('runs.csv', 'text/csv', data.files['runs.csv']);
element('button', 'save summary.csv', saving).onclick = () => save('summary.csv', 'text/csv', data.files['summary.csv']);

let waiting = 0;
window.addEventListener('resize', () => {
  cancelAnimationFrame(waiting);
  waiting = requestAnimationFrame(() => { figure.draw(); losses.draw(); });
});
