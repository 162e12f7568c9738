// SPDX-License-Identifier: BSD-3-Clause
// What a user does with report.html, and what has to happen. Run behind the page's own scripts; says
// "all hold", or what does not, in the title.
const wrong = [];
const hold = (what, holds) => { if (!holds) wrong.push(what); };
const event = (timeline, kind, rank, time, where = timeline.canvas) => {
  const box = timeline.canvas.getBoundingClientRect();
  where.dispatchEvent(new PointerEvent(kind, {bubbles: true, pointerType: 'mouse', clientX: box.left + timeline.x(time),
    clientY: box.top + (rank + 0.5) * timeline.row}));
};
const press = (timeline, key, more = {}) =>
  timeline.canvas.dispatchEvent(new KeyboardEvent('keydown', {key, cancelable: true, ...more}));

// The numbers once more, and plain searches over them.
const plain = run => run.ranks.map((numbers, rank) => {
  const row = [];
  for (let i = 0, now = 0; i < numbers.length; i += 9) {
    const [kind, stage, mb, pipe, version, idle, takes, marks, alive] = numbers.slice(i, i + 9);
    row.push({kind: 'FBIWUR'[kind], rank, stage, mb, pipe, version, start: now + idle, end: now + idle + takes, marks, alive});
    now += idle + takes;
  }
  return row;
});
const called = (rows, rank, i) => {
  const several = rows.some(row => new Set(row.map(a => a.pipe)).size < new Set(row.map(a => a.pipe + "/" + a.stage)).size);
  const plainly = a => (several ? a.stage : '') + a.kind + a.mb;
  const a = rows[rank][i], b = rows[rank][i + 1];
  return plainly(a) + (b && b.marks & 8 && b.start === b.end ? ' ' + plainly(b) : '') + (a.marks & 16 ? ' (expert)' : '');
};
const madeBy = (rows, a) => {
  const from = (kinds, stage) => rows.flat().filter(b => kinds.includes(b.kind) && b.stage === stage && b.mb === a.mb
    && b.pipe === a.pipe && !(b.marks & 16)).pop();
  if (a.kind === 'F') return from('F', a.stage - 1);
  return 'BIR'.includes(a.kind) ? from('BI', a.stage + 1) || from('F', a.stage) : undefined;
};
const reasonOf = (rows, {timing, link}, rank, i) => {
  const delay = link ? link.latency + link.occupied : 0;
  const a = rows[rank][i], from = i > 0 ? rows[rank][i - 1].end : 0, ms = ns => (ns / 1e6).toFixed(ns < 1e4 ? 6 : ns < 1e7 ? 3 : 1);
  const waited = `rank ${rank} waited ${ms(a.start - from)} ms`, name = called(rows, rank, i);
  if (timing === 'shared') return `${waited} before ${name}: ranks took turns`;
  if (a.marks & 2) return `${waited} within ${name}`;
  if (a.kind === 'U') return `${waited} before its update ${name}`;
  const second = rows[rank][i + 1] && rows[rank][i + 1].marks & 8 ? madeBy(rows, rows[rank][i + 1]) : undefined;
  const late = [madeBy(rows, a), second].filter(b => b && b.rank !== rank && b.end + delay > from && b.end <= a.start);
  if (late.length === 0) {
    const input = madeBy(rows, a);
    return `${waited} before ${name}` + (a.kind === 'W' ? ', which waits for no other rank' : !input ? ', which reads data'
      : input.rank === rank || timing === 'modelled' ? ': its input was there' : ': its input was made before, and may have been on its way');
  }
  const last = late.length > 1 && late[1].end > late[0].end ? late[1] : late[0];
  return `${waited} for ${called(rows, last.rank, rows[last.rank].indexOf(last))} of rank ${last.rank}`;
};
const times = {measured: 'Times are measured: a thread for each rank.', modelled: 'Times are modelled: ',
  shared: 'Times are measured where ranks took turns', virtual: 'Times are the virtual clock’s.'};
const picture = timeline => {
  const {canvas} = timeline, ratio = window.devicePixelRatio || 1;
  const pixels = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data;
  return (x, y) => '#' + [0, 1, 2].map(i => pixels[4 * (Math.round(y * ratio) * canvas.width + Math.round(x * ratio)) + i]
    .toString(16).padStart(2, '0')).join('');
};
const painted = {F: '#56b4e9', B: '#e69f00', I: '#f0e442', W: '#009e73', U: '#cc79a7', R: '#999999'};

hold('as many runs as results', data.runs.length === data.results.runs.length);
hold('the table is there', document.querySelector('pre').textContent === data.table && data.table.startsWith('schedule '));
hold('nothing is wider than the window', document.documentElement.scrollWidth <= window.innerWidth);
hold('a run that failed says so', data.runs.every((run, i) => (data.results.runs[i].ending === 'failed')
  === document.body.textContent.includes('The run failed: ' + run.failure) || run.failure === ''));
