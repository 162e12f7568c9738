// The page: what ran, the table of the terminal, and a timeline of each run.
function element(kind, text, parent, name) {
  const made = document.createElement(kind);
  if (text !== undefined) made.textContent = text;
  if (name) made.className = name;
  if (parent) parent.append(made);
  return made;
}

// How a run ended, if it did not end as it should.
function endingOf(run) {
  const {ending} = data.results.runs[data.runs.indexOf(run)];
  return ending === 'finished' ? '' : ` (${ending})`;
}

function legend(parent) {
  const there = new Set();
  for (const run of data.runs)
    for (const rank of run.ranks) for (let i = 0; i < rank.length; i += numbersOfAction) there.add(data.letters[rank[i]]);
  const made = element('p', undefined, parent, 'legend');
  for (const letter of data.letters) {
    if (!there.has(letter)) continue;
    const item = element('span', undefined, made);
    element('i', undefined, item).style.background = colours[letter];
    item.append(`${letter} ${meanings[letter]}`);
  }
}

const main = element('main', undefined, document.body);
const title = data.runs.map(run => run.text).join(', ');
document.title = 'troupe: ' + title;
element('h1', title, main);
element('code', data.results.command.join(' '), element('p', undefined, main));
element('p', `troupe ${data.results.troupe}, seed ${data.results.seed}`, main, 'faint');
element('pre', data.table, main, 'scroll');
legend(main);
element('p', 'Point at an action to read what it was, and at idle time to read what its rank waited for. A click marks it. '
  + 'Dragging moves a timeline, and Ctrl with the wheel zooms. By keyboard, arrows go from action to action; '
  + '+, − and 0 zoom.', main, 'hint faint');
const timelines = [];
for (const run of data.runs) {
  if (run.ranks.some(rank => rank.length > 0)) {
    timelines.push(new Timeline(run, main));
  } else {
    const section = element('section', undefined, main);
    element('h2', run.text + endingOf(run), section);
    element('p', run.failure ? `The run failed: ${run.failure}` : 'Nothing of it was recorded.', section);
  }
}
let waiting = 0;
const redraw = () => timelines.forEach(t => t.draw());
window.addEventListener('resize', () => { cancelAnimationFrame(waiting); waiting = requestAnimationFrame(redraw); });
for (const when of ['beforeprint', 'afterprint']) window.addEventListener(when, redraw);
matchMedia('(prefers-color-scheme: dark)').addEventListener('change', redraw);
