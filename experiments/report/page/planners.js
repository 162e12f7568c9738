// SPDX-License-Identifier: BSD-3-Clause
// The page of `plan --planners`: costs of all planners, and the parts of each plan.
const data = JSON.parse(document.getElementById('data').textContent);
const partColour = part => `hsl(${part * 137 % 360} 60% 62%)`;
const significant = number => String(Number(number.toPrecision(6)));

// The excess of a row's cost over the least cost of all plans; null if one of them is unknown.
function excessOf({judged}) {
  if (!isNumber(judged) || !isNumber(data.optimum)) return null;
  return data.optimum > 0 ? judged / data.optimum - 1 : judged === data.optimum ? 0 : null;
}

// Numbers as ranges: "0-4, 7".
function rangesOf(numbers) {
  const ranges = [];
  for (const number of numbers) {
    const last = ranges[ranges.length - 1];
    if (last && last[1] + 1 === number) last[1] = number;
    else ranges.push([number, number]);
  }
  return ranges.map(([first, last]) => first === last ? String(first) : `${first}-${last}`).join(', ');
}

// Parts of a plan: [{members: numbers of operators or layers, label}]. Null for kinds without parts.
function partsOf(plan) {
  const choices = {placement: 'device', intra: 'strategy'}[data.kind];
  if (choices)
    return [...groupedBy(plan.map((choice, i) => [choice, i]), ([choice]) => choice)].sort(([a], [b]) => a - b)
      .map(([choice, members]) => ({members: members.map(([, i]) => i), label: `${choices} ${choice}`}));
  if (!Array.isArray(plan) || !plan.every(part => part.operators || part.first !== undefined)) return null;
  return plan.map(part => ({
    members: part.operators || Array.from({length: part.last - part.first + 1}, (_, i) => part.first + i),
    label: [part.device, part.tensor > 1 ? `tensor ${part.tensor}` : undefined, part.replicas ? `x ${part.replicas}` : undefined,
      part.devices ? `devices ${rangesOf(part.devices)}` : undefined, 'submesh' in part ? `submesh ${part.submesh}` : undefined]
      .filter(text => text !== undefined).join(', ')}));
}

// A row of squares, one for each operator, in the colour of its part.
function drawParts(parts, parent) {
  const count = 1 + Math.max(...parts.flatMap(part => part.members)), width = 900 / count;
  const picture = shape('svg', {viewBox: '0 0 900 22', class: 'parts', preserveAspectRatio: 'none', role: 'img', 'aria-label': `${parts.length} parts`}, parent);
  parts.forEach(({members, label}, part) => {
    for (const member of members) {
      const square = shape('rect', {x: (member * width).toFixed(2), y: 1, width: Math.max(width - 0.6, 0.6).toFixed(2), height: 20, fill: partColour(part)}, picture);
      const name = data.operators[member] ? ` (${data.operators[member]})` : '';
      shape('title', {}, square).textContent = `operator ${member}${name}, part ${part + 1}: ${label}`;
    }
  });
  const list = element('ol', undefined, parent, 'part-list');
  parts.forEach(({members, label}, part) => {
    const item = element('li', undefined, list);
    element('i', undefined, item, 'part').style.background = partColour(part);
    item.append(`${rangesOf(members)} `);
    element('b', label, item);
  });
}

function addPlan(row, parent) {
  const section = element('section', undefined, parent);
  element('h2', row.planner, section);
  if (row.paper) element('p', row.paper, section, 'faint');
  const parts = partsOf(row.plan);
  if (parts) drawParts(parts, section);
  else element('pre', JSON.stringify(row.plan), section, 'scroll');
}

const main = element('main', undefined, document.body);
element('h1', `${data.case}, ${data.kind}`, main);
element('code', data.command, element('p', undefined, main));
const costText = key => row => significant(row[key]), excess = row => excessOf(row);
new SortedTable(element('section', undefined, main), [
  {head: 'planner', value: row => row.planner, text: row => row.planner},
  {head: 'predicted', title: 'Cost by the planner’s own formula.', value: row => row.cost, text: costText('cost'), numeric: true},
  {head: 'judged', title: 'Cost by the formula of the case’s kind.', value: row => row.judged, text: costText('judged'), numeric: true, better: 'less'},
  {head: 'optimum', title: 'Excess of the judged cost over the least cost of all plans.', value: excess, text: row => '+' + (100 * excess(row)).toFixed(2) + '%', numeric: true, better: 'less'},
  {head: 'search ms', value: row => row.search_ms, text: row => row.search_ms.toFixed(2), numeric: true, better: 'less'},
  {head: 'remark', value: row => row.remark || null, text: row => row.remark},
].filter(({head}) => head !== 'remark' || data.planners.some(row => row.remark)), data.planners, {label: 'costs of the plans', name: 'plans'});
element('p', isNumber(data.optimum) ? `The least cost of all plans is ${significant(data.optimum)}.`
  : 'The least cost of all plans is unknown, as an enumeration does not reach it.', main, 'faint');
element('p', '★ marks the best of a column; a click on a head sorts. A square is an operator or layer, its colour the part.', main, 'faint');
for (const row of data.planners.filter(row => row.plan)) addPlan(row, main);