const drawn = data.runs.filter(run => run.ranks.some(rank => rank.length > 0));
hold('a timeline a run that has one', timelines.length === drawn.length);
timelines.forEach((one, k) => {
  const run = drawn[k], name = run.text, rows = plain(run), all = rows.flat(), section = one.canvas.closest('section').textContent;
  hold(name + ': says what its times are', main.textContent.includes(times[run.timing]));
  hold(name + ': says how it ended', one.canvas.closest('section').querySelector('h2').textContent === name + {finished: '', interrupted: ' (interrupted)', failed: ' (failed)'}[
    data.results.runs[data.runs.indexOf(run)].ending]);
  const {verified} = data.results.runs[data.runs.indexOf(run)], verdict = [...one.canvas.closest('section').querySelectorAll('p')].find(p => p.textContent.startsWith('verify: '));
  const {other_programs: others} = data.results.runs[data.runs.indexOf(run)], alarms = [...one.canvas.closest('section').querySelectorAll('p.alarm')];
  hold(name + ': warns of other programs', alarms.filter(p => p.textContent.startsWith('Warning: ')).map(p => p.textContent).join()
    === (others && others.warning ? `Warning: ${others.warning}.` : ''));
  const together = [...main.querySelectorAll('.said-once')].filter(p => p.textContent.endsWith(`verify: ${verified && verified.sentence}.`) && (p.textContent.startsWith('verify') || p.textContent.includes(name)));
  hold(name + ': says what was proved', !verified ? !verdict : verdict ? verdict.textContent === `verify: ${verified.sentence}.` && verdict.className === (verified.holds ? 'faint' : 'alarm')
    : verified.holds && together.length === 1);
  hold(name + ': says whether it is cut', (section.includes(' actions of a rank are here') || main.textContent.includes(`The first ${run.cut} actions`)) === run.cut > 0);
  if (run.cut) hold(name + ': ends where all ranks are known', one.end === Math.min(...rows.map(row => row[row.length - 1].end)));
  const last = all.reduce((most, a) => Math.max(most, a.mb), 0), batches = Math.floor(last / run.microbatches) + 1;
  if (batches > 1) hold(name + ': begins with a part', one.to - one.from < one.end);
  press(one, '0');
  hold(name + ': 0 shows all', one.from === 0 && one.to === one.end);
  if (!run.cut) hold(name + ': every action is drawn', Number(one.canvas.dataset.drawn) === all.length);
  if (run.cut) one.show(...one.minibatch());
  for (let i = 0; i < 6 && !all.some(a => one.x(a.start) >= one.left && one.x(a.end) <= one.width && one.x(a.end) - one.x(a.start) >= 6); ++i) one.zoom(0.5);
  const colourAt = picture(one);
  let seen = 0;
  for (const a of all) {
    const from = one.x(a.start), to = one.x(a.end);
    if (from < one.left || to > one.width || to - from < 6 || a.marks & 12) continue;
    ++seen;
    if (colourAt((from + to) / 2, one.barTop(a.rank) + 1) !== painted[a.kind]) { hold(name + ': colour of ' + a.kind + a.mb, false); break; }
    event(one, 'pointermove', a.rank, (a.start + a.end) / 2);
    const said = `: ${{F: 'forward', B: 'backward', I: 'input gradient', W: 'weight gradient', U: 'update', R: 'forward that runs again'}[a.kind]}`
      + ` of stage ${a.stage} on rank ${a.rank}, ${((a.end - a.start) / 1e6).toFixed(a.end - a.start < 1e4 ? 6 : a.end - a.start < 1e7 ? 3 : 1)} ms from `;
    if (!one.said.textContent.includes(said) || !one.said.textContent.endsWith((a.kind === 'U' ? '; makes version ' : '; reads version ') + a.version)) {
      hold(name + ': pointing says ' + one.said.textContent, false);
      break;
    }
  }
  hold(name + ': some action can be seen', seen > 0);
  let gaps = 0;
  rows.forEach((row, rank) => row.forEach((a, i) => {
    if (gaps >= 4e5 / all.length || a.start <= (i > 0 ? row[i - 1].end : 0) || a.marks & 8) return;
    ++gaps;
    const said = one.sentence(one.idleBefore(rank, i)), expected = reasonOf(rows, run, rank, i);
    if (!said.startsWith(expected) || /^[0-9]/.test(said.slice(expected.length))) hold(`${name}: "${said}" and not "${expected}"`, wrong.length > 4);
  }));
  // Who is called busy was so as long as the other waited.
  rows.forEach((row, rank) => row.forEach((a, i) => {
    const from = i > 0 ? row[i - 1].end : 0;
    if (i > 200 || a.start <= from || a.marks & 8) return;
    const busy = /^rank \d+ waited [^ ]+ ms for ([^;,]*) of rank (\d+)(?:, [^;]*)?; rank \d+ was busy until then$/.exec(one.sentence(one.idleBefore(rank, i)));
    if (!busy) return;
    const other = rows[busy[2]], input = other.filter((b, j) => b.end <= a.start && called(rows, Number(busy[2]), j) === busy[1]).pop();
    const idle = other.reduce((sum, b, j) => sum + Math.max(0, Math.min(b.start, input.start)
      - Math.max(j > 0 ? other[j - 1].end : 0, from)), 0);
    if (idle > 0) hold(`${name}: rank ${busy[2]} was not busy before ${a.kind}${a.mb} of rank ${rank}`, wrong.length > 4);
  }));
  hold(name + ': some rank waits', gaps > 0 || rows.length === 1);
  one.show(0, one.end);
  press(one, 'Tab');
  press(one, 'ArrowRight');
  hold(name + ': the first arrow marks what is first', one.marked.rank === 0 && one.marked.start === 0);
  const steps = 2 * rows[0].length + 2, short = steps < 1000; // each draws
  for (let i = 0; short && i < steps; ++i) press(one, 'ArrowRight');
  if (short) hold(name + ': arrows reach the end', one.marked.end === Math.max(one.end, rows[0][rows[0].length - 1].end));
  hold(name + ': a mark is said', one.heard.textContent === one.said.textContent && one.said.textContent !== '');
  for (let i = 0; short && i < steps; ++i) press(one, 'ArrowLeft');
  hold(name + ': and back the first', one.marked.start === 0);
  if (rows.length > 1) {
    press(one, 'ArrowDown');
    hold(name + ': down goes to the next rank', one.marked.rank === 1);
    press(one, 'ArrowUp');
    hold(name + ': up goes back', one.marked.rank === 0);
  }
  press(one, '0');
  press(one, '+');
  hold(name + ': + shows half', Math.abs((one.to - one.from) / one.end - 0.5) < 0.01);
  press(one, '+', {ctrlKey: true});
  hold(name + ': Ctrl and + is the browser’s', Math.abs((one.to - one.from) / one.end - 0.5) < 0.01);
  const from = one.from, span = one.to - one.from, marked = one.marked, start = from + span / 4;
  const x = one.x(start), by = (one.width - one.left) / 8;
  const box = one.canvas.getBoundingClientRect();
  const at = (kind, where, dx) => where.dispatchEvent(new PointerEvent(kind, {bubbles: true, pointerType: 'mouse',
    clientX: box.left + x + dx, clientY: box.top + one.row / 2}));
  at('pointerdown', one.canvas, 0);
  at('pointermove', one.canvas, -by);
  hold(name + ': dragging to the left shows what comes', Math.abs(one.from - Math.min(from + span / 8, one.end - span)) < span / 100);
  at('pointerup', window, -by); // beside the canvas
  at('click', one.canvas, -by);
  hold(name + ': a drag marks nothing', one.marked === marked);
  const rest = one.from;
  at('pointermove', one.canvas, by);
  hold(name + ': it ended', one.from === rest);
  press(one, '-');
  hold(name + ': - shows twice as much', one.to - one.from > 1.9 * span);
  event(one, 'pointerdown', 0, one.from + 1);
  event(one, 'pointerup', 0, one.from + 1, window);
  event(one, 'click', 0, one.from + 1);
  hold(name + ': a click marks', one.marked !== null && one.marked.rank === 0);
  const marks = one.said.textContent;
  event(one, 'pointermove', rows.length - 1, one.from + 0.7 * (one.to - one.from));
  event(one, 'pointerleave', 0, one.from);
  hold(name + ': a mark is said again', one.said.textContent === marks);
});
// In gpipe each rank begins when the one before it has ended its first forward.
const known = data.results.command.join(' ').includes('latency') ? undefined : timelines.find(t => t.text === 'gpipe' && t.rows.length === 4);
if (known && known.timing === 'virtual')
  hold('a chain is followed to its begin', known.sentence(known.idleBefore(3, 0)) === 'rank 3 waited 3.000 ms for F0 of rank 2; '
    + 'rank 2 had waited 2.000 ms for F0 of rank 1; rank 1 had waited 1.000 ms for F0 of rank 0');

