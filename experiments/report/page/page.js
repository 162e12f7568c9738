// The page: what ran, the table of the terminal, a timeline of each run, what was learned, and what would be.
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

function ofTimes(run) {
  return {
    measured: 'Times are measured: a thread for each rank.',
    modelled: 'Times are modelled: the lengths of actions were measured, and laid out as if each rank had a device.',
    shared: 'Times are measured where ranks took turns on fewer threads; idle time is not the schedule’s.',
    virtual: 'Times are the virtual clock’s.'}[run.timing]
    + (run.cut ? ` The first ${run.cut} actions of a rank are here.` : '') + (run.failure ? ` The run failed: ${run.failure}` : '');
}

// What a timeline shows of rows.
function shownOf(run, rows, words) {
  const ends = rows.map(row => row.length ? row[row.length - 1].end : 0);
  // Of a record that was cut all ranks are known up to the first end.
  const end = Math.max(1, run.cut ? Math.min(...ends) : ends.reduce((most, x) => Math.max(most, x), 0));
  const severalStages = rows.some(row => {
    const stages = new Map();
    for (const a of row) {
      if (stages.has(a.pipeline) && stages.get(a.pipeline) !== a.stage) return true;
      stages.set(a.pipeline, a.stage);
    }
    return false;
  });
  const reasons = new Reasons(rows, run.timing, run.link ? run.link.latency + run.link.occupied : 0, a => nameOf(a, severalStages) + (a.ofExpert ? ' (expert)' : ''));
  return {text: run.text, rows, end, severalStages, reasons, timing: run.timing, microbatches: run.microbatches, cut: run.cut,
    bounds: run.bounds, plan: null, path: null, ...words};
}

function timelineOf(run, parent) {
  const rows = run.ranks.map(actionsOf), shown = shownOf(run, rows, {heading: run.text + endingOf(run), notes: [ofTimes(run)]});
  shown.plan = Plan.of(run, rows, shown.end);
  shown.path = CriticalPath.of(run, rows, shown.reasons);
  if (shown.plan)
    shown.notes.push('Above each rank what was planned: its order, each action at the median length of its kind, messages in no time. '
      + 'It begins beside the first action of the minibatch that is shown first.');
  if (shown.path) shown.notes.push(shown.path.sentence());
  return new Timeline(shown, parent);
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

// What all timelines show beside the actions.
const view = {strip: Math.max(...data.runs.map(run => run.ranks.length)) <= 16 ? 'held' : '', plan: true, path: false};
const settings = element('p', undefined, main, 'bar settings');
const pick = element('select', undefined, element('label', 'under each rank: ', settings));
for (const [key, text] of [['', 'nothing'], ...Object.entries(strips).map(([key, strip]) => [key, strip.text])])
  element('option', text, pick).value = key;
pick.value = view.strip;
pick.onchange = () => { view.strip = pick.value; redraw(); };
function setting(key, text) {
  const box = element('input', undefined, element('label', undefined, settings));
  Object.assign(box, {type: 'checkbox', checked: view[key]});
  box.parentElement.append(' ' + text);
  box.onchange = () => { view[key] = box.checked; redraw(); };
}

const timelines = [];
window.shown = timelines; // for the page around this one, if it is watched
for (const run of data.runs) {
  if (run.ranks.some(rank => rank.length > 0)) {
    timelines.push(timelineOf(run, main));
  } else {
    const section = element('section', undefined, main);
    element('h2', run.text + endingOf(run), section);
    element('p', run.failure ? `The run failed: ${run.failure}` : 'Nothing of it was recorded.', section);
  }
}
if (timelines.some(t => t.plan)) setting('plan', 'what was planned');
if (timelines.some(t => t.path)) setting('path', 'critical path');
const losses = new Losses(main);
barsOf(main);
memoryOf(main);
expertsOf(main);
const whatIf = new WhatIf(main);

const everyTimeline = () => whatIf.timeline ? [...timelines, whatIf.timeline] : timelines;
// One cursor for all timelines.
function moveCursor(time) { everyTimeline().forEach(t => t.drawCursor(time)); }
function redraw() { everyTimeline().forEach(t => t.draw()); }
let waiting = 0;
window.addEventListener('resize', () => {
  cancelAnimationFrame(waiting);
  waiting = requestAnimationFrame(() => { redraw(); losses.resize(); });
});
for (const when of ['beforeprint', 'afterprint']) window.addEventListener(when, redraw);
matchMedia('(prefers-color-scheme: dark)').addEventListener('change', redraw);
