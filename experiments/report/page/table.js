// SPDX-License-Identifier: BSD-3-Clause
// A table whose columns sort by a click on their heads.
class SortedTable {
  // columns: {head, title (or undefined), value(row): number, text or null; text(row); better: 'less', 'more' or
  // undefined; draw(cell, row, isBest): contents of a cell, or undefined; numeric: aligned to the right}
  // groupOf: rows of one group share a best value. mostBest: the largest share of rows that are marked as best
  constructor(parent, columns, rows, {label, name = '', groupOf = () => '', mostBest = 0.5}) {
    Object.assign(this, {columns, rows, mostBest, lines: new Map(), sorted: null});
    this.scroll = element('div', undefined, parent, 'scroll');
    this.table = element('table', undefined, this.scroll, 'sorted ' + name);
    this.table.setAttribute('aria-label', label);
    const heads = element('tr', undefined, element('thead', undefined, this.table));
    this.heads = columns.map(column => this.addHead(column, heads));
    this.body = element('tbody', undefined, this.table);
    const groups = groupedBy(rows, groupOf);
    this.best = columns.map(column => column.better ? this.bestTexts(column, groups) : new Map());
    for (const row of rows) this.addLine(row, groupOf(row));
  }

  addHead(column, parent) {
    const head = element('th', undefined, parent, column.numeric ? 'right' : '');
    head.scope = 'col';
    head.setAttribute('aria-sort', 'none');
    const button = element('button', column.head, head);
    if (column.title) button.title = column.title;
    button.onclick = () => this.sortBy(column);
    return head;
  }

  // Of each group the text of the best value; none where too many of the rows have it.
  bestTexts(column, groups) {
    const result = new Map();
    for (const [group, rows] of groups) {
      const known = rows.filter(row => isNumber(column.value(row))), best = bestOf(known.map(column.value), column.better);
      if (known.length < 2) continue;
      const text = column.text(known.find(row => column.value(row) === best));
      if (known.filter(row => column.text(row) === text).length <= this.mostBest * known.length) result.set(group, text);
    }
    return result;
  }

  addLine(row, group) {
    const line = element('tr', undefined, this.body);
    this.lines.set(row, line);
    this.columns.forEach((column, i) => {
      const cell = element(i === 0 ? 'th' : 'td', undefined, line, column.numeric ? 'right' : '');
      if (i === 0) cell.scope = 'row';
      cell.dataset.head = column.head;
      const isKnown = column.value(row) !== null && column.value(row) !== undefined;
      const isBest = isKnown && this.best[i].get(group) === column.text(row);
      if (column.draw) column.draw(cell, row, isBest);
      else cell.textContent = isKnown ? column.text(row) : '-';
      if (isBest) markBest(cell);
    });
  }

  // Sorts by a column: the best first, and at the next click the worst. Unknown values stand last.
  sortBy(column) {
    const again = this.sorted && this.sorted.column === column, down = again ? !this.sorted.down : column.better === 'more';
    this.sorted = {column, down};
    const isKnown = value => value !== null && value !== undefined;
    const compare = (a, b) => typeof a === 'string' || typeof b === 'string' ? String(a).localeCompare(String(b), 'en', {numeric: true}) : a - b;
    const rows = [...this.rows].sort((a, b) => {
      const [x, y] = [column.value(a), column.value(b)];
      return isKnown(x) && isKnown(y) ? (down ? -1 : 1) * compare(x, y) : Number(isKnown(y)) - Number(isKnown(x));
    });
    for (const row of rows) this.body.append(this.lines.get(row));
    this.heads.forEach((head, i) => head.setAttribute('aria-sort', this.columns[i] !== column ? 'none' : down ? 'descending' : 'ascending'));
  }
}

function markBest(cell) {
  cell.classList.add('best');
  const star = element('span', '★', cell.querySelector('.value') || cell, 'star');
  star.title = 'best';
  star.setAttribute('role', 'img');
  star.setAttribute('aria-label', 'best');
}