// The page lays a schedule out as the simulator has, to the nanosecond.
const laidOut = (run, order, how) => new Layout(order.rows.map(parsedOrder), {...rulesOf(run), stages: order.stages,
  microbatches: order.microbatches, total: order.microbatches * order.steps, updateEvery: run.schedule.update_every, ...how}).run();
const told = rows => rows.map(row => row.map(a => `${a.kind || a.letter}${a.stage}.${a.mb ?? a.microbatch} ${a.start}-${a.end}`).join(', '));
let laid = 0;
for (const run of drawn) {
  const rows = plain(run), [order] = run.orders;
  if (run.timing !== 'virtual' || run.cut || !order || !run.link || order.steps * order.microbatches * order.ranks === 0) continue;
  if (order.steps < rows.flat().reduce((most, a) => Math.max(most, a.mb + 1), 0) / run.microbatches) continue; // the run had more
  const length = new Map();
  for (const row of rows) row.forEach((a, i) => {
    if (!(a.marks & 8)) length.set(`${a.kind}${a.marks & 4 ? '+' : ''} ${a.stage}`, a.end - a.start);
  });
  const how = {...run.link, cost: a => length.get(`${a.letter} ${a.stage}`) ?? 0, pairCost: a => length.get(`F+ ${a.stage}`), secondCost: () => 0};
  const got = told(laidOut(run, order, how)), want = told(rows), other = want.findIndex((row, rank) => row !== got[rank]);
  hold(`${run.text}: the layout is the simulator’s; rank ${other}: ${got[other]} and not ${want[other]}`.slice(0, 600), other < 0);
  ++laid;
}
hold('layouts were compared', laid > 0 || !data.results.command[0].endsWith('simulate') || drawn.every(run => run.cut || run.orders.length === 0));

