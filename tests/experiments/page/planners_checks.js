// SPDX-License-Identifier: BSD-3-Clause
// Reads the page of `plan --planners` as a user does, and compares it with the embedded answers. Runs behind the page's
// own scripts; the title says "all hold", or which claims do not.
const wrong = [];
const hold = (claim, holds) => { if (!holds && wrong.length < 8) wrong.push(claim); };
const near = (text, number) => Math.abs(Number(text) - number) <= 1e-5 * Math.abs(number);

hold('the page is no wider than the window', document.documentElement.scrollWidth <= window.innerWidth);
hold('no name becomes an element', !document.querySelector('h1 *') && document.querySelector('h1').textContent.startsWith(data.case));
const lines = [...document.querySelectorAll('.plans tbody tr')];
hold('a line for each planner', lines.length === data.planners.length);
lines.forEach((line, i) => {
  const row = data.planners[i], text = head => line.querySelector(`[data-head="${head}"]`).textContent.replace('★', '');
  hold('names in order', text('planner') === row.planner);
  hold('the judged cost of ' + row.planner, row.judged === null ? text('judged') === '-' : near(text('judged'), row.judged));
  if (row.judged !== null && data.optimum > 0)
    hold('the excess of ' + row.planner, Math.abs(parseFloat(text('optimum')) - 100 * (row.judged / data.optimum - 1)) < 0.006);
});

// Operators of a part by the plan itself.
const membersOf = part => part.operators || Array.from({length: part.last - part.first + 1}, (_, i) => part.first + i);
const colourOf = rect => rect.getAttribute('fill');
const planned = data.planners.filter(row => row.plan), sections = [...document.querySelectorAll('section')].slice(1);
hold('a section for each plan', sections.map(s => s.querySelector('h2').textContent).join() === planned.map(row => row.planner).join());
const isDrawn = ['pipedream', 'tarnawski', 'piper', 'alpa', 'dapple', 'placement', 'intra'].includes(data.kind);
sections.forEach((section, i) => {
  const {plan, planner} = planned[i], squares = [...section.querySelectorAll('rect')];
  hold('parts of ' + planner, (squares.length > 0) === isDrawn && (isDrawn || section.querySelector('pre').textContent === JSON.stringify(plan)));
  if (!isDrawn) return;
  const byOperator = new Map(squares.map(rect => [Number(/operator (\d+)/.exec(rect.textContent)[1]), rect]));
  const groups = ['placement', 'intra'].includes(data.kind)
    ? [...new Set(plan)].map(choice => plan.flatMap((one, o) => one === choice ? [o] : [])) : plan.map(membersOf);
  hold('a square for each operator of ' + planner, byOperator.size === squares.length && squares.length === new Set(groups.flat()).size);
  for (const group of groups) hold('a colour for each part of ' + planner, new Set(group.map(o => colourOf(byOperator.get(o)))).size === 1);
  hold('parts of ' + planner + ' differ', new Set(groups.map(group => colourOf(byOperator.get(group[0])))).size === groups.length);
  hold('squares from left to right', [...byOperator].sort(([a], [b]) => a - b).every(([, rect], o, all) => o === 0 || Number(rect.getAttribute('x')) > Number(all[o - 1][1].getAttribute('x'))));
  hold('a line for each part of ' + planner, section.querySelectorAll('li').length === groups.length);
});
document.title = wrong.length === 0 ? 'all hold' : 'wrong: ' + wrong.join('; ');
