// SPDX-License-Identifier: BSD-3-Clause
// Behind the scripts of report.html: puts the losses of all pages in the place of everything else. `range` is that of losses.
if (range[0] >= range[1]) throw new Error('the range of losses is empty');
const pages = [...document.querySelectorAll('script.page')];
data.runs = [];
data.results.runs = pages.flatMap(page => {
  const {results} = JSON.parse(page.textContent), names = page.dataset.names.split('/');
  if (names.length !== results.runs.length) throw new Error(`${names.join('/')} are not the names of ${results.runs.length} runs`);
  return results.runs.map((run, i) => {
    data.runs.push({text: names[i]});
    return run;
  });
});
document.body.replaceChildren();
document.documentElement.style.colorScheme = 'light';
const all = new Losses(document.body);
if (all.runs.length === 0) throw new Error('these runs have no losses');
if (!all.chart) throw new Error('the first page is of a build without dygraphs');
// Of a long run a point for each hundredth of it.
all.many = Math.max(1, Math.round(Math.max(...all.runs.map(({run}) => run.loss.length)) / 100));
all.show('samples');
all.chart.updateOptions({valueRange: range, ylabel: 'loss, nats', animatedZooms: false});
for (const useless of [document.querySelector('h2'), all.note, document.querySelector('.bar')]) useless.remove();
const csv = element('pre', undefined, document.body);
csv.id = 'csv';
csv.hidden = true;
csv.textContent = ['schedule,loss,samples,value', ...all.curves('samples')
  .flatMap(({name, kind, points}) => points.map(([samples, loss]) => [quoted(name), kind, samples, loss.toFixed(4)].join(',')))].join('\n') + '\n';