// What was planned: the run's own order; each action as long as the median of its kind, and as early as its rank and input allow.
const middle = numbers => { const s = [...numbers].sort((a, b) => a - b), h = s.length >> 1; return s.length % 2 ? s[h] : Math.round((s[h - 1] + s[h]) / 2); };
timelines.forEach((one, k) => {
  const run = drawn[k], rows = plain(run), name = run.text;
  hold(name + ': a plan only of what was measured', !one.plan || run.timing === 'measured' || run.timing === 'modelled');
  if (!one.plan) return;
  const several = run.schedule.directions > 1;
  const real = rows.map(row => row.filter(a => !(several && a.marks & 1)));
  one.plan.rows.forEach((row, rank) => {
    hold(`${name}: all that ran is planned`, row.length === real[rank].length || run.cut > 0);
    row.forEach((p, i) => {
      const before = i > 0 ? row[i - 1].end : one.plan.shift, from = p.letter === 'F' ? [p.stage - 1, 'F'] : p.stage === run.schedule.stages - 1 ? [p.stage, 'F'] : [p.stage + 1, 'BI'];
      if (p.letter === 'U' || p.letter === 'W') return several || hold(`${name}: ${p.letter}${p.microbatch} follows`, p.start === before || p.goesOn);
      const source = from[0] < 0 ? undefined : one.plan.rows.flat().find(q => from[1].includes(q.letter) && q.stage === from[0] && q.microbatch === p.microbatch && q.pipeline === p.pipeline);
      const soonest = Math.max(before, source ? source.end : 0), second = row[i + 1];
      if (p.pair || i > 0 && row[i - 1].pair || p.letter === 'R') return;
      hold(`${name}: ${p.letter}${p.microbatch} of rank ${rank} is planned as early as can be`, several ? p.start >= soonest : p.start === soonest);
      const same = rows[rank].filter(a => a.kind === p.letter && a.stage === p.stage && !(a.marks & 12));
      hold(`${name}: ${p.letter}${p.microbatch} is as long as the median`, p.end - p.start === middle(same.map(a => a.end - a.start)));
    });
  });
});

// The critical path ends last, is in order, and has no hole where messages take no time.
timelines.forEach(one => {
  if (!one.path) return;
  const {steps, work} = one.path, last = one.rows.flat().reduce((most, a) => Math.max(most, a.end), 0);
  hold(one.text + ': the path ends last', steps[steps.length - 1].end === last);
  hold(one.text + ': the path is in order', steps.every((a, i) => i === 0 || a.start >= steps[i - 1].end));
  // In virtual time it has no hole but the latency of messages; else no step waits for what came before another.
  const run = drawn[timelines.indexOf(one)], delay = run.link ? run.link.latency + run.link.occupied : 0;
  steps.forEach((a, i) => {
    const before = steps[i - 1], earlier = one.rows[a.rank][a.index - 1];
    if (!before) return hold(one.text + ': the path begins with the run', run.timing !== 'virtual' || a.start === 0);
    const jumps = before.rank !== a.rank, told = !(a.letter === 'U' && a.pipeline === 0 && !'BW'.includes(before.letter) || a.start === before.end);
    const came = before.end + (jumps && told ? delay : 0);
    if (run.link && run.link.occupied > 0) return; // a message may wait at a port
    hold(`${one.text}: the path jumps to ${a.letter}${a.microbatch} for what came last`, !jumps || !earlier || came >= earlier.end);
    if (run.timing === 'virtual') hold(`${one.text}: no hole before ${a.letter}${a.microbatch}`, came === a.start);
  });
  const busiest = Math.max(...one.rows.map(row => row.reduce((sum, a) => sum + a.end - a.start, 0)));
  if (run.timing === 'virtual' && run.link.latency + run.link.occupied === 0) hold(one.text + ': all of the path is work', work === last && work >= busiest);
});

