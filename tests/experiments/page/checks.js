// What a user does with report.html, and what has to happen. Run behind the page's own
// program; says "all hold" or what does not in the title.
'use strict';
const wrong = [];
const hold = (what, holds) => { if (!holds) wrong.push(what); };
const point = (timeline, kind, rank, time) => {
  const box = timeline.canvas.getBoundingClientRect();
  timeline.canvas.dispatchEvent(new PointerEvent(kind, {bubbles: true, pointerType: 'mouse',
    clientX: box.left + timeline.x(time), clientY: box.top + (rank + 0.5) * timeline.row}));
};
const press = (timeline, key) => timeline.canvas.dispatchEvent(new KeyboardEvent('keydown', {key, cancelable: true}));

hold('a timeline a run', timelines.length === data.results.runs.length);
hold('a row a run in the table', document.querySelectorAll('tbody tr').length === timelines.length);
hold('a cell a column, the schedule first', [...document.querySelectorAll('tbody tr')].every((row, i) =>
  row.querySelectorAll('td').length === document.querySelectorAll('th').length
  && row.firstChild.textContent === data.runs[i].text));
hold('nothing is wider than the window', document.documentElement.scrollWidth <= window.innerWidth);
for (const one of timelines) {
  const all = one.ranks.flat(), name = one.run.text;
  hold(name + ': begins with a part', Number(one.canvas.dataset.drawn) < all.length);
  press(one, '0');
  hold(name + ': 0 draws every action', Number(one.canvas.dataset.drawn) === all.length);
  const some = all.find(a => a.letter === 'F' && a.stage > 0 && a.end > a.start);
  point(one, 'pointermove', some.rank, (some.start + some.end) / 2);
  hold(name + ': pointing names ' + nameOf(some), one.said.textContent.startsWith(nameOf(some) + ': forward of stage '
    + some.stage + ' on rank ' + some.rank + ', '));
  // The first rank that waits begins late: for the forward of the stage before.
  const late = one.ranks.findIndex(row => row[0].start > 0);
  hold(name + ': some rank begins late', late >= 0);
  if (late >= 0) {
    point(one, 'click', late, one.ranks[late][0].start / 2);
    const said = one.said.textContent, next = one.ranks[late][0];
    hold(name + ': idle time has its reason: ' + said, said.startsWith(`rank ${late} waited `)
      && said.includes(` for the input of ${nameOf(next)} (stage ${next.stage}), which `));
    press(one, 'ArrowRight');
    hold(name + ': an arrow goes to what follows', one.said.textContent.startsWith(nameOf(next) + ': '));
  }
  const span = one.to - one.from;
  press(one, '+');
  hold(name + ': + shows half', Math.abs((one.to - one.from) / span - 0.5) < 0.01);
  const from = one.from;
  point(one, 'pointerdown', 0, one.from + span / 4);
  point(one, 'pointermove', 0, one.from + span / 8);
  point(one, 'pointerup', 0, one.from);
  hold(name + ': dragging moves', one.from !== from);
}
document.title = wrong.length === 0 ? 'all hold' : 'wrong: ' + wrong.join('; ');
