// SPDX-License-Identifier: BSD-3-Clause
// Reads the page of a study as a user does, and compares it with the embedded numbers. Runs behind the page's own
// scripts; the title says "all hold", or which claims do not.
const wrong = [];
const hold = (claim, holds) => { if (!holds && wrong.length < 8) wrong.push(claim); };
const near = (a, b, most) => Math.abs(a - b) <= most;
const finished = data.runs.filter(run => run.ending === 'finished');
const choose = (select, value) => { select.value = value; select.dispatchEvent(new Event('change')); };
const byLabel = (section, label) => [...section.querySelectorAll('label')].find(one => one.firstChild.textContent.trim() === label).querySelector('select');
const factors = {'%': 100, 'MiB': 1 / 1048576, 's': 1, 'ms': 1e3, 'us': 1e6, '1/s': 1, 'nats': 1, '': 1};
const parsed = text => { // "21.1%" as the value that the data have
  const [, sign, number, unit] = /^([+−-]?)([0-9.e-]+) ?(%|MiB|s|ms|us|1\/s|nats|)$/.exec(text);
  return Number(number) * (/[−-]/.test(sign) ? -1 : 1) / factors[unit];
};
const unitOf = text => /(%|MiB|ms|us|1\/s|s|nats|)$/.exec(text)[1];

// The vertical axis of a picture, from the labels at its grid: pixels to values.
const axisOfPlot = svg => {
  const labels = [...svg.querySelectorAll('text[text-anchor=end]')].map(text => [Number(text.getAttribute('y')) - 4, parsed(text.textContent)]);
  const [first, last] = [labels[0], labels[labels.length - 1]];
  return {labels: labels.length, valueAt: y => first[1] + (y - first[0]) / (last[0] - first[0]) * (last[1] - first[1]), unit: Math.abs((last[1] - first[1]) / (last[0] - first[0]))};
};
const places = svg => new Map([...svg.querySelectorAll('text[text-anchor=middle]:not(.name)')].map(text => [text.textContent, Number(text.getAttribute('x'))]));

hold('the page is no wider than the window', document.documentElement.scrollWidth <= window.innerWidth);
hold('no name becomes an element', !document.querySelector('main img, main b i, h1 *') && document.querySelectorAll('script').length === 3);
hold('the command is there', document.querySelector('code').textContent === data.command.join(' '));
hold('each schedule is in the legend once', [...document.querySelectorAll('.toggles button')].map(b => b.textContent).join() === [...new Set(data.runs.map(run => run.schedule))].join());