// Curves under ranks against results.json.
const results = drawn.map(run => data.results.runs[data.runs.indexOf(run)]);
timelines.forEach((one, k) => {
  const run = drawn[k], result = results[k], rows = plain(run);
  if (run.cut || result.ending !== 'finished') return;
  const most = (key, rank) => Math.max(...strips[key].steps(one.rows[rank]).map(s => s[1]), 0);
  rows.forEach((row, rank) => {
    hold(`${one.text}: held by rank ${rank}`, most('held', rank) === result.peak_activations[rank]);
    if (run.bounds) hold(`${one.text}: bound of rank ${rank}`, run.bounds[rank] >= result.peak_activations[rank]);
    const stages = new Set(row.map(a => a.pipe + ' ' + a.stage));
    if (stages.size > 1 || result.replicas > 1 || result.tensor > 1) return;
    hold(`${one.text}: versions of rank ${rank}`, most('versions', rank) === result.weight_versions[row[0].stage]);
    hold(`${one.text}: lag of rank ${rank}`, most('behind', rank) === result.staleness.max[row[0].stage]);
  });
});
for (const key of Object.keys(strips)) {
  pick.value = key;
  pick.onchange();
  for (const one of timelines) {
    if (one.small) continue;
    event(one, 'pointermove', 0, (one.rows[0][0].start + one.rows[0][0].end) / 2);
    hold(one.text + ': a strip is told', !one.said.textContent.startsWith(one.name(one.rows[0][0])) || one.said.textContent.includes(strips[key].text + ': '));
  }
}

// What is held takes its share of the activations that results.json has.
timelines.forEach((one, k) => {
  pick.value = 'held';
  pick.onchange();
  const {peak_bytes_of, peak_activations} = results[k], rank = one.rows.length - 1, row = one.rows[rank];
  const full = row.find(a => one.strip && valueAt(one.curve(rank), a.start) === peak_activations?.[rank] && !a.first);
  if (one.small || !full) return;
  const said = one.sentence(full), bytes = peak_bytes_of ? peak_bytes_of.activations[rank] : 0;
  const told = /, with about ([0-9.]+) MiB of activations/.exec(said), mebibytes = bytes / 1048576;
  hold(`${one.text}: bytes of what is held: ${said}`, peak_bytes_of ? said.includes(`held: ${peak_activations[rank]}, with about `)
    && Math.abs(Number(told[1]) / mebibytes - 1) < 0.01 : !told);
});

// One cursor for all.
if (timelines.length > 1) {
  const [one, two] = timelines;
  for (const t of timelines) t.show(0, t.end);
  const time = Math.min(one.end, two.end) / 3;
  event(one, 'pointermove', 0, time);
  for (const t of [one, two]) hold(t.text + ': cursor', !t.cursor.hidden && Math.abs(parseFloat(t.cursor.style.left) - t.x(time)) < 2);
  event(one, 'pointerleave', 0, time);
  hold('the cursor leaves', one.cursor.hidden && two.cursor.hidden);
}

// What is saved has all actions.
for (const one of timelines) {
  const all = one.rows.flat();
  hold(one.text + ': CSV', csvOf(one).split('\n').length === all.length + 2);
  const trace = JSON.parse(traceOf(one)).traceEvents.filter(e => e.ph === 'X');
  hold(one.text + ': trace', trace.length === all.length && trace.every((e, i) => Math.round(1000 * e.ts) === all[i].start && Math.round(1000 * e.dur) === all[i].end - all[i].start));
}

// Losses: a point for each of results.json, over samples and seconds.
const learned = data.results.runs.filter(run => run.loss && run.loss.length > 0);
if (learned.length > 0) {
  const label = document.querySelector('.dygraph-axis-label');
  if (label) hold('labels of axes have the colour of text', getComputedStyle(label).color === getComputedStyle(document.body).color);
  const entries = [...document.querySelectorAll('.names > span')].map(entry => entry.textContent);
  hold('the legend of losses has each schedule once', entries.length === learned.length && new Set(entries).size === new Set(data.runs.map(run => run.text)).size
    - (data.runs.length - learned.length));
  hold('curves are there', typeof Dygraph === 'undefined' || losses.chart.numRows() > 0);
  const dots = run => run.evaluations.filter(e => e.steps < run.steps).length + (run.evaluation.loss !== null ? 1 : 0);
  for (const over of ['samples', 'seconds']) {
    if (!learned.some(run => run['loss_' + over])) continue;
    losses.show(over);
    const has = run => run['loss_' + over] ? run['loss_' + over].length + dots(run) : 0;
    const points = learned.reduce((sum, run) => sum + has(run), 0), curves = losses.curves(over), rows = losses.rows(curves);
    hold('points over ' + over, rows.reduce((sum, row) => sum + row.slice(1).filter(x => x !== null).length, 0) === points);
    for (const run of learned.filter(run => run.evaluations.length > 0 && run['loss_' + over])) {
      const {steps, loss} = run.evaluations[0], curve = curves.find(c => c.kind === 'evaluated' && c.name === data.runs[data.results.runs.indexOf(run)].text);
      const place = run.loss_samples.lastIndexOf(run.samples / (run.steps - run.steps_before) * (steps - run.steps_before));
      hold('an evaluation stands where its step ended', curve && curve.points[0][1] === loss && curve.points[0][0] === run['loss_' + over][place]);
    }
    if (typeof Dygraph !== 'undefined') hold('the chart is over ' + over, losses.chart.getLabels()[0] === over && losses.chart.numRows() === rows.length);
  }
  losses.many = 10;
  const [mean] = losses.curves('samples'), [first] = learned, ten = first.loss.slice(0, 10);
  hold('a point of ten losses is their mean', Math.abs(mean.points[0][1] - ten.reduce((a, b) => a + b) / ten.length) < 1e-9
    && mean.points[0][0] === first.loss_samples[ten.length - 1] && mean.points.length === Math.ceil(first.loss.length / 10));
  losses.many = 1;
  for (const measure of ['gradient_norms', 'learning_rates']) {
    losses.measure = measure;
    const of = losses.curves('samples').filter(curve => curve.kind === 'training'), told = learned.filter(run => run[measure]);
    hold('a curve of ' + measure, of.length === told.length && of.every((curve, i) => curve.points.map(p => p[1]).join() === told[i][measure].filter(x => x !== null).join())
      && losses.curves('samples').every(curve => curve.kind === 'training') && losses.measures.has(measure) === told.length > 0);
  }
  losses.measure = 'loss';
  hold('losses as CSV', losses.csv().split('\n').length === learned.reduce((sum, run) => sum + run.loss.length + dots(run), 2));
  hold('a name with a comma, a quotation mark or a line end is one field', quoted('a,"b"\n') === '"a,""b""\n"' && quoted('gpipe') === 'gpipe');
  hold('memory of all ranks', document.querySelectorAll('.memory').length === learned.filter(run => run.peak_bytes && run.peak_bytes.length).reduce((sum, run) => sum + run.ranks, 0));
}
hold('loads of experts are drawn', document.querySelectorAll('canvas.experts').length === data.results.runs.reduce((sum, run) => sum + (run.experts || []).length, 0));

