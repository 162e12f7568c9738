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

// A shape of SVG with attributes.
function shape(kind, attributes, parent) {
  const made = document.createElementNS('http://www.w3.org/2000/svg', kind);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
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

// Offers a text to be saved as a file.
function save(name, type, text) {
  const link = document.createElement('a');
  link.href = URL.createObjectURL(new Blob([text], {type}));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}