const first = data.varied[0], second = data.varied[1], section = document.querySelector('.study-figure');
const select = byLabel(section, 'measure:');
hold('all measures can be chosen', [...select.options].map(o => o.value).join() === data.measures.map(m => m.key).join());
for (const measure of data.measures) {
  choose(select, measure.key);
  const fixed = data.varied.slice(2).map(option => [option, byLabel(section, option + ':').value]);
  const rows = data.summary.filter(row => row.measure === measure.key && fixed.every(([option, value]) => row.options[option] === value));
  const plots = [...section.querySelectorAll('svg.plot')];
  const seconds = [...new Set(data.summary.map(row => row.options[second]))];
  hold('a picture for each value of the second option', plots.length === (first ? second ? seconds.length : 1 : 0));
  let drawn = 0;
  plots.forEach(svg => {
    const caption = svg.parentElement.querySelector('figcaption'), axis = axisOfPlot(svg), at = places(svg);
    hold(`${measure.key}: an axis with labels`, axis.labels > 1);
    const here = rows.filter(row => !second || caption.textContent === `${second} ${row.options[second]}`);
    const circles = [...svg.querySelectorAll('circle')], numeric = here.every(row => Number.isFinite(Number(row.options[first])));
    drawn += circles.length;
    hold(`${measure.key}: a point for each row of the summary`, circles.length === here.length);
    for (const row of here) {
      const circle = circles.find(one => Number(one.dataset.mean) === row.mean && one.textContent.startsWith(`${row.schedule}, ${first} ${row.options[first]}`));
      if (!circle) { hold(`${measure.key}: ${row.schedule} is drawn`, false); continue; }
      hold(`${measure.key}: ${row.schedule} stands at its value`, near(axis.valueAt(Number(circle.getAttribute('cy'))), row.mean, 0.6 * axis.unit));
      if (at.has(row.options[first])) hold(`${measure.key}: ${row.schedule} stands at its option`, near(Number(circle.getAttribute('cx')), at.get(row.options[first]), numeric ? 0.5 : 40));
    }
    // Bands reach one deviation to each side.
    const bands = [...svg.querySelectorAll('.band')].map(path => [...path.getAttribute('d').matchAll(/[ML]?([0-9.e-]+) ([0-9.e-]+)/g)].map(found => [Number(found[1]), Number(found[2])]));
    for (const row of here.filter(one => numeric && one.deviation > 0 && at.has(one.options[first]))) {
      const x = at.get(row.options[first]), known = bands.some(points => {
        const ys = points.filter(point => near(point[0], x, 0.5)).map(point => axis.valueAt(point[1]));
        return ys.length === 2 && near(Math.max(...ys), row.mean + row.deviation, axis.unit) && (near(Math.min(...ys), row.mean - row.deviation, axis.unit) || row.mean < row.deviation);
      });
      hold(`${measure.key}: the band of ${row.schedule} at ${row.options[first]}`, known);
    }
    if (numeric && at.has('4') && at.has('8') && at.has('64'))
      hold('the axis is logarithmic', near((at.get('64') - at.get('4')) / (at.get('8') - at.get('4')), 4, 0.05));
    // A line has a hole where a combination cannot run.
    const holes = here.length > 0 && numeric ? [...new Set(here.map(row => row.schedule))].filter(name => name === 'chimera') : [];
    for (const name of holes) {
      const index = [...new Set(data.runs.map(run => run.schedule))].indexOf(name), lines = [...svg.querySelectorAll('.series')].find(group => group.textContent.includes(name)).querySelectorAll('.line');
      hold(`${name}: its line has a hole`, lines.length === 2 && index >= 0);
    }
  });
  if (first) hold(`${measure.key}: points`, drawn === rows.length);
  // The table has the same numbers, the best of each combination marked.
  const heads = [...section.querySelectorAll('thead button')].map(b => b.textContent), column = heads.indexOf(measure.name);
  const lines = [...section.querySelectorAll('tbody tr')];
  hold(`${measure.key}: a row a mean`, lines.length === rows.length);
  lines.forEach(line => {
    const cells = [...line.children], text = cells[column].querySelector('.value').firstChild.textContent;
    const row = rows.find(one => one.schedule === cells[0].textContent && [first, second].filter(x => x).every((option, i) => one.options[option] === cells[1 + i].textContent));
    const unit = unitOf(text), [mean, deviation] = text.slice(0, text.length - unit.length).trim().split(' ± ').map(x => parsed(`${x}${unit}`)), digits = (text.split(' ')[0].split('.')[1] || '').replace(/\D/g, '').length;
    const least = 0.51 * 10 ** -digits / factors[unit];
    hold(`${measure.key}: ${text} of ${row.schedule}`, near(mean, row.mean, least) && (deviation === undefined ? row.deviation === null : near(deviation, row.deviation, least)));
    hold(`${measure.key}: n`, cells[heads.indexOf('n')].textContent === String(row.n));
    const to = heads.findIndex(head => head.includes('difference to ')), difference = cells[to].textContent;
    if (row.schedule !== data.reference) {
      const [value] = difference.split(' ± '), own = unitOf(difference);
      hold(`${measure.key}: ${difference} to ${data.reference}`, near(parsed(value.endsWith(own) ? value : value + own), row.difference.mean, least));
    } else {
      hold('the reference has no difference', difference === '-');
    }
    const same = rows.filter(one => JSON.stringify(one.options) === JSON.stringify(row.options)), better = measure.better === 'less' ? Math.min : Math.max;
    if (row.mean === better(...same.map(one => one.mean)) && same.some(one => !near(one.mean, row.mean, 2 * least))) hold(`${measure.key}: the best is marked`, cells[column].classList.contains('best'));
    if (!near(row.mean, better(...same.map(one => one.mean)), 2 * least)) hold(`${measure.key}: others are not`, !cells[column].classList.contains('best'));
  });
  const button = section.querySelectorAll('thead button')[column], order = () => [...section.querySelectorAll('tbody tr')].map(line => Number(line.children[column].querySelector('[data-mean], [data-value]').dataset.mean
    ?? line.children[column].querySelector('[data-value]').dataset.value));
  button.click();
  hold('the best row is first', order().every((x, i, all) => i === 0 || (measure.better === 'less' ? all[i - 1] <= x : all[i - 1] >= x)));
  hold('a head says how it sorts', button.parentElement.getAttribute('aria-sort') === (measure.better === 'less' ? 'ascending' : 'descending'));
}

// Sentences above the figure count combinations, of what people ask first.
const asked = ['bubble', 'peak_bytes', 'evaluation_loss_nats', 'loss_after_shortest_nats'];
hold('sentences are few', section.querySelectorAll('.answers li').length <= 6);
for (const measure of data.measures.filter(({key}) => asked.includes(key))) {
  const item = [...section.querySelectorAll('.answers li')].find(one => one.textContent.includes(measure.name + ': '));
  const groups = Object.values(Object.groupBy(data.summary.filter(row => row.measure === measure.key), row => JSON.stringify(row.options)));
  if (!item) { hold(`${measure.name}: nothing is best`, groups.every(rows => rows.every(row => near(row.mean, rows[0].mean, 0.01 * Math.abs(rows[0].mean))))); continue; }
  const chosen = item.querySelector('b').textContent, better = measure.better === 'less' ? Math.min : Math.max;
  const wins = name => groups.filter(rows => rows.find(row => row.schedule === name)?.mean === better(...rows.map(row => row.mean))).length;
  const names = [...new Set(data.summary.map(row => row.schedule))], most = Math.max(...names.map(wins));
  hold(`${measure.name}: best is ${chosen}`, names.some(name => chosen.includes(name) && wins(name) >= most - 1));
}