// The first figure: a steady minibatch of each schedule, on one time axis.
const finishedRows = data.runs.map((run, i) => ({run, result: data.results.runs[i]})).filter(({run, result}) => result.ending !== 'failed' && run.ranks.some(rank => rank.length > 0));
hold('the page of several runs begins with a figure', (overview.section !== undefined) === (data.runs.length > 1 && finishedRows.length > 0));
if (overview.section) {
  hold('the figure stands before numbers and timelines', document.querySelector('section') === overview.section);
  const lines = [...overview.section.querySelectorAll('tbody tr')], pictures = lines.map(line => line.querySelector('svg.steady'));
  hold('a row a schedule', lines.length === finishedRows.length && lines.every((line, i) => line.querySelector('a').textContent.startsWith(finishedRows[i].run.text)));
  const widths = new Set(pictures.map(p => p.getAttribute('viewBox').split(' ')[2]));
  hold('one time axis', widths.size === 1 && new Set(pictures.map(p => Math.round(p.getBoundingClientRect().width))).size === 1);
  const numbersOf = path => [...path.getAttribute('d').matchAll(/M(\S+) (\S+)h(\S+)v(\S+)h(\S+)z/g)].map(found => found.slice(1).map(Number));
  finishedRows.forEach(({run}, k) => {
    const rows = plain(run), all = rows.flat(), from = Number(pictures[k].dataset.from), [hole] = [...pictures[k].querySelectorAll('.hole')].map(numbersOf);
    const to = from + hole[0][2], cut = run.cut ? Math.min(...rows.map(row => row[row.length - 1].end)) : Infinity;
    const first = batch => all.reduce((least, a) => a.kind === 'F' && !(a.marks & 2) && Math.floor(a.mb / run.microbatches) === batch && a.start < cut ? Math.min(least, a.start) : least, Infinity);
    const batches = [...new Set(all.map(a => Math.floor(a.mb / run.microbatches)))].sort((a, b) => a - b), starts = batches.map(first).filter(x => x < Infinity);
    const place = starts.indexOf(from), spans = starts.slice(1).map((x, i) => x - starts[i]);
    hold(`${run.text}: a row is from a minibatch's first forward to the next one's`, starts.length < 2 || spans.every(x => x <= 0) || place >= 0 && starts[place + 1] === to);
    if (spans.length > 1 && spans.every(x => x > 0)) {
      const later = spans.slice(1);
      hold(`${run.text}: the minibatch is steady and of median length`, place > 0 && later.filter(x => x < to - from).length <= later.length / 2
        && later.filter(x => x > to - from).length <= later.length / 2);
    }
    const bars = [...pictures[k].querySelectorAll('.bars')].flatMap(path => numbersOf(path).map(([x, y, w]) => `${path.dataset.kind} ${Math.floor(y / 10)} ${x} ${w}`)).sort();
    const expected = rows.flatMap(row => row.flatMap((a, i) => {
      const [x, end] = [Math.max(a.start, from), Math.min(a.end, to)], b = row[i + 1];
      const kinds = [a.kind, ...(b && b.marks & 8 && b.start === b.end ? [b.kind] : [])];
      return end > x ? kinds.map(kind => `${kind} ${a.rank} ${x - from} ${end - x}`) : [];
    })).sort();
    hold(`${run.text}: ${bars.length} bars of the minibatch, and not ${expected.length}`, bars.join() === expected.join());
  });
  // Points beside the pictures are those of the results.
  const heads = [...overview.section.querySelectorAll('thead button')].map(head => head.textContent);
  const values = {bubble: ({result}) => result.timing === 'shared' ? null : result.bubble, memory: ({result}) => result.peak_bytes && Math.max(...result.peak_bytes) / 1048576,
    'evaluated loss': ({result}) => result.evaluation.loss};
  // Of as many seconds as the fastest run took: the mean of the last 8 batches.
  const lastSeconds = finishedRows.filter(({result}) => result.ending === 'finished' && result.timing !== 'shared' && result.loss_seconds).map(({result}) => Math.max(...result.loss_seconds));
  const soonest = Math.min(...lastSeconds), afterSeconds = heads.find(head => head.startsWith('loss after '));
  hold('a column of losses after equal seconds', (afterSeconds !== undefined) === lastSeconds.length > 0);
  if (afterSeconds) values[afterSeconds] = ({result}) => {
    if (result.timing === 'shared' || !result.loss_seconds) return null;
    const {batch} = data.results.data, each = result.loss.flatMap((loss, i) => {
      const samples = result.loss_samples[i] - (i > 0 ? result.loss_samples[i - 1] : result.steps_before * batch);
      return result.loss_seconds[i] <= soonest ? new Array(samples).fill(loss) : [];
    });
    const some = each.slice(-8 * batch);
    return some.length > 0 ? some.reduce((a, b) => a + b) / some.length : null;
  };
  const ends = [...overview.section.querySelectorAll('tfoot td')];
  for (const [head, of] of Object.entries(values)) {
    const column = heads.indexOf(head), known = finishedRows.map(of).filter(x => x !== null && x !== undefined);
    hold(`a column ${head} where numbers are known`, (column > 0) === known.length > 0);
    if (column < 0) continue;
    const dots = lines.map(line => line.children[column].querySelector('.track i'));
    finishedRows.forEach((row, i) => hold(`${row.run.text}: ${head}`, dots[i] ? Math.abs(Number(dots[i].dataset.value) - of(row)) <= 1e-12 * Math.abs(of(row)) : of(row) === null || of(row) === undefined));
    const shares = dots.filter(dot => dot).map(dot => [Number(dot.dataset.value), parseFloat(dot.style.left)]), [low, high] = [...ends[column].querySelectorAll('span')].map(x => parseFloat(x.textContent));
    const scale = head === 'bubble' ? 100 : 1;
    hold(`points of ${head} stand where their axis says: ${JSON.stringify(shares)} on ${low} to ${high}`, shares.every(([x, at]) => Math.abs(low + at / 100 * (high - low) - scale * x) < 0.02 * (high - low)));
    const texts = lines.map(line => line.children[column].querySelector('.value').firstChild.textContent), least = texts[finishedRows.findIndex(row => of(row) === Math.min(...known.filter(Number.isFinite)))];
    const best = lines.filter(line => line.children[column].classList.contains('best')), same = texts.every(text => text === least || text === '-');
    hold(`the best of ${head} are marked`, best.length === (same ? 0 : texts.filter(text => text === least).length) && best.every(line => texts[lines.indexOf(line)] === least));
  }
  const equal = new Set(finishedRows.map(values.bubble)).size === 1, answer = [...overview.answers.children].find(item => item.textContent.startsWith('Idles least'));
  const least = finishedRows.reduce((a, b) => (values.bubble(b) ?? 2) < (values.bubble(a) ?? 2) ? b : a);
  hold('a sentence says which schedule idles least', equal || !heads.includes('bubble') || answer && answer.textContent.includes(least.run.text) || new Set(lines.map(line => line.children[heads.indexOf('bubble')].textContent)).size === 1);
  // By a click on a head rows are in order, and pictures follow.
  const head = overview.table.heads[heads.indexOf('minibatch')], order = () => [...overview.section.querySelectorAll('tbody tr')].map(line => Number(line.querySelectorAll('.track i')[0].dataset.value));
  head.querySelector('button').click();
  hold('a click sorts, the best first', head.getAttribute('aria-sort') === 'ascending' && order().every((x, i, all) => i === 0 || all[i - 1] <= x));
  head.querySelector('button').click();
  hold('another click sorts the other way', head.getAttribute('aria-sort') === 'descending' && order().every((x, i, all) => i === 0 || all[i - 1] >= x));
  // Asynchronous schedules at the rate of others are named, and no others.
  const rate = ({result}) => result.options && result.options['--lr'], every = data.runs.map((run, i) => ({run, result: data.results.runs[i]}));
  const unfair = every.filter(row => ['pipedream', '2bw', 'ampnet'].includes(row.result.schedule) && rate(row) && every.some(other => other !== row && rate(other) === rate(row)));
  const sentence = document.querySelector('.unfair');
  hold('an unfair comparison is called so', unfair.length > 0 ? sentence !== null && unfair.every(row => sentence.textContent.includes(row.run.text)) : sentence === null);
}

