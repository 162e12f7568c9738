// SPDX-License-Identifier: BSD-3-Clause
// Reads the page of `plan --planners` as a user does, and compares it with the embedded answers. Runs behind the page's
// own scripts; the title says "all hold", or which claims do not.
const wrong = [];
const hold = (claim, holds) => { if (!holds && wrong.length < 8) wrong.push(claim); };
const near = (text, number) => Math.abs(Number(text) - number) <= 1e-5 * Math.abs(number);

hold('the page is no wider than the window', document.documentElement.scrollWidth <= window.innerWidth);
hold('no name becomes an element', !document.querySelector('h1 *') && document.querySelector('h1').textContent === `${data.case}, ${data.kind}`);
hold('the command is there', document.querySelector('code').textContent === data.command && data.command.startsWith('plan '));
hold('the least cost is said', document.querySelector('main > p.faint').textContent.includes(data.optimum === null ? 'unknown' : 'The least cost of all plans is ')
  && (data.optimum === null || near(/is ([0-9.e+-]+)\.$/.exec(document.querySelector('main > p.faint').textContent)[1], data.optimum)));
const table = document.querySelector('.plans'), linesOf = () => [...table.querySelectorAll('tbody tr')];
const lines = linesOf(), judged = data.planners.map(row => row.judged).filter(isNumber), least = Math.min(...judged);
hold('a line for each planner', lines.length === data.planners.length);
lines.forEach((line, i) => {
  const row = data.planners[i], cell = head => line.querySelector(`[data-head="${head}"]`), text = head => cell(head)?.textContent.replace('★', '');
  hold('names in order', text('planner') === row.planner);
  for (const [head, value] of [['predicted', row.cost], ['judged', row.judged]])
    hold(`${head} of ${row.planner}`, value === null ? text(head) === '-' : near(text(head), value));
  hold('a star at the least cost alone', !cell('judged').classList.contains('best') || near(text('judged'), least));
  hold('milliseconds of ' + row.planner, Math.abs(Number(text('search ms')) - row.search_ms) <= 0.006);
  hold('remark of ' + row.planner, row.remark === '' || text('remark') === row.remark);
  if (row.judged !== null && data.optimum > 0)
    hold('the excess of ' + row.planner, Math.abs(parseFloat(text('optimum')) - 100 * (row.judged / data.optimum - 1)) < 0.006);
});
hold('a star where costs differ', new Set(judged).size < 2 || judged.filter(x => x === least).length > judged.length / 2 || table.querySelector('[data-head=judged].best'));

// Members and label of each part by the plan itself.
const membersOf = part => part.operators || Array.from({length: part.last - part.first + 1}, (_, i) => part.first + i);
const saidNumbers = text => text.trim().split(', ').flatMap(range => { // "0-4, 7"
  const [first, last] = range.split('-').map(Number);
  return Array.from({length: (last ?? first) - first + 1}, (_, i) => first + i);
});
const planned = data.planners.filter(row => row.plan), sections = [...document.querySelectorAll('section')].slice(1);
hold('a section for each plan', sections.map(s => s.querySelector('h2').textContent).join() === planned.map(row => row.planner).join());
const isDrawn = ['pipedream', 'tarnawski', 'piper', 'alpa', 'dapple', 'placement', 'intra'].includes(data.kind);
hold('operators have names', !['pipedream', 'tarnawski', 'piper', 'intra'].includes(data.kind) || data.operators.some(name => name !== ''));
sections.forEach((section, i) => {
  const {plan, planner, paper} = planned[i], squares = [...section.querySelectorAll('rect')];
  hold('the paper of ' + planner, paper === '' || section.querySelector('p').textContent === paper);
  hold('parts of ' + planner, (squares.length > 0) === isDrawn && (isDrawn || section.querySelector('pre').textContent === JSON.stringify(plan)));
  if (!isDrawn) return;
  const chosen = ['placement', 'intra'].includes(data.kind) ? [...new Set(plan)].sort((a, b) => a - b) : null;
  const groups = chosen ? chosen.map(choice => plan.flatMap((one, o) => one === choice ? [o] : [])) : plan.map(membersOf);
  const byOperator = new Map(squares.map(rect => [Number(/operator (\d+)/.exec(rect.textContent)[1]), rect]));
  hold('a square for each operator of ' + planner, byOperator.size === squares.length && squares.length === new Set(groups.flat()).size);
  const items = [...section.querySelectorAll('li')];
  hold('a line for each part of ' + planner, items.length === groups.length);
  groups.forEach((group, part) => {
    const colours = new Set(group.map(o => byOperator.get(o).getAttribute('fill'))), item = items[part];
    hold('a colour for each part of ' + planner, colours.size === 1 && item.querySelector('i').style.background !== '');
    hold('operators of a part of ' + planner, saidNumbers(item.firstChild.nextSibling.textContent).join() === [...group].sort((a, b) => a - b).join());
    const label = item.querySelector('b').textContent, wanted = chosen ? [`${{placement: 'device', intra: 'strategy'}[data.kind]} ${chosen[part]}`]
      : [plan[part].device, plan[part].replicas && `x ${plan[part].replicas}`, plan[part].tensor > 1 && `tensor ${plan[part].tensor}`,
        plan[part].submesh !== undefined && `submesh ${plan[part].submesh}`].filter(Boolean);
    hold(`label of a part of ${planner}: ${label}`, wanted.every(text => label.includes(text)));
    if (plan[part].devices) hold('devices of a part of ' + planner, saidNumbers(label.replace('devices ', '')).join() === plan[part].devices.join());
    for (const o of group) {
      const title = byOperator.get(o).textContent, name = data.operators[o];
      hold('title of a square of ' + planner, title.startsWith(`operator ${o}${name ? ` (${name})` : ''}, part ${part + 1}:`) && title.endsWith(label));
    }
  });
  hold('parts of ' + planner + ' differ', new Set(groups.map(group => byOperator.get(group[0]).getAttribute('fill'))).size === groups.length);
  hold('squares from left to right', [...byOperator].sort(([a], [b]) => a - b).every(([, rect], o, all) => o === 0 || Number(rect.getAttribute('x')) > Number(all[o - 1][1].getAttribute('x'))));
});

[...table.querySelectorAll('thead button')].find(head => head.textContent === 'judged').click();
const sorted = linesOf().map(line => Number(line.querySelector('[data-head=judged]').textContent.replace('★', ''))).filter(x => !Number.isNaN(x));
hold('a click on a head sorts', sorted.every((cost, i) => i === 0 || cost >= sorted[i - 1]));
document.title = wrong.length === 0 ? 'all hold' : 'wrong: ' + wrong.join('; ');