// Further options, hidden schedules, keys.
for (const option of data.varied.slice(2)) {
  const pick = byLabel(section, option + ':'), before = section.querySelector('circle').dataset.mean;
  choose(pick, pick.options[1].value);
  hold('a further option changes the figure', section.querySelector('circle').dataset.mean !== before);
}
const toggle = section.querySelector('.toggles button'), count = () => section.querySelectorAll('tbody tr').length, all = count();
toggle.click();
hold('a schedule is hidden', toggle.getAttribute('aria-pressed') === 'false' && count() < all && ![...section.querySelectorAll('tbody th')].some(head => head.textContent === data.runs[0].schedule));
toggle.click();
hold('and shown again', toggle.getAttribute('aria-pressed') === 'true' && count() === all);
if (first) {
  const press = key => section.querySelector('.panels').dispatchEvent(new KeyboardEvent('keydown', {key, cancelable: true}));
  press('ArrowRight');
  const said = section.querySelector('.said').textContent;
  hold('an arrow reads a point: ' + said, said.startsWith(data.runs[0].schedule + ', ' + first + ' ') && section.querySelectorAll('circle.marked').length === 1);
  press('ArrowRight');
  hold('another arrow reads the next', section.querySelector('.said').textContent !== said);
}

// Losses: mean over seeds, and bands of one deviation.
const lossSection = document.querySelector('.study-losses');
choose(byLabel(lossSection, 'each point:'), '1');
for (const over of ['samples', 'seconds']) {
  choose(byLabel(lossSection, 'over:'), over);
  for (const option of data.varied.slice(0, 1)) choose(byLabel(lossSection, option + ':'), byLabel(lossSection, option + ':').options[over === 'samples' ? 0 : 2].value);
  const svg = lossSection.querySelector('svg.plot'), axis = axisOfPlot(svg), chosen = finished.filter(run => data.varied.every(option => run.options[option] === byLabel(lossSection, option + ':').value));
  const names = [...new Set(chosen.map(run => run.schedule))], series = [...svg.querySelectorAll('.series .line')];
  hold('a line a schedule', series.length === names.length);
  names.forEach((name, k) => {
    const runs = chosen.filter(run => run.schedule === name), points = series[k].getAttribute('d').slice(1).split('L').map(text => text.split(' ').map(Number));
    hold(`${name}: a point a loss`, points.length === runs[0].curve.loss.length);
    points.forEach(([, y], i) => {
      const values = runs.map(run => run.curve.loss[i]), mean = values.reduce((a, b) => a + b) / values.length;
      hold(`${name}: mean loss ${i} over ${over}`, near(axis.valueAt(y), mean, axis.unit));
    });
    const ends = [Number(points[0][0]), Number(points[points.length - 1][0])], spread = runs[0].curve[over], ratio = (spread[5] - spread[0]) / (spread[11] - spread[0]);
    hold(`${name}: losses stand at their ${over}`, near((points[5][0] - ends[0]) / (ends[1] - ends[0]), ratio, 0.02));
    if (runs.length < 2) return;
    const band = [...svg.querySelectorAll('.band')][k].getAttribute('d').slice(1, -1).split('L').map(text => Number(text.split(' ')[1]));
    const values = runs.map(run => run.curve.loss[3]), mean = values.reduce((a, b) => a + b) / values.length;
    const deviation = Math.sqrt(values.reduce((sum, x) => sum + (x - mean) ** 2, 0) / (values.length - 1));
    hold(`${name}: the band of losses`, near(axis.valueAt(band[3]), mean + deviation, axis.unit) && near(axis.valueAt(band[band.length - 4]), mean - deviation, axis.unit));
  });
}

// A combination that cannot run has its sentence once.
const without = data.runs.filter(run => run.ending !== 'finished'), refused = document.querySelector('.refused');
hold('what cannot run is listed', (refused !== null) === without.length > 0);
for (const error of new Set(without.map(run => run.error))) {
  hold('a sentence stands once: ' + error, document.querySelector('main').textContent.split(error).length === 2);
  const list = [...refused.querySelectorAll('p')].find(p => p.textContent.includes(error)).nextElementSibling.textContent;
  for (const run of without.filter(one => one.error === error)) hold('its combinations follow', data.varied.every(option => list.includes(`${option} ${run.options[option]}`)) && list.includes(run.schedule));
}

// Files: every number with all digits.
const saved = new Map();
window.save = save = (name, type, text) => saved.set(name, text);
for (const name of ['runs.csv', 'summary.csv']) [...document.querySelectorAll('button')].find(b => b.textContent === 'save ' + name).click();
for (const name of ['runs.csv', 'summary.csv']) hold(name + ' is the file beside the page', saved.get(name) === data.files[name]);
hold('a busy machine is told', [...document.querySelectorAll('p.alarm')].map(p => p.textContent.toLowerCase()).includes(`${data.warning}.`) === (data.warning !== ''));
hold('nothing was loaded from elsewhere', performance.getEntriesByType('resource').length === 0);
document.title = wrong.length === 0 ? 'all hold' : 'wrong: ' + wrong.join('; ');