// Numbers in the table are those of the terminal.
const printed = data.table.split('\n\n')[0].trimEnd().split('\n').map(line => line.trim().split(/\s{2,}/)), shownHeads = numbers.columns.map(column => column.head);
[...numbers.body.children].forEach((line, i) => printed[0].forEach((head, j) => {
  const column = shownHeads.indexOf(head === 'MiB/rank' ? 'memory MiB' : head), cell = column < 0 ? null : line.children[column], text = cell ? cell.textContent.replace('★', '') : '';
  const same = head === 'MiB/rank' ? text === printed[i + 1][j] || Number(text).toFixed(1) === printed[i + 1][j] : text === printed[i + 1][j];
  if (cell) hold(`${printed[i + 1][0]}: ${head} is "${text}" and not "${printed[i + 1][j]}"`, same);
  else hold(`no column ${head}`, head === 'timing' || /^-?0?$/.test(printed[i + 1][j]) || data.results.runs.every(run => run.ending === 'failed'));
}));
const paragraphs = [...main.querySelectorAll('p:not(.said):not(.heard)')].map(p => p.textContent).filter(text => text.length > 20), twice = paragraphs.find((text, i) => paragraphs.indexOf(text) !== i);
hold('no sentence stands twice: ' + twice, twice === undefined || /^block|^Critical path|^The run failed|^Warning: other programs took/.test(twice));
const sizes = [...main.querySelectorAll('p, td, span')].find(part => /[0-9] (MB|GB|kB|bytes)/.test(part.textContent));
hold('memory has one unit: ' + (sizes && sizes.textContent), !sizes);

