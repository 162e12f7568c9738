// SPDX-License-Identifier: BSD-3-Clause
// The page: a figure of all runs, their numbers, a timeline of each run, losses, and layouts at other costs.
const data = JSON.parse(document.getElementById('data').textContent);
for (const run of data.runs) run.rows = rowsFrom(run.ranks, data.letters);

const resultOf = run => data.results.runs[data.runs.indexOf(run)];

// How a run ended, if it did not end as it should.
function endingOf(run) {
  const {ending} = resultOf(run);
  return ending === 'finished' ? '' : ` (${ending})`;
}

// Sentences on a run's timeline.
function notesOf(run) {
  return [timings[run.timing], run.cut ? `The first ${run.cut} actions of a rank are here.` : '', run.failure ? `The run failed: ${run.failure}` : ''].filter(text => text);
}

// What a timeline shows of rows.
function shownOf(run, rows, words) {
  const end = knownEnd({rows, cut: run.cut});
  const severalStages = hasSeveralStages(rows);
  const reasons = new Reasons(rows, run.timing, run.link ? run.link.latency + run.link.occupied : 0, a => nameOf(a, severalStages) + (a.ofExpert ? ' (expert)' : ''));
  return {text: run.text, rows, end, severalStages, reasons, timing: run.timing, microbatches: run.microbatches, cut: run.cut,
    bounds: run.bounds, plan: null, path: null, ...words};
}

// What a timeline shows of a run's record.
function recordOf(run) {
  const {rows} = run, shown = shownOf(run, rows, {heading: run.text + endingOf(run), id: idOf(run), notes: notesOf(run)});
  shown.plan = Plan.of(run, rows, shown.end);
  shown.path = CriticalPath.of(run, rows, shown.reasons);
  // What a stage-microbatch takes on each rank: as much as there was at most, shared out.
  const {peak_bytes_of: of, peak_activations: most} = resultOf(run);
  shown.activations = of && most ? of.activations.map((bytes, rank) => bytes / Math.max(1, most[rank])) : null;
  if (shown.plan)
    shown.notes.push('Above each rank what was planned: its order, each action at the median length of its kind, messages in no time. '
      + 'It begins beside the first action of the minibatch that is shown first.');
  if (shown.path) shown.notes.push(shown.path.sentence());
  const {verified} = resultOf(run);
  if (verified && verified.holds) shown.notes.push(`verify: ${verified.sentence}.`);
  return shown;
}

// Sentences that several timelines would repeat stand once before all of them, with names if not all have them. Critical
// paths stay with their timelines.
function tellOnce(all, parent) {
  const said = groupedBy(all.flatMap(shown => shown.notes.map(note => ({note, shown}))), ({note}) => note);
  for (const [note, same] of said) {
    if (same.length < 2 || same.some(({shown: {path}}) => path && path.sentence() === note)) continue;
    element('p', same.length === all.length ? note : `${listed(same.map(({shown}) => shown.text))}: ${note}`, parent, 'faint said-once');
    for (const {shown} of same) shown.notes = shown.notes.filter(other => other !== note);
  }
}

// The verdict on a run that proofs refused, or of which nothing was recorded. Timelines have the verdicts that hold.
function tellVerdict(run, section) {
  const {verified} = resultOf(run);
  if (verified && !(verified.holds && records.has(run)))
    section.insertBefore(element('p', `verify: ${verified.sentence}.`, undefined, verified.holds ? 'faint' : 'alarm'), section.querySelector('.bar'));
}

// Warns if other programs took much of its time.
function warnOfOthers(run, section) {
  const {other_programs: others} = resultOf(run);
  if (others && others.warning) section.insertBefore(element('p', `Warning: ${others.warning}.`, undefined, 'alarm'), section.querySelector('.bar'));
}

const main = element('main', undefined, document.body);
const title = data.runs.map(run => run.text).join(', ');
document.title = 'troupe: ' + title;
element('h1', title, main);
element('code', data.results.command.join(' '), element('p', undefined, main));
element('p', `troupe ${data.results.troupe}, seed ${data.results.seed}`, main, 'faint');
const overview = new Overview(data.runs, data.results, main);
const numbers = resultsTable(main);
const details = element('section', undefined, main);
element('h2', data.runs.length > 1 ? 'Timelines' : 'Timeline', details);
if (!overview.section) legendOfKinds(data.runs.flatMap(run => run.rows), data.letters, details);
element('p', 'Point at an action to read what it was, and at idle time to read what its rank waited for. A click marks it. '
  + 'Dragging moves a timeline, and Ctrl with the wheel zooms. By keyboard, arrows go from action to action; '
  + '+, − and 0 zoom.', details, 'hint faint');

// What all timelines show beside the actions.
const view = {strip: Math.max(...data.runs.map(run => run.ranks.length)) <= 16 ? 'held' : '', plan: true, path: false};
const settings = element('p', undefined, details, 'bar settings');
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
const records = new Map(data.runs.filter(run => run.rows.some(row => row.length > 0)).map(run => [run, recordOf(run)]));
tellOnce([...records.values()], details);
for (const run of data.runs) {
  if (records.has(run)) {
    const timeline = new Timeline(records.get(run), main);
    timelines.push(timeline);
    tellVerdict(run, timeline.canvas.closest('section'));
    warnOfOthers(run, timeline.canvas.closest('section'));
  } else {
    const section = element('section', undefined, main);
    section.id = idOf(run);
    element('h2', run.text + endingOf(run), section);
    element('p', run.failure ? `The run failed: ${run.failure}` : 'Nothing of it was recorded.', section);
    tellVerdict(run, section);
  }
}
if (timelines.some(t => t.plan)) setting('plan', 'what was planned');
if (timelines.some(t => t.path)) setting('path', 'critical path');
const losses = new Losses(main);
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
for (const when of ['beforeprint', 'afterprint']) window.addEventListener(when, () => { redraw(); losses.resize(); });
matchMedia('(prefers-color-scheme: dark)').addEventListener('change', redraw);
