// SPDX-License-Identifier: BSD-3-Clause
// The page of --watch: asks the program every second how its run comes on, and shows report.html of the runs that
// are over in a frame. A new report takes the place of the old one and keeps what was zoomed into.
const byId = id => document.getElementById(id);
const frame = byId('report');
const view = {strip: '', plan: false, path: false}; // of a timeline
let version = 0, latest = null;

// What the frame shows. Timelines stand in the order of the schedules: new ones come behind the others.
function viewOf(page) {
  return {spans: (page.shown || []).map(t => [t.from, t.to]), x: page.scrollX, y: page.scrollY};
}

function restore({spans, x, y}, page) {
  spans.forEach((span, i) => { if (page.shown && page.shown[i]) page.shown[i].show(...span); });
  page.scrollTo(x, y);
}

async function fetchReport(wanted) {
  const answer = await fetch('/report.html');
  if (!answer.ok) throw new Error(answer.status);
  const text = await answer.text(), before = viewOf(frame.contentWindow);
  frame.onload = () => restore(before, frame.contentWindow);
  frame.hidden = false;
  frame.srcdoc = text;
  version = wanted;
}

function showRuns({runs, over, now}) {
  byId('runs').replaceChildren(...runs.flatMap((text, i) => {
    const made = document.createElement('span');
    made.textContent = text + (i >= over.length ? '' : over[i] === 'finished' ? ' ✓' : ` (${over[i]})`);
    made.className = i < over.length ? 'over' : i === over.length && now ? 'goes' : '';
    return i > 0 ? [' · ', made] : [made];
  }));
}

function stateOf({now, proves, ended, report, runs, over}) {
  if (ended) return 'The program has ended. ' + (report ? `The report is at ${report}` : 'This page is all that stays of it here.');
  if (proves) return `${proves}: its first steps are being proved.`;
  if (!now) return over.length < runs.length ? 'The next schedule is about to begin.' : 'All schedules are over.';
  return `${now.text}: ${now.done} of ${now.all} ${now.unit}`
    + (now.loss !== null ? `, loss ${now.loss.toFixed(4)}` : '')
    + (now.rate ? `, ${now.rate}/s` : '') + (now.left ? `, ${now.left}` : '');
}

function show(all) {
  byId('command').textContent = all.command;
  document.title = (all.ended ? 'ended: ' : all.now ? `${Math.floor(100 * all.now.done / all.now.all)}% ` : '') + all.command;
  showRuns(all);
  byId('state').textContent = stateOf(all);
  const bar = byId('done');
  bar.hidden = !all.now;
  if (all.now) {
    bar.max = all.now.all;
    bar.value = all.now.done;
  }
  byId('waits').textContent = all.now && all.now.waits_for ? 'no action has ended for a long time:\n' + all.now.waits_for : '';
  drawLosses(all.now);
  drawRecent(all.recent);
}

// The last two minibatches, or as much of them as the program has kept of each rank.
function drawRecent(recent) {
  const section = byId('recent'), rows = recent ? rowsFrom(recent.ranks, recent.letters) : [];
  section.hidden = !rows.some(row => row.length > 0);
  section.replaceChildren();
  if (section.hidden) return;
  element('p', 'What each rank ran last; white is what nobody has told yet, or has not kept. ' + timings[recent.timing], section, 'faint');
  const all = rows.flat(), end = all.reduce((last, a) => Math.max(last, a.end), 1), batch = a => Math.floor(a.microbatch / recent.microbatches);
  const newest = all.reduce((last, a) => Math.max(last, batch(a)), 0);
  const from = all.reduce((first, a) => batch(a) >= newest - 1 ? Math.min(first, a.start) : first, end - 1);
  const drawing = new Drawing({rows, end, severalStages: hasSeveralStages(rows), plan: null, path: null, bounds: null,
    known: rows.map((row, rank) => [recent.from[rank], row.length > 0 ? row[row.length - 1].end : 0])}, section);
  drawing.canvas.setAttribute('aria-label', `what ${rows.length} ranks ran last`);
  Object.assign(drawing, {from: Math.min(Math.max(Math.min(...recent.from), from), end - 1), to: end});
  drawing.draw();
  legendOfKinds(rows, recent.letters, section);
}

// Losses over samples: a line, and a dot for each evaluation.
function drawLosses(now) {
  const canvas = byId('losses'), known = now ? now.losses.filter(([, loss]) => loss !== null) : [];
  canvas.hidden = known.length < 2;
  if (canvas.hidden) return;
  const ratio = window.devicePixelRatio || 1, width = canvas.clientWidth, height = 160, left = 46, bottom = 18;
  canvas.width = width * ratio;
  canvas.height = height * ratio;
  const context = canvas.getContext('2d'), style = getComputedStyle(document.body);
  context.scale(ratio, ratio);
  context.font = '11px system-ui, sans-serif';
  const dots = now.evaluations.filter(([, loss]) => loss !== null), values = [...known, ...dots].map(([, loss]) => loss);
  const low = Math.min(...values), span = Math.max(...values) - low || 1;
  const x = at => left + at / now.all * (width - left - 4), y = loss => 6 + (1 - (loss - low) / span) * (height - bottom - 12);
  context.fillStyle = style.getPropertyValue('--faint');
  for (const loss of [low, low + span]) context.fillText(loss.toFixed(3), 0, y(loss) + 4);
  context.fillText('loss over samples' + (now.losses_every > 1 ? `, means of ${now.losses_every}` : ''), left, height - 4);
  context.strokeStyle = '#0072b2';
  context.beginPath();
  for (const [at, loss] of known) context.lineTo(x(at), y(loss));
  context.stroke();
  context.fillStyle = '#d55e00';
  for (const [at, loss] of dots) context.fillRect(x(at) - 3, y(loss) - 3, 6, 6);
}

async function ask() {
  let heard = null;
  try {
    heard = await (await fetch('/progress.json')).json();
    if (heard.version !== version) await fetchReport(heard.version);
  } catch {
    heard = null;
  }
  if (heard) {
    latest = heard;
    show(latest);
  } else {
    byId('state').textContent = 'The program does not answer: it has ended, or was killed.'
      + (latest && latest.report ? ` If it came to its end, the report is at ${latest.report}` : '');
  }
  if (!latest || !latest.ended) setTimeout(ask, 1000);
}

window.addEventListener('resize', () => { if (latest) show(latest); });
ask();