// Sliders: what another simulation found at other sizes and costs.
const other = document.getElementById('other');
if (other) {
  const {ratio, latency, occupied, ranks, microbatches} = JSON.parse(other.dataset.at), found = JSON.parse(other.textContent).runs;
  whatIf.ratio.set(ratio);
  whatIf.latency.set(latency);
  whatIf.occupied.set(occupied);
  whatIf.ranks.set(ranks);
  whatIf.microbatches.set(microbatches);
  whatIf.layOut();
  hold('the schedule that is drawn is laid out at once', whatIf.laidOut.has(whatIf.shown));
  hold('others are not', found.length === 1 || whatIf.rest.length === found.length - 1);
  while (whatIf.rest.length > 0) whatIf.layNextOut();
  const lines = [...whatIf.table.querySelectorAll('tr')].slice(1);
  hold('a line a schedule', lines.length === found.length);
  found.forEach((run, i) => {
    const cells = [...lines[i].querySelectorAll('td')].map(cell => cell.textContent);
    hold(`what if ${cells[1]}: ${cells[3]} and ${cells[4]}, and not ${1000 * run.makespan} ms`, cells[3] === (1000 * run.makespan).toFixed(3) + ' ms' && cells[4] === (100 * run.bubble).toFixed(1) + '%');
    hold(`what if ${cells[1]}: holds ${cells[5]}`, Number(cells[5]) === Math.max(...run.peak_activations));
  });
  whatIf.section.querySelector('button').click();
  hold('back to the costs of the run', whatIf.ranks.value() === whatIf.runs[0].orders[0].ranks && whatIf.ratio.value() === undefined);
}
// Sliders that nobody moved: what ran, where the page knows all of it.
if (whatIf.section) {
  while (whatIf.rest.length > 0) whatIf.layNextOut();
  hold('orders begin with the run’s own', whatIf.runs.every(run => run.orders[0].ranks === run.ranks.length && run.orders[0].stages === run.schedule.stages
    && run.orders[0].microbatches === run.microbatches));
  const lines = [...whatIf.table.querySelectorAll('tr')].slice(1);
  whatIf.runs.forEach((run, i) => {
    const cells = [...lines[i].querySelectorAll('td')].map(cell => cell.textContent), result = data.results.runs[data.runs.indexOf(run)];
    if (run.timing !== 'virtual' || result.steps > 3 || result.ending !== 'finished') return;
    if (!run.link) return hold(run.text + ': messages that are not alike', cells[2].startsWith('its messages are not alike'));
    hold(`${run.text}: unmoved ${cells[3]} and ${cells[4]}, and not ${1000 * result.makespan} ms`, cells[3] === (1000 * result.makespan).toFixed(3) + ' ms'
      && cells[4] === (100 * result.bubble).toFixed(1) + '%');
  });
}
hold('nothing was loaded from elsewhere', performance.getEntriesByType('resource').length === 0);
const say = () => { document.title = wrong.length === 0 ? 'all hold' : 'wrong: ' + wrong.join('; '); };
if (whatIf.section) {
  whatIf.layOut();
  const radios = [...whatIf.table.querySelectorAll('input')], last = whatIf.runs[whatIf.runs.length - 1];
  radios[radios.length - 1].click();
  hold('the schedule that is picked is laid out before others', whatIf.laidOut.has(last) && whatIf.laidOut.size <= 2);
  hold('and drawn', Boolean(whatIf.refusal(last)) !== whatIf.place.textContent.startsWith(last.text + ', laid out'));
  setTimeout(() => {
    hold('all schedules are laid out soon', [...whatIf.table.querySelectorAll('tr')].slice(1).every(line => line.querySelectorAll('td').length === 6
      || line.lastChild.colSpan === 4));
    say();
  }, 3000);
} else {
  say();
}
