// SPDX-License-Identifier: BSD-3-Clause
// Parts of a page.
'use strict';

function element(kind, text, parent, name) {
  const made = document.createElement(kind);
  if (text !== undefined) made.textContent = text;
  if (name) made.className = name;
  if (parent) parent.append(made);
  return made;
}

// What colours mean: [[colour, text]].
function legend(meant, parent) {
  const made = element('p', undefined, parent, 'legend');
  for (const [colour, text] of meant) {
    const item = element('span', undefined, made);
    element('i', undefined, item).style.background = colour;
    item.append(text);
  }
}
